"""From comparisons to systems: how often each wins, how strong it is, how well judges agree.

Every figure starts from two tables, wins and ties of each system against each other, so the order
in which comparisons were made never matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from tertium.arrays import BoolArray, FloatArray, IntArray, divide, mean_known
from tertium.data.rankings import RankingSet
from tertium.errors import DataError

NOISE = 1.0  # standard deviation of one performance around the skill
PRIOR = 2.0  # of skills around 0: twice the noise, the proportion WMT's TrueSkill uses


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonIndex:
    """Human comparisons as indices into systems and items; verdicts as in `Preference`."""

    item: IntArray  # (comparisons,)
    left: IntArray
    right: IntArray
    verdicts: FloatArray

    @classmethod
    def of(cls, rankings: RankingSet) -> Self:
        left, right = rankings.left, rankings.right
        owner = rankings.system_of
        item = rankings.item_of[left]
        return cls(item=item, left=owner[left], right=owner[right], verdicts=rankings.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def select(self, rows: BoolArray) -> ComparisonIndex:
        """Some of the comparisons."""
        return ComparisonIndex(**{name: values[rows] for name, values in vars(self).items()})

    def counts(self, systems: int) -> tuple[FloatArray, FloatArray]:
        """Wins and ties, each (systems, systems): `wins[i, j]`: how often i was preferred to j."""
        wins, ties = np.zeros((2, systems, systems))
        np.add.at(wins, (self.left, self.right), self.verdicts == 1.0)
        np.add.at(wins, (self.right, self.left), self.verdicts == 0.0)
        np.add.at(ties, (self.left, self.right), self.verdicts == 0.5)
        return wins, ties + ties.T

    def expected_wins(self, systems: int) -> FloatArray:
        """What `expected_wins` says of a set, (systems,)."""
        wins, _ = self.counts(systems)
        return mean_known(divide(wins, wins + wins.T))


def pair_counts(rankings: RankingSet) -> tuple[FloatArray, FloatArray]:
    """Wins and ties, each (systems, systems): `wins[i, j]` is how often i was preferred to j."""
    return ComparisonIndex.of(rankings).counts(len(rankings.systems))


def win_ratio(
    rankings: RankingSet, ties: Literal["excluded", "won", "half"] = "excluded"
) -> FloatArray:
    """The share of its comparisons that each system wins, (systems,).

    `excluded`: wins / (wins + losses), official in WMT12. `won`: (wins + ties) / all, "better than
    or equal to others", official until WMT11. `half`: a tie is half a win. NaN for a system that
    was never compared.
    """
    wins, tied = pair_counts(rankings)
    won, lost, even = wins.sum(axis=1), wins.sum(axis=0), tied.sum(axis=1)
    credit = {"excluded": 0.0, "won": 1.0, "half": 0.5}[ties]
    played = won + lost + (even if ties != "excluded" else 0.0)
    return divide(won + credit * even, played)


def expected_wins(rankings: RankingSet) -> FloatArray:
    """The chance to beat an opponent picked at random, ties left out, (systems,).

    mean over j of wins(i, j) / (wins(i, j) + wins(j, i)) (Koehn 2012; official in WMT13). Unlike
    `win_ratio` it does not favor a system that happened to meet weak ones often.
    """
    return ComparisonIndex.of(rankings).expected_wins(len(rankings.systems))


@dataclass(frozen=True, kw_only=True, eq=False)
class Skills:
    """How strong systems are under the model of `skills`, each array (systems,).

    `means` are the skills, `deviations` how well they are known, `expected_wins` the chance of each
    to beat an opponent picked at random, with the uncertainty counted in.
    """

    systems: tuple[str, ...]
    means: FloatArray
    deviations: FloatArray
    expected_wins: FloatArray
    tie_margin: float


def skills(rankings: RankingSet) -> Skills:
    """The skills that explain the comparisons best, under TrueSkill's model of a game.

    A system's performance is its skill plus unit noise; it wins when its performance is better by
    more than a margin e, and ties within it. With x = (s_i - s_j) / sqrt(2):

        P(i beats j) = F(x - e),   P(tie) = F(x + e) - F(x - e),   s ~ N(0, 2^2)

    F is the normal distribution function, and e makes evenly matched systems tie as often as judges
    did. The posterior is log-concave, so Newton's method finds its mode, and the curvature there
    gives the deviations. TrueSkill itself passes messages game by game and so depends on their
    order; this does not.
    """
    from scipy.special import ndtr, ndtri

    wins, ties = pair_counts(rankings)
    share = float(ties.sum() / 2) / len(rankings)
    margin = float(ndtri((1 + share) / 2))
    size = len(rankings.systems)
    means, hessian = np.zeros(size), np.eye(size)
    for _ in range(100):
        gradient, hessian = _slopes(means, wins, ties, margin)
        step = np.linalg.solve(hessian, gradient)
        means = means + step / max(1.0, float(np.abs(step).max()))  # Newton overshoots far off
        if np.abs(step).max() < 1e-10:
            break
    # Comparisons tell skills apart and nothing of their common level, so that is taken out.
    centre = np.eye(size) - 1 / size
    covariance = centre @ np.linalg.inv(hessian) @ centre
    variances = np.diag(covariance)
    gaps = variances[:, None] + variances[None, :] - 2 * covariance
    chances = ndtr((means[:, None] - means[None, :]) / np.sqrt(2 * NOISE**2 + gaps))
    others = (chances.sum(axis=1) - 0.5) / max(size - 1, 1)
    return Skills(
        systems=rankings.systems,
        means=means,
        deviations=np.sqrt(variances),
        expected_wins=others,
        tie_margin=margin,
    )


def _slopes(
    means: FloatArray, wins: FloatArray, ties: FloatArray, margin: float
) -> tuple[FloatArray, FloatArray]:
    """Gradient of the log posterior and its negative curvature, (systems,) and its square."""
    from scipy.special import ndtr

    x = (means[:, None] - means[None, :]) / (np.sqrt(2) * NOISE)
    # Far in its tail a chance underflows to 0, by which nothing can be divided.
    ratio = _density(x - margin) / np.maximum(ndtr(x - margin), 1e-300)
    first = wins * ratio - wins.T * ratio.T
    second = wins * ratio * (ratio + x - margin)
    second = second + second.T
    if margin > 0:
        inside = np.maximum(ndtr(x + margin) - ndtr(x - margin), 1e-300)
        slope = (_density(x + margin) - _density(x - margin)) / inside
        bend = (x - margin) * _density(x - margin) - (x + margin) * _density(x + margin)
        first = first + ties * slope
        second = second + ties * (slope**2 - bend / inside)
    np.fill_diagonal(first, 0.0)
    np.fill_diagonal(second, 0.0)
    gradient = first.sum(axis=1) / (np.sqrt(2) * NOISE) - means / PRIOR**2
    laplacian = np.diag(second.sum(axis=1)) - second
    return gradient, laplacian / (2 * NOISE**2) + np.eye(len(means)) / PRIOR**2


@dataclass(frozen=True, kw_only=True)
class JudgeAgreement:
    """How well judges agree beyond chance: kappa = (P(A) - P(E)) / (1 - P(E)).

    `observed` is P(A), the share of `pairs` of judgments of the same comparison with the same
    verdict; `expected` is P(E) = t^2 + 2 ((1 - t) / 2)^2 where t is the observed share of ties:
    chance as WMT has computed it since 2011, with left and right interchangeable.
    """

    kappa: float
    observed: float
    expected: float
    pairs: int


def judge_agreement(rankings: RankingSet) -> tuple[JudgeAgreement, JudgeAgreement]:
    """Agreement between different judges, and of judges with themselves, on repeated comparisons.

    NaN where nothing was judged twice.
    """
    known = rankings.judge_of >= 0
    if not known.any():
        raise DataError(f"{rankings.name}: the judges are not known, so their agreement is not")
    left, right = rankings.left[known], rankings.right[known]
    verdicts = np.where(left < right, rankings.verdicts[known], 1 - rankings.verdicts[known])
    pair = np.minimum(left, right) * len(rankings.segments) + np.maximum(left, right)
    said = (verdicts * 2).astype(np.int64)  # 0, 1, 2
    judge = rankings.judge_of[known]
    share = float((verdicts == 0.5).mean())
    expected = share**2 + 2 * ((1 - share) / 2) ** 2
    every, every_same = _twice(pair), _twice(pair, said)
    own, own_same = _twice(pair, judge), _twice(pair, judge, said)
    return _kappa(every_same - own_same, every - own, expected), _kappa(own_same, own, expected)


def _kappa(same: int, pairs: int, expected: float) -> JudgeAgreement:
    observed = same / pairs if pairs else float("nan")
    kappa = (observed - expected) / (1 - expected) if expected < 1 else float("nan")
    return JudgeAgreement(kappa=kappa, observed=observed, expected=expected, pairs=pairs)


def _twice(*keys: IntArray) -> int:
    """How many pairs of rows are equal in all keys."""
    _, counts = np.unique(np.stack(keys), axis=1, return_counts=True)
    return int((counts * (counts - 1) // 2).sum())


def _density(x: FloatArray) -> FloatArray:
    result: FloatArray = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return result
