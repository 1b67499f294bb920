"""`tertium worst`: the translations most in need of attention, over systems and languages."""

from __future__ import annotations

import argparse

from tertium.cli import inputs, output
from tertium.cli.judge import add_dry_run, print_plan
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of

DESCRIPTION = "List the translations most in need of attention, over systems and languages."
EPILOG = """\
examples:
  tertium worst -s source.txt -t a.txt b.txt -r reference.txt -o worst.xlsx
  tertium worst -t systems.jsonl -m tertium-multi -n 100 --per-language 20 -o worst.html
  tertium worst -t systems.jsonl -m chrf --human ratings.jsonl -o worst.csv worst.jsonl

Outputs that are not a translation come first: empty, in the wrong language, copied, cut off. Then
come critical findings of `tertium check`, then the highest chances of a serious error. A column lp
(en-de) gives each row its own language pair.
"""


def add_arguments(parser: CommandParser) -> None:
    inputs.add_inputs(parser)
    group = parser.groups["Input"]
    add_list(
        group,
        "--human",
        metavar="FILE",
        help="human scores of other translations, to fit the chance of a serious error",
    )
    inputs.add_metrics(parser, inputs.RECOMMENDED_METRIC)
    group = parser.groups["Output"]
    group.add_argument(
        "-n", "--count", type=int, default=50, metavar="N", help="translations (default: 50)"
    )
    group.add_argument(
        "--per-language",
        type=int,
        metavar="N",
        help="at most N translations of a language pair (default: any number)",
    )
    group.add_argument(
        "--per-document",
        type=int,
        metavar="N",
        help="at most N translations of a document (default: any number)",
    )
    output.add_format(parser)
    add_list(
        group, "-o", "--output", metavar="FILE", help="also write .xlsx, .csv, .jsonl or .html"
    )
    output.add_quiet(parser)
    add_runtime(parser)
    add_dry_run(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.decisions.worst import WorstSegments, worst
    from tertium.evaluation.metric_choice import recommend_metric

    WorstSegments.check_paths(*args.output)
    output.check_outputs(args)
    testset = inputs.read_inputs(args)
    specs = args.metrics or [recommend_metric(testset, args.target_language or "")]
    metrics = inputs.load_in_precision(specs, args)
    if args.dry_run:
        return print_plan(args, testset, metrics)
    with progress_bars(args.quiet), runtime_of(args):
        result = worst(
            testset,
            [metric.spec for metric in metrics],
            count=args.count,
            per_language=args.per_language,
            per_document=args.per_document,
            lp=inputs.language_pair(args),
            human=args.human or None,
        )
    result.write(*args.output)
    tables = result.tables(shorten=args.format == "text")
    output.show(args, *tables, records=result.records())
    return 0
