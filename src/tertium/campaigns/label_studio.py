"""Campaigns of Label Studio: a task for each rater and translation, and a labeling interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tertium.campaigns.campaign import (
    ESA_SEVERITIES,
    MQM_SEVERITIES,
    PROTOCOLS_WITH_SCORES,
    PROTOCOLS_WITH_SPANS,
    SIDE_BY_SIDE_PROTOCOLS,
    Assignment,
    Campaign,
    CampaignItem,
)
from tertium.campaigns.item_builder import ItemBuilder
from tertium.data.records import read_object
from tertium.errors import UsageError

TOOL = "label-studio"


def make_content(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the tasks; `data.rater` is the rater that a task is meant for."""
    if campaign.protocol in SIDE_BY_SIDE_PROTOCOLS:
        raise UsageError(f"{campaign.protocol}: Label Studio tasks have one translation each")
    tasks = []
    for rater in campaign.raters:
        for turn in campaign.assignments.get(rater, ()):
            item = campaign.items_by_id[turn.item]
            tasks.append(
                {"data": _task_data(campaign, rater, item, turn)}
                | _predict(item, turn, _severities(campaign))
            )
    return tasks


def _task_data(
    campaign: Campaign, rater: str, item: CampaignItem, turn: Assignment
) -> dict[str, Any]:
    [system] = turn.systems
    data = {
        "rater": rater,
        "item": item.id,
        "system": system,
        "lp": campaign.lp,
        "document": item.document,
        "position": item.position,
        "kind": item.kind,
        "original": item.original,
        "damage": item.damage.get(system, ""),
        "notes": item.notes,
        "inclusion_probability": item.inclusion_probability,
        "src": item.source or "",
        "mt": item.outputs[system],
        "ref": item.reference or "",
    }
    return {key: value for key, value in data.items() if value not in ("", None)}


def _severities(campaign: Campaign) -> tuple[str, ...]:
    return MQM_SEVERITIES if campaign.protocol == "mqm" else ESA_SEVERITIES


def _predict(item: CampaignItem, turn: Assignment, severities: Sequence[str]) -> dict[str, Any]:
    """Return suspected spans as a prediction, which Label Studio shows marked."""
    results = [
        {
            "id": f"{item.id}-{number}",
            "from_name": "errors",
            "to_name": "mt",
            "type": "labels",
            "value": {
                "start": _utf16(item.outputs[turn.systems[0]], span.start),
                "end": _utf16(item.outputs[turn.systems[0]], span.end),
                "labels": [span.severity if span.severity in severities else "minor"],
            },
        }
        for number, span in enumerate(item.suspected.get(turn.systems[0], ()))
        if span.side == "hypothesis"
    ]
    return {"predictions": [{"result": results}]} if results else {}


def _utf16(text: str, offset: int) -> int:
    """Convert an offset in code points to UTF-16 units, as browsers count.

    >>> _utf16("a🙂b", 2)
    3
    """
    return len(text[:offset].encode("utf-16-le")) // 2


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


def labeling_config(campaign: Campaign) -> str:
    """Return the labeling interface of the protocol, whose exports `tertium` can read."""
    parts = [
        f"<Header value={quoteattr(campaign.instructions or campaign.name)}/>",
        '<Text name="src" value="$src"/>',
        '<Text name="mt" value="$mt"/>',
    ]
    if campaign.options.show_reference:
        parts.insert(2, '<Text name="ref" value="$ref"/>')
    if campaign.protocol in PROTOCOLS_WITH_SPANS:
        labels = "".join(f'<Label value="{name}"/>' for name in _severities(campaign))
        parts.append(f'<Labels name="errors" toName="mt">{labels}</Labels>')
    if campaign.protocol == "mqm":
        choices = "".join(
            f"<Choice value={quoteattr(category.name)}>"
            + "".join(f"<Choice value={quoteattr(name)}/>" for name in category.subcategories)
            + "</Choice>"
            for category in campaign.typology
        )
        parts.append(f'<Taxonomy name="category" toName="mt" perRegion="true">{choices}</Taxonomy>')
    if campaign.protocol in PROTOCOLS_WITH_SCORES:
        parts.append('<Number name="score" toName="mt" min="0" max="100" required="true"/>')
    if campaign.protocol == "post-edit":
        parts.append('<TextArea name="edited" toName="mt" value="$mt" editable="true"/>')
    title = escape(campaign.name.replace("--", "-"))
    return "\n".join(
        ["<View>", f"  <!-- {title} -->", *(f"  {part}" for part in parts), "</View>\n"]
    )
