"""`tertium report`: scores, comparisons, charts and segments as one HTML page."""

from __future__ import annotations

import argparse
from functools import partial

from tertium.cli import inputs, output
from tertium.cli.check import read_check_settings
from tertium.cli.judge import add_dry_run, print_plan
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.cli.significance import (
    SACREBLEU_NAMES,
    add_alpha,
    add_paired_tests,
    add_resamples,
    check_resamples,
    test_options,
)

DESCRIPTION = "Write a self-contained HTML page that shows how systems and metrics differ."
EPILOG = """\
examples:
  tertium report -t a.txt b.txt -r reference.txt -o report.html
  tertium report -s source.txt -t a.txt b.txt c.txt -r reference.txt -m bleu chrf bertscore wmd
  tertium report -t a.txt b.txt -r reference.txt -m chrf --human ratings.csv --explain 20
  tertium report -t systems.jsonl -m bleu chrf --by domain --challenge damage

The page works offline. It shows scores with intervals and clusters, charts, and every segment with
two systems side by side. Metrics that can explain a score (rte-r, tertium-small, bertscore, wmd and
others) explain the segments where metrics, raters or systems differ most. `tertium score`,
`compare` and `meta` write the same page with --report FILE.
"""


def add_arguments(parser: CommandParser) -> None:
    inputs.add_inputs(parser)
    group = parser.groups["Input"]
    group.add_argument("--human", metavar="FILE", help="human scores or comparisons of segments")
    inputs.add_metrics(parser, f"bleu, chrf and {inputs.RECOMMENDED_METRIC}")
    group = parser.groups["Metrics"]
    add_list(
        group,
        "--challenge",
        metavar="SET",
        help="also evaluate the metrics on a challenge set: damage, or files",
    )
    group.add_argument(
        "--checks",
        action="store_true",
        help="also show errors that can be found without a model, as `tertium check` does",
    )
    inputs.add_slices(parser)
    add_paired_tests(parser)
    add_resamples(parser, *SACREBLEU_NAMES)
    add_alpha(parser)
    group = parser.groups["Output"]
    group.add_argument(
        "-o",
        "--output",
        default="report.html",
        metavar="FILE",
        help="HTML file (default: report.html)",
    )
    group.add_argument("--title", default="", help="title of the page (default: none)")
    group.add_argument(
        "--explain", type=int, default=8, metavar="N", help="segments to explain (default: 8)"
    )
    group.add_argument(
        "--explain-with",
        metavar="METRIC",
        help="explain them with this metric, such as a judge (default: all metrics that can)",
    )
    output.add_quiet(parser)
    add_runtime(parser)
    add_dry_run(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.metric_choice import default_metrics
    from tertium.output.page.report import report

    check_resamples(args)
    output.check_outputs(args)
    testset = inputs.read_inputs(args)
    metrics = inputs.load_named_metrics(args, partial(default_metrics, testset), testset)
    if args.dry_run:
        return print_plan(args, testset, metrics)
    options = test_options(args)
    if not (args.paired_bs or args.paired_ar):
        options |= {"test": None, "slice_resamples": args.resamples}
    with progress_bars(args.quiet), runtime_of(args):
        page = report(
            testset,
            metrics,
            human=args.human,
            explain=args.explain,
            explain_with=inputs.load_named_metric(args, args.explain_with, testset),
            title=args.title,
            by=inputs.slice_columns(args),
            challenges=args.challenge,
            checks=args.checks and read_check_settings(args),
            **options,
            alpha=args.alpha,
        )
    output.write_report(args.output, page, args.quiet)
    return 0
