"""The campaign file: round trip, identity, checks of its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tertium.core.errors import DataError, TertiumError
from tertium.core.spans import Span
from tertium.people.campaign import (
    MQM_TYPOLOGY,
    Assignment,
    Campaign,
    CampaignItem,
    is_campaign_file,
    read_campaign,
    write_campaign,
)


def make_campaign(**changes: Any) -> Campaign:
    outputs = {"a": "Ein 🙂 Satz.", "b": "Ein Satz."}
    items = (
        CampaignItem(id="1", source="A sentence.", outputs=outputs, suspected={"a": (Span(4, 5),)}),
        CampaignItem(id="2", source="Another.", outputs={"a": "Noch einer.", "b": "Mehr."}),
    )
    settings: dict[str, Any] = {
        **{"name": "demo", "protocol": "esa", "source_language": "en", "target_language": "de"},
        **{"systems": ("a", "b"), "items": items, "raters": ("anna", "ben")},
        "assignments": {
            "anna": (Assignment(item="1", systems=("b",)), Assignment(item="1", systems=("a",))),
            "ben": (Assignment(item="2", systems=("a",)),),
        },
    }
    return Campaign(**{**settings, **changes})


def test_a_campaign_round_trips_with_the_same_id(tmp_path: Path) -> None:
    campaign = make_campaign()
    write_campaign(campaign, tmp_path / "c.json")
    again = read_campaign(tmp_path / "c.json")
    assert again == campaign
    assert (again.id, again.lp) == (campaign.id, "en-de")
    assert is_campaign_file(tmp_path / "c.json")
    assert make_campaign(seed=1).id != campaign.id


def test_mqm_gets_the_typology_of_freitag() -> None:
    assert make_campaign(protocol="mqm").typology == MQM_TYPOLOGY


def test_an_edited_file_is_refused_unless_its_id_is_removed(tmp_path: Path) -> None:
    content = make_campaign().records()
    content["instructions"] = "Judge well."
    file = tmp_path / "c.json"
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"was changed after it was written.*remove its id"):
        read_campaign(file)
    del content["id"]
    file.write_text(json.dumps(content))
    assert read_campaign(file).instructions == "Judge well."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version is the number 2, expected 1: update tertium"),
        ({"format": "other"}, "is not a campaign of tertium"),
        ({"protocol": "stars"}, "protocol is the text 'stars', expected one of da"),
        ({"raters": ["anna", "anna"]}, "the rater 'anna' occurs twice"),
        ({"raters": ["anna"]}, "unknown rater in the assignments 'ben'"),
        ({"nmae": "x"}, "unknown key 'nmae': did you mean 'name'"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, changes: Any, message: str) -> None:
    content = {**make_campaign().records(), **changes}
    file = tmp_path / "c.json"
    file.write_text(json.dumps(content))
    with pytest.raises(TertiumError, match=message) as error:
        read_campaign(file)
    assert "\n" not in str(error.value)


def test_bad_items_and_assignments_are_refused() -> None:
    item = CampaignItem(id="1", source="x", outputs={"a": "y"})
    with pytest.raises(DataError, match="the item '1' occurs twice"):
        make_campaign(items=(item, item), assignments={})
    with pytest.raises(DataError, match="item '1': the source or the reference is empty"):
        CampaignItem(id="1", source=" ", outputs={"a": "y"})
    with pytest.raises(DataError, match="'a' of '7' does not exist"):
        make_campaign(assignments={"anna": (Assignment(item="7", systems=("a",)),)})
