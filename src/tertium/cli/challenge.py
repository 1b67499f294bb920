"""`tertium challenge`: accuracy of metrics on pairs of a better and a worse translation."""

from __future__ import annotations

import argparse
import sys

from tertium.cli.inputs import RECOMMENDED_METRIC, add_metrics, load_named_metrics
from tertium.cli.output import (
    FORMATS_WITH_NOTES,
    add_format,
    add_quiet,
    add_width,
    check_outputs,
    print_warnings,
    show,
)
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.errors import UsageError

DESCRIPTION = "Count how often a metric prefers the better of two translations, by phenomenon."
EPILOG = """\
examples:
  tertium challenge damage -m chrf bleu
  tertium challenge damage -m tertium-multi --phenomena number negation --lps en-de de-en
  tertium challenge aces.tsv -m chrf -f json
  tertium challenge damage -m chrf --at-least 0.8

SET is `damage`, our own set (ten sentences in six languages with rule-based errors), or a file in
the format of ACES (TSV or JSONL) or DEMETR (JSON).
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("sets", nargs="*", metavar="SET", help="damage, or files of pairs")
    add_list(group, "--phenomena", metavar="NAME", help="only these phenomena (default: all)")
    add_list(group, "--lps", metavar="LP", help="only these language pairs (default: all)")
    add_metrics(parser, RECOMMENDED_METRIC)
    group = parser.groups["Statistics"]
    group.add_argument(
        "--by",
        choices=("phenomenon", "language"),
        default="phenomenon",
        help="rows of the table (default: phenomenon)",
    )
    group.add_argument(
        "--at-least",
        type=_parse_share,
        metavar="X",
        help="exit with code 1 if the mean accuracy of a metric is below X (0 to 1)",
    )
    add_format(parser)
    add_width(parser, 1)
    parser.groups["Output"].add_argument("--plot", metavar="FILE", help="also write a chart (.svg)")
    add_quiet(parser)
    add_runtime(parser)


def _parse_share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return share


def run(args: argparse.Namespace) -> int:
    from tertium.data.challenge_sets import join_challenges, read_challenge
    from tertium.evaluation.challenge import challenge
    from tertium.evaluation.metric_choice import recommend_metric

    check_outputs(args)
    if not args.sets:
        raise UsageError(
            "no SET: give `damage` or files of pairs before -m, --phenomena and --lps, which take "
            "all following words"
        )
    if args.plot and not args.plot.endswith(".svg"):
        raise UsageError(f"--plot {args.plot}: expected a file that ends in .svg")
    pairs = join_challenges([read_challenge(file) for file in args.sets])
    metrics = load_named_metrics(args, lambda code: [recommend_metric(pairs.testset(), code)])
    with progress_bars(args.quiet), runtime_of(args):
        result = challenge(pairs, metrics, by=args.by, phenomena=args.phenomena, lps=args.lps)
    if args.plot:
        result.write(args.plot)
    tables = result.tables(decimals=args.width, warnings=not args.quiet)
    show(args, *tables, records=[result.records()])
    if args.format not in FORMATS_WITH_NOTES:
        print_warnings(result.warning_lines(), args.quiet)
    means = zip(result.names, result.mean, strict=True)
    threshold = (args.at_least or 0) - 1e-9  # the mean of .6, .9, .9 is slightly below .8
    failed = [name for name, mean in means if mean < threshold]
    for name in failed:
        print(f"tertium: {name}: mean accuracy below {args.at_least:g}", file=sys.stderr)
    return 1 if failed else 0
