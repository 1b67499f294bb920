"""`tertium report`: scores, comparisons, pictures and segments as one HTML page."""

from __future__ import annotations

import argparse

from tertium.cli import inputs, output
from tertium.cli.paired import add_paired, add_seed_and_level, check_compared, test_choices
from tertium.cli.runtime import add_runtime, bars, runtime_of

HELP = "write an HTML page about systems and metrics"
DESCRIPTION = "Write one self-contained HTML page that shows how systems and metrics differ."
EPILOG = """\
The page opens from disk and asks nothing of the network. It shows scores with intervals and
clusters, pictures, and every segment with two systems side by side. Metrics that can explain a
score (bertr, bertscore, wmd, rte-r, tertium-small and their relatives) and a ranker do so for the
segments where metrics, people or systems differ most.

examples:
  tertium report -t a.txt b.txt -r reference.txt -o report.html
  tertium report -s source.txt -t a.txt b.txt c.txt -r reference.txt -m bleu chrf bertscore wmd
  tertium report -t a.txt b.txt -r reference.txt -m chrf --human ratings.csv --explain 20
  tertium report -t systems.jsonl -m bleu chrf --ranker pairwise --by domain length
  tertium report -t a.txt b.txt -r reference.txt -m bleu chrf --challenge damage

`tertium score`, `compare`, `rank` and `meta` write the same page with --report FILE.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    inputs.add_metrics(parser, f"bleu chrf and {inputs.BEST}")
    inputs.add_inputs(parser)
    inputs.add_slices(parser)
    parser.add_argument("--human", metavar="FILE", help="human scores or comparisons of segments")
    parser.add_argument("--ranker", metavar="RANKER", help="also a ranker's chances to win")
    inputs.add_list(parser, "--curves", metavar="FILE", help="learning curves, ablations (JSON)")
    inputs.add_list(
        parser,
        "--challenge",
        metavar="SET",
        help="also the metrics on pairs of a better and a worse translation: damage, or files",
    )
    add_runtime(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o", "--output", default="report.html", metavar="FILE", help="default: report.html"
    )
    group.add_argument("--title", default="", help="the heading of the page")
    group.add_argument(
        "--explain", type=int, default=8, metavar="N", help="explain N segments (default: 8)"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no warnings")
    add_paired(parser)
    add_seed_and_level(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.scoring import usual_metrics
    from tertium.reporting.page.making import report

    check_compared(args)
    output.check_outputs(args)
    testset = inputs.read_inputs(args)
    metrics = inputs.named_metrics(args, lambda: usual_metrics(testset))
    choices = test_choices(args)
    if not (args.paired_bs or args.paired_ar):
        choices |= {"test": None, "slice_resamples": args.paired_ar_n}
    with bars(args.quiet), runtime_of(args):
        page = report(
            testset,
            metrics,
            ranker=args.ranker,
            human=args.human,
            curves=args.curves,
            explain=args.explain,
            title=args.title,
            by=inputs.slice_columns(args),
            challenges=args.challenge,
            **choices,
            alpha=args.alpha,
        )
    output.write_report(args.output, page, args.quiet)
    return 0
