"""Results by slice (--by): computed, as records and as tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output

if TYPE_CHECKING:
    from tertium.core.result import Table
    from tertium.evaluation.evaluation import Evaluation
    from tertium.evaluation.slices import Slices


def make_slices(args: argparse.Namespace, results: Evaluation) -> list[Slices]:
    """Slice results by each column of --by; comparisons are tested by randomization by default."""
    if not args.by:
        return []
    from tertium.evaluation.slices import slice_results

    test: Any = "bootstrap" if args.paired_bs else "randomization"
    return [
        slice_results(results, column, test=test, resamples=args.resamples)
        for column in inputs.slice_columns(args)
    ]


def slice_records(slices: Sequence[Slices]) -> list[dict[str, Any]]:
    """Return all slices as records for JSON."""
    return [record for part in slices for record in part.records()]


def print_slices(args: argparse.Namespace, slices: Sequence[Slices]) -> None:
    """Print one table per column of --by; in TSV, one table of all."""
    if not slices:
        return
    tables = [table.with_decimals(args.width) for part in slices for table in part.tables()]
    if args.format == "tsv" and len(tables) > 1:
        tables = [_join_tables(tables)]
    for number, table in enumerate(tables):
        output.print_table(table, args.format, first=number == 0 and args.format == "tsv")


def _join_tables(tables: Sequence[Table]) -> Table:
    """Return one table of all slices, whose first column names what they were sliced by."""
    from tertium.core.result import Table

    joined: dict[str, list[Any]] = {}
    for table in tables:
        (by, names), *remaining = table.values().items()
        joined.setdefault("by", []).extend([by] * len(names))
        joined.setdefault("slice", []).extend(names)
        for name, values in remaining:
            joined.setdefault(name, []).extend(values)
    return Table.from_values(joined)
