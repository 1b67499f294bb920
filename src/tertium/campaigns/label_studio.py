"""Campaigns of Label Studio: a task for each translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tertium.campaigns.campaign import Campaign, CampaignItem
from tertium.campaigns.item_builder import ItemBuilder
from tertium.data.records import read_object

TOOL = "label-studio"


def read_content(content: Sequence[Any], name: str, protocol: str | None = None) -> Campaign:
    """Convert a list of tasks; without `data.rater`, all tasks belong to one rater."""
    builder = ItemBuilder(TOOL)
    pairs: set[str] = set()
    for number, task in enumerate(content, start=1):
        data = read_object(task.get("data"), "data", f"task {number}")
        system = str(data.get("system", "system"))
        pairs.add(str(data.get("lp", "")))
        item = CampaignItem(
            id=str(data.get("item", task.get("id", number))),
            document=str(data.get("document", "")),
            position=int(data.get("position", 0)),
            source=data.get("src"),
            reference=data.get("ref"),
            outputs={system: str(data.get("mt", ""))},
            notes=str(data.get("notes", "")),
            kind=data.get("kind", "item"),
            damage={system: str(data["damage"])} if "damage" in data else {},
            expected={system: (0.0, 60.0)} if data.get("kind") == "check" else {},
            original=str(data.get("original", "")),
            inclusion_probability=float(data.get("inclusion_probability", 1.0)),
        )
        builder.add(str(data.get("rater", "rater-1")), item, {})
    source, _, target = (pairs.pop() if len(pairs) == 1 else "").partition("-")
    return Campaign(
        name=name,
        protocol=protocol or "esa",  # type: ignore[arg-type]
        source_language=source,
        target_language=target,
        systems=builder.systems(),
        items=tuple(builder.items.values()),
        raters=tuple(builder.assignments),
        assignments=builder.turns(),
    )
