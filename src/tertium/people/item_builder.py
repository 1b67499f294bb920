"""Collect the items and assignments of a campaign that another tool wrote turn by turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tertium.core.spans import Severity, Span
from tertium.people.campaign import Assignment, CampaignItem

UNKNOWN_SYSTEM = "system"


@dataclass
class ItemBuilder:
    """Merges outputs of the same segment into items; `tool` is the key of their extras."""

    tool: str
    items: dict[str, CampaignItem] = field(default_factory=dict)
    assignments: dict[str, list[Assignment]] = field(default_factory=dict)

    def add(self, rater: str, item: CampaignItem, leftover: Mapping[str, Any]) -> None:
        """Add an item with the outputs of one turn, and assign it to a rater.

        `leftover` are fields of the tool, which `leftover_of` returns for the same turn. An item
        with other texts, or one that the rater has already, gets a new name.
        """
        systems = tuple(item.outputs)
        extras = {turn_key(rater, systems): dict(leftover)}
        number, name = 1, item.id
        while not self._fits(name, item, rater):
            number += 1
            name = f"{item.id}#{number}"
        earlier = self.items.get(name)
        if earlier is None:
            merged = replace(item, id=name, extras=self._dump(extras))
        else:
            merged = replace(
                earlier,
                outputs={**earlier.outputs, **item.outputs},
                suspected={**earlier.suspected, **item.suspected},
                damage={**earlier.damage, **item.damage},
                expected={**earlier.expected, **item.expected},
                extras=self._dump({**self._load(earlier), **extras}),
            )
        self.items[name] = merged
        self.assignments.setdefault(rater, []).append(Assignment(item=name, systems=systems))

    def _fits(self, name: str, item: CampaignItem, rater: str) -> bool:
        earlier = self.items.get(name)
        if earlier is None:
            return True
        shared = {*earlier.outputs} & {*item.outputs}
        is_same_text = (earlier.source, earlier.reference, earlier.kind, earlier.document) == (
            item.source,
            item.reference,
            item.kind,
            item.document,
        ) and all(earlier.outputs[system] == item.outputs[system] for system in shared)
        own_systems = {
            s for a in self.assignments.get(rater, ()) if a.item == name for s in a.systems
        }
        return is_same_text and not own_systems & {*item.outputs}

    def _load(self, item: CampaignItem) -> dict[str, Any]:
        stored: dict[str, Any] = json.loads(item.extras.get(self.tool, "{}"))
        return stored

    def _dump(self, extras: Mapping[str, Any]) -> dict[str, str]:
        return {self.tool: json.dumps(extras, ensure_ascii=False, sort_keys=True)}

    def systems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s for item in self.items.values() for s in item.outputs))

    def turns(self) -> dict[str, tuple[Assignment, ...]]:
        return {rater: tuple(turns) for rater, turns in self.assignments.items()}


def leftover_of(
    item: CampaignItem, tool: str, rater: str, systems: Sequence[str]
) -> dict[str, Any] | None:
    """Return the stored fields of a turn, or None if it did not come from this tool."""
    if tool not in item.extras:
        return None
    fields: dict[str, Any] | None = json.loads(item.extras[tool]).get(turn_key(rater, systems))
    return fields


def turn_key(rater: str, systems: Sequence[str]) -> str:
    return "\t".join((rater, *systems))


def read_spans(entries: Any, length: int) -> tuple[Span, ...]:
    """Read spans with inclusive ends that lie in a text of `length` code points."""
    spans = []
    for entry in entries if isinstance(entries, list) else ():
        start, end = entry.get("start_i"), entry.get("end_i")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start <= end < length:
            severity: Severity = entry.get("severity") or "bad"
            category = entry.get("category") or entry.get("error_type") or ""
            name = "/".join(category) if isinstance(category, list) else str(category)
            spans.append(Span(start, end + 1, severity=severity, category=name))
    return tuple(spans)


def write_spans(spans: Sequence[Span]) -> list[dict[str, Any]]:
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
