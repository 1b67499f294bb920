"""Results by slice (--by): computed, as records and as tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs

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


def slice_tables(slices: Sequence[Slices]) -> list[Table]:
    """Return one table per column of --by."""
    return [table for part in slices for table in part.tables()]


def join_slices(slices: Sequence[Slices]) -> Table:
    """Return the slices as a table for TSV; of several columns, the first cells name them."""
    tables = slice_tables(slices)
    return tables[0] if len(tables) == 1 else _join_tables(tables)


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
