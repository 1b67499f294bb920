"""Plan a human evaluation: how many segments and raters, which segments, and the campaign file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.resampling import make_rng
from tertium.core.spans import Span
from tertium.data.human_data_files import read_rater_judgments
from tertium.data.judgments import JudgmentSet
from tertium.data.testset import TestSet, check_testset
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.people.campaign import Campaign, Protocol
from tertium.people.planning import CampaignSettings, make_campaign
from tertium.people.power import (
    Design,
    PowerPlan,
    effective_document_size,
    plan_budget,
    plan_difference,
)
from tertium.people.sampling import Method, choose_segments, length_labels
from tertium.people.variance import VarianceComponents, estimate_variance, stored_variance

DOCUMENT, LENGTH = "document", "length"  # strata that need no column


def plan_power(
    difference: float | None = None,
    *,
    budget: float | None = None,
    protocol: Protocol = "esa",
    systems: int = 2,
    raters: int = 1,
    pilot: PathLike | JudgmentSet | None = None,
    documents: Sequence[str] = (),
    power: float = 0.8,
    alpha: float = 0.05,
    seconds: float | None = None,
) -> PowerPlan:
    """Compute how many segments have to be judged to find a difference between two systems.

    Parameters
    ----------
    difference
        The difference of mean scores to find, in the unit of the protocol: points from 0 to 100
        (DA, ESA), MQM points, or the share of comparisons won minus lost (ranking).
    budget
        Instead of a difference: seconds of working time of all raters together.
    protocol
        "da", "esa", "mqm", "ranking", "contrastive-esa" or "post-edit".
    systems, raters
        Number of systems to judge, and of raters who judge each segment.
    pilot
        Judgments to estimate the variance from. By default, that of public judgments.
    documents
        The document of each segment of the test set, if whole documents will be judged.
    power, alpha
        Probability to find the difference, and significance level of the two-sided test.
    seconds
        Seconds for one judgment. By default, a rough value for the protocol.

    Returns
    -------
    PowerPlan
        The number of segments, and a curve of the power of smaller and larger campaigns.

    Examples
    --------
    >>> plan_power(3, protocol="esa", raters=2).segments
    278
    """
    if (difference is None) == (budget is None):
        raise UsageError("give either a difference to find, or a budget of working time")
    design = Design(
        protocol=protocol,
        systems=systems,
        raters=raters,
        alpha=alpha,
        target_power=power,
        seconds=seconds,
        segments_per_document=len(documents) / len(set(documents)) if documents else 1.0,
        effective_document_size=effective_document_size(documents) if documents else 1.0,
    )
    variance = stored_variance(protocol) if pilot is None else read_variance(pilot, protocol)
    if budget is not None:
        return plan_budget(budget, variance, design)
    assert difference is not None
    return plan_difference(difference, variance, design)


def read_variance(pilot: PathLike | JudgmentSet, protocol: str) -> VarianceComponents:
    """Estimate variance components from the judgments of a pilot."""
    if isinstance(pilot, JudgmentSet):
        return estimate_variance(pilot, protocol)
    sets = read_rater_judgments(pilot)
    if len(sets) != 1:
        raise DataError(f"{pilot}: a pilot is one set of scores with systems and raters")
    return estimate_variance(sets[0], protocol)


def plan_campaign(
    testset: TestSet,
    segments: int | None = None,
    *,
    protocol: Protocol = "esa",
    raters: Sequence[str],
    choose: Method = "random",
    strata: Sequence[str] = (),
    suspicions: str | Metric | None = None,
    seed: int = 12345,
    **settings: Any,
) -> Campaign:
    """Choose segments of a test set and make a campaign for raters.

    Parameters
    ----------
    testset
        Sources, outputs of all systems, and optionally references and documents.
    segments
        The number of segments to judge. By default, all of them.
    protocol
        "da", "esa", "mqm", "ranking", "contrastive-esa" or "post-edit".
    raters
        Names of the raters.
    choose
        "random", "stratified" or "documents" (whole documents).
    strata
        Columns of the test set, "document" or "length", for stratified choice.
    suspicions
        A metric that marks errors, which raters see marked in advance.
    seed
        Seed of all random choices. The same seed gives the same campaign.
    **settings
        Other fields of `tertium.people.planning.CampaignSettings`: `overlap` (raters of each
        segment), `common` (segments for all raters), `checks`, `tutorials`, `show_reference`,
        `context_size`, `instructions`, `glossary`, `name`, `source_language`, `target_language`.

    Returns
    -------
    Campaign
        The campaign; `tertium.people.campaign.write_campaign` writes it to a file.

    Examples
    --------
    >>> testset = TestSet.from_lists({"a": ["Hallo", "Ja"], "b": ["Na", "Nein"]}, ["Hello", "Yes"])
    >>> plan_campaign(testset, 1, raters=["anna"], protocol="da").raters
    ('anna',)
    """
    check_testset(testset)
    size = len(testset)
    count = size if segments is None else min(segments, size)
    chosen = choose_segments(
        size,
        count,
        make_rng(seed),
        method=choose,
        documents=testset.documents,
        strata=_read_strata(testset, strata) if choose == "stratified" else (),
    )
    marker = load_metric(suspicions) if isinstance(suspicions, str) else suspicions
    return make_campaign(
        testset,
        chosen,
        CampaignSettings(
            protocol=protocol,
            raters=tuple(raters),
            seed=seed,
            suspicions=marker.spec if marker is not None else "",
            suspected=_mark(testset, marker) if marker is not None else {},
            **settings,
        ),
    )


def _read_strata(testset: TestSet, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels of each segment in the named columns."""
    columns: dict[str, Sequence[str]] = {**testset.columns}
    if testset.documents:
        columns[DOCUMENT] = testset.documents
    columns[LENGTH] = length_labels(testset.sources or next(iter(testset.systems.values())))
    chosen = names or [DOCUMENT if testset.documents else LENGTH]
    for name in chosen:
        if name not in columns:
            raise UnknownNameError("column to stratify by", name, columns)
    return [*zip(*(columns[name] for name in chosen), strict=True)]


def _mark(testset: TestSet, metric: Metric) -> Mapping[str, Sequence[tuple[Span, ...]]]:
    return {system: metric.mark_errors(testset.segments(system)) for system in testset.systems}
