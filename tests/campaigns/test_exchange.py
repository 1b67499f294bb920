"""Campaigns written for Pearmut."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns.test_planning import plan

from tertium.cli import main
from tertium.core.errors import UsageError
from tertium.core.spans import Span
from tertium.people.campaign import Campaign, Category, write_campaign
from tertium.people.pearmut import write_pearmut


def convert(campaign: Campaign, folder: Path) -> dict[str, Any]:
    """Return the content of the Pearmut campaign that the command writes."""
    write_campaign(campaign, folder / "ours.json")
    path = folder / "theirs.json"
    assert main(["plan", "convert", str(folder / "ours.json"), "-o", str(path), "-q"]) == 0
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_our_campaigns_show_the_same_texts_in_pearmut(tmp_path: Path) -> None:
    campaign = plan(overlap=2, checks=2, source_language="de")
    content = convert(campaign, tmp_path)
    assert content["info"]["protocol"] == "ESA"
    checks = 0
    for rater, turns in campaign.assignments.items():
        entries = [entry for document in content["data"][rater] for entry in document]
        expected = []
        for turn in turns:
            item = campaign.items_by_id[turn.item]
            expected.append((item.source, {s: item.outputs[s] for s in turn.systems}))
        assert [(entry["src"], entry["tgt"]) for entry in entries] == expected
        assert all("instructions" in document[0] for document in content["data"][rater])
        checks += sum("validation" in entry for entry in entries)
    assert checks == 4  # of two items, each for two raters


def test_categories_severities_and_marks_are_written_to_pearmut(tmp_path: Path) -> None:
    typology = (Category(name="Tone", subcategories=("Rude", "Stiff")), Category(name="Other"))
    campaign = plan(protocol="mqm")
    first = campaign.items[0]
    system = next(iter(first.outputs))
    spans = (Span(0, 2, severity="major"), Span(0, 1, side="source"))
    items = (replace(first, suspected={system: spans}), *campaign.items[1:])
    content = convert(replace(campaign, id="", typology=typology, items=items), tmp_path)
    assert content["info"]["mqm_categories"] == {"Tone": ["Rude", "Stiff"], "Other": []}
    assert content["info"]["mqm_severities"] == ["Neutral", "Minor", "Major", "Critical"]
    documents = [entry for data in content["data"].values() for doc in data for entry in doc]
    [marked] = [entry["error_spans"] for entry in documents if "error_spans" in entry]
    expected = {"start_i": 0, "end_i": 1, "severity": "major", "category": None}
    assert marked == {system: [expected]}


def test_side_by_side_campaigns_stay_side_by_side_in_pearmut(tmp_path: Path) -> None:
    content = convert(plan(protocol="contrastive-esa"), tmp_path)
    assert content["info"]["protocol"] == "cESA"
    assert all(len(doc[0]["tgt"]) > 1 for data in content["data"].values() for doc in data)


def test_protocols_that_pearmut_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Pearmut has no protocol 'post-edit'"):
        write_pearmut(plan(protocol="post-edit"), tmp_path / "y.json")
