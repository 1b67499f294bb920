"""`tertium models`: which encoders are installed, which could be, and installing them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tertium.cache.folders import hub_folder, models_folder
from tertium.cli.bars import bars
from tertium.cli.output import FORMATS, print_records, print_table
from tertium.encoders.cards import CARDS
from tertium.encoders.install import install
from tertium.encoders.weights import find, in_hub_cache
from tertium.errors import UsageError
from tertium.reporting.tables.table import Table

LISTED = 15  # languages that a row names; the JSON names all
EPILOG = """\
examples:
  tertium models
  tertium models install mpnet
  tertium models install e5 use

An encoder is named minilm, mpnet, e5, use or glove, hf/NAME for a model of the Hugging Face hub or
its cache, dir/PATH for a model folder; @N after it chooses a layer (minilm@4).
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "models",
        help="list encoders, or install one",
        description="List the encoders that are installed or could be, or install some.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "install"), default="list", help="default: list"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the models to install")
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.action == "install":
        return _install(args)
    if args.names:
        raise UsageError(f"to install: tertium models install {' '.join(args.names)}")
    records = [_describe(name) for name in CARDS] + [_cached(name) for name in in_hub_cache()]
    if args.format == "json":
        print_records(records)
        return 0
    rows = [_row(record) for record in records]
    notes = [f"models folder: {models_folder()}", f"Hugging Face cache: {hub_folder()}"]
    header = ["name", "what", "languages", "MB", "where, or what would install it"]
    table = Table(header, rows, notes=notes, left=frozenset({0, 1, 2, 4}))
    print_table(table, args.format)
    return 0


def _install(args: argparse.Namespace) -> int:
    if not args.names:
        raise UsageError(f"which model? tertium models install {' | '.join(CARDS)}")
    for name in args.names:
        with bars(args.quiet):
            folder = install(name)
        print(f"{name}\t{folder}")
        for extra in CARDS[name].extras:
            print(f"tertium: {name} also needs `pip install {extra}`", file=sys.stderr)
    return 0


def _row(record: dict[str, Any]) -> list[str]:
    where = record["installed"] or record["install"]
    size = str(record["megabytes"])
    return [record["name"], record["what"], _count(record["languages"]), size, where]


def _count(languages: str) -> str:
    """A list too long for a column as its length."""
    known = languages.split()
    return languages if len(known) <= LISTED else f"{len(known)} languages"


def _describe(name: str) -> dict[str, Any]:
    card, found = CARDS[name], find(name)
    return {
        "name": name,
        "what": card.title,
        "languages": " ".join(sorted(card.languages)),
        "megabytes": card.size,
        "installed": f"{found[1]}: {found[0]}" if found else None,
        "install": f"tertium models install {name}",
    }


def _cached(name: str) -> dict[str, Any]:
    return {
        "name": f"hf/{name}",
        "what": "a model in the Hugging Face cache",
        "languages": "",
        "megabytes": "",
        "installed": "Hugging Face cache",
        "install": None,
    }
