"""`tertium compare`: paired significance tests of systems, and clusters of equal systems."""

from __future__ import annotations

import argparse

from tertium.cli import inputs, output
from tertium.cli.judge import add_dry_run
from tertium.cli.parser import CommandParser
from tertium.cli.runtime import add_runtime
from tertium.cli.significance import (
    SACREBLEU_NAMES,
    add_alpha,
    add_paired_tests,
    add_resamples,
    compare_systems,
)

DESCRIPTION = "Compare systems: the first is the baseline, and every pair is tested."
EPILOG = """\
examples:
  tertium compare -t baseline.txt ours.txt -r reference.txt
  tertium compare -t a.txt b.txt c.txt -r reference.txt -m bleu chrf meteor --paired-ar
  tertium compare -t a.txt b.txt c.txt -r reference.txt -m chrf --pairs -f md
  tertium compare -t systems.jsonl -m chrf --by domain length

The paired bootstrap (default) gives sacrebleu's p-values. On small test sets it reports false
differences about twice as often as --alpha allows: check a borderline p-value with --paired-ar.
Slices (--by) are tested by randomization unless --paired-bs is given, with adjusted p-values.
"""


def add_arguments(parser: CommandParser) -> None:
    inputs.add_inputs(parser)
    inputs.add_metrics(parser, f"bleu, chrf and {inputs.RECOMMENDED_METRIC}")
    inputs.add_slices(parser)
    add_paired_tests(parser)
    add_resamples(parser, *SACREBLEU_NAMES)
    add_alpha(parser)
    output.add_output(parser)
    parser.groups["Output"].add_argument(
        "--pairs", action="store_true", help="also show p-values of all pairs (in TSV only these)"
    )
    add_runtime(parser)
    add_dry_run(parser)


def run(args: argparse.Namespace) -> int:
    return compare_systems(args, pairs=args.pairs, alpha=args.alpha)
