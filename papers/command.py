"""`python -m papers` and `tertium reproduce`: a paper's tables, published beside measured."""

from __future__ import annotations

import argparse
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.cli.output import FORMATS, check_outputs, print_records, print_table
from tertium.cli.runtime import bars
from tertium.data.collection import VARIABLE, Collection
from tertium.errors import TertiumError, UnknownNameError, UsageError
from tertium.reporting.tables.table import Table

if TYPE_CHECKING:
    from papers.ledger import Ledger
    from papers.table import PaperTable

logger = logging.getLogger(__name__)

EPILOG = f"""\
Judgments come from --data or, by default, from the folder {VARIABLE} names.

examples:
  tertium reproduce --list
  tertium reproduce mathur2019 --table 1
  tertium reproduce guzman2015 -f md
  tertium reproduce all -o docs/results.md
  tertium reproduce song2021 --table 7 -o docs/results.md
  tertium reproduce mathur2019 --table 2 --winners -o docs/results.md

With -o the figures are kept in a folder beside the page, one file a table: the same command goes on
where an interrupted one stopped, and what is known is not measured again unless --again asks for
it. The page shows all that is kept; --kept writes it and measures nothing.
"""
ALL = "all"
# options that say nothing to a choice
UNREAD = {
    "list": ("rows", "output", "again", "kept", "winners"),
    "kept": ("table", "rows", "again", "winners"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("paper", nargs="?", help=f"a paper, as --list names it, or {ALL!r}")
    parser.add_argument("--list", action="store_true", help="list papers and tables")
    parser.add_argument("--table", metavar="N", help="one table (default: all)")
    parser.add_argument(
        "--rows", nargs="+", action="extend", metavar="ROW", help="measure these rows only"
    )
    parser.add_argument("--data", metavar="DIR", help=f"the judgments (default: {VARIABLE})")
    parser.add_argument("-o", "--output", metavar="FILE", help="write a page of results (.md)")
    parser.add_argument("--again", action="store_true", help="with -o: measure what is known, too")
    parser.add_argument("--kept", action="store_true", help="with -o: write the page, no more")
    parser.add_argument(
        "--winners",
        action="store_true",
        help="with -o: test by Williams which rows no other outperforms, and print them in bold",
    )
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    from papers.render import as_record, as_table
    from papers.table import measure

    if args.list:
        _refuse_unread(args, "list")
        return _list(args)
    if not args.paper:
        raise UsageError("which paper? `tertium reproduce --list` names them")
    if args.output:
        return _write(args)
    if args.paper == ALL:
        raise UsageError("`tertium reproduce all` takes hours: say where to keep it with -o FILE")
    if args.again or args.kept or args.winners:
        raise UsageError("--again, --kept and --winners are about kept figures: give -o FILE")
    tables, collection = _tables(args), Collection.at(args.data)
    if args.format == "tsv" and len(tables) > 1:
        numbers = ", ".join(table.number for table in tables)
        raise UsageError(f"-f tsv prints one table: choose it with --table ({numbers})")
    with bars(args.quiet):
        outcomes = []
        for table in tables:
            outcomes.append(outcome := measure(table, collection))
            if args.format != "json":
                print_table(as_table(outcome), args.format, first=table is tables[0])
    if args.format == "json":
        print_records([as_record(outcome) for outcome in outcomes])
    return 0


def _refuse_unread(args: argparse.Namespace, choice: str) -> None:
    """Refuse options that say nothing to a choice."""
    given = [name for name in UNREAD[choice] if getattr(args, name)]
    if given:
        raise UsageError(f"--{given[0]} does not go with --{choice}, which measures nothing")


def _write(args: argparse.Namespace) -> int:
    """Measure what is not known yet, table by table, then write the page of all that is."""
    from papers.ledger import Ledger
    from papers.page import write_results

    page = Path(args.output)
    if args.format != "text":
        raise UsageError(f"-o writes a page of Markdown: leave out -f {args.format}")
    check_outputs(args)
    if args.kept:
        _refuse_unread(args, "kept")
    tables = _tables(args)
    if not args.kept:
        collection, ledger = Collection.at(args.data), Ledger(page.parent / page.stem, args.again)
        with bars(args.quiet):
            for table in tables:
                _keep_figures(table, collection, ledger, winners=args.winners)
    for path in write_results(page):
        print(path)
    return 0


def _keep_figures(
    table: PaperTable, collection: Collection, ledger: Ledger, *, winners: bool
) -> None:
    """Measure what the ledger lacks of a table; one that cannot be keeps no other from it."""
    from papers.table import measure
    from papers.winners import mark_winners

    try:
        ledger.note_missing(measure(table, collection, ledger.recall))
        if winners:
            mark_winners(table, collection, ledger)
    except TertiumError as error:
        logger.warning("%s, table %s: %s", table.paper, table.number, error)


def _tables(args: argparse.Namespace) -> list[PaperTable]:
    """The tables that were asked for, with the rows that were asked for."""
    from papers import PAPERS, chosen_tables

    one = args.paper not in (ALL, None)
    if args.table and not one:
        raise UsageError("--table goes with one paper")
    papers = [args.paper] if one else list(PAPERS)
    tables = [table for paper in papers for table in chosen_tables(paper, args.table)]
    labels = args.rows or []
    known = {row.label for table in tables for row in table.rows}
    for label in labels:
        if label not in known:
            raise UnknownNameError("row", label, known)
    if not labels:
        return tables
    some = [replace(t, rows=[row for row in t.rows if row.label in labels]) for t in tables]
    return [table for table in some if table.rows]


def _list(args: argparse.Namespace) -> int:
    from papers import PAPERS

    tables = _tables(args)
    records = [
        {
            "paper": table.paper,
            "table": table.number,
            "title": table.title,
            "data": table.experiment.data,
            "measured": [row.label for row in table.rows if row.model is not None],
        }
        for table in tables
    ]
    if args.format == "json":
        print_records(records)
        return 0
    rows = [[*map(str, list(r.values())[:4]), ", ".join(r["measured"])] for r in records]
    cited = [f"{paper}: {PAPERS[paper]}" for paper in dict.fromkeys(t.paper for t in tables)]
    header = ["paper", "table", "title", "data", "measured rows"]
    print_table(Table(header, rows, notes=cited, left=frozenset(range(5))), args.format)
    return 0
