"""Campaigns of Pearmut."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns.test_planning import plan

from tertium.cli import main
from tertium.core.errors import DataError, UsageError
from tertium.core.spans import Span
from tertium.people.campaign import Campaign, Category, read_campaign, write_campaign
from tertium.people.pearmut import read_any_campaign, write_any_campaign
from tertium.people.rater_answers import RaterAnswer, ScoredAnswers

SAMPLES = Path(
    os.environ.get("TERTIUM_SAMPLES") or Path(__file__).parents[2].parent / "shared" / "samples"
)
CAMPAIGNS = SAMPLES / "campaigns"
PEARMUT_1_1_6 = SAMPLES / "today" / "humeval" / "pearmut-1.1.6"
PEARMUT = [
    "pearmut/examples/annotation/campaign_esa.json",
    "pearmut/examples/annotation/campaign_mqm.json",
    "pearmut/data/tasks/annotation_demo_esa.json",
    *(
        f"pearnament/examples/{name}.json"
        for name in (
            "attention_checks",
            "da.CUT",
            "esa.CUT",
            "esaai",
            "mqm",
            "multimodal",
            "singlestream",
            "tutorials/esa_deen",
        )
    ),
]


def shown_texts(
    campaign: Campaign,
) -> dict[str, list[tuple[str, tuple[str, ...], tuple[str, ...]]]]:
    """What each rater sees, in order."""
    return {
        rater: [
            (
                str(campaign.items_by_id[turn.item].source),
                turn.systems,
                tuple(campaign.items_by_id[turn.item].outputs[s] for s in turn.systems),
            )
            for turn in turns
        ]
        for rater, turns in campaign.assignments.items()
    }


@pytest.mark.parametrize("name", PEARMUT)
def test_published_campaigns_round_trip(tmp_path: Path, name: str) -> None:
    if not (CAMPAIGNS / name).is_file():
        pytest.skip("samples are not here")
    campaign = read_any_campaign(CAMPAIGNS / name)
    write_campaign(campaign, tmp_path / "ours.json")
    again = read_any_campaign(tmp_path / "ours.json")
    write_any_campaign(again, tmp_path / "theirs.json", "pearmut")
    content = json.loads((tmp_path / "theirs.json").read_text())
    assert content == json.loads((CAMPAIGNS / name).read_text())


def test_our_campaigns_show_the_same_texts_in_pearmut(tmp_path: Path) -> None:
    campaign = plan(overlap=2, checks=2, source_language="de")
    write_any_campaign(campaign, tmp_path / "theirs.json", "pearmut")
    again = read_any_campaign(tmp_path / "theirs.json")
    seen = [*shown_texts(again).values()]
    assert seen == [*shown_texts(campaign).values()]
    kinds = [item.kind for item in again.items]
    assert kinds.count("check") == 2


def test_unknown_files_and_protocols_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    with pytest.raises(DataError, match="not a campaign of tertium"):
        read_any_campaign(tmp_path / "x.json")
    with pytest.raises(UsageError, match="Pearmut has no protocol 'post-edit'"):
        write_any_campaign(plan(protocol="post-edit"), tmp_path / "y.json", "pearmut")


ITEM = {"item_id": "d1_1", "src": "Eine Katze.", "tgt": {"A": "A cat.", "B": "A dog."}}
CATEGORIES = {"": [], "Game text": ["", "Wrong speaker", "Too long"], "Unknown": []}


def write_pearmut(path: Path, info: dict[str, Any] | None, **fields: Any) -> Path:
    content = {"campaign_id": "demo", "data": [[[ITEM]]], **fields}
    if info is not None:
        content["info"] = {"assignment": "task-based", **info}
    path.write_text(json.dumps(content))
    return path


def test_pearmut_campaigns_keep_their_error_categories(tmp_path: Path) -> None:
    severities = ["Neutral", "Minor", "Major", "Critical"]
    info = {"protocol": "MQM", "mqm_categories": CATEGORIES}
    path = write_pearmut(tmp_path / "theirs.json", {**info, "mqm_severities": severities})
    campaign = read_any_campaign(path)
    assert campaign.typology == (
        Category(name="Game text", subcategories=("Wrong speaker", "Too long")),
        Category(name="Unknown"),
    )
    write_any_campaign(campaign, tmp_path / "again.json", "pearmut")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())


def test_checks_and_tutorials_of_pearmut_keep_their_expected_scores(tmp_path: Path) -> None:
    rule = {"score": [0, 20]}
    check = ITEM | {"validation": {"B": rule}}
    tutorial = {"item_id": "t", "src": "Ein Hund.", "tgt": {"A": "A dog."}, "instructions": "Try."}
    tutorial |= {"validation": {"A": [rule | {"allow_skip": True}]}}
    path = write_pearmut(tmp_path / "theirs.json", {"protocol": "DA"}, data=[[[check], [tutorial]]])
    campaign = read_any_campaign(path)
    kinds = {item.id: (item.kind, item.notes, item.expected) for item in campaign.items}
    assert kinds["d1_1"] == ("check", "", {"B": (0.0, 20.0)})
    assert kinds["t"] == ("tutorial", "Try.", {"A": (0.0, 20.0)})
    rater = campaign.raters[0]
    cells = [("d1_1", "B", 21.0), ("d1_1", "A", 60.0), ("t", "A", 99.0)]
    answers = [RaterAnswer(rater=rater, item=i, system=s, score=score) for i, s, score in cells]
    scored = ScoredAnswers(campaign, answers)
    assert scored.count_checks() == {rater: (1, 2)}
    assert not scored.answers


def test_categories_severities_and_marks_are_written_to_pearmut(tmp_path: Path) -> None:
    typology = (Category(name="Tone", subcategories=("Rude", "Stiff")), Category(name="Other"))
    campaign = plan(protocol="mqm")
    first = campaign.items[0]
    system = next(iter(first.outputs))
    spans = (Span(0, 2, severity="major"), Span(0, 1, side="source"))
    items = (replace(first, suspected={system: spans}), *campaign.items[1:])
    campaign = replace(campaign, id="", typology=typology, items=items)
    write_any_campaign(campaign, tmp_path / "theirs.json", "pearmut")
    info = json.loads((tmp_path / "theirs.json").read_text())["info"]
    assert info["mqm_categories"] == {"Tone": ["Rude", "Stiff"], "Other": []}
    assert info["mqm_severities"] == ["Neutral", "Minor", "Major", "Critical"]
    again = read_any_campaign(tmp_path / "theirs.json")
    assert again.typology == typology
    assert [item.suspected for item in again.items if item.suspected] == [{system: spans[:1]}]


def test_campaigns_without_settings_are_shared_by_all_raters(tmp_path: Path) -> None:
    path = write_pearmut(tmp_path / "theirs.json", None, data=[[ITEM]])
    campaign = read_any_campaign(path, "contrastive-esa")
    assert [turn.item for turn in campaign.assignments["rater-1"]] == ["d1_1"]
    write_any_campaign(campaign, tmp_path / "again.json", "pearmut")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())


def test_side_by_side_campaigns_stay_side_by_side_in_pearmut(tmp_path: Path) -> None:
    campaign = plan(protocol="contrastive-esa")
    write_any_campaign(campaign, tmp_path / "theirs.json", "pearmut")
    assert json.loads((tmp_path / "theirs.json").read_text())["info"]["protocol"] == "cESA"
    assert read_any_campaign(tmp_path / "theirs.json").protocol == "contrastive-esa"


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (
            {"protocol": "DA", "sliders": [{"name": "Fluency", "min": 1, "max": 5, "step": 1}]},
            r"demo: the campaign has its own sliders \(Fluency\), but raters of tertium give",
        ),
        ({"protocol": "ESA", "sliders": []}, r"its own sliders \(none\)"),
        ({"protocol": "MQM", "mqm_categories": "input"}, "demo: mqm_categories is 'input'"),
        ({"protocol": "MQM", "mqm_severities": []}, r"mqm_severities is \[\].*neutral, minor"),
        ({"protocol": "MQM", "mqm_severities": ["Trivial"]}, "mqm_severities is .*Trivial"),
        ({}, "demo: the protocol is None, expected DA, ESA, cESA, MQM"),
        (None, "demo: the protocol is None"),
        ({"protocol": "XSTS"}, "demo: the protocol is 'XSTS'"),
    ],
)
def test_pearmut_campaigns_that_tertium_cannot_run_are_refused(
    tmp_path: Path, info: dict[str, Any] | None, message: str
) -> None:
    path = write_pearmut(tmp_path / "theirs.json", info)
    with pytest.raises(DataError, match=message):
        read_any_campaign(path)


def test_a_protocol_replaces_sliders_if_it_is_given(tmp_path: Path) -> None:
    sliders = [{"name": "Fluency", "min": 1, "max": 5, "step": 1}]
    path = write_pearmut(tmp_path / "theirs.json", {"protocol": "DA", "sliders": sliders})
    assert read_any_campaign(path, "da").protocol == "da"


def test_what_raters_see_otherwise_than_in_pearmut_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    info = {"protocol": "MQM", "special_tokens": ["[missing]", "[untranslated]"]}
    extra = {"data_welcome": [[ITEM]], "data_random": []}
    path = write_pearmut(tmp_path / "theirs.json", info | {"textfield": "prefilled"}, **extra)
    assert main(["plan", "convert", str(path), "-o", str(tmp_path / "ours.json")]) == 0
    assert [message.removeprefix("demo: ") for message in caplog.messages] == [
        "error categories are those of Freitag et al. (2021), not the default of Pearmut",
        "raters choose from the severities neutral, minor, major, critical",
        "raters mark errors and give no score",
        "the documents in data_welcome (tutorials or attention checks) are left out",
        "raters cannot mark [untranslated]",
        "raters do not post-edit the translation",
    ]
    caplog.clear()
    info = {"protocol": "ESA", "special_tokens": ["[missing]"], "instructions": "Be strict."}
    path = write_pearmut(tmp_path / "theirs.json", info)
    assert main(["plan", "convert", str(path), "-o", str(tmp_path / "ours.json")]) == 0
    assert not caplog.messages
    assert read_campaign(tmp_path / "ours.json").instructions == "Be strict."


@pytest.mark.parametrize("folder", ["campaigns-before-add", "campaigns-after-add"])
def test_campaigns_of_pearmut_1_1_6_round_trip_or_are_refused(tmp_path: Path, folder: str) -> None:
    if not PEARMUT_1_1_6.is_dir():
        pytest.skip("samples are not here")
    refused = []
    for path in sorted((PEARMUT_1_1_6 / folder).glob("*.json")):
        try:
            campaign = read_any_campaign(path)
        except DataError:
            refused.append(path.stem.removeprefix("sample_"))
            continue
        write_any_campaign(campaign, tmp_path / "again.json", "pearmut")
        assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())
    without_protocol = ["noprotocol"] if folder == "campaigns-before-add" else []
    assert refused == ["mqm_input", *without_protocol, "sliders"]
