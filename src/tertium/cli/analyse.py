"""`tertium analyse`: good translations that only one of two metrics rates high."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tertium.cli.inputs import GOLD_HELP, load_in_precision
from tertium.cli.output import add_format, add_quiet, print_warnings, show
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.data.human_data_files import read_judgment_sets
from tertium.errors import UsageError

DESCRIPTION = "Compare two metrics on the translations with the best human scores."
EPILOG = """\
examples:
  tertium analyse da/wmt16/*-en.jsonl.gz -m svr chrf
  tertium analyse mine.tsv -m esim bleu --share 0.1 --examples 3

Of the best translations by human score (--share of each language pair), the table counts those that
only one metric rates high (the same share of its own scores), by word overlap with the reference,
by unknown words (not in --vocabulary, or in no reference of the files), and by length.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("files", nargs="*", metavar="FILE", help="translations with human scores")
    group.add_argument("--gold", metavar="NAME", help=GOLD_HELP)
    group.add_argument("--vocabulary", metavar="FILE", help="known words, one per line")
    add_list(
        parser.groups["Metrics"], "-m", "--metrics", metavar="METRIC", help="two metrics to compare"
    )
    parser.groups["Statistics"].add_argument(
        "--share",
        type=float,
        default=0.2,
        metavar="X",
        help="share of translations that count as best (default: 0.2)",
    )
    add_format(parser)
    parser.groups["Output"].add_argument(
        "--examples", type=int, default=0, metavar="N", help="show N examples of each (default: 0)"
    )
    add_quiet(parser)
    add_runtime(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.error_analysis import analyse

    if args.examples < 0:
        raise UsageError(f"--examples {args.examples}: expected 0 or more")
    if args.examples and args.format not in ("text", "json"):
        raise UsageError(f"--examples needs -f text or json, got -f {args.format}")
    specs, files = _split_metrics_and_files(args.metrics, args.files)
    first, second = load_in_precision(specs, args)
    if first == second:
        raise UsageError(f"-m {first.spec} twice: expected two different metrics")
    sets = read_judgment_sets(files, args.gold or "")
    vocabulary = _read_vocabulary(args.vocabulary)
    with progress_bars(args.quiet), runtime_of(args):
        analysis = analyse(
            sets,
            first,
            second,
            share=args.share,
            vocabulary=vocabulary,
            example_count=args.examples,
        )
    warnings = [
        f"warning: {metric}: {kind}: {count}"
        for metric, counts in analysis.warnings.items()
        for kind, count in counts.items()
    ]
    print_warnings(warnings, args.quiet)
    show(args, analysis)
    return 0


def _split_metrics_and_files(
    metrics: Sequence[str], files: Sequence[str]
) -> tuple[Sequence[str], list[str]]:
    """Return two metrics and the files; files after -m METRIC METRIC are in `metrics`."""
    if not files:
        metrics, files = metrics[:2], metrics[2:]
    if len(metrics) != 2:
        option = f"-m {' '.join(metrics)}" if metrics else "no -m"
        raise UsageError(f"{option}: expected two metrics; give -m METRIC METRIC")
    if not files:
        raise UsageError("no files: give translations with human scores before -m")
    return metrics, [*files]


def _read_vocabulary(file: str | None) -> set[str] | None:
    if file is None:
        return None
    from tertium.data.text_files import read_lines

    if not Path(file).is_file():
        raise UsageError(f"--vocabulary {file}: no such file")
    return {line.strip().lower() for line in read_lines(file)}
