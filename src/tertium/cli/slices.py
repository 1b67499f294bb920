"""Slices on the command line: results by each column that --by names, as records and tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output

if TYPE_CHECKING:
    from tertium.evaluation.scoring import Evaluation
    from tertium.evaluation.slices import Slices


def sliced_results(args: argparse.Namespace, results: Evaluation) -> list[Slices]:
    """The results by each column that --by names, tested as --paired-bs and --paired-ar say."""
    from tertium.evaluation.slices import slice_results

    bootstrap = args.paired_bs
    return [
        slice_results(
            results,
            column,
            test="bootstrap" if bootstrap else "randomization",
            resamples=args.paired_bs_n if bootstrap else args.paired_ar_n,
        )
        for column in inputs.slice_columns(args)
    ]


def slice_records(slices: Sequence[Slices]) -> list[dict[str, Any]]:
    """All slices as plain values, for JSON."""
    return [record for part in slices for record in part.records()]


def print_slices(args: argparse.Namespace, slices: Sequence[Slices]) -> None:
    """Print a table for each column that --by named, in TSV one of all."""
    from tertium.reporting.tables.slices import slice_table
    from tertium.reporting.tables.table import Table

    tables = [slice_table(part, args.width) for part in slices]
    if args.format == "tsv" and len(tables) > 1:
        rows = [[table.header[0], *row] for table in tables for row in table.rows]
        tables = [Table(["by", "slice", *tables[0].header[1:]], rows)]
    for number, table in enumerate(tables):
        output.print_table(table, args.format, first=number == 0 and args.format == "tsv")
