"""Decide whether a candidate system may replace a baseline, with a bounded error probability.

Every metric is tested on every set (`paired_tests`), and on every slice if requested. The
p-values of each claim ("worse by less than the margin", "worse by more", "better") are adjusted by
Holm's method over all metrics, slices and language pairs, so the probability of one or more wrong
claims is at most alpha. Conditions on checks and scores are exact.

Baselines stored as JSON: segment scores that `tertium score -o FILE.json` wrote.

They serve metrics whose score of a system is the mean of its segment scores. Others need the
translations of the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.checks.check import EMPTY
from tertium.checks.check_settings import CHECKS_BY_ID, CheckSettings
from tertium.core.arrays import in_open_unit_interval
from tertium.core.errors import DataError, MissingInputError, UsageError
from tertium.core.fields import load_json
from tertium.core.findings import Locate, locate_nothing
from tertium.core.options import Compute, InFile, Option
from tertium.core.resampling import holm
from tertium.core.result import field_values
from tertium.core.scores import Scores
from tertium.data.slices import slice_testset
from tertium.data.testset import TestSet
from tertium.data.text_files import find_configuration
from tertium.decide.gate_result import (
    MAX_MORE_SEGMENTS,
    Condition,
    GateResult,
    MetricTest,
    Verdict,
)
from tertium.decide.gate_rules import (
    RULES,
    GateRules,
    GateSettings,
    PairFiles,
    SuggestedMargins,
    read_gate_settings,
    resolve_margins,
    split_rules,
    suggest_margins,
)
from tertium.evaluation.checking import CheckReport, check
from tertium.evaluation.metric_choice import (
    MetricOptions,
    default_metric,
    load_metrics_for,
    recommend_metric,
    target_texts,
)
from tertium.evaluation.paired_tests import Difference, measure_difference, round_up
from tertium.evaluation.rows import split_pair
from tertium.evaluation.scoring import References, score
from tertium.evaluation.system_scores import (
    Evaluation,
    MetricDict,
    find_reference_copies,
    find_unfit_metrics,
)
from tertium.files.text_inputs import InputFiles, column_names
from tertium.metrics.base.judge_run import JudgeServer, current_run
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import HOW_TO_PROVIDE
from tertium.metrics.base.text_warnings import flag_empty_translations

BASELINE = "baseline"
CANDIDATE = "candidate"
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
    for own, own_margins in zip(sets, margins, strict=True):
        evaluation = score(own.testset, own.metrics)
        measured += _measure_set(own, evaluation, own_margins)
        if report := _run_checks(own):
            checks[own.name] = report
        conditions += _check_bounds(own, evaluation, report)
        cautions += find_unfit_metrics(evaluation).values()
        cautions += evaluation.missing_score_lines()
        place = f"{own.name}: " if own.name else ""
        cautions += [f"{place}{text}" for text in find_reference_copies(own.testset).values()]
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
    )


def _measure_set(
    own: GateSet, evaluation: Evaluation, margins: Mapping[str, float]
) -> Iterator[Measured]:
    """Measure each metric on the whole set and on its slices."""
    parts: list[tuple[str, str, Any]] = [("", "", slice(None))]
    for by in own.rules.by:
        rows_by_label = slice_testset(own.testset, by).rows
        parts += [(by, label, rows) for label, rows in rows_by_label.items()]
    for metric in evaluation.metrics:
        scores = evaluation.scores[own.candidate][metric]
        if isinstance(own.baseline, str):
            baseline_scores = evaluation.scores[own.baseline][metric]
        else:
            baseline_scores = own.baseline.scores_like(scores, own.testset)
        for by, label, rows in parts:
            baseline = baseline_scores.subset(rows)
            candidate = scores.subset(rows)
            settings = {
                "pair": own.name,
                "metric": metric,
                "name": evaluation.names[metric],
                "by": by,
                "slice": label,
                "baseline": baseline.system,
                "candidate": candidate.system,
                "margin": margins[metric],
                "decimals": scores.decimals,
            }
            yield settings, measure_difference(candidate, baseline)


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
    adjusted = np.column_stack([holm(p_values) for p_values in zip(*claims, strict=True)]).tolist()
    level = alpha / len(measured)
    for (settings, difference), p_values in zip(measured, adjusted, strict=True):
        p_pass, p_worse, p_better = p_values
        verdict = choose_verdict(p_pass, p_worse, p_better, alpha)
        low, high = difference.interval(level)
        missing = difference.segments_to_decide(-settings["margin"], level) - difference.segments
        more = None
        if verdict == "undecided" and missing < MAX_MORE_SEGMENTS:
            more = max(1, math.ceil(round_up(missing)))
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
            name = evaluation.names[scores.metric]
            observed = scores.system
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


HOW_TO_STORE = "store it with `tertium score -o FILE.json`"


@dataclass(frozen=True)
class StoredBaseline:
    """The results of one system by metric, read from a file."""

    path: str
    system: str
    records: Mapping[str, Mapping[str, Any]]

    def scores_like(self, scores: Scores, testset: TestSet) -> Scores:
        """Return the stored scores of the metric and the segments of other scores.

        Raises `UsageError` if the signature, the number of segments or the texts differ.
        """
        if scores.metric not in self.records:
            names = ", ".join(self.records)
            raise UsageError(f"{self.path} has no scores of {scores.metric} (it has: {names})")
        record = self.records[scores.metric]
        where = f"{self.path}: {scores.metric}"
        signature = record.get("signature")
        if signature != scores.signature:
            raise UsageError(
                f"{where} has another signature than the candidate: {signature} (stored) and "
                f"{scores.signature} (candidate); score the baseline again"
            )
        if record.get("inputs", testset.hash_inputs()) != testset.hash_inputs():
            raise UsageError(
                f"{where} was scored with other sources or references; score the baseline again"
            )
        if scores.statistics.shape[1] != 2 or not np.all(scores.statistics[:, 1] == 1):
            raise UsageError(
                f"{where}: its score is not a mean of segment scores, so stored scores are not "
                "enough: give the translations of the baseline"
            )
        try:
            segments = np.array(record["segments"], dtype=np.float64)  # null is NaN
        except (KeyError, TypeError, ValueError):
            raise DataError(f"{where}: no list of segment scores: {HOW_TO_STORE}") from None
        if len(segments) != len(scores):
            raise UsageError(
                f"{where} has {len(segments)} segments, but the candidate has {len(scores)}"
            )
        statistics = np.column_stack([segments, np.ones(len(segments))])
        return replace(scores, statistics=statistics, flags={}, verbose="", usage={})


def read_baseline(path: str) -> StoredBaseline:
    """Read the results of one system, as `tertium score` writes them."""
    try:
        content = load_json(Path(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    records = [content] if isinstance(content, dict) else content
    try:
        systems = list(dict.fromkeys(str(record["system"]) for record in records))
        overall = {record["spec"]: record for record in records if "slice" not in record}
    except (KeyError, TypeError):
        raise DataError(f"{path}: not results of `tertium score`: {HOW_TO_STORE}") from None
    if len(systems) != 1:
        raise UsageError(f"{path}: results of {len(systems)} systems; store only the baseline")
    return StoredBaseline(path, systems[0], MetricDict(overall))


Rules = Annotated[tuple[str, ...], Option(metavar="NAME=X")]


@dataclass(frozen=True, kw_only=True)
class GatePair:
    """The systems to compare, and settings from a file.

    Attributes
    ----------
    baseline
        Output of the current system, or its stored scores (.json); with -t, its name.
    candidate
        Output of the new system; with -t, its name.
    config
        Settings in the table [gate] (default: tertium.toml or pyproject.toml).
    alpha
        Largest probability of a wrong pass, and of a wrong worse (default: 0.05).
    """

    group: ClassVar[str] = "Input"
    baseline: InFile = ""
    candidate: InFile = ""
    config: InFile | None = None
    alpha: Annotated[float | None, Option(group="Statistics")] = None

    def settings(self) -> GateSettings:
        """Return the settings of the file, with the alpha of the option."""
        path = self.config or find_configuration("gate")
        settings = read_gate_settings(path) if path else GateSettings()
        return settings if self.alpha is None else replace(settings, alpha=self.alpha)


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """Rules of the gate, in addition to those of the settings.

    Attributes
    ----------
    margin
        How much worse the candidate may be, in units of the metric; human=5% is a difference that
        humans confirm in at most 55% of system pairs.
    max
        Largest number or share of segments with a finding of a check: empty=0, truncated=1%; or the
        largest score of a metric where lower is better.
    min
        Smallest score of the candidate.
    by
        Also test slices: document, length, language, domain or any field of the records; NAME=FILE
        reads one label per segment.
    undecided
        Exit with 0 or 1 instead of 3 if the verdict is undecided.
    """

    group: ClassVar[str] = "Statistics"
    margin: Rules = ()
    max: Rules = ()
    min: Rules = ()
    by: Annotated[tuple[str, ...], Option(metavar="COLUMN", file="read")] = ()
    undecided: Literal["pass", "fail"] | None = None


def gate_files(
    inputs: InputFiles,
    pair: GatePair,
    metrics: MetricOptions,
    rules: GateOptions,
    compute: Compute,
    judge: JudgeServer,
) -> GateResult:
    """Decide whether a candidate is worse than a baseline by more than a margin.

    Examples
    --------
    tertium gate --baseline main.txt --candidate new.txt -r ref.txt -m chrf --margin chrf=0.5
    tertium gate --baseline main.txt --candidate new.txt -s src.txt -r ref.txt \\
      --margin human=5% --max "empty=0" "wrong language=0" "truncated=1%" --min chrf=50
    tertium gate -t systems.jsonl --baseline main --candidate new --margin human=5% --by domain
    tertium gate -o gate.html junit.xml findings.sarif -f md >> $GITHUB_STEP_SUMMARY

    Notes
    -----
    Without files, settings and language pairs are read from the table [gate] of tertium.toml (or
    [tool.tertium.gate] of pyproject.toml).

    Exit codes: 0 pass or better, 1 worse or a failed condition, 2 usage, 3 undecided or too few
    valid answers of an LLM judge
    """
    settings = pair.settings()
    sets = _read_sets(settings, inputs, pair, metrics, judge, rules)
    return replace(
        gate_sets(sets, alpha=settings.alpha),
        undecided=rules.undecided or settings.undecided,
        lacks_answers=bool(current_run().usage.shortfalls()),
    )


def calibrate_gate(
    inputs: InputFiles,
    pair: GatePair,
    metrics: MetricOptions,
    compute: Compute,
    judge: JudgeServer,
) -> SuggestedMargins:
    """Suggest margins from two runs of one system, such as two random seeds.

    Examples
    --------
    tertium gate calibrate --baseline run1.txt --candidate run2.txt -r ref.txt -m chrf
    """
    settings = pair.settings()
    sets = _read_sets(settings, inputs, pair, metrics, judge)
    evaluations = {own.name: score(own.testset, own.metrics) for own in sets}
    return suggest_margins(evaluations, alpha=settings.alpha)


def _read_sets(
    settings: GateSettings,
    inputs: InputFiles,
    pair: GatePair,
    metrics: MetricOptions,
    judge: JudgeServer,
    rules: GateOptions | None = None,
) -> list[GateSet]:
    """Read the files of each language pair; options of the command line come first."""
    rules = rules or GateOptions()
    shared = field_values(inputs)
    for name in RULES:
        shared[name] = split_rules(f"--{name}", getattr(rules, name))
    options = PairFiles(
        baseline=pair.baseline,
        candidate=pair.candidate,
        metrics=metrics.metrics,
        by=rules.by,
        **shared,
    )
    pairs = settings.merge_pairs(options)
    sets = [_read_set(name, files, metrics) for name, files in pairs.items()]
    judge.stop_dry_run(*((own.testset, own.metrics) for own in sets))
    return sets


def _read_set(name: str, files: PairFiles, metrics: MetricOptions) -> GateSet:
    is_stored = Path(files.baseline).suffix == ".json"
    systems = (files.candidate,) if is_stored else (files.baseline, files.candidate)
    texts = replace(files, translations=files.translations or systems).read(by=files.by)
    testset = texts.testset
    if files.translations:  # --baseline and --candidate are systems of -t
        testset = testset.with_systems(systems)
    names = [*testset.systems]
    source, target = split_pair(name)
    return GateSet(
        testset=testset,
        baseline=read_baseline(files.baseline) if is_stored else names[0],
        candidate=names[-1],
        metrics=replace(metrics, metrics=files.metrics).load(texts, default_metric),
        rules=GateRules.from_values(files.margin, files.max, files.min, column_names(files.by)),
        name=name,
        checks=CheckSettings(
            source_language=texts.source_language or source,
            target_language=texts.target_language or target,
        ),
        locate=texts.locate(),
    )
