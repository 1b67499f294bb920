"""Agreement between raters, their quality, and human scores of systems: `tertium.agree`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, check_resamples, make_rng
from tertium.campaigns.answers import RaterAnswer, judgment_rows, latest_answers, read_answers
from tertium.campaigns.campaign import is_campaign_file, read_campaign
from tertium.campaigns.rater_quality import RaterQuality, count_checks, describe_raters
from tertium.campaigns.ratings import Ratings
from tertium.campaigns.reliability import (
    Resampler,
    Statistic,
    alpha_from_sums,
    alpha_sums,
    icc_from_sums,
    icc_sums,
    kappa_statistic,
    kendall_statistic,
    pearson_statistic,
    span_statistics,
    spearman_brown,
    worst_severities,
)
from tertium.campaigns.system_scores import (
    Scorecard,
    SystemScore,
    make_scorecards,
    rank_agreement,
    score_systems,
)
from tertium.data.formats import PathLike
from tertium.data.human_data_files import read_rater_judgments
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.display import Displayable
from tertium.errors import DataError, UnknownNameError, UsageError
from tertium.spans import MQM_WEIGHTS, ErrorAnnotations

CEILING = "ceiling of metrics"


@dataclass(frozen=True, kw_only=True, eq=False)
class RaterStudy(Displayable):
    """Agreement of raters and scores of systems in one set, as returned by `tertium.agree`.

    Attributes
    ----------
    name
        The set of judgments.
    ratings
        The judgments as arrays.
    statistics
        Agreement statistics with 95 % intervals.
    raters
        Quality of each rater, with reasons to leave one out.
    systems, p_values
        Systems from best to worst with intervals and clusters, and p-values of all pairs.
    scorecards
        MQM points per 1,000 words, if errors were marked.
    without
        Alpha and system order without the raters to leave out, if there are any.
    """

    name: str
    ratings: Ratings = field(repr=False)
    statistics: tuple[Statistic, ...]
    raters: tuple[RaterQuality, ...] = field(repr=False)
    systems: tuple[SystemScore, ...] = field(repr=False)
    p_values: FloatArray = field(repr=False)
    scorecards: tuple[Scorecard, ...] = field(repr=False)
    without: Mapping[str, float] = field(default_factory=dict)
    excluded_counts: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Statistic:
        return next(entry for entry in self.statistics if entry.name == name)

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        return {
            "set": self.name,
            "judgments": len(self.ratings),
            "statistics": [vars(entry) for entry in self.statistics],
            "raters": [{**vars(rater), "reasons": [*rater.reasons]} for rater in self.raters],
            "systems": [vars(score) for score in self.systems],
            "p_values": self.p_values.tolist(),
            "scorecards": [vars(card) for card in self.scorecards],
            "without": dict(self.without),
            "left_out": dict(self.excluded_counts),
        }


def agree(
    judgments: PathLike | JudgmentSet,
    *,
    answers: PathLike | Sequence[RaterAnswer] | None = None,
    exclude: Sequence[str] = (),
    lps: Sequence[str] = (),
    weights: Mapping[str, float] = MQM_WEIGHTS,
    pass_mark: float | None = None,
    resamples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
) -> list[RaterStudy]:
    """Measure how well raters agree, and rank systems by their judgments.

    Parameters
    ----------
    judgments
        A campaign of `tertium plan` with `answers`, a file of judgments with raters in any known
        format, or a `JudgmentSet`.
    answers
        The answer file of a campaign, or its answers.
    exclude
        Raters to leave out.
    lps
        Language pairs to keep. By default, all.
    weights
        Weights of errors in the MQM scorecard.
    pass_mark
        MQM points per 1,000 words up to which a system passes.
    resamples, seed
        Number of bootstrap samples, and their seed.
    alpha
        Significance level of clusters.

    Returns
    -------
    list of RaterStudy
        A study for each language pair.

    Examples
    --------
    >>> [study] = agree("examples/ratings.csv", resamples=50)
    >>> len(study.raters) > 1
    True
    """
    check_resamples(resamples)
    sets, seconds, checks = _read(judgments, answers, lps)
    all_ratings = [Ratings.from_judgments(entry, seconds=seconds) for entry in sets]
    names = {name for ratings in all_ratings for name in ratings.raters}
    if unknown := [name for name in exclude if name not in names]:
        raise UnknownNameError("rater", unknown[0], names)
    studies = []
    for entry, ratings in zip(sets, all_ratings, strict=True):
        if exclude:
            ratings = ratings.without_raters([name for name in exclude if name in ratings.raters])
        study = _study(ratings, checks, weights, pass_mark, resamples, alpha, seed)
        studies.append(replace(study, excluded_counts=dict(entry.excluded_counts)))
    return studies


def _read(
    judgments: PathLike | JudgmentSet,
    answers: PathLike | Sequence[RaterAnswer] | None,
    lps: Sequence[str],
) -> tuple[
    list[JudgmentSet], dict[tuple[str, str, str], float], Mapping[str, tuple[int, int]] | None
]:
    """Return judgment sets, working times and attention checks."""
    if isinstance(judgments, JudgmentSet):
        return [*judgments.split_by_language_pair().values()], {}, None
    if not is_campaign_file(judgments):
        if answers is not None:
            raise UsageError(f"--answers is for a campaign, but {judgments} is not one")
        sets = read_rater_judgments(judgments, lps=lps)
        if not sets:
            raise DataError(f"{judgments}: no scores of translations by raters")
        return sets, {}, None
    if answers is None:
        raise UsageError(f"{judgments} is a campaign: give the answers of its raters (--answers)")
    campaign = read_campaign(judgments)
    is_file = isinstance(answers, str | os.PathLike)
    entries = read_answers(answers) if is_file else [*answers]  # type: ignore[arg-type, misc]
    in_order = sorted(latest_answers(entries), key=lambda answer: answer.time)
    rows = [*judgment_rows(in_order, campaign)]
    if not rows:
        raise DataError(f"no complete answers to the campaign {campaign.name!r} yet")
    seconds = {(a.rater, a.system, a.item): a.seconds for a in in_order if a.seconds is not None}
    judgment_set = read_judgments(rows, name=campaign.name, repeats=True)
    return [judgment_set], seconds, count_checks(campaign, entries)


def _study(
    ratings: Ratings,
    checks: Mapping[str, tuple[int, int]] | None,
    weights: Mapping[str, float],
    pass_mark: float | None,
    resamples: int,
    alpha: float,
    seed: int,
) -> RaterStudy:
    rng = make_rng(seed)
    raters = describe_raters(ratings, checks)
    systems, p_values = score_systems(ratings, resamples=resamples, rng=rng, alpha=alpha)
    return RaterStudy(
        name=ratings.name,
        ratings=ratings,
        statistics=tuple(measure_agreement(ratings, resamples, make_rng(seed, 1))),
        raters=tuple(raters),
        systems=tuple(systems),
        p_values=p_values,
        scorecards=tuple(
            make_scorecards(
                ratings, resamples=resamples, rng=rng, weights=weights, pass_mark=pass_mark
            )
        ),
        without=_leave_out(ratings, raters, systems, resamples, make_rng(seed, 2)),
    )


def _leave_out(
    ratings: Ratings,
    raters: Sequence[RaterQuality],
    systems: Sequence[SystemScore],
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Return what changes without the raters that have a reason to be left out."""
    names = [rater.rater for rater in raters if rater.should_leave_out]
    if not names or len(names) == len(raters):
        return {}
    rest = ratings.without_raters(names)
    order, _ = score_systems(rest, resamples=resamples, rng=rng)
    totals = alpha_sums(rest.matrix).sum(axis=0)
    return {
        "alpha": float(alpha_from_sums(totals)),
        "order": rank_agreement(systems, order),
        "judgments": float(len(rest)),
    }


def measure_agreement(
    ratings: Ratings, resamples: int, rng: np.random.Generator
) -> list[Statistic]:
    """Return all agreement statistics that the judgments allow."""
    matrix = ratings.matrix
    resampler = Resampler(clusters=ratings.unit_clusters, resamples=resamples, rng=rng)
    shared = int(((~np.isnan(matrix)).sum(axis=0) >= 2).sum())
    if not shared:
        return []
    alphas = [
        resampler.summarize(
            f"alpha, {name}", alpha_sums(matrix, ordinal=o), alpha_from_sums, shared
        )
        for name, o in (("interval", False), ("ordinal", True))
    ]
    icc = resampler.summarize("ICC(1)", icc_sums(matrix), icc_from_sums, shared)
    pearson = pearson_statistic(matrix, resampler)
    statistics = [*alphas, icc, pearson, kendall_statistic(matrix, resampler)]
    statistics += _error_statistics(ratings, resampler)
    return [*statistics, _ceiling(matrix, icc)]


def _error_statistics(ratings: Ratings, resampler: Resampler) -> list[Statistic]:
    """Return the agreement of marked errors; empty if no errors are marked."""
    count = int(ratings.unit.max()) + 1
    marks: list[list[ErrorAnnotations | None]] = [[None] * count for _ in ratings.raters]
    lengths = [0] * count
    for rater, unit, entry in zip(ratings.rater, ratings.unit, ratings.judgments, strict=True):
        marks[rater][unit] = entry.error_annotations
        lengths[unit] = max(lengths[unit], len(entry.segment.hypothesis))
    levels = np.array([worst_severities(own) for own in marks], dtype=np.float64)
    levels[levels < 0] = np.nan
    if not ((~np.isnan(levels)).sum(axis=0) >= 2).any():
        return []
    kappa = kappa_statistic(levels, resampler)
    if not any(lengths):
        return [kappa]
    return [*span_statistics(marks, lengths, resampler), kappa]


def _ceiling(matrix: FloatArray, icc: Statistic) -> Statistic:
    """Return the highest correlation that a metric can expect with the mean of the raters."""
    counts = (~np.isnan(matrix)).sum(axis=0)
    raters = float(counts[counts > 0].mean())

    def ceiling(reliability: float) -> float:
        is_valid = 0 < reliability <= 1
        return math.sqrt(spearman_brown(reliability, raters)) if is_valid else math.nan

    bounds = [ceiling(value) for value in (icc.value, icc.low, icc.high)]
    return Statistic(name=CEILING, value=bounds[0], low=bounds[1], high=bounds[2], count=icc.count)
