"""`tertium models`: which encoders and dictionaries are here, which could be, installing them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tertium.cache.files import hub_folder, models_folder
from tertium.cli.output import FORMATS, print_result
from tertium.cli.runtime import bars
from tertium.encoders.cards import CARDS, Resource
from tertium.encoders.encoder import ENCODERS
from tertium.encoders.install import install, is_sound
from tertium.encoders.weights import find, in_hub_cache
from tertium.errors import MissingResourceError, UnknownNameError, UsageError
from tertium.linguistics.wordnet import WORDNET, find_wordnet
from tertium.registry import package_of
from tertium.reporting.tables.table import Table

RESOURCES: Mapping[str, Resource] = {**CARDS, WORDNET.name: WORDNET}
LISTED = 15  # languages that a row names; the JSON names all
HELP = "list encoders and dictionaries, or install one"
DESCRIPTION = "List the encoders and dictionaries that are or could be here, or install one."
EPILOG = """\
examples:
  tertium models
  tertium models install mpnet
  tertium models install e5 wordnet
  tertium models install gemma          shows its terms, and asks

An encoder is named minilm, mpnet, e5, gemma, use or glove, hf/NAME for a model of the Hugging Face
hub or its cache, dir/PATH for a model folder; @N after it chooses a layer (minilm@4). METEOR's
synonyms and the entailment features read WordNet.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", choices=("list", "install"), default="list", help="default: list"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the models to install")
    parser.add_argument(
        "--agree",
        action="store_true",
        help="agree to the terms of models that have such (gemma) without being asked",
    )
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    if args.action == "install":
        if args.format != "text":
            raise UsageError(f"-f {args.format} is for the list of models: leave it out of install")
        return _install(args)
    if args.agree:
        raise UsageError("--agree goes with tertium models install NAME")
    if args.names:
        raise UsageError(f"to install: tertium models install {' '.join(args.names)}")
    records = [
        *map(_describe, RESOURCES.values()),
        *(
            _record(f"hf/{name}", "a model in the Hugging Face cache", "Hugging Face cache")
            for name in in_hub_cache()
        ),
        *(
            _record(name, "an encoder of another package", package_of(entries[0]))
            for name, entries in ENCODERS.plugins.items()
        ),
    ]
    rows = [_row(record) for record in records]
    notes = [f"models folder: {models_folder()}", f"Hugging Face cache: {hub_folder()}"]
    header = ["name", "what", "languages", "MB", "where, or what would install it"]
    table = Table(header, rows, notes=notes, left=frozenset({0, 1, 2, 4}))
    print_result(records, table, args.format)
    return 0


def _install(args: argparse.Namespace) -> int:
    if not args.names:
        raise UsageError(f"which model? tertium models install {' | '.join(RESOURCES)}")
    for name in args.names:
        _ask_agreement(_card(name), args.agree)
    for name in args.names:
        with bars(args.quiet):
            folder = install(_card(name))
        print(f"{name}\t{folder}")
        for extra in _card(name).extras:
            print(f"tertium: {name} also needs `pip install {extra}`", file=sys.stderr)
    return 0


def _ask_agreement(card: Resource, agreed: bool) -> None:
    """Show the terms of a model that has such, and go on only where the user agrees to them."""
    if not card.terms or is_sound(models_folder() / card.name, card):
        return
    print(card.terms, file=sys.stderr)
    if agreed:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{card.name} has terms of its own (above): --agree says that you agree")
    print(f"Do you agree to them? Type yes to install {card.name}: ", end="", file=sys.stderr)
    if sys.stdin.readline().strip().lower() != "yes":
        raise UsageError(f"{card.name} was not installed: its terms were not agreed to")


def _card(name: str) -> Resource:
    if name not in RESOURCES:
        raise UnknownNameError("model", name, RESOURCES)
    return RESOURCES[name]


def _row(record: dict[str, Any]) -> list[str]:
    where = record["installed"] or record["install"]
    size = str(record["megabytes"])
    return [record["name"], record["what"], _count(record["languages"]), size, where]


def _count(languages: str) -> str:
    """A list too long for a column as its length."""
    known = languages.split()
    return languages if len(known) <= LISTED else f"{len(known)} languages"


def _find(card: Resource) -> tuple[Path, str] | None:
    if card.name in CARDS:
        return find(card.name)
    with suppress(MissingResourceError):
        return find_wordnet(), "folder"
    return None


def _describe(card: Resource) -> dict[str, Any]:
    place = _find(card)
    return {
        **_record(card.name, card.title, f"{place[1]}: {place[0]}" if place else None),
        "languages": " ".join(sorted(card.languages)),
        "megabytes": card.size,
        "install": f"tertium models install {card.name}",
    }


def _record(name: str, what: str, where: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "what": what,
        "languages": "",
        "megabytes": "",
        "installed": where,
        "install": None,
    }
