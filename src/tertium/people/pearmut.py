"""Campaigns of Pearmut: tasks of raters, documents, items with `src` and `tgt` by system.

What raters of tertium cannot be asked for is an error (sliders, free categories, other severities)
or a warning (tutorials of `data_welcome`, other special tokens).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tertium.core.errors import DataError, UsageError, short_repr
from tertium.data.records import read_object, read_object_list
from tertium.people.campaign import (
    MQM_SEVERITIES,
    Assignment,
    Campaign,
    CampaignItem,
    Category,
    Protocol,
)
from tertium.people.item_builder import (
    UNKNOWN_SYSTEM,
    ItemBuilder,
    leftover_of,
    read_spans,
    write_spans,
)

logger = logging.getLogger(__name__)

TOOL = "pearmut"
NAMES: Mapping[Protocol, str] = {
    "da": "DA",
    "esa": "ESA",
    "contrastive-esa": "cESA",
    "mqm": "MQM",
}
SHARED = ("single-stream", "dynamic")  # assignments of all raters to the same documents
DEFAULT_ASSIGNMENT = "single-stream"
DEFAULT_SEVERITIES = ("Minor", "Major")
MISSING_TOKEN = "[missing]"  # like "Something is missing" of tertium
TEXT_FIELDS = ("src", "tgt", "ref")


def read_content(content: Mapping[str, Any], protocol: str | None = None) -> Campaign:
    """Convert the content of a Pearmut campaign."""
    info = read_object(content.get("info") or {}, "info", "the campaign")
    name = str(content["campaign_id"])
    if protocol is None:
        _check_sliders(info, name)
    chosen = _read_protocol(info, name) if protocol is None else protocol
    typology = _read_typology(info, name) if chosen == "mqm" else ()
    is_shared = info.get("assignment", DEFAULT_ASSIGNMENT) in SHARED
    tasks = _read_tasks(content["data"], info, is_shared)
    builder = ItemBuilder(TOOL)
    for rater, documents in tasks.items():
        builder.assignments.setdefault(rater, [])
        for number, document in enumerate(documents):
            _add_document(builder, rater, document, f"document-{number + 1}")
    settings = {key: value for key, value in content.items() if key != "data"}
    if isinstance(content["data"], Mapping):
        settings["raters"] = [*tasks]
    changes = [*_changes(content, info, chosen, name)]
    campaign = Campaign(
        name=name,
        protocol=chosen,  # type: ignore[arg-type]
        instructions=str(info.get("instructions") or ""),
        typology=typology,
        systems=builder.systems(),
        items=tuple(builder.items.values()),
        raters=tuple(tasks),
        assignments=builder.turns(),
        extras={TOOL: json.dumps(settings, ensure_ascii=False)},
    )
    for change in changes:
        logger.warning("%s: %s", name, change)
    return campaign


def _read_protocol(info: Mapping[str, Any], where: str) -> Protocol:
    name = info.get("protocol")
    if name is None:
        raise DataError(
            f"{where}: the campaign names no protocol, and versions of Pearmut take different ones "
            "(ESA or cESA): give --protocol"
        )
    for protocol, theirs in NAMES.items():
        if name == theirs:
            return protocol
    raise DataError(f"{where}: the protocol {name!r} of Pearmut is not known: give --protocol")


def _check_sliders(info: Mapping[str, Any], where: str) -> None:
    """Raise an error if the campaign has its own sliders."""
    if info.get("sliders") is None:
        return
    entries = read_object_list(info["sliders"], "sliders", where)
    names = ", ".join(str(entry.get("name")) for entry in entries) or "none"
    raise DataError(
        f"{where}: the campaign has its own sliders ({names}), but raters of tertium give one "
        "score from 0 to 100: run the campaign in Pearmut, or give --protocol to collect that "
        "score instead"
    )


def _read_typology(info: Mapping[str, Any], where: str) -> tuple[Category, ...]:
    """Return the error categories; () if the campaign names none."""
    categories = info.get("mqm_categories")
    if categories is None:
        return ()
    if not isinstance(categories, Mapping):
        raise DataError(
            f"{where}: mqm_categories is {short_repr(categories)}, but raters of tertium choose "
            "from a list: expected an object of categories with lists of subcategories"
        )
    typology = []
    for name, subcategories in categories.items():
        if name:  # the empty name means that nothing is chosen
            names = tuple(str(entry) for entry in subcategories if entry)
            typology.append(Category(name=name, subcategories=names))
    return tuple(typology)


def _read_severities(info: Mapping[str, Any], where: str) -> list[str]:
    """Return the severities of an MQM campaign; tertium must have all of them."""
    severities = info.get("mqm_severities")
    names = DEFAULT_SEVERITIES if severities is None else severities
    lowered = [str(name).lower() for name in names]
    if not lowered or not {*lowered} <= {*MQM_SEVERITIES}:
        raise DataError(
            f"{where}: mqm_severities is {short_repr(severities)}: raters of tertium choose from "
            f"{', '.join(MQM_SEVERITIES)}; use only these names"
        )
    return lowered


def _changes(
    content: Mapping[str, Any], info: Mapping[str, Any], protocol: str, where: str
) -> Iterator[str]:
    """Yield what raters of tertium see or give otherwise than raters of Pearmut."""
    if protocol == "mqm":
        if not info.get("mqm_categories"):
            yield "error categories are those of Freitag et al. (2021), not the default of Pearmut"
        if {*_read_severities(info, where)} != {*MQM_SEVERITIES}:
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


def _read_tasks(data: Any, info: Mapping[str, Any], is_shared: bool) -> dict[str, list[Any]]:
    """Return the documents of each rater; shared documents are distributed in turn."""
    if isinstance(data, Mapping):
        return dict(data)
    users = info.get("users")
    names = [*users] if isinstance(users, list) else []
    names = [str(u.get("user_id", u) if isinstance(u, Mapping) else u) for u in names]
    if not is_shared:
        return {
            names[n] if n < len(names) else f"rater-{n + 1}": task for n, task in enumerate(data)
        }
    count = users if isinstance(users, int) else max(1, len(names))
    names = names or [f"rater-{n + 1}" for n in range(count)]
    return {name: data[n::count] for n, name in enumerate(names)}


def _add_document(builder: ItemBuilder, rater: str, document: Any, default: str) -> None:
    entries = [document] if isinstance(document, Mapping) else document
    for position, entry in enumerate(read_object_list(entries, "a document", f"rater {rater}")):
        name = str(entry.get("item_id") or entry.get("doc_id") or f"{default}.{position + 1}")
        outputs = entry["tgt"]
        if not isinstance(outputs, Mapping):
            outputs = {UNKNOWN_SYSTEM: outputs}
        leftover = {key: value for key, value in entry.items() if key not in TEXT_FIELDS}
        checks = entry.get("validation") or {}
        spans = entry.get("error_spans") or {}
        first = read_object_list(entries, "a document", rater)[0]
        builder.add(
            rater,
            CampaignItem(
                id=name,
                document=str(first.get("doc_id") or first.get("item_id") or default),
                position=position,
                source=entry["src"],
                reference=entry.get("ref"),
                outputs=outputs,
                notes=str(entry.get("instructions") or ""),
                kind=_read_kind(checks),
                expected=_read_expected(checks, outputs),
                suspected={
                    system: marks
                    for system, text in outputs.items()
                    if (marks := read_spans(spans.get(system), len(text)))
                }
                if isinstance(spans, Mapping)
                else {},
            ),
            leftover,
        )


def _rules(checks: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for system, rules in checks.items() if isinstance(checks, Mapping) else ():
        for rule in rules if isinstance(rules, list) else [rules]:
            yield system, rule


def _read_kind(checks: Any) -> Any:
    rules = [*_rules(checks)]
    if not rules:
        return "item"
    has_score = any("score" in rule for _, rule in rules)
    return "tutorial" if any(r.get("allow_skip") for _, r in rules) or not has_score else "check"


def _read_expected(checks: Any, outputs: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
    return {
        system: tuple(map(float, rule["score"]))
        for system, rule in _rules(checks)
        if system in outputs and "score" in rule
    }


def make_content(campaign: Campaign) -> dict[str, Any]:
    """Return the content of a Pearmut campaign file."""
    settings: dict[str, Any] = json.loads(campaign.extras.get(TOOL, "{}"))
    raters = settings.pop("raters", None)
    if not settings:
        if campaign.protocol not in NAMES:
            raise UsageError(
                f"Pearmut has no protocol {campaign.protocol!r}: it has {', '.join(NAMES)}"
            )
        info = {
            "assignment": "task-based",
            "protocol": NAMES[campaign.protocol],
            "shuffle": False,
        }
        if campaign.protocol == "mqm":
            info["mqm_categories"] = {
                category.name: [*category.subcategories] for category in campaign.typology
            }
            info["mqm_severities"] = [severity.capitalize() for severity in MQM_SEVERITIES]
        settings = {"info": info, "campaign_id": campaign.name}
        raters = [*campaign.raters]
    tasks = {
        rater: [_write_document(campaign, rater, turns) for turns in _documents(campaign, rater)]
        for rater in campaign.raters
    }
    info = settings.get("info") or {}
    if info.get("assignment", DEFAULT_ASSIGNMENT) in SHARED:
        longest = max(map(len, tasks.values()))
        data: Any = [own[n] for n in range(longest) for own in tasks.values() if n < len(own)]
    else:
        data = tasks if raters else [*tasks.values()]
    return {**settings, "data": data}


def _documents(campaign: Campaign, rater: str) -> Iterator[list[Assignment]]:
    """Yield consecutive turns of one document with the same systems, in document order."""
    block: list[Assignment] = []
    for turn in campaign.assignments.get(rater, ()):
        item = campaign.items_by_id[turn.item]
        last = campaign.items_by_id[block[-1].item] if block else None
        is_same = last is not None and item.document and last.document == item.document
        if last is not None and not (is_same and item.position > last.position):
            yield block
            block = []
        block.append(turn)
    if block:
        yield block


def _write_document(
    campaign: Campaign, rater: str, turns: Sequence[Assignment]
) -> list[dict[str, Any]]:
    entries = []
    for number, turn in enumerate(turns):
        item = campaign.items_by_id[turn.item]
        entry: dict[str, Any] = {"src": item.source or ""}
        entry["tgt"] = {system: item.outputs[system] for system in turn.systems}
        leftover = leftover_of(item, TOOL, rater, turn.systems)
        if leftover is not None:
            entry |= leftover | ({"ref": item.reference} if item.reference is not None else {})
        else:
            entry = {"item_id": item.id, **entry} | _optional_fields(campaign, item, turn, number)
        entries.append(entry)
    return entries


def _optional_fields(
    campaign: Campaign, item: CampaignItem, turn: Assignment, number: int
) -> dict[str, Any]:
    fields: dict[str, Any] = {"doc_id": item.document} if item.document else {}
    if campaign.options.show_reference and item.reference is not None:
        fields["ref"] = item.reference
    if item.notes or not number:
        fields["instructions"] = item.notes or campaign.instructions
    spans = {s: write_spans(item.suspected[s]) for s in turn.systems if s in item.suspected}
    fields |= {"error_spans": spans} if spans else {}
    if item.kind != "item":
        rule: dict[str, Any] = {"allow_skip": True} if item.kind == "tutorial" else {}
        fields["validation"] = {
            system: {"score": [*item.expected.get(system, (0.0, 60.0))], **rule}
            for system in turn.systems
        }
    return fields
