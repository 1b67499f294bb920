"""`tertium models`: list encoders and dictionaries, or install them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tertium.cache.cached_files import hub_folder, models_folder
from tertium.cli.output import add_format, add_quiet, show
from tertium.cli.parser import CommandParser
from tertium.cli.runtime import progress_bars
from tertium.core.result import Column, Table
from tertium.encoders.encoder import ENCODERS
from tertium.encoders.install import install
from tertium.encoders.model_cards import MODEL_CARDS, Resource
from tertium.encoders.weight_files import find_installed_weights, list_hub_cache
from tertium.errors import MissingResourceError, UnknownNameError, UsageError
from tertium.linguistics.wordnet import WORDNET, find_wordnet
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
    columns = [
        Column("name"),
        Column("description", "what"),
        Column("languages", _shorten_languages),
        Column("MB", "megabytes", 0),
        Column(
            "location, or command to install",
            lambda record: record["installed"] or record["install"],
        ),
    ]
    notes = [f"models folder: {models_folder()}", f"Hugging Face cache: {hub_folder()}"]
    show(args, Table(columns, records, notes=notes), records=records)
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


def _shorten_languages(record: dict[str, Any]) -> str:
    languages: str = record["languages"]
    count = len(languages.split())
    return f"{count} languages" if count > MAX_LISTED_LANGUAGES else languages


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
