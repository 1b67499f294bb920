"""Campaigns as files of Pearmut, another annotation tool.

A campaign of Pearmut has tasks of raters: documents of items with `src` and `tgt` by system. The
answers that it collects are read by `tertium.data.formats.pearmut_outputs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import UsageError
from tertium.core.spans import Span
from tertium.people.campaign import MQM_SEVERITIES, Assignment, Campaign, CampaignItem, Protocol

NAMES: Mapping[Protocol, str] = {
    "da": "DA",
    "esa": "ESA",
    "contrastive-esa": "cESA",
    "mqm": "MQM",
}
CHECK_RANGE = (0.0, 60.0)  # the scores that a check expects


def write_pearmut(campaign: Campaign, path: PathLike) -> None:
    """Write a campaign in the format of Pearmut."""
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
    content = {"info": info, "campaign_id": campaign.name, "data": data}
    write_text(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


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
    if is_first:
        entry["instructions"] = campaign.instructions
    suspected = [system for system in turn.systems if system in item.suspected]
    if suspected:
        entry["error_spans"] = {s: _write_spans(item.suspected[s]) for s in suspected}
    if item.kind == "check":
        entry["validation"] = {system: {"score": [*CHECK_RANGE]} for system in turn.systems}
    return entry


def _write_spans(spans: tuple[Span, ...]) -> list[dict[str, Any]]:
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
