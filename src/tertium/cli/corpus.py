"""`tertium corpus`: files of any size under metrics, on this machine or on a Ray cluster."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from tertium.cli.inputs import add_languages, named_metrics
from tertium.cli.output import print_result
from tertium.cli.runtime import add_runtime, bars, runtime_of
from tertium.errors import UsageError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE

if TYPE_CHECKING:
    from tertium.corpus.run import CorpusSummary
    from tertium.reporting.tables.table import Table

HELP = "score files of any size, here or on a cluster"
DESCRIPTION = (
    "Score every row of Parquet, JSONL, TSV or CSV files, and write the rows with their scores."
)
EPILOG = """\
examples:
  tertium corpus pairs.jsonl.gz -m chrf -o scored
  tertium corpus 'data/*.parquet' -m chrf tertium-small -o scored --keep 'tertium-small >= 0.7'
  tertium corpus data -m chrf -o scored --resume
  tertium corpus data -m tertium-small -o scored --engine ray --address auto --workers 8

Rows keep their order and columns; each metric adds one, and one for its warnings. --keep compares
columns: `chrf >= 50 and length(src) < 200 and not 'empty' in chrf.warnings`. Names with other marks
than _ . + - stand in backquotes, as do those of metrics with fields or with languages named. Rows
that cannot be scored are put aside in OUTPUT/_bad with the reason. A run that was killed goes on
with --resume.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="files, folders or globs")
    parser.add_argument(
        "-m",
        "--metrics",
        nargs="+",
        action="extend",
        required=True,
        metavar="METRIC",
        help="specs such as chrf, tertium-small; see `tertium list`",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where shards go")
    parser.add_argument("--keep", default="", metavar="EXPRESSION", help="write these rows alone")
    parser.add_argument(
        "--resume", action="store_true", help="go on with what is in FOLDER, or begin"
    )
    _add_rows(parser)
    _add_engine(parser)
    add_languages(parser)
    parser.set_defaults(model=[])  # which other commands take beside -m
    add_runtime(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--shards", choices=("parquet", "jsonl", "tsv"), default="parquet", help="default: parquet"
    )
    group.add_argument(
        "-f",
        "--format",
        choices=("text", "json", "tsv", "md"),
        default="text",
        help="of the summary",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress")


def _add_rows(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("rows")
    group.add_argument(
        "--fields", metavar="A,B,...", help="column names of a TSV or CSV without a header"
    )
    group.add_argument("--strict", action="store_true", help="stop at the first bad row")
    group.add_argument(
        "--longest",
        type=int,
        default=100_000,
        metavar="N",
        help="characters a text may have (default: 100,000)",
    )
    group.add_argument(
        "--part-rows",
        type=int,
        default=100_000,
        metavar="N",
        help="rows that are done at once and make a shard (default: 100,000)",
    )


def _add_engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engine")
    group.add_argument("--engine", choices=("local", "ray"), default="local", help="default: local")
    group.add_argument(
        "--workers", type=int, metavar="N", help="processes or actors (default: what suits)"
    )
    group.add_argument("--address", metavar="HOST:PORT", help="of a Ray cluster; auto: found here")
    group.add_argument(
        "--worker-cpus", type=float, default=1, metavar="X", help="of each actor (default: 1)"
    )
    group.add_argument(
        "--worker-gpus", type=float, default=0, metavar="X", help="of each actor, such as 0.25"
    )


def run(args: argparse.Namespace) -> int:
    from tertium.corpus.run import score_corpus

    if not args.inputs:
        raise UsageError("which files? they go first, for -m takes all words that follow it")
    with bars(args.quiet), runtime_of(args):
        summary = score_corpus(
            args.inputs,
            named_metrics(args),
            args.output,
            engine=args.engine,
            keep=args.keep,
            resume=args.resume,
            strict=args.strict,
            fields=args.fields.split(",") if args.fields else None,
            shards=args.shards,
            longest=args.longest,
            part_rows=args.part_rows,
            workers=args.workers,
            address=args.address,
            cpus=args.worker_cpus,
            gpus=args.worker_gpus,
        )
    print_result([summary.record()], summary_table(summary, args.output), args.format)
    return 0


def summary_table(summary: CorpusSummary, output: str) -> Table:
    """A row for each metric: mean and deciles; counts below."""
    from tertium.reporting.tables.table import Cell, Table, number

    rows: list[list[Cell | str]] = []
    for spec, tally in summary.metrics.items():
        places = load_metric(spec).decimals
        low, high = (tally.low, tally.high) if tally.count else (math.nan, math.nan)
        values = [tally.mean, low, *tally.deciles(), high]
        rows.append([spec, *(number(value, places) for value in values)])
    header = ["metric", "mean", "lowest", *(f"{tenth}0 %" for tenth in range(1, 10)), "highest"]
    return Table(header, rows, notes=_notes(summary, output))


def _tell_speed(rows: float) -> str:
    """How fast it went; a few rows a second have a decimal.

    >>> _tell_speed(1234.5), _tell_speed(1.04)
    ('1,234 rows a second', '1.0 rows a second')
    """
    return f"{rows:,.{0 if rows >= 10 else 1}f} rows a second"


def _notes(summary: CorpusSummary, output: str) -> list[str]:
    bad = sum(summary.bad.values())
    kept = f"{summary.rows:,} rows, {summary.kept:,} kept, {bad:,} put aside"
    parts = f"{summary.parts:,} part{'s' * (summary.parts != 1)}"
    speed = _tell_speed(summary.rows_per_second) if summary.scored else "all done before"
    notes = [f"{kept}; {parts} in {output}; {speed}"]
    notes += [f"put aside: {count:,} {reason}" for reason, count in sorted(summary.bad.items())]
    if bad:
        notes.append(f"each with its reason in {output}/_bad")
    for spec, tally in summary.metrics.items():
        if tally.missing:
            notes.append(f"{spec}: {tally.missing:,} {NO_SCORE}")
        notes += [f"{spec}: {count:,} {kind}" for kind, count in sorted(tally.warnings.items())]
        notes.append(tally.signature_text())
    return notes
