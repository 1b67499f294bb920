"""Campaigns of Pearmut, Appraise and Label Studio."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.campaigns.test_planning import plan

from tertium.campaigns.campaign import Campaign, write_campaign
from tertium.campaigns.exchange import read_any_campaign, write_any_campaign
from tertium.errors import DataError, UsageError

SAMPLES = Path(__file__).parents[2].parent / "shared" / "samples" / "campaigns"
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
APPRAISE = [
    f"appraise/Examples/{name}"
    for name in (
        "Direct/batches.json",
        "DocumentSQM+Context/batches.json",
        "MQM+ESA/batches_esa.json",
        "MQM+ESA/batches_mqm.json",
        "Pairwise/batches.json",
    )
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


@pytest.mark.parametrize("name", [*PEARMUT, *APPRAISE])
def test_published_campaigns_round_trip(tmp_path: Path, name: str) -> None:
    if not (SAMPLES / name).is_file():
        pytest.skip("samples are not here")
    tool = "appraise" if name in APPRAISE else "pearmut"
    campaign = read_any_campaign(SAMPLES / name)
    write_campaign(campaign, tmp_path / "ours.json")
    write_any_campaign(read_any_campaign(tmp_path / "ours.json"), tmp_path / "theirs.json", tool)
    content = json.loads((tmp_path / "theirs.json").read_text())
    assert content == json.loads((SAMPLES / name).read_text())


@pytest.mark.parametrize("tool", ["pearmut", "appraise", "label-studio"])
def test_our_campaigns_show_the_same_texts_in_other_tools(tmp_path: Path, tool: str) -> None:
    campaign = plan(overlap=2, checks=2, tutorials=True, source_language="de")
    write_any_campaign(campaign, tmp_path / "theirs.json", tool)
    again = read_any_campaign(tmp_path / "theirs.json")
    seen = [*shown_texts(again).values()]
    assert seen == [*shown_texts(campaign).values()]
    kinds = [item.kind for item in again.items]
    assert kinds.count("check") == 2
    if tool == "label-studio":
        assert '<Labels name="errors"' in (tmp_path / "theirs.xml").read_text()


def test_unknown_files_and_protocols_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    with pytest.raises(DataError, match="not a campaign of tertium, Pearmut, Appraise"):
        read_any_campaign(tmp_path / "x.json")
    with pytest.raises(UsageError, match="Pearmut has no protocol 'post-edit'"):
        write_any_campaign(plan(protocol="post-edit"), tmp_path / "y.json", "pearmut")
