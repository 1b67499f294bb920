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
from pathlib import Path
from typing import Any

import numpy as np

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
from tertium.decide.baselines import StoredBaseline, read_baseline
from tertium.decide.gate_result import (
    MAX_MORE_SEGMENTS,
    Condition,
    GateResult,
    MetricTest,
    Verdict,
)
from tertium.decide.gate_rules import GateRules, match_rules, resolve_margins
from tertium.evaluation.checking import CheckReport, check
from tertium.evaluation.metric_choice import load_metrics_for, recommend_metric, target_texts
from tertium.evaluation.noninferiority import Difference, measure_difference, round_up
from tertium.evaluation.reference_copies import find_reference_copies
from tertium.evaluation.scoring import References, score
from tertium.evaluation.system_scores import MIN_SEGMENTS, Evaluation
from tertium.evaluation.verdicts import find_unfit_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import HOW_TO_PROVIDE
from tertium.metrics.base.text_warnings import flag_empty_translations

BASELINE, CANDIDATE = "baseline", "candidate"
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
    baseline: Sequence[str] | str | Path,
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
    baseline
        Translations of the baseline, or a JSON file written by `tertium score -o`.
    candidate
        Translations of the candidate.
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
    is_stored = isinstance(baseline, str | Path)
    systems = {CANDIDATE: candidate} if is_stored else {BASELINE: baseline, CANDIDATE: candidate}
    testset = TestSet.from_lists(systems, sources, references)  # type: ignore[arg-type]
    testset = testset.with_columns(by or {})
    chosen = recommend_metric(testset) if metrics is None else metrics
    gate_set = GateSet(
        testset=testset,
        baseline=read_baseline(baseline) if is_stored else BASELINE,  # type: ignore[arg-type]
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
    tests: list[tuple[MetricTest, Difference]] = []
    conditions: list[Condition] = []
    checks: dict[str, CheckReport] = {}
    cautions: list[str] = []
    copies: list[str] = []
    for own, own_margins in zip(sets, margins, strict=True):
        evaluation = score(own.testset, own.metrics)
        tests += _measure_set(own, evaluation, own_margins)
        report = _run_checks(own)
        conditions += [*_check_limits(own, report), *_check_scores(own, evaluation)]
        checks |= {own.name: report} if report else {}
        cautions += find_unfit_metrics(evaluation).values()
        cautions += _count_missing_scores(evaluation)
        place = f"{own.name}: " if own.name else ""
        copies += [f"{place}{text}" for text in find_reference_copies(own.testset).values()]
    sizes = [d.segments_to_decide(0.0, alpha / 2) for test, d in tests if not test.is_slice]
    return GateResult(
        tests=tuple(_decide(tests, alpha)),
        conditions=tuple(conditions),
        baseline=_shared_name([own.baseline_name for own in sets], "the baseline"),
        candidate=_shared_name([own.candidate for own in sets], "the candidate"),
        alpha=alpha,
        checks=checks,
        cautions=tuple(dict.fromkeys(cautions)),
        reference_copies=tuple(copies),
        people_segments=round_up(max(MIN_SEGMENTS, min(sizes, default=math.inf))),
    )


def _count_missing_scores(evaluation: Evaluation) -> Iterator[str]:
    """Yield a sentence for each metric and system without a score for some segments."""
    for metric in evaluation.metrics:
        for system in evaluation.systems:
            segments = evaluation.scores[system][metric].segments
            missing = int(np.isnan(segments).sum())
            if missing:
                name = evaluation.names[metric]
                yield f"{name}: no score for {missing:,} of {len(segments):,} segments of {system}"


def _shared_name(names: Sequence[str], otherwise: str) -> str:
    return names[0] if len({*names}) == 1 else otherwise


def _measure_set(
    own: GateSet, evaluation: Evaluation, margins: Mapping[str, float]
) -> Iterator[tuple[MetricTest, Difference]]:
    """Measure each metric on the whole set and on its slices; p-values are not adjusted."""
    slicings = [slice_testset(own.testset, by) for by in own.rules.by]
    for metric in evaluation.metrics:
        candidate = evaluation.scores[own.candidate][metric]
        if isinstance(own.baseline, str):
            baseline = evaluation.scores[own.baseline][metric]
        else:
            baseline = own.baseline.scores_like(candidate, own.testset)
        name = evaluation.names[metric]
        settings = {"pair": own.name, "metric": metric, "name": name, "margin": margins[metric]}
        yield _measure(candidate, baseline, settings)
        for slicing in slicings:
            for label in slicing.names:
                rows = slicing.rows[label]
                parts = candidate.subset(rows), baseline.subset(rows)
                yield _measure(*parts, {**settings, "by": slicing.by, "slice": label})


def _measure(
    candidate: Scores, baseline: Scores, settings: Mapping[str, Any]
) -> tuple[MetricTest, Difference]:
    difference, margin = measure_difference(candidate, baseline), settings["margin"]
    is_certain = difference.is_testable and difference.standard_error == 0
    p_pass = difference.p_greater(-margin)
    test = MetricTest(
        **settings,
        segments=len(candidate),
        baseline=baseline.system,
        candidate=candidate.system,
        difference=difference.value,
        low=math.nan,
        high=math.nan,
        p_pass=float(difference.value < -margin) if is_certain else p_pass,
        p_worse=difference.p_less(-margin),
        p_better=difference.p_greater(0.0),
        verdict="undecided",
        decimals=candidate.decimals,
    )
    return test, difference


def _decide(tests: Sequence[tuple[MetricTest, Difference]], alpha: float) -> Iterator[MetricTest]:
    """Adjust the p-values of each claim over all tests, and decide."""
    claims = {
        name: holm([getattr(test, name) for test, _ in tests])
        for name in ("p_pass", "p_worse", "p_better")
    }
    for n, (test, difference) in enumerate(tests):
        p_values: dict[str, Any] = {name: float(values[n]) for name, values in claims.items()}
        verdict = choose_verdict(**p_values, alpha=alpha)
        low, high = difference.interval(alpha / len(tests))
        more = None
        if verdict == "undecided":
            more = _count_missing(difference, test.margin, alpha / len(tests))
        yield replace(test, **p_values, low=low, high=high, verdict=verdict, more_segments=more)


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
    for name in own.rules.limits:
        reads_source = name not in CHECKS_BY_ID or CHECKS_BY_ID[name].reads_source
        if reads_source and name != EMPTY and not own.testset.sources:
            raise MissingInputError(
                f"--max {name} needs the sources: {HOW_TO_PROVIDE['source']}, or remove the limit"
            )


def _run_checks(own: GateSet) -> CheckReport | None:
    if not own.rules.limits:
        return None
    settings = replace(own.checks, select=tuple(own.rules.limits), ignore=())
    report = check(own.testset.with_systems([own.candidate]), settings=settings)
    return replace(report, locate=own.locate)


def _check_limits(own: GateSet, report: CheckReport | None) -> Iterator[Condition]:
    counts = report.counts(own.candidate) if report else {}
    if not own.testset.sources:
        outputs = own.testset.segments(own.candidate)
        counts[EMPTY] = int(flag_empty_translations(outputs, source_only=False).sum())
    for name, limit in own.rules.limits.items():
        count, segments = counts.get(name, 0), len(own.testset)
        yield Condition(
            pair=own.name,
            name=name,
            rule="max",
            bound=str(limit),
            observed=count,
            segments=segments,
            is_met=limit.allows(count, segments),
            limit=limit,
        )


def _check_scores(own: GateSet, evaluation: Evaluation) -> Iterator[Condition]:
    for rule, bounds in (("max", own.rules.ceilings), ("min", own.rules.floors)):
        for metric, bound in match_rules(bounds, own.metrics).items():
            scores = evaluation.scores[own.candidate][metric]
            if scores.higher_is_better != (rule == "min"):
                better, other = ("higher", "min") if scores.higher_is_better else ("lower", "max")
                raise UsageError(
                    f"--{rule} {metric}={bound:g}: {better} is better; give --{other} "
                    f"{metric}={bound:g}"
                )
            value = round(scores.system, SCORE_DIGITS)
            is_met = value >= bound if rule == "min" else value <= bound
            yield Condition(
                pair=own.name,
                name=evaluation.names[metric],
                rule="min" if rule == "min" else "max",
                bound=f"{bound:g}",
                observed=scores.system,
                segments=len(scores),
                is_met=bool(np.isfinite(value) and is_met),
            )
