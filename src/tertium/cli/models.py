"""`tertium models`: list encoders and dictionaries, or install them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tertium.cache.cached_files import hub_folder, models_folder
from tertium.cli.output import add_format, add_quiet, print_result
from tertium.cli.parser import CommandParser
from tertium.cli.runtime import progress_bars
from tertium.encoders.encoder import ENCODERS
from tertium.encoders.install import install
from tertium.encoders.model_cards import MODEL_CARDS, Resource
from tertium.encoders.weight_files import find_installed_weights, list_hub_cache
from tertium.errors import MissingResourceError, UnknownNameError, UsageError
from tertium.linguistics.wordnet import WORDNET, find_wordnet
from tertium.output.tables.table import cell_table
from tertium.plugins import describe_package

RESOURCES: Mapping[str, Resource] = {**MODEL_CARDS, WORDNET.name: WORDNET}
MAX_LISTED_LANGUAGES = 15  # in a table; JSON lists all
DESCRIPTION = "List the encoders and dictionaries, installed or not, or install them."
EPILOG = """\
examples:
  tertium models
  tertium models install mpnet
  tertium models install e5 wordnet

Encoders are minilm, mpnet, e5, use and glove, hf/NAME for a model of the Hugging Face hub or
its cache, and dir/PATH for a folder; @N chooses a layer (minilm@4). METEOR's synonyms and the
entailment features use WordNet.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument(
        "action",
        nargs="?",
        choices=("list", "install"),
        default="list",
        help="what to do (default: list)",
    )
    group.add_argument("names", nargs="*", metavar="NAME", help="models to install")
    add_format(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    if args.action == "install":
        if args.format != "text":
            raise UsageError(f"-f {args.format} is for `models list`: omit it")
        return _install(args)
    if args.names:
        raise UsageError(f"to install, use `tertium models install {' '.join(args.names)}`")
    records = [
        *map(_describe, RESOURCES.values()),
        *(
            _make_record(f"hf/{name}", "a model in the Hugging Face cache", "Hugging Face cache")
            for name in list_hub_cache()
        ),
        *(
            _make_record(name, "an encoder of a plugin", describe_package(entries[0]))
            for name, entries in ENCODERS.plugins.items()
        ),
    ]
    rows = [_make_row(record) for record in records]
    notes = [f"models folder: {models_folder()}", f"Hugging Face cache: {hub_folder()}"]
    header = ["name", "description", "languages", "MB", "location, or command to install"]
    table = cell_table(header, rows, notes=notes, text_columns=frozenset({0, 1, 2, 4}))
    print_result(records, table, args.format)
    return 0


def _install(args: argparse.Namespace) -> int:
    if not args.names:
        raise UsageError(f"no NAME: use `tertium models install {' | '.join(RESOURCES)}`")
    for card in list(map(_find_resource, args.names)):  # all names are checked before a download
        with progress_bars(args.quiet):
            folder = install(card)
        print(f"{card.name}\t{folder}")
        for extra in card.extras:
            print(f"tertium: {card.name} also needs `pip install {extra}`", file=sys.stderr)
    return 0


def _find_resource(name: str) -> Resource:
    if name not in RESOURCES:
        raise UnknownNameError("model", name, RESOURCES)
    return RESOURCES[name]


def _make_row(record: dict[str, Any]) -> list[str]:
    codes = record["languages"].split()
    languages = record["languages"]
    if len(codes) > MAX_LISTED_LANGUAGES:
        languages = f"{len(codes)} languages"
    location = record["installed"] or record["install"]
    return [record["name"], record["what"], languages, str(record["megabytes"]), location]


def _find_installed(card: Resource) -> tuple[Path, str] | None:
    if card.name in MODEL_CARDS:
        return find_installed_weights(card.name)
    with suppress(MissingResourceError):
        return find_wordnet(), "folder"
    return None


def _describe(card: Resource) -> dict[str, Any]:
    installed = _find_installed(card)
    location = f"{installed[1]}: {installed[0]}" if installed else None
    return {
        **_make_record(card.name, card.title, location),
        "languages": " ".join(sorted(card.languages)),
        "megabytes": card.size_mb,
        "install": f"tertium models install {card.name}",
    }


def _make_record(name: str, description: str, location: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "what": description,
        "languages": "",
        "megabytes": "",
        "installed": location,
        "install": None,
    }
