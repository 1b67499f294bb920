"""Disagreement of two metrics, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import DataError, LengthError, UsageError
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.metrics.base.loading import load_metric
from tertium.studies.error_analysis import (
    analyse,
    find_disagreement,
    hash_tie_breakers,
    mark_highest,
)

HUMAN = np.array([9.0, 8, 7, 6, 5, 4, 3, 2, 1, 0])


def test_counts_by_hand() -> None:
    first = np.array([9.0, 1, 8, 0, 0, 0, 0, 0, 0, 7])  # high: rows 0, 2, 9
    second = np.array([9.0, 8, 1, 0, 0, 0, 0, 0, 0, 7])  # high: rows 0, 1, 9
    result = find_disagreement(HUMAN, first, second, ["x"] * 10, share=0.3)
    trait = np.arange(10) == 2
    counts = result.counts({"odd": trait})
    assert counts["all"] == {"only first": 1, "only second": 1, "both": 1, "neither": 0}
    assert counts["odd"] == {
        "only first": 1,
        "only second": 0,
        "both": 0,
        "neither": 0,
    }


def test_top_share_is_per_group() -> None:
    groups = ["a"] * 5 + ["b"] * 5
    assert np.flatnonzero(mark_highest(HUMAN, groups, 0.2)).tolist() == [0, 5]


def test_excluded_ties_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    human = np.array([9.0, 8, 8, 8, 0, 8])
    find_disagreement(human, human, human, [*"aaaaa", "b"], share=0.4)
    assert caplog.messages[0].startswith("2 translations tie with the best 40 % by human score")
    caplog.clear()
    find_disagreement(HUMAN, human[[0] * 10], HUMAN, ["x"] * 10)
    assert not caplog.messages


def test_tie_breaking_does_not_depend_on_order(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice([*"abcdefgh"], size=4)) for _ in range(60)]
    rows = [
        Judgment(Segment(text, None, ("a b c d",)), float(n % 3), item=str(n))
        for n, text in enumerate(texts)
    ]
    chosen = []
    for order in (range(60), reversed(range(60)), rng.permutation(60)):
        sets = [JudgmentSet(name="x", judgments=tuple(rows[n] for n in order))]
        metrics = load_metric("chrf"), load_metric("bleu")
        analysis = analyse(sets, *metrics, share=0.2)
        masks = (
            analysis.disagreement.best,
            analysis.disagreement.first,
            analysis.disagreement.second,
        )
        texts = [segment.hypothesis for segment in analysis.segments]
        chosen.append([sorted(texts[n] for n in np.flatnonzero(mask)) for mask in masks])
    assert chosen[0] == chosen[1] == chosen[2]
    assert "8 translations tie with the best 20 % by human score" in caplog.messages[0]
    assert "by a hash of their texts" in caplog.messages[0]


def test_invalid_input() -> None:
    with pytest.raises(LengthError, match="10 human scores, 9 and 10 metric scores, 10 groups"):
        find_disagreement(HUMAN, HUMAN[1:], HUMAN, ["x"] * 10)
    with pytest.raises(UsageError, match=r"share must be between 0 and 1, got 1\.5"):
        find_disagreement(HUMAN, HUMAN, HUMAN, ["x"] * 10, share=1.5)


def test_two_settings_of_one_metric_are_shown_by_spec() -> None:
    rows = tuple(
        Judgment(Segment(f"a cat {n}", None, ("a cat",)), float(n), item=str(n)) for n in range(9)
    )
    sets = [JudgmentSet(name="x", judgments=rows)]
    plain, squared, other = map(load_metric, ("chrf", "chrf:beta=1", "bleu"))
    assert analyse(sets, plain, squared).metrics == ("chrf", "chrf:beta=1")
    assert analyse(sets, plain, other).metrics == ("chrF", "BLEU")
    with pytest.raises(UsageError, match="'chrf' is given twice"):
        analyse(sets, plain, plain)


def test_set_without_references_error() -> None:
    good = Judgment(Segment("a b", references=("a b",)), 1.0, lp="de-en")
    bare = Judgment(Segment("a b"), 1.0, lp="de-en")
    sets = [
        JudgmentSet(name="news", lp="de-en", judgments=(good,)),
        JudgmentSet(name="qe", lp="de-en", judgments=(bare,)),
    ]
    with pytest.raises(DataError, match=r"^qe de-en: no references"):
        analyse(sets, load_metric("chrf"), load_metric("bleu"))


def test_metric_ties_are_broken_unlike_human_ties() -> None:
    segments = [Segment(f"line {n}", None, (f"reference {n}",)) for n in range(2000)]
    breakers, same = hash_tie_breakers(segments), np.ones(2000)
    result = find_disagreement(same, same, same, ["x"] * 2000, share=0.2, tie_breakers=breakers)
    counts = result.counts({})["all"]
    assert counts["only first"] == counts["only second"] == 0  # both metrics share tie breakers
    assert 40 < counts["both"] < 120  # a fifth of 400, give or take five deviations
