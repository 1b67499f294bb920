"""The campaign file: items, raters and assignments of a human evaluation, as one JSON file.

    campaign = read_campaign("campaign.json")
    campaign.assignments["anna"][0]     -> Assignment(item="12", systems=("b",))
    write_campaign(campaign, "copy.json")

`id` is a hash of everything else in the file, so that answers cannot be mixed up between
campaigns. A file that was edited by hand is refused unless its `id` is removed. Fields that have
their default value are not written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import DataError, ModelError, UnknownNameError
from tertium.core.fields import (
    NON_NEGATIVE,
    Rule,
    choices,
    non_default_fields,
    read_dataclass,
)
from tertium.core.result import Column, Result, Table, count_column
from tertium.core.spans import Span, check_span_bounds
from tertium.data.record_files import parse_json
from tertium.data.text_files import read_text
from tertium.text.language_codes import normalize_language_pair

Protocol = Literal["da", "esa", "mqm", "ranking", "contrastive-esa", "post-edit"]
ItemKind = Literal["item", "check", "tutorial"]

FORMAT = "tertium-campaign"
VERSION = 1
PROTOCOLS: tuple[Protocol, ...] = choices(Protocol)
PROTOCOLS_WITH_SPANS = frozenset({"esa", "mqm", "contrastive-esa"})
PROTOCOLS_WITH_SCORES = frozenset({"da", "esa", "contrastive-esa"})
SIDE_BY_SIDE_PROTOCOLS = frozenset({"ranking", "contrastive-esa"})  # all systems of an item at once
ESA_SEVERITIES = ("minor", "major")
MQM_SEVERITIES = ("neutral", "minor", "major", "critical")
READABLE = Rule(lambda value: value == VERSION, f"{VERSION}: update tertium or plan again")
ID_LENGTH = 16  # hexadecimal digits


@dataclass(frozen=True, kw_only=True)
class Category:
    """An error category of an MQM typology, with its subcategories."""

    name: str
    subcategories: tuple[str, ...] = ()


# What each protocol asks of raters: instructions, and seconds for a judgment.
_CONTENT = json.loads(files("tertium.people").joinpath("protocols.json").read_text("utf-8"))
PROTOCOL_TEXTS: Mapping[str, Mapping[str, Any]] = _CONTENT["protocols"]
MQM_TYPOLOGY = tuple(
    read_dataclass(Category, entry, "protocols.json") for entry in _CONTENT["typology"]
)


@dataclass(frozen=True, kw_only=True)
class DisplayOptions:
    """What raters see besides the source and the translations.

    `context_size` is the number of document segments shown on each side. `suspicions` names the
    metric or judge that marked the suspected spans; it is empty if nothing is prefilled.
    """

    show_reference: bool = False
    context_size: Annotated[int, NON_NEGATIVE] = 0
    suspicions: str = ""


@dataclass(frozen=True, kw_only=True)
class GlossaryTerm:
    """A glossary entry."""

    source: str
    target: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Neighbor:
    """A segment of the same document that is shown as context."""

    source: str
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CampaignItem:
    """A source segment with the outputs to judge, by system; an output may be empty.

    An item of kind `check` has damaged outputs: `damage` gives the kind of damage by system, and
    `original` the item with the undamaged outputs, whose score should be higher. A `tutorial`
    explains the task in its `notes` and does not count. `before` and `after` are its document
    context, and `suspected` are spans that are marked in advance, by system. `labels` are other
    properties, such as the domain. `expected` is the range of scores that a check or tutorial
    expects by system, [low, high].
    """

    id: str
    document: str = ""
    position: Annotated[int, NON_NEGATIVE] = 0
    source: str | None = None
    reference: str | None = None
    outputs: Mapping[str, str]
    notes: str = ""
    kind: ItemKind = "item"
    damage: Mapping[str, str] = field(default_factory=dict)
    original: str = ""
    before: tuple[Neighbor, ...] = ()
    after: tuple[Neighbor, ...] = ()
    suspected: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"item {self.id!r}"
        if not self.outputs:
            raise DataError(f"{where} has no outputs to judge")
        texts = [text for text in (self.source, self.reference) if text is not None]
        if not texts or not all(text.strip() for text in texts):
            raise DataError(
                f"{where}: the source or the reference is empty, so translations cannot be judged: "
                "leave this segment out of all files"
            )
        if self.kind == "check" and not (self.expected or (self.damage and self.original)):
            raise DataError(f"{where} is a check without expected scores, or damage and original")

    def check_spans(self, system: str, spans: Sequence[Span], where: str) -> None:
        """Raise `DataError` if spans end after the output of a system, or after the source."""
        check_span_bounds(spans, self.outputs[system], "hypothesis", where)
        check_span_bounds(spans, self.source or "", "source", where)


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """An item that a rater judges, and the systems in the order in which they are shown."""

    item: str
    systems: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Campaign(Result):
    """A human evaluation: what is judged, how, and by whom.

    `extras` is the content of a campaign of another annotation tool, as JSON by tool.
    """

    format: str = FORMAT
    version: Annotated[int, READABLE] = VERSION
    id: str = ""
    name: str
    protocol: Protocol
    seed: Annotated[int, NON_NEGATIVE] = 12345
    source_language: str = ""
    target_language: str = ""
    instructions: str = ""
    typology: tuple[Category, ...] = ()
    options: DisplayOptions = DisplayOptions()
    glossary: tuple[GlossaryTerm, ...] = ()
    systems: tuple[str, ...]
    items: tuple[CampaignItem, ...]
    raters: tuple[str, ...]
    assignments: Mapping[str, tuple[Assignment, ...]]
    extras: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_unique(self.systems, "system")
        _check_unique(self.raters, "rater")
        _check_unique([item.id for item in self.items], "item")
        for item in self.items:
            for system in item.outputs:
                if system not in self.systems:
                    raise UnknownNameError(f"system of item {item.id!r}", system, self.systems)
        for rater, turns in self.assignments.items():
            if rater not in self.raters:
                raise UnknownNameError("rater in the assignments", rater, self.raters)
            cells = [(turn.item, system) for turn in turns for system in turn.systems]
            for name, system in cells:
                if system not in getattr(self.items_by_id.get(name), "outputs", ()):
                    raise DataError(f"rater {rater!r}: {system!r} of {name!r} does not exist")
        if self.protocol == "mqm" and not self.typology:
            object.__setattr__(self, "typology", MQM_TYPOLOGY)
        content_id = hash_content(self)
        if self.id and self.id != content_id:
            raise DataError(
                f"the campaign {self.name!r} was changed after it was written (its id is "
                f"{self.id}, that of its content {content_id}): plan it again, or remove its id"
            )
        object.__setattr__(self, "id", content_id)

    @cached_property
    def items_by_id(self) -> Mapping[str, CampaignItem]:
        return {item.id: item for item in self.items}

    @property
    def lp(self) -> str:
        """The language pair, such as en-de; empty if a language is unknown."""
        if not (self.source_language and self.target_language):
            return ""
        return normalize_language_pair(f"{self.source_language}-{self.target_language}")

    def tables(self) -> list[Table]:
        """Return what each rater judges."""
        rows = []
        for rater in self.raters:
            names: dict[ItemKind, list[str]] = {"item": [], "check": [], "tutorial": []}
            for turn in self.assignments.get(rater, ()):
                names[self.items_by_id[turn.item].kind] += [turn.item] * len(turn.systems)
            row = {
                "rater": rater,
                "segments": len({*names["item"]}),
                "translations": len(names["item"]),
                "checks": len({*names["check"]}),
            }
            rows.append(row)
        counts = map(count_column, ("segments", "translations", "checks"))
        columns = [Column("rater"), *counts]
        items = sum(item.kind == "item" for item in self.items)
        title = (
            f"Campaign {self.name} ({self.protocol}, {items} segments of {len(self.systems)} "
            f"systems, id {self.id})"
        )
        return [Table(columns, rows, title)]

    def records(self) -> Any:
        """Return the content of the campaign file."""
        return {"format": FORMAT, "version": VERSION, **to_json(self)}


def hash_content(campaign: Campaign) -> str:
    """Return the hash of everything but the id."""
    content = campaign.records()
    content.pop("id", None)
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_LENGTH]


def to_json(value: Any) -> Any:
    """Convert dataclasses to JSON objects without fields that have their default value.

    >>> to_json(Assignment(item="1", systems=("a", "b")))
    {'item': '1', 'systems': ['a', 'b']}
    """
    if dataclasses.is_dataclass(value):
        return {name: to_json(item) for name, item in non_default_fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


def read_campaign(path: PathLike) -> Campaign:
    """Read and check a campaign file."""
    content = parse_json(read_text(path), str(path))
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise DataError(
            f"{path} is not a campaign of tertium: expected an object with "
            f'"format": "{FORMAT}"; `tertium plan` makes one'
        )
    try:
        return read_dataclass(Campaign, content, str(path))
    except ModelError as error:
        raise DataError(str(error)) from None


def is_campaign_file(path: PathLike) -> bool:
    """Tell whether a JSON file is a campaign of tertium."""
    if Path(path).suffix != ".json":
        return False
    return f'"{FORMAT}"' in read_text(path)[:200]


def write_campaign(campaign: Campaign, path: PathLike) -> None:
    """Write a campaign file."""
    write_text(path, json.dumps(campaign.records(), ensure_ascii=False, indent=1) + "\n")


def _check_unique(names: Sequence[str], kind: str) -> None:
    if not names:
        raise DataError(f"the campaign has no {kind}s")
    for name, count in Counter(names).items():
        if count > 1 or not name.strip():
            raise DataError(f"the {kind} {name!r} occurs twice or is empty: names must be unique")
