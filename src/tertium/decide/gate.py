"""Decide whether a candidate system may replace a baseline, with a bounded error probability.

Every metric is tested on every set (`noninferiority`), and on every slice if requested. The
p-values of each claim ("worse by less than the margin", "worse by more", "better") are adjusted by
Holm's method over all metrics, slices and language pairs, so the probability of one or more wrong
claims is at most alpha. Conditions on checks and scores are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tertium.checks.catalog import CHECKS_BY_ID
from tertium.checks.check import EMPTY
from tertium.checks.check_settings import CheckSettings
from tertium.core.arrays import in_open_unit_interval
from tertium.core.errors import MissingInputError, UsageError
from tertium.core.findings import Locate, locate_nothing
from tertium.core.resampling import holm
from tertium.core.scores import Scores
from tertium.data.slices import slice_testset
from tertium.data.testset import TestSet
from tertium.decide.baselines import StoredBaseline
from tertium.decide.gate_result import (
    MAX_MORE_SEGMENTS,
    Condition,
    GateResult,
    MetricTest,
    Verdict,
)
from tertium.decide.gate_rules import GateRules, resolve_margins
from tertium.evaluation.checking import CheckReport, check
from tertium.evaluation.metric_choice import load_metrics_for, recommend_metric, target_texts
from tertium.evaluation.noninferiority import Difference, measure_difference, round_up
from tertium.evaluation.reference_copies import find_reference_copies
from tertium.evaluation.scoring import References, score
from tertium.evaluation.system_scores import Evaluation, find_unfit_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import HOW_TO_PROVIDE
from tertium.metrics.base.text_warnings import flag_empty_translations

BASELINE, CANDIDATE = "baseline", "candidate"
Measured = tuple[Mapping[str, Any], Difference]  # fields of a test, and what it measured
SCORE_DIGITS = 9  # of scores that are compared with a bound; others are noise of floating point


@dataclass(frozen=True, kw_only=True)
class GateSet:
    """One language pair: a test set with the candidate, its baseline, metrics and rules.

    `baseline` is the name of a system of the test set, or a stored result. `name` is empty if
    there is only one set. `locate` finds the texts in their files.
    """

    testset: TestSet
    baseline: str | StoredBaseline
    candidate: str
    metrics: Sequence[Metric]
    rules: GateRules
    name: str = ""
    checks: CheckSettings = field(default_factory=CheckSettings)
    locate: Locate = locate_nothing

    @property
    def baseline_name(self) -> str:
        """The name of the baseline system."""
        stored = self.baseline
        return stored if isinstance(stored, str) else f"{stored.path} ({stored.system})"


def gate(
    baseline: Sequence[str],
    candidate: Sequence[str],
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    margin: Mapping[str, Any],
    maximum: Mapping[str, Any] | None = None,
    minimum: Mapping[str, Any] | None = None,
    by: Mapping[str, Sequence[str]] | None = None,
    alpha: float = 0.05,
) -> GateResult:
    """Decide whether a candidate is worse than a baseline by more than a margin.

    Parameters
    ----------
    baseline, candidate
        Translations of the two systems.
    metrics
        Specs or metrics; by default the recommended metric for the data.
    sources, references
        Texts for each segment.
    margin
        How much worse the candidate may be, by metric in its units (`{"chrf": 0.5}`) or in human
        terms (`{"human": "5%"}`: a difference that humans confirm in at most 55 % of system pairs).
    maximum
        Limits of findings by check (`{"empty": 0, "truncated": "1%"}`), or of scores.
    minimum
        Smallest scores of the candidate by metric.
    by
        Labels of the segments by column (`{"domain": [...]}`). A slice that is worse by more than
        the margin fails the gate.
    alpha
        The largest probability of a wrong "pass", and of a wrong "worse".

    Returns
    -------
    GateResult
        The tests, conditions and the verdict: pass, better, worse, fail or undecided.

    >>> texts = [f"sentence number {n} of a test" for n in range(20)]
    >>> gate(texts, texts, "chrf", references=texts, margin={"chrf": 0.5}).verdict
    'pass'
    """
    systems = {BASELINE: baseline, CANDIDATE: candidate}
    testset = TestSet.from_lists(systems, sources, references)
    testset = testset.with_columns(by or {})
    chosen = recommend_metric(testset) if metrics is None else metrics
    gate_set = GateSet(
        testset=testset,
        baseline=BASELINE,
        candidate=CANDIDATE,
        metrics=load_metrics_for(target_texts(testset), chosen),
        rules=GateRules.from_values(margin, maximum, minimum, tuple(by or ())),
    )
    return gate_sets([gate_set], alpha=alpha)


def gate_sets(sets: Sequence[GateSet], *, alpha: float = 0.05) -> GateResult:
    """Test all sets together and return one result."""
    if not in_open_unit_interval(alpha):
        raise UsageError(
            f"alpha, the error probability, must be a number between 0 and 1, got {alpha!r}"
        )
    margins = [resolve_margins(s.rules, s.metrics, s.testset) for s in sets]
    for own in sets:
        _check_sources(own)
    measured: list[Measured] = []
    conditions: list[Condition] = []
    checks: dict[str, CheckReport] = {}
    cautions: list[str] = []
    copies: list[str] = []
    for own, own_margins in zip(sets, margins, strict=True):
        evaluation = score(own.testset, own.metrics)
        measured += _measure_set(own, evaluation, own_margins)
        report = _run_checks(own)
        conditions += _check_bounds(own, evaluation, report)
        checks |= {own.name: report} if report else {}
        cautions += find_unfit_metrics(evaluation).values()
        cautions += evaluation.missing_score_lines()
        place = f"{own.name}: " if own.name else ""
        copies += [f"{place}{text}" for text in find_reference_copies(own.testset).values()]
    baselines = {own.baseline_name for own in sets}
    candidates = {own.candidate for own in sets}
    return GateResult(
        tests=tuple(_decide(measured, alpha)),
        conditions=tuple(conditions),
        baseline=baselines.pop() if len(baselines) == 1 else "the baseline",
        candidate=candidates.pop() if len(candidates) == 1 else "the candidate",
        alpha=alpha,
        checks=checks,
        cautions=tuple(dict.fromkeys(cautions)),
        reference_copies=tuple(copies),
    )


def _measure_set(
    own: GateSet, evaluation: Evaluation, margins: Mapping[str, float]
) -> Iterator[Measured]:
    """Measure each metric on the whole set and on its slices."""
    slicings = [slice_testset(own.testset, by) for by in own.rules.by]
    for metric in evaluation.metrics:
        candidate = evaluation.scores[own.candidate][metric]
        if isinstance(own.baseline, str):
            baseline = evaluation.scores[own.baseline][metric]
        else:
            baseline = own.baseline.scores_like(candidate, own.testset)
        settings = {
            "pair": own.name,
            "metric": metric,
            "name": evaluation.names[metric],
            "margin": margins[metric],
            "decimals": candidate.decimals,
        }
        yield _measure(candidate, baseline, settings)
        for slicing in slicings:
            for label in slicing.names:
                rows = slicing.rows[label]
                place = {"by": slicing.by, "slice": label}
                yield _measure(candidate.subset(rows), baseline.subset(rows), settings | place)


def _measure(candidate: Scores, baseline: Scores, settings: Mapping[str, Any]) -> Measured:
    systems = {"baseline": baseline.system, "candidate": candidate.system}
    return {**settings, **systems}, measure_difference(candidate, baseline)


def _decide(measured: Sequence[Measured], alpha: float) -> Iterator[MetricTest]:
    """Adjust the p-values of each claim over all tests, and decide."""
    claims = [
        (
            _p_not_worse(difference, settings["margin"]),
            difference.p_less(-settings["margin"]),
            difference.p_greater(0.0),
        )
        for settings, difference in measured
    ]
    adjusted = [holm(p_values).tolist() for p_values in zip(*claims, strict=True)]
    for n, (settings, difference) in enumerate(measured):
        p_pass, p_worse, p_better = (p_values[n] for p_values in adjusted)
        verdict = choose_verdict(p_pass, p_worse, p_better, alpha)
        level = alpha / len(measured)
        low, high = difference.interval(level)
        more = None
        if verdict == "undecided":
            more = _count_missing(difference, settings["margin"], level)
        yield MetricTest(
            **settings,
            segments=difference.segments,
            difference=difference.value,
            low=low,
            high=high,
            p_pass=p_pass,
            p_worse=p_worse,
            p_better=p_better,
            verdict=verdict,
            more_segments=more,
        )


def _p_not_worse(difference: Difference, margin: float) -> float:
    """Return the p-value of "not worse by more than the margin", which may be reached exactly."""
    if difference.is_testable and difference.standard_error == 0:
        return float(difference.value < -margin)
    return difference.p_greater(-margin)


def choose_verdict(p_pass: float, p_worse: float, p_better: float, alpha: float) -> Verdict:
    """Return the verdict of one test from the p-values of its claims."""
    if p_pass <= alpha:
        return "better" if p_better <= alpha else "pass"
    return "worse" if p_worse <= alpha else "undecided"


def _count_missing(difference: Difference, margin: float, alpha: float) -> int | None:
    """Return how many more segments would decide, with two significant digits."""
    missing = difference.segments_to_decide(-margin, alpha) - difference.segments
    if not missing < MAX_MORE_SEGMENTS:
        return None
    return max(1, math.ceil(round_up(missing)))


def _check_sources(own: GateSet) -> None:
    """Raise an error for a limit of a check that finds nothing without sources."""
    for bound in own.rules.bounds:
        check = CHECKS_BY_ID.get(bound.name)
        reads_source = bound.is_check and (check is None or check.reads_source)
        if reads_source and bound.name != EMPTY and not own.testset.sources:
            raise MissingInputError(
                f"--max {bound.name} needs the sources: {HOW_TO_PROVIDE['source']}, or remove the "
                "limit"
            )


def _run_checks(own: GateSet) -> CheckReport | None:
    ids = tuple(bound.name for bound in own.rules.bounds if bound.is_check)
    if not ids:
        return None
    settings = replace(own.checks, select=ids, ignore=())
    report = check(own.testset.with_systems([own.candidate]), settings=settings)
    return replace(report, locate=own.locate)


def _check_bounds(
    own: GateSet, evaluation: Evaluation, report: CheckReport | None
) -> Iterator[Condition]:
    """Yield whether the candidate satisfies each bound of findings and of scores."""
    counts = report.counts(own.candidate) if report else {}
    if not own.testset.sources:
        outputs = own.testset.segments(own.candidate)
        counts[EMPTY] = int(flag_empty_translations(outputs, source_only=False).sum())
    for bound in own.rules.bounds:
        name = bound.name
        observed: float = counts.get(name, 0)
        if not bound.is_check:
            scores = evaluation.scores[own.candidate][name]
            name, observed = evaluation.names[scores.metric], scores.system
            if scores.higher_is_better != (bound.rule == "min"):
                better, other = ("higher", "min") if scores.higher_is_better else ("lower", "max")
                rule = f"{scores.metric}={bound}"
                raise UsageError(
                    f"--{bound.rule} {rule}: {better} is better; give --{other} {rule}"
                )
        yield Condition(
            pair=own.name,
            name=name,
            rule=bound.rule,
            bound=str(bound),
            observed=observed,
            segments=len(own.testset),
            is_met=bound.allows(round(observed, SCORE_DIGITS), len(own.testset)),
            is_check=bound.is_check,
        )
