"""`tertium challenge`: metrics on pairs of a better and a worse translation."""

from __future__ import annotations

import argparse
import sys

from tertium.cli.inputs import BEST, add_list, add_metrics, named_metrics
from tertium.cli.output import (
    FORMATS,
    NOTED,
    check_outputs,
    decimals,
    print_result,
    print_warnings,
)
from tertium.cli.runtime import add_runtime, bars, runtime_of
from tertium.errors import UsageError

HELP = "try metrics on pairs of better and worse translations"
DESCRIPTION = "Count how often a metric prefers the better of two translations, by phenomenon."
EPILOG = """\
SET is `damage`, our own set (ten sentences in six languages, damaged by rules), or a file in the
layout of ACES (TSV or JSONL) or DEMETR (JSON).

examples:
  tertium challenge damage -m chrf bleu
  tertium challenge damage -m tertium-multi --phenomena number negation --lps en-de de-en
  tertium challenge aces.tsv -m chrf -f json
  tertium challenge demetr/*.json -m chrf --plot demetr.svg
  tertium challenge damage -m chrf --at-least 0.8

With --at-least the exit code is 1 where a metric's mean accuracy over phenomena is below it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", nargs="*", metavar="SET", help="damage, or files of pairs")
    add_metrics(parser, BEST)
    add_list(parser, "--phenomena", metavar="NAME", help="only these")
    add_list(parser, "--lps", metavar="LP", help="these language pairs")
    parser.add_argument("--by", choices=("phenomenon", "language"), default="phenomenon")
    parser.add_argument(
        "--at-least", type=_share, metavar="SHARE", help="exit with 1 below this mean accuracy"
    )
    add_runtime(parser)
    group = parser.add_argument_group("output")
    group.add_argument("-f", "--format", choices=FORMATS, default="text", help="default: text")
    group.add_argument(
        "-w", "--width", type=decimals, default=1, metavar="N", help="decimals (default: 1)"
    )
    group.add_argument("--plot", metavar="FILE", help="a picture (.svg)")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no warnings")


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1")
    return share


def run(args: argparse.Namespace) -> int:
    from tertium.data.challenge import join_challenges, read_challenge
    from tertium.evaluation.challenge import challenge
    from tertium.evaluation.scoring import best_metric
    from tertium.reporting.tables.challenges import challenge_chart, challenge_table, left_out_lines
    from tertium.reporting.tables.table import counted_lines

    check_outputs(args)
    if not args.sets:
        raise UsageError(
            "which set? `damage`, or files of pairs; it goes first, for -m, --phenomena and --lps "
            "take all words that follow them"
        )
    if args.plot and not args.plot.endswith(".svg"):
        raise UsageError(f"--plot {args.plot}: a picture is written as .svg")
    read = join_challenges([read_challenge(file) for file in args.sets])
    metrics = named_metrics(args, lambda: [best_metric(read.testset())])
    with bars(args.quiet), runtime_of(args):
        study = challenge(read, metrics, by=args.by, phenomena=args.phenomena, lps=args.lps)
    if args.plot:
        from tertium.reporting.charts.standalone import write_picture

        write_picture(args.plot, [[("", challenge_chart(study))]])
    table = challenge_table(study, args.width, warnings=not args.quiet)
    print_result([study.records()], table, args.format)
    if args.format not in NOTED:
        print_warnings([*left_out_lines(study), *counted_lines(study.warnings)], args.quiet)
    means = zip(study.names, study.mean, strict=True)
    bound = (args.at_least or 0) - 1e-9  # a mean of .6, .9, .9 is rounded to less than .8
    low = [name for name, mean in means if mean < bound]
    for name in low:
        print(f"tertium: {name}: mean accuracy below {args.at_least:g}", file=sys.stderr)
    return 1 if low else 0
