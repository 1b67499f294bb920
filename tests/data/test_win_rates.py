"""From comparisons to systems; small tables one can check by hand."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import minimize

from tertium.data.collection import Collection
from tertium.data.rankings import PairJudgment, RankingSet, gather
from tertium.data.win_rates import (
    expected_wins,
    judge_agreement,
    pair_counts,
    skills,
    win_ratio,
)
from tertium.errors import DataError


def rankings(*rows: tuple[str, str, float]) -> RankingSet:
    return gather([PairJudgment("1", a, b, v) for a, b, v in rows], name="x")


# A beats B twice and ties once; B beats C once; C beats A once.
ROWS = [("A", "B", 1.0), ("B", "A", 0.0), ("A", "B", 0.5), ("B", "C", 1.0), ("A", "C", 0.0)]
SMALL = rankings(*ROWS)


def test_wins_and_ties_are_counted_from_both_sides() -> None:
    wins, ties = pair_counts(SMALL)
    assert wins.tolist() == [[0, 2, 0], [0, 0, 1], [1, 0, 0]]
    assert ties.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("excluded", [2 / 3, 1 / 3, 1 / 2]),
        ("won", [3 / 4, 2 / 4, 1 / 2]),
        ("half", [2.5 / 4, 1.5 / 4, 1 / 2]),
    ],
)
def test_win_ratio_in_its_three_treatments_of_ties(ties: str, expected: list[float]) -> None:
    np.testing.assert_allclose(win_ratio(SMALL, ties), expected)  # type: ignore[arg-type]


def test_expected_wins_average_over_opponents() -> None:
    np.testing.assert_allclose(expected_wins(SMALL), [(1 + 0) / 2, (0 + 1) / 2, (0 + 1) / 2])


def test_a_system_that_only_tied_has_no_ratio() -> None:
    tied = rankings(("A", "B", 0.5), ("A", "C", 1.0))
    assert np.isnan(win_ratio(tied)[1])
    assert np.isnan(expected_wins(tied)[1])


def test_skills_are_the_mode_of_the_posterior() -> None:
    """The oracle maximises the posterior written out comparison by comparison."""
    rng = np.random.default_rng(5)
    rows = [
        (a, b, float(rng.choice([0.0, 0.5, 1.0], p=[0.3, 0.2, 0.5])))
        for a, b in combinations("ABCD", 2)
        for _ in range(20)
    ]
    found = skills(rankings(*rows))
    margin = NormalDist().inv_cdf((1 + sum(v == 0.5 for _, _, v in rows) / len(rows)) / 2)

    cdf = NormalDist().cdf

    def loss(s: np.ndarray) -> float:
        total = float((s**2).sum()) / (2 * 2.0**2)
        for a, b, verdict in rows:
            x = float(s["ABCD".index(a)] - s["ABCD".index(b)]) / 2**0.5
            left, right = cdf(x - margin), cdf(-x - margin)
            total -= math.log({1.0: left, 0.0: right, 0.5: 1 - left - right}[verdict])
        return total

    best = minimize(loss, np.zeros(4), tol=1e-10).x
    np.testing.assert_allclose(found.means, best, atol=1e-4)
    assert found.tie_margin == pytest.approx(margin)


def test_skills_do_not_depend_on_the_order_of_comparisons() -> None:
    rows = [("A", "B", 1.0), ("B", "C", 1.0), ("A", "C", 0.5), ("C", "A", 0.0)]
    one, two = skills(rankings(*rows)), skills(rankings(*rows[::-1]))
    order = [two.systems.index(system) for system in one.systems]
    np.testing.assert_allclose(one.means, two.means[order], atol=1e-9)
    assert one.expected_wins.mean() == pytest.approx(0.5)


def test_more_comparisons_make_skills_surer() -> None:
    rows = [("A", "B", 1.0), ("A", "B", 0.0), ("B", "C", 1.0), ("C", "A", 0.5)]
    few, many = skills(rankings(*rows)), skills(rankings(*rows * 20))
    assert (many.deviations < few.deviations).all()


def test_skills_survive_a_system_that_never_loses() -> None:
    found = skills(rankings(*[("A", "B", 1.0)] * 50))
    assert np.isfinite(found.means).all()
    assert found.means[0] > 1 > found.means[1]


def test_agreement_by_hand() -> None:
    """Item 1: ann and bob agree that A > B, cy says tie; item 2: ann contradicts herself."""
    rows = [
        PairJudgment("1", "A", "B", 1.0, "ann"),
        PairJudgment("1", "B", "A", 0.0, "bob"),
        PairJudgment("1", "A", "B", 0.5, "cy"),
        PairJudgment("2", "A", "B", 1.0, "ann"),
        PairJudgment("2", "A", "B", 0.0, "ann"),
        PairJudgment("2", "A", "B", 1.0, ""),
    ]
    inter, intra = judge_agreement(gather(rows, name="x"))
    chance = 0.2**2 + 2 * 0.4**2
    assert (inter.pairs, intra.pairs) == (3, 1)
    assert inter.observed == pytest.approx(1 / 3)
    assert inter.expected == pytest.approx(chance)
    assert inter.kappa == pytest.approx((1 / 3 - chance) / (1 - chance))
    assert intra.kappa == pytest.approx((0 - chance) / (1 - chance))


def test_agreement_needs_judges() -> None:
    with pytest.raises(DataError, match="judges are not known"):
        judge_agreement(SMALL)


def test_nothing_judged_twice_gives_nan() -> None:
    inter, intra = judge_agreement(gather([PairJudgment("1", "A", "B", 1.0, "ann")], name="x"))
    assert np.isnan(inter.kappa)
    assert np.isnan(intra.kappa)


@pytest.mark.parametrize(("lp", "kappa"), [("cs-en", 0.311), ("de-en", 0.385), ("fr-en", 0.272)])
def test_agreement_on_wmt12_is_near_the_published(human_data: Path, lp: str, kappa: float) -> None:
    """Findings of WMT13, table 3, column WMT12; theirs also counts rows of unpublished systems."""
    inter, _ = judge_agreement(Collection(human_data).rankings("rankings/wmt12", lp))
    assert inter.kappa == pytest.approx(kappa, abs=0.02)


@pytest.mark.parametrize("lp", ["en-cs", "en-de", "en-es", "en-nl", "en-pt"])
def test_skills_follow_the_official_trueskill(human_data: Path, lp: str) -> None:
    collection = Collection(human_data)
    found = skills(collection.rankings("rankings/wmt16it", lp))
    official = collection.system_scores("rankings/wmt16it", lp).of(found.systems)
    assert np.corrcoef(found.means, official)[0, 1] > 0.995
