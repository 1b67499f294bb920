"""`tertium analyse`: which good translations only one of two metrics rates high."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.cli.inputs import GOLD, add_list, load_in_precision
from tertium.cli.output import FORMATS, print_records, print_table, print_warnings
from tertium.cli.runtime import add_runtime, bars, runtime_of
from tertium.data.evidence import read_scored_sets
from tertium.data.records import record_from_segment
from tertium.errors import UsageError
from tertium.reporting.tables.table import Cell, Table, show_controls
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.evaluation.error_analysis import ErrorAnalysis

HELP = "see where two metrics part on good translations"
DESCRIPTION = "Compare two metrics on the translations that people rate best."
EPILOG = """\
examples:
  tertium analyse da/wmt16/*-en.jsonl.gz -m svr chrf
  tertium analyse mine.tsv -m esim bleu --share 0.1 --examples 3

Of the best translations by human score (--share of each language pair), those that only one metric
rates high (the same share of its own scores) are counted, split by how many words they share with
the reference, by unknown words (not in --vocabulary, or in no reference of the files), by length.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="judged translations")
    add_list(parser, "-m", "--metrics", metavar="METRIC", help="two that are compared")
    parser.add_argument("--gold", metavar="NAME", help=GOLD)
    parser.add_argument("--share", type=float, default=0.2, help="default: 0.2")
    parser.add_argument("--vocabulary", metavar="FILE", help="known words, one a line")
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="show N of each")
    add_runtime(parser)
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.error_analysis import analyse

    if args.examples < 0:
        raise UsageError(f"--examples {args.examples}: expected zero or more")
    if args.examples and args.format not in ("text", "json"):
        raise UsageError(f"--examples are no part of a table: leave out -f {args.format}")
    specs, files = _two_metrics(args.metrics, args.files)
    first, second = load_in_precision(specs, args.precision)
    if first == second:
        raise UsageError(f"-m {first.spec} twice: two metrics that differ are compared")
    sets = read_scored_sets(files, args.gold or "")
    with bars(args.quiet), runtime_of(args):
        analysis = analyse(
            sets, first, second, share=args.share, vocabulary=_vocabulary(args.vocabulary)
        )
    _print(args, analysis)
    return 0


def _print(args: argparse.Namespace, analysis: ErrorAnalysis) -> None:
    print_warnings(
        [
            f"warning: {metric}: {kind}: {count}"
            for metric, counts in analysis.warnings.items()
            for kind, count in counts.items()
        ],
        quiet=args.quiet,
    )
    examples = {
        who: analysis.examples(first=who == "only first", limit=args.examples)
        for who in ("only first", "only second")
    }
    if args.format == "json":
        shown = {who: [record_from_segment(s) for s in some] for who, some in examples.items()}
        more = {"examples": shown} if args.examples else {}
        counted = {"counts": analysis.table, "warnings": analysis.warnings}
        print_records([{"metrics": analysis.metrics, **counted, **more}])
        return
    first, second = analysis.metrics
    names = {"only first": f"only {first}", "only second": f"only {second}"}
    print_table(_table(analysis, names, args.share), args.format)
    for who, segments in examples.items():
        _print_examples(names[who], segments)


def _table(analysis: ErrorAnalysis, names: Mapping[str, str], share: float) -> Table:
    """A row of counts for each trait; `names` say of which metric a column is."""
    header = ["translations", *(names.get(key, key) for key in analysis.table["all"])]
    rows: list[list[Cell | str]] = [
        [trait, *(Cell(str(count), count) for count in counts.values())]
        for trait, counts in analysis.table.items()
    ]
    return Table(header, rows, title=f"the best {100 * share:g} % by human score")


def _print_examples(name: str, segments: Sequence[Segment]) -> None:
    for segment in segments:
        print(show_controls(f"\n{name}: {segment.hypothesis}"))
        for text in segment.references:
            print(show_controls(f"  reference: {text}"))


def _two_metrics(metrics: Sequence[str], files: Sequence[str]) -> tuple[Sequence[str], list[str]]:
    """The metrics and the files, of which -m takes those that stand behind it."""
    if not files:
        metrics, files = metrics[:2], metrics[2:]
    if len(metrics) != 2:
        given = f"-m {' '.join(metrics)}" if metrics else "no -m"
        raise UsageError(f"{given}: two metrics are compared; give -m METRIC METRIC")
    if not files:
        raise UsageError("which files? give judged translations: tertium analyse FILE... -m A B")
    return metrics, [*files]


def _vocabulary(file: str | None) -> set[str] | None:
    if file is None:
        return None
    from tertium.data.formats import read_lines

    if not Path(file).is_file():
        raise UsageError(f"{file}: no such file of words")
    return {line.strip().lower() for line in read_lines(file)}
