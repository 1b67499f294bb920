"""`tertium reproduce`: a paper's tables, published beside measured."""

from __future__ import annotations

import argparse

from tertium.cli.bars import bars
from tertium.cli.output import FORMATS, print_records, print_table
from tertium.data.collection import VARIABLE, Collection
from tertium.errors import UsageError
from tertium.report.tables import Table

EPILOG = f"""\
Judgements come from --data or, by default, from the folder {VARIABLE} names.

examples:
  tertium reproduce --list
  tertium reproduce mathur2019 --table 1
  tertium reproduce guzman2015 -f md
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "reproduce",
        help="measure a paper's tables, published beside measured",
        description="Measure the tables of a paper, or one, and print them beside what it says.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paper", nargs="?", help="a paper, as --list names it")
    parser.add_argument("--list", action="store_true", help="list papers and tables")
    parser.add_argument("--table", metavar="N", help="one table (default: all)")
    parser.add_argument("--data", metavar="DIR", help=f"the judgements (default: {VARIABLE})")
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def run(args: argparse.Namespace) -> int:
    from tertium.reproduce import reproduce
    from tertium.reproduce.render import as_record, as_table

    if args.list:
        return _list(args)
    if not args.paper:
        raise UsageError("which paper? `tertium reproduce --list` names them")
    collection = Collection.at(args.data)
    with bars(args.quiet):
        outcomes = []
        for outcome in reproduce(args.paper, collection, table=args.table):
            outcomes.append(outcome)
            if args.format != "json":
                print_table(as_table(outcome), args.format)
    if args.format == "json":
        print_records([as_record(outcome) for outcome in outcomes])
    return 0


def _list(args: argparse.Namespace) -> int:
    from tertium.reproduce import PAPERS, tables_of

    papers = [args.paper] if args.paper else list(PAPERS)
    records = [
        {
            "paper": paper,
            "table": table.number,
            "title": table.title,
            "data": table.experiment.data,
            "measured": [row.label for row in table.rows if row.model is not None],
        }
        for paper in papers
        for table in tables_of(paper)
    ]
    if args.format == "json":
        print_records(records)
        return 0
    rows = [[*map(str, list(r.values())[:4]), ", ".join(r["measured"])] for r in records]
    cited = [f"{paper}: {PAPERS[paper]}" for paper in papers]
    header = ["paper", "table", "title", "data", "measured rows"]
    print_table(Table(header, rows, notes=cited, left=frozenset(range(5))), args.format)
    return 0
