"""Campaigns made from a test set."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tertium.core.errors import DataError, UsageError
from tertium.data.testset import TestSet
from tertium.people.campaign import Campaign
from tertium.people.planning import CHECK_KINDS, plan_campaign

TESTSET = TestSet.read(
    [f"examples/system-{name}.en.txt" for name in ("good", "fair", "poor")],
    ["examples/reference-a.en.txt"],
    "examples/source.de.txt",
    "examples/documents.txt",
    names=["good", "fair", "poor"],
)


def plan(count: int = 12, **settings: Any) -> Campaign:
    options = {"protocol": "esa", "raters": ("anna", "ben", "cleo"), "target_language": "en"}
    return plan_campaign(TESTSET, count, **{**options, **settings})


def test_every_translation_is_judged_by_as_many_raters_as_asked() -> None:
    campaign = plan(overlap=2)
    counts = Counter(
        (turn.item, system)
        for turns in campaign.assignments.values()
        for turn in turns
        for system in turn.systems
    )
    assert len(counts) == 36
    assert set(counts.values()) == {2}
    loads = [len(turns) for turns in campaign.assignments.values()]
    assert max(loads) - min(loads) <= 6


def test_common_items_go_to_all_raters_and_the_seed_decides() -> None:
    campaign = plan(common=3)
    items = [{turn.item for turn in turns} for turns in campaign.assignments.values()]
    assert len(set.intersection(*items)) >= 3
    assert plan(common=3).id == campaign.id
    assert plan(common=3, seed=2).id != campaign.id


def test_systems_are_shuffled_for_each_rater() -> None:
    campaign = plan(protocol="ranking", overlap=3)
    orders = {
        rater: [turn.systems for turn in sorted(turns, key=lambda turn: turn.item)]
        for rater, turns in campaign.assignments.items()
    }
    assert orders["anna"] != orders["ben"]
    assert len({*orders["anna"]}) > 2


def test_checks_are_damaged_and_come_after_their_original() -> None:
    campaign = plan(checks=4, context_size=1)
    checks = [item for item in campaign.items if item.kind == "check"]
    assert len(checks) == 4
    for check in checks:
        [(system, kind)] = check.damage.items()
        assert kind in CHECK_KINDS
        assert check.outputs[system] != campaign.items_by_id[check.original].outputs[system]
    for turns in campaign.assignments.values():
        order = [turn.item for turn in turns]
        for name in order:
            item = campaign.items_by_id[name]
            assert item.kind != "check" or order.index(name) > order.index(item.original)
    assert any(item.before or item.after for item in campaign.items)


def test_unusable_test_sets_are_refused() -> None:
    with pytest.raises(DataError, match="give -s or -r"):
        plan_campaign(replace(TESTSET, sources=(), references=()), 3, raters=("anna",))
    with pytest.raises(UsageError, match="2 raters for each item, but 1 raters"):
        plan_campaign(TESTSET, 3, raters=("anna",), overlap=2)
    with pytest.raises(DataError, match="only"):
        plan_campaign(TESTSET, 3, raters=("anna",), checks=9)
