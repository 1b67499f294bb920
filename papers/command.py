"""`python -m papers`: published tables next to our measurements."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from papers.number_cells import cell_table
from tertium.cli.arguments import OneLineErrorParser
from tertium.cli.runner import progress_bars
from tertium.core.errors import TertiumError, UnknownNameError, UsageError
from tertium.core.extras import explain_missing
from tertium.data.dataset_folder import DATA_VARIABLE, DatasetFolder
from tertium.output.text import render_contents

if TYPE_CHECKING:
    from papers.ledger import Ledger
    from papers.table import PaperTable

FORMATS = ("text", "md")
logger = logging.getLogger(__name__)

DESCRIPTION = "Measure the tables of a paper, and print them next to the published figures."
EPILOG = f"""\
Judgments come from --data (default: the folder named by {DATA_VARIABLE}).

examples:
  python -m papers --list
  python -m papers mathur2019 --table 1
  python -m papers guzman2015 -f md
  python -m papers all -o docs/papers
  python -m papers song2021 --table 7 -o docs/papers
  python -m papers mathur2019 --table 2 --winners -o docs/papers

With -o, figures are stored in the folder `results` next to DIR, one file per table. The same
command continues an interrupted run. Stored figures are not measured again without --again. The
pages show all stored figures; --kept writes them without measuring anything.
"""
ALL = "all"
# Options that have no effect with an option that measures nothing.
INCOMPATIBLE_OPTIONS = {
    "list": ("rows", "output", "again", "kept", "winners"),
    "kept": ("table", "rows", "again", "winners"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = make_parser()
    try:
        args = parser.parse_args(arguments)
        level = logging.ERROR if args.quiet else logging.WARNING
        logging.basicConfig(level=level, format="papers: %(message)s")
        with explain_missing("`python -m papers`"):
            return run(args)
    except TertiumError as error:
        print(f"papers: error: {error}", file=sys.stderr)
        return error.exit_code


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = OneLineErrorParser(
        prog="python -m papers",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("paper", nargs="?", help=f"name of a paper (see --list), or {ALL!r}")
    parser.add_argument("--list", action="store_true", help="list papers and tables")
    parser.add_argument("--table", metavar="N", help="measure one table (default: all)")
    parser.add_argument(
        "--rows", nargs="+", action="extend", metavar="ROW", help="measure only these rows"
    )
    parser.add_argument(
        "--data", metavar="DIR", help=f"folder of human judgments (default: {DATA_VARIABLE})"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write result pages to this folder")
    parser.add_argument(
        "--again", action="store_true", help="with -o: measure stored figures again"
    )
    parser.add_argument(
        "--kept", action="store_true", help="with -o: write the pages from stored figures only"
    )
    parser.add_argument(
        "--winners",
        action="store_true",
        help="with -o: mark rows that no other row outperforms significantly (Williams' test)",
    )
    parser.add_argument("-f", "--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars")


def run(args: argparse.Namespace) -> int:
    if args.list:
        _check_options(args, "list")
        return _list(args)
    if not args.paper:
        raise UsageError("which paper? `python -m papers --list` lists them")
    if args.output:
        return _write_pages(args)
    if args.paper == ALL:
        raise UsageError("`python -m papers all` takes hours: store the figures with -o DIR")
    if args.again or args.kept or args.winners:
        raise UsageError("--again, --kept and --winners need stored figures: add -o DIR")
    return _print_tables(args)


def _print_tables(args: argparse.Namespace) -> int:
    from papers.table import measure
    from papers.table_rendering import make_table

    tables, datasets = _select_tables(args), DatasetFolder.open(args.data)
    with progress_bars(args.quiet):
        for table in tables:
            print(render_contents([make_table(measure(table, datasets))], args.format))
    return 0


def _check_options(args: argparse.Namespace, option: str) -> None:
    """Reject options that have no effect together with `option`."""
    for name in INCOMPATIBLE_OPTIONS[option]:
        if getattr(args, name):
            raise UsageError(f"--{name} cannot be used with --{option}, which measures nothing")


def _write_pages(args: argparse.Namespace) -> int:
    """Measure the missing figures, then write the pages of all stored figures."""
    from papers.ledger import Ledger
    from papers.pages import ResultPages

    folder = Path(args.output)
    if args.format != "text":
        raise UsageError(f"-o writes Markdown pages: remove -f {args.format}")
    if folder.suffix == ".md" or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"-o {folder}: expected a folder, such as docs/papers")
    if args.kept:
        _check_options(args, "kept")
    tables, pages = _select_tables(args), ResultPages(folder)
    if not args.kept:
        datasets, ledger = DatasetFolder.open(args.data), Ledger(pages.results_folder, args.again)
        with progress_bars(args.quiet):
            for table in tables:
                _measure_and_store(table, datasets, ledger, mark_best=args.winners)
    for path in pages.write():
        print(path)
    return 0


def _measure_and_store(
    table: PaperTable, datasets: DatasetFolder, ledger: Ledger, *, mark_best: bool
) -> None:
    """Measure the missing figures of a table; log an error, so that other tables continue."""
    from papers.significance import mark_best_rows
    from papers.table import measure

    try:
        ledger.record_unavailable(measure(table, datasets, ledger.get_figure))
        if mark_best:
            mark_best_rows(table, datasets, ledger)
    except TertiumError as error:
        logger.warning("%s, table %s: %s", table.paper, table.number, error)


def _select_tables(args: argparse.Namespace) -> list[PaperTable]:
    """Return the requested tables, with the requested rows."""
    from papers import PAPERS, find_table, tables_of

    papers = list(PAPERS) if args.paper in (ALL, None) else [args.paper]
    if args.table and len(papers) > 1:
        raise UsageError("--table needs one paper")
    if args.table:
        tables = [find_table(papers[0], args.table)]
    else:
        tables = [table for paper in papers for table in tables_of(paper)]
    labels = {row.label for table in tables for row in table.rows}
    for label in args.rows or ():
        if label not in labels:
            raise UnknownNameError("row", label, labels)
    if not args.rows:
        return tables
    filtered = [replace(t, rows=[r for r in t.rows if r.label in args.rows]) for t in tables]
    return [table for table in filtered if table.rows]


def _list(args: argparse.Namespace) -> int:
    from papers import PAPERS

    tables = _select_tables(args)
    rows = []
    for table in tables:
        measured = ", ".join(row.label for row in table.rows if row.model is not None)
        rows.append([table.paper, table.number, table.title, table.experiment.data, measured])
    titles = [f"{paper}: {PAPERS[paper]}" for paper in dict.fromkeys(t.paper for t in tables)]
    header = ["paper", "table", "title", "data", "measured rows"]
    listing = cell_table(header, rows, notes=titles, text_columns=range(5))
    print(render_contents([listing], args.format), end="")
    return 0
