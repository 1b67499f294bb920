"""What the rater's page gets: tasks without names of systems, and the state of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tertium.people.campaign import (
    ESA_SEVERITIES,
    MQM_SEVERITIES,
    PROTOCOLS_WITH_SPANS,
    Assignment,
    Campaign,
    CampaignItem,
    Neighbor,
    to_json,
)
from tertium.people.state import CampaignState

NO_ANSWER: Mapping[str, Any] = {"score": None, "rank": None, "marks": [], "edited": None}
# ISO 639 codes of languages that are written from right to left
RIGHT_TO_LEFT = frozenset("ar arc ckb dv fa ha-arab he ks ps sd ug ur yi".split())


def describe_campaign(campaign: Campaign) -> dict[str, Any]:
    """Return what the page shows of a campaign besides its tasks."""
    severities: tuple[str, ...] = ()
    if campaign.protocol in PROTOCOLS_WITH_SPANS:
        severities = MQM_SEVERITIES if campaign.protocol == "mqm" else ESA_SEVERITIES
    return {
        "id": campaign.id,
        "name": campaign.name,
        "protocol": campaign.protocol,
        "source": _text_settings(campaign.source_language),
        "target": _text_settings(campaign.target_language),
        "instructions": campaign.instructions,
        "severities": severities,
        "typology": to_json(campaign.typology) if campaign.protocol == "mqm" else [],
        "glossary": to_json(campaign.glossary),
    }


def describe_task(task: Assignment, campaign: Campaign) -> dict[str, Any]:
    """Return one task; attention checks look like any other task."""
    item: CampaignItem = campaign.items_by_id[task.item]
    options = campaign.options
    return {
        "kind": "tutorial" if item.kind == "tutorial" else "item",
        "document": item.document,
        "source": item.source,
        "reference": item.reference if options.show_reference or item.source is None else None,
        "notes": item.notes,
        "outputs": [{"text": item.outputs[system]} for system in task.systems],
        "suspected": [
            [_prefilled_mark(to_json(span)) for span in item.suspected.get(system, ())]
            if campaign.protocol in PROTOCOLS_WITH_SPANS
            else []
            for system in task.systems
        ],
        "before": [_describe_neighbor(n, task) for n in item.before[-options.context_size :]]
        if options.context_size
        else [],
        "after": [_describe_neighbor(n, task) for n in item.after[: options.context_size]],
    }


def describe_states(state: CampaignState, rater: str) -> list[dict[str, Any] | None]:
    """Return the newest answers of a rater, one entry per task."""
    states: list[dict[str, Any] | None] = [None] * len(state.raters[rater].tasks)
    for number, task_state in state.raters[rater].states.items():
        states[number] = {
            "outputs": [{**NO_ANSWER, **output} for output in task_state.outputs],
            "comment": task_state.comment,
            "status": task_state.status,
            "reason": task_state.reason,
        }
    return states


def _prefilled_mark(span: Mapping[str, Any]) -> dict[str, Any]:
    names = ("start", "end", "side", "severity", "category")
    mark = {name: span[name] for name in names if name in span}
    if mark.get("severity") not in MQM_SEVERITIES:
        mark["severity"] = "minor"  # the severity is unknown
    return {**mark, "prefilled": True}


def _describe_neighbor(neighbor: Neighbor, task: Assignment) -> dict[str, Any]:
    outputs = [neighbor.outputs.get(system) for system in task.systems]
    return {"source": neighbor.source, "outputs": outputs}


def _text_settings(language: str) -> dict[str, str]:
    """Return the language tag and the direction of texts; `auto` if the language is unknown."""
    tag = language.replace("_", "-")
    codes = {tag.lower(), tag.partition("-")[0].lower()}
    direction = "rtl" if codes & RIGHT_TO_LEFT else "ltr"
    return {"language": tag, "direction": direction if tag else "auto"}
