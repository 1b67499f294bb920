"""Campaigns as files of tertium or of Pearmut.

A campaign of Pearmut has tasks of raters: documents of items with `src` and `tgt` by system. What
raters of tertium cannot be asked for is an error (sliders, free categories, other severities) or a
warning (tutorials of `data_welcome`, other special tokens). A campaign that was read from Pearmut
is written to Pearmut as it was. Campaigns of ours are written with everything that Pearmut
supports.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import DataError, UsageError, short_repr
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.data.formats.annotation_tools import locate_errors
from tertium.data.judgments import read_error_annotations
from tertium.data.record_files import parse_json
from tertium.data.records import read_object, read_object_list
from tertium.data.text_files import read_text
from tertium.people.campaign import (
    MQM_SEVERITIES,
    Assignment,
    Campaign,
    CampaignItem,
    Category,
    Protocol,
    read_campaign,
    write_campaign,
)

logger = logging.getLogger(__name__)

TOOL = "pearmut"  # the key of the original content in the extras of a campaign
NAMES: Mapping[Protocol, str] = {
    "da": "DA",
    "esa": "ESA",
    "contrastive-esa": "cESA",
    "mqm": "MQM",
}
SHARED = ("single-stream", "dynamic")  # assignments of all raters to the same documents
DEFAULT_SEVERITIES = ("Minor", "Major")
MISSING_TOKEN = "[missing]"  # like "Something is missing" of tertium
UNKNOWN_SYSTEM = "system"
CHECK_RANGE = (0.0, 60.0)  # the scores that a check expects
SAME_FIELDS = ("source", "reference", "kind", "document")  # of turns about one item
MERGED_FIELDS = ("outputs", "suspected", "expected")


def read_any_campaign(path: PathLike, protocol: Protocol | None = None) -> Campaign:
    """Read a campaign of tertium or Pearmut; `protocol` replaces that of Pearmut."""
    content = parse_json(read_text(path), str(path))
    if not isinstance(content, Mapping) or "campaign_id" not in content:
        return read_campaign(path)
    try:
        return _read_content(content, protocol)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: the campaign is incomplete ({error!r})") from None


def write_any_campaign(campaign: Campaign, path: PathLike, tool: str = "tertium") -> None:
    """Write a campaign in the format of tertium or Pearmut."""
    if tool == "tertium":
        write_campaign(campaign, path)
        return
    text = campaign.extras.get(TOOL) or json.dumps(_make_content(campaign), ensure_ascii=False)
    write_text(path, json.dumps(json.loads(text), ensure_ascii=False, indent=2) + "\n")


def _read_content(content: Mapping[str, Any], protocol: Protocol | None) -> Campaign:
    info = read_object(content.get("info") or {}, "info", "the campaign")
    name = str(content["campaign_id"])
    if protocol is None:
        protocol = _read_protocol(info, name)
    for change in [*_list_changes(content, info, protocol, name)]:
        logger.warning("%s: %s", name, change)
    items: dict[str, CampaignItem] = {}
    assignments: dict[str, tuple[Assignment, ...]] = {}
    for rater, documents in _read_tasks(content["data"], info).items():
        turns: list[Assignment] = []
        for number, document in enumerate(documents, 1):
            entries = [document] if isinstance(document, Mapping) else document
            for item in _read_document(entries, f"document-{number}", f"{name}, {rater}"):
                turns.append(_add_item(items, item, turns))
        assignments[rater] = tuple(turns)
    return Campaign(
        name=name,
        protocol=protocol,
        instructions=str(info.get("instructions") or ""),
        typology=_read_typology(info, name) if protocol == "mqm" else (),
        systems=tuple(dict.fromkeys(s for item in items.values() for s in item.outputs)),
        items=tuple(items.values()),
        raters=tuple(assignments),
        assignments=assignments,
        extras={TOOL: json.dumps(content, ensure_ascii=False)},
    )


def _read_protocol(info: Mapping[str, Any], where: str) -> Protocol:
    """Return the protocol; raise an error if the campaign has its own sliders."""
    if info.get("sliders") is not None:
        entries = read_object_list(info["sliders"], "sliders", where)
        names = ", ".join(str(entry.get("name")) for entry in entries) or "none"
        raise DataError(
            f"{where}: the campaign has its own sliders ({names}), but raters of tertium give one "
            "score from 0 to 100: run the campaign in Pearmut, or give --protocol to collect that "
            "score instead"
        )
    for protocol, name in NAMES.items():
        if name == info.get("protocol"):
            return protocol
    raise DataError(
        f"{where}: the protocol is {short_repr(info.get('protocol'))}, expected "
        f"{', '.join(NAMES.values())}: give --protocol"
    )


def _read_typology(info: Mapping[str, Any], where: str) -> tuple[Category, ...]:
    """Return the error categories; () if the campaign names none."""
    categories = info.get("mqm_categories") or {}
    if not isinstance(categories, Mapping):
        raise DataError(
            f"{where}: mqm_categories is {short_repr(categories)}, but raters of tertium choose "
            "from a list: expected an object of categories with lists of subcategories"
        )
    return tuple(
        Category(name=name, subcategories=tuple(str(entry) for entry in names if entry))
        for name, names in categories.items()
        if name  # the empty name means that nothing is chosen
    )


def _list_changes(
    content: Mapping[str, Any], info: Mapping[str, Any], protocol: Protocol, where: str
) -> Iterator[str]:
    """Yield what raters of tertium see or give otherwise than raters of Pearmut."""
    if protocol == "mqm":
        if not info.get("mqm_categories"):
            yield "error categories are those of Freitag et al. (2021), not the default of Pearmut"
        names = info.get("mqm_severities")
        severities = {str(s).lower() for s in (DEFAULT_SEVERITIES if names is None else names)}
        if not severities or not severities <= {*MQM_SEVERITIES}:
            raise DataError(
                f"{where}: mqm_severities is {short_repr(names)}: raters of tertium choose from "
                f"{', '.join(MQM_SEVERITIES)}; use only these names"
            )
        if severities != {*MQM_SEVERITIES}:
            yield f"raters choose from the severities {', '.join(MQM_SEVERITIES)}"
        yield "raters mark errors and give no score"
    for name in ("data_welcome", "data_random"):
        if content.get(name):
            yield f"the documents in {name} (tutorials or attention checks) are left out"
    tokens = [token for token in info.get("special_tokens") or () if token != MISSING_TOKEN]
    if tokens:
        yield f"raters cannot mark {', '.join(map(str, tokens))}"
    if info.get("textfield") == "prefilled":
        yield "raters do not post-edit the translation"


def _read_tasks(data: Any, info: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the documents of each rater; shared documents are distributed in turn."""
    if isinstance(data, Mapping):
        return dict(data)
    users = info.get("users")
    names = users if isinstance(users, list) else []
    names = [str(u.get("user_id", u) if isinstance(u, Mapping) else u) for u in names]
    if info.get("assignment", SHARED[0]) not in SHARED:
        names += [f"rater-{n + 1}" for n in range(len(names), len(data))]
        return dict(zip(names, data, strict=False))
    size = users if isinstance(users, int) else max(1, len(names))
    names = names or [f"rater-{n + 1}" for n in range(size)]
    return {name: data[n::size] for n, name in enumerate(names)}


def _read_document(document: Any, default: str, where: str) -> Iterator[CampaignItem]:
    """Yield the items of a document, with the outputs of one turn."""
    entries = read_object_list(document, "a document", where)
    for position, entry in enumerate(entries):
        outputs = entry["tgt"]
        if not isinstance(outputs, Mapping):
            outputs = {UNKNOWN_SYSTEM: outputs}
        checks = _read_mapping(entry, "validation")
        marked = _read_mapping(entry, "error_spans")
        rules = [
            (system, rule)
            for system, listed in checks.items()
            for rule in (listed if isinstance(listed, list) else [listed])
        ]
        expected = {s: tuple(map(float, rule["score"])) for s, rule in rules if "score" in rule}
        is_tutorial = not expected or any(rule.get("allow_skip") for _, rule in rules)
        yield CampaignItem(
            id=str(entry.get("item_id") or entry.get("doc_id") or f"{default}.{position + 1}"),
            document=str(entries[0].get("doc_id") or entries[0].get("item_id") or default),
            position=position,
            source=entry["src"],
            reference=entry.get("ref"),
            outputs=outputs,
            notes=str(entry.get("instructions") or ""),
            kind=("tutorial" if is_tutorial else "check") if rules else "item",
            expected={system: bounds for system, bounds in expected.items() if system in outputs},
            suspected={
                system: _read_spans(marked[system], outputs[system], where)
                for system in outputs
                if marked.get(system)
            },
        )


def _read_mapping(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field by system, empty if it has another form."""
    value = entry.get(name)
    return value if isinstance(value, Mapping) else {}


def _read_spans(entries: Any, text: str, where: str) -> tuple[Span, ...]:
    errors = locate_errors(entries, text)
    return read_error_annotations({"spans": errors}, Segment(text), where).spans


def _add_item(
    items: dict[str, CampaignItem], item: CampaignItem, turns: Sequence[Assignment]
) -> Assignment:
    """Add an item, or its outputs to an earlier item with the same texts; return the next turn.

    An item with other texts, or one that the rater has already, gets a new name.
    """
    for number in count(1):
        name = item.id if number == 1 else f"{item.id}#{number}"
        earlier = items.get(name) or replace(item, id=name)
        is_same = all(getattr(earlier, field) == getattr(item, field) for field in SAME_FIELDS)
        has_same_outputs = all(earlier.outputs.get(s, t) == t for s, t in item.outputs.items())
        seen = {system for turn in turns if turn.item == name for system in turn.systems}
        if is_same and has_same_outputs and seen.isdisjoint(item.outputs):
            break
    merged: Any = {f: {**getattr(earlier, f), **getattr(item, f)} for f in MERGED_FIELDS}
    items[name] = replace(earlier, **merged)
    return Assignment(item=name, systems=tuple(item.outputs))


def _make_content(campaign: Campaign) -> dict[str, Any]:
    """Return the content of a Pearmut campaign file."""
    if campaign.protocol not in NAMES:
        raise UsageError(
            f"Pearmut has no protocol {campaign.protocol!r}: it has {', '.join(NAMES)}"
        )
    info: dict[str, Any] = {
        "assignment": "task-based",
        "protocol": NAMES[campaign.protocol],
        "shuffle": False,
    }
    if campaign.protocol == "mqm":
        info["mqm_categories"] = {c.name: [*c.subcategories] for c in campaign.typology}
        info["mqm_severities"] = [severity.capitalize() for severity in MQM_SEVERITIES]
    data = {rater: _make_documents(campaign, rater) for rater in campaign.raters}
    return {"info": info, "campaign_id": campaign.name, "data": data}


def _make_documents(campaign: Campaign, rater: str) -> list[list[dict[str, Any]]]:
    """Return consecutive turns of one document in its order as a document of Pearmut."""
    documents: list[list[dict[str, Any]]] = []
    last: CampaignItem | None = None
    for turn in campaign.assignments.get(rater, ()):
        item = campaign.items_by_id[turn.item]
        is_same = last is not None and item.document and item.document == last.document
        if last is None or not is_same or item.position <= last.position:
            documents.append([])
        documents[-1].append(_make_entry(campaign, item, turn, is_first=not documents[-1]))
        last = item
    return documents


def _make_entry(
    campaign: Campaign, item: CampaignItem, turn: Assignment, *, is_first: bool
) -> dict[str, Any]:
    entry: dict[str, Any] = {"item_id": item.id, "src": item.source or ""}
    entry["tgt"] = {system: item.outputs[system] for system in turn.systems}
    if item.document:
        entry["doc_id"] = item.document
    if campaign.options.show_reference and item.reference is not None:
        entry["ref"] = item.reference
    if item.notes or is_first:
        entry["instructions"] = item.notes or campaign.instructions
    spans = {s: _write_spans(item.suspected[s]) for s in turn.systems if s in item.suspected}
    entry |= {"error_spans": spans} if spans else {}
    if item.kind != "item":
        skip = {"allow_skip": True} if item.kind == "tutorial" else {}
        entry["validation"] = {
            system: {"score": [*item.expected.get(system, CHECK_RANGE)], **skip}
            for system in turn.systems
        }
    return entry


def _write_spans(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Return spans of the translation with inclusive ends."""
    return [
        {
            "start_i": span.start,
            "end_i": span.end - 1,
            "severity": None if span.severity == "bad" else span.severity,
            "category": span.category or None,
        }
        for span in spans
        if span.side == "hypothesis"
    ]
