"""Campaigns of Appraise: batches of items with one output, or several in pairwise tasks.

Quality-control items become checks: `BAD` is damaged, `CHK` repeats an item, `REF` is a reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tertium.campaigns.campaign import Campaign, CampaignItem
from tertium.campaigns.item_builder import ItemBuilder, read_spans
from tertium.data.records import read_object, read_object_list
from tertium.text.language_codes import CODE_ALIASES

TOOL = "appraise"
CONTROL_RANGES = {"BAD": (0.0, 60.0), "CHK": (0.0, 100.0), "REF": (60.0, 100.0)}


def read_content(content: Sequence[Any], name: str, protocol: str | None = None) -> Campaign:
    """Convert the content of a file of batches."""
    builder = ItemBuilder(TOOL)
    tasks = []
    for number, batch in enumerate(content, start=1):
        task = read_object(batch.get("task"), "task", f"batch {number}")
        tasks.append(task)
        entries = read_object_list(batch["items"], "items", f"batch {number}")
        for position, entry in enumerate(entries):
            item = _read_item(entry, position)
            builder.add(f"task-{task.get('batchNo', number)}", item, {})
    first = tasks[0]
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
    )


def _read_item(entry: Mapping[str, Any], position: int) -> CampaignItem:
    if "targets" in entry:
        outputs = {
            str(target["targetID"]): str(target["targetText"]) for target in entry["targets"]
        }
    else:
        outputs = {str(entry["targetID"]): str(entry["targetText"])}
    document, kind = str(entry.get("documentID") or ""), str(entry["itemType"])
    payload = entry.get("mqm")
    tutorial = payload.get("tutorial") if isinstance(payload, Mapping) else None
    marks = payload.get("payload") if isinstance(payload, Mapping) else payload
    name = ":".join(filter(None, (document, str(entry["itemID"]))))
    is_control = kind in CONTROL_RANGES
    [*systems] = outputs
    return CampaignItem(
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
