"""Campaigns of Appraise: batches of items with one output, or several in pairwise tasks.

Quality-control items become checks: `BAD` is damaged, `CHK` repeats an item, `REF` is a reference.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from tertium.campaigns.campaign import (
    MQM_TYPOLOGY,
    PROTOCOLS_WITH_SPANS,
    SIDE_BY_SIDE_PROTOCOLS,
    Assignment,
    Campaign,
    CampaignItem,
)
from tertium.campaigns.item_builder import ItemBuilder, leftover_of, read_spans, write_spans
from tertium.data.records import read_object, read_object_list
from tertium.errors import UsageError
from tertium.text.language_codes import CODE_ALIASES

logger = logging.getLogger(__name__)

TOOL = "appraise"
TEXT_FIELDS = ("sourceText", "targetText")
CONTROL_RANGES = {"BAD": (0.0, 60.0), "CHK": (0.0, 100.0), "REF": (60.0, 100.0)}
DAMAGED, ORDINARY = "BAD", "TGT"


def read_content(content: Sequence[Any], name: str, protocol: str | None = None) -> Campaign:
    """Convert the content of a file of batches."""
    builder = ItemBuilder(TOOL)
    tasks = []
    for number, batch in enumerate(content, start=1):
        task = read_object(batch.get("task"), "task", f"batch {number}")
        tasks.append({key: value for key, value in batch.items() if key != "items"})
        entries = read_object_list(batch["items"], "items", f"batch {number}")
        for position, entry in enumerate(entries):
            item, leftover = _read_item(entry, position)
            builder.add(f"task-{task.get('batchNo', number)}", item, leftover)
    first = tasks[0]["task"]
    codes = [str(first.get(key, "")) for key in ("sourceLanguage", "targetLanguage")]
    has_errors = any("mqm" in entry for batch in content for entry in batch["items"])
    is_pairwise = any("targets" in entry for batch in content for entry in batch["items"])
    default = "contrastive-esa" if is_pairwise else "esa" if has_errors else "da"
    return Campaign(
        name=name,
        protocol=protocol or default,  # type: ignore[arg-type]
        source_language=CODE_ALIASES.get(codes[0], codes[0]),
        target_language=CODE_ALIASES.get(codes[1], codes[1]),
        systems=builder.systems(),
        items=tuple(builder.items.values()),
        raters=tuple(builder.assignments),
        assignments=builder.turns(),
        extras={TOOL: json.dumps(tasks, ensure_ascii=False)},
    )


def _read_item(entry: Mapping[str, Any], position: int) -> tuple[CampaignItem, dict[str, Any]]:
    leftover = {key: value for key, value in entry.items() if key not in TEXT_FIELDS}
    if "targets" in entry:
        outputs = {
            str(target["targetID"]): str(target["targetText"]) for target in entry["targets"]
        }
        leftover["targets"] = [
            {key: value for key, value in target.items() if key != "targetText"}
            for target in entry["targets"]
        ]
    else:
        outputs = {str(entry["targetID"]): str(entry["targetText"])}
    document, kind = str(entry.get("documentID") or ""), str(entry["itemType"])
    payload = entry.get("mqm")
    tutorial = payload.get("tutorial") if isinstance(payload, Mapping) else None
    marks = payload.get("payload") if isinstance(payload, Mapping) else payload
    name = ":".join(filter(None, (document, str(entry["itemID"]))))
    is_control = kind in CONTROL_RANGES
    [*systems] = outputs
    item = CampaignItem(
        id=f"{name}#{kind.lower()}" if is_control else name,
        document=document,
        position=position,
        source=entry["sourceText"],
        outputs=outputs,
        notes=str((tutorial or {}).get("instruction") or ""),
        kind="tutorial" if tutorial else "check" if is_control else "item",
        expected=dict.fromkeys(systems, CONTROL_RANGES[kind]) if is_control else {},
        suspected={
            system: spans
            for system in systems
            if (spans := read_spans(marks, len(outputs[system])))
        },
    )
    return item, leftover


def make_content(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the content of a file of batches, one for each rater."""
    if campaign.protocol == "post-edit":
        raise UsageError("Appraise batches have no post-editing: use another format")
    if campaign.protocol == "mqm" and campaign.typology != MQM_TYPOLOGY:
        logger.warning(
            "%s: Appraise batches have no error categories: raters choose from those of Appraise",
            campaign.name,
        )
    tasks = json.loads(campaign.extras.get(TOOL, "[]"))
    batches = []
    for number, rater in enumerate(campaign.raters):
        turns = campaign.assignments.get(rater, ())
        items = [_write_item(campaign, rater, turn, n) for n, turn in enumerate(turns)]
        if number < len(tasks):
            batches.append({**tasks[number], "items": items})
            continue
        task = {
            "batchNo": number + 1,
            "batchSize": len(items),
            "randomSeed": campaign.seed,
            "requiredAnnotations": 1,
            "sourceLanguage": _long_code(campaign.source_language),
            "targetLanguage": _long_code(campaign.target_language),
        }
        batches.append({"items": items, "task": task})
    return batches


def _write_item(campaign: Campaign, rater: str, turn: Assignment, position: int) -> dict[str, Any]:
    item = campaign.items_by_id[turn.item]
    entry: dict[str, Any] = {"sourceText": item.source or item.reference}
    leftover = leftover_of(item, TOOL, rater, turn.systems)
    if leftover is not None:
        entry |= leftover
        if "targets" in leftover:
            entry["targets"] = [
                {**target, "targetText": item.outputs[str(target["targetID"])]}
                for target in leftover["targets"]
            ]
            return entry
        return {**entry, "targetText": item.outputs[turn.systems[0]]}
    numbers = {name: n for n, name in enumerate(campaign.items_by_id)}
    entry |= {
        "_item": position,
        "_block": -1,
        "itemID": int(item.id) if item.id.isdecimal() else numbers[item.id],
        "itemType": DAMAGED if item.kind == "check" else ORDINARY,
        "documentID": item.document or item.id,
        "sourceID": campaign.name,
        "isCompleteDocument": False,
    }
    if campaign.protocol in SIDE_BY_SIDE_PROTOCOLS:
        targets = [
            {"_target": n, "targetID": system, "targetText": item.outputs[system]}
            for n, system in enumerate(turn.systems)
        ]
        return {**entry, "targets": targets, "targetsSize": len(targets)}
    [system] = turn.systems
    entry |= {"targetID": system, "targetText": item.outputs[system]}
    if campaign.protocol in PROTOCOLS_WITH_SPANS:
        marks: Any = write_spans(item.suspected.get(system, ()))
        tutorial = {"tutorial": {"instruction": item.notes}, "payload": marks}
        entry["mqm"] = tutorial if item.kind == "tutorial" else marks
    return entry


def _long_code(code: str) -> str:
    """Return a three-letter language code.

    >>> _long_code("de"), _long_code("zh"), _long_code("cs")
    ('deu', 'zho', 'ces')
    """
    codes = [long for long, short in CODE_ALIASES.items() if short == code and len(long) == 3]
    return next((long for long in codes if long.startswith(code)), next(iter(codes), code))
