"""`tertium compare`: paired tests of systems under any metric, and clusters of equals."""

from __future__ import annotations

import argparse

from tertium.cli import inputs, output
from tertium.cli.paired import add_paired, add_seed_and_level, compare_systems
from tertium.cli.runtime import add_runtime

HELP = "compare systems with significance tests"
DESCRIPTION = "Compare systems: the first is the baseline; every pair is tested."
EPILOG = """\
examples:
  tertium compare -t baseline.txt ours.txt -r reference.txt
  tertium compare -t a.txt b.txt c.txt -r reference.txt -m bleu chrf meteor --paired-ar
  tertium compare -t a.txt b.txt c.txt -r reference.txt -m chrf --pairs -f md
  tertium compare -t systems.jsonl -m chrf --by domain length
  tertium compare -t a.txt b.txt -r reference.txt -m chrf --by domain=domains.txt

The paired bootstrap (the default) gives sacrebleu's p-values, and finds a difference where there is
none about twice as often as --alpha says. Check a borderline p with --paired-ar, which does not.
Slices (--by) are tested by randomization unless --paired-bs is given, and their p-values adjusted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    inputs.add_metrics(parser, f"bleu chrf and {inputs.BEST}")
    inputs.add_inputs(parser)
    inputs.add_slices(parser)
    add_runtime(parser)
    shown = output.add_output(parser)
    shown.add_argument(
        "--pairs", action="store_true", help="also the p-values of all pairs; in TSV these alone"
    )
    add_paired(parser)
    add_seed_and_level(parser)


def run(args: argparse.Namespace) -> int:
    return compare_systems(args, pairs=args.pairs, alpha=args.alpha)
