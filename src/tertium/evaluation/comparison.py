"""Compare systems: paired significance tests, clusters, and human agreement with differences.

How often humans agree with a difference was measured on judged pairs of systems:
`recipes/differences.py` fitted the bundled scales; `tertium meta thresholds` fits others.

The tests use statistics only (`paired_tests`), so they work for any metric. The first system is the
baseline; the p-values of all other pairs are available too.

A verdict in words: what a comparison of systems allows to conclude, in one sentence.

The paired bootstrap finds too many differences between equal systems, most on small test sets. The
verdict therefore also needs the test of the gate (`paired_tests`), on at least ten segments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import combinations, product
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.charts import IntervalChart
from tertium.core.errors import TertiumError, UnknownNameError, UsageError
from tertium.core.resampling import resampling_warnings
from tertium.core.result import Column, Emphasis, Section, Table, field_values, format_number
from tertium.core.scores import Scores
from tertium.evaluation.metric_choice import default_metrics, describe_tokenizers
from tertium.evaluation.paired_tests import (
    DEFAULT_RESAMPLES,
    MIN_SEGMENTS_TO_TEST,
    Test,
    assign_clusters,
    check_test_options,
    measure_difference,
    paired_bootstrap,
    paired_randomization,
)
from tertium.evaluation.scoring import (
    References,
    Translations,
    as_testset,
    bootstrap_systems,
    score,
)
from tertium.evaluation.system_scores import (
    MIN_SEGMENTS,
    NOTE,
    Evaluation,
    MetricDict,
    find_reference_copies,
    find_unfit_metrics,
    is_caution,
)
from tertium.meta.difference_scales import (
    ALL_DIRECTIONS,
    INTO_ENGLISH,
    NOT_INTO_ENGLISH,
    DifferenceScale,
)
from tertium.metrics.base.capabilities import find_inputs, scale_spec
from tertium.metrics.base.loading import load_metric, replace_fields
from tertium.metrics.base.metric import Metric
from tertium.text.language_identification import (
    MAX_OTHER_LANGUAGE_SHARE,
    are_english,
    identify_language,
    is_clearly_not_english,
    is_too_short,
)


@dataclass(frozen=True, kw_only=True)
class Comparison(Evaluation):
    """An evaluation with pairwise significance tests, as returned by `tertium.compare`.

    Attributes
    ----------
    test, resamples, seed, alpha
        The test, its number of resamples and seed, and the significance level.
    p_values
        For each metric a matrix (systems, systems) with 1 on the diagonal.
    clusters
        For each metric the cluster of each system, 1 being the best. Every system beats all systems
        of later clusters significantly. Systems without a score are in cluster 0.

    >>> systems = {"base": ["a dog sat", "hi"], "ours": ["a cat sat", "hi there"]}
    >>> comparison = compare(systems, "chrf", references=["a cat sat", "hi there"], resamples=100)
    >>> comparison.to_frame()[["system", "rank", "cluster"]].values.tolist()
    [['base', 2, 2], ['ours', 1, 1]]
    """

    test: Test
    resamples: int
    seed: int
    alpha: float
    p_values: Mapping[str, FloatArray] = field(repr=False)
    clusters: Mapping[str, Sequence[int]] = field(repr=False)

    def p_value(self, metric: str, system: str, other: str = "") -> float:
        """Return the p-value of a system against another, by default the baseline."""
        for name in (system, other):
            if name and name not in self.systems:
                raise UnknownNameError("system", name, self.systems)
        places = [self.systems.index(name) for name in (other or self.baseline, system)]
        return float(self.p_values[metric][*places])

    @cached_property
    def verdict(self) -> str:
        """What the comparison allows to conclude, in a sentence or two.

        It is empty with one segment. Metrics that are unfit for the language do not count. They are
        named first, and so are systems that equal the reference too often. If the test is the
        bootstrap, the larger p-value of two tests counts.
        """
        unfit = find_unfit_metrics(self)
        copies = find_reference_copies(self.testset)
        warning = "".join(f"{sentence}. " for sentence in (*unfit.values(), *copies.values()))
        tested = {
            metric: self.p_values[metric]
            for metric in self.metrics
            if metric not in unfit and not np.isnan(self.p_values[metric][0]).any()
        }
        if not tested:
            return (
                f"{warning}No metric of this comparison can decide." if unfit else warning.strip()
            )
        count = len(self.testset)
        if count < MIN_SEGMENTS_TO_TEST:
            return f"{warning}{count} segments are too few for a verdict: use at least 10."
        if self.test == "bootstrap":
            for metric, p_values in tested.items():
                tested[metric] = _strict_p_values(self.metric_scores(metric), p_values)
        return warning + replace(self, p_values=tested)._conclude()

    @cached_property
    def _scales(self) -> tuple[dict[str, DifferenceScale], dict[str, str]]:
        return find_scales(self)

    @property
    def scales(self) -> Mapping[str, DifferenceScale]:
        """Difference scales by metric, if there are any."""
        return MetricDict(self._scales[0])

    def warning_lines(self) -> list[str]:
        """Return the lines of an evaluation, and notes on metrics without a scale."""
        notes = [f"{NOTE} {sentence}" for sentence in self._scales[1].values()]
        return [*notes, *super().warning_lines()]

    def human_agreement(self, metric: str, system: str, other: str = "") -> dict[str, Any]:
        """Return how often humans agree with a system's difference to another (by default the
        baseline), in how many judged pairs of systems, and their language direction.

        Empty if there is no difference, no scale of the metric, or fewer than `MIN_SEGMENTS`
        segments: scales were fitted on whole test sets.
        """
        difference = self.difference(metric, system, other)
        scale = self.scales.get(metric)
        if scale is None or len(self.testset) < MIN_SEGMENTS or not abs(difference) > 0:
            return {}
        nearest = scale.find(difference)
        return {"agree": nearest.agree, "pairs": nearest.pairs, "direction": scale.direction}

    def tables(self) -> list[Table]:
        """Return systems x (score, p-value against the baseline, rank) for each metric."""
        return [self.comparison_table()]

    def comparison_table(self) -> Table:
        """Return systems x (score, p-value against the baseline, rank) for each metric."""

        def label(system: str, _: int) -> str:
            return f"{system} (baseline)" if system == self.baseline else system

        columns = [
            Column("system", str, text=label),
            Column("baseline", lambda system: int(system == self.baseline), 0, show=False),
        ]
        for metric in self.metrics:
            columns += self._test_columns(metric)
        lines = self.warning_lines()
        notes = [
            f"p: difference to {self.baseline}, {self.test_name}, seed {self.seed}; "
            f"* p < {self.alpha:g} (+ better, - worse)",
            "rank: each system is significantly better than all systems of higher rank numbers",
            *self.agreement_lines(),
            *self.signatures,
            *(line for line in lines if not is_caution(line)),
        ]
        cautions = [line for line in lines if is_caution(line)]
        return Table(columns, self.systems, notes=notes, cautions=cautions, verdict=self.verdict)

    def sections(self) -> list[Section]:
        """Return the sections of an evaluation with the p-values of all pairs."""
        overview, *more = super().sections()
        tables = [self.pair_table(metric) for metric in self.metrics]
        pairs = Section("p-values of all pairs of systems", tables, is_collapsed=True)
        return [replace(overview, contents=[*overview.contents, pairs]), *more]

    def _chart_note(self) -> str:
        return f"{super()._chart_note()} Bands are clusters, significantly better than all below."

    def _ranking_chart(self, metric: str) -> IntervalChart:
        return replace(super()._ranking_chart(metric), clusters=self.clusters[metric])

    def _test_columns(self, metric: str) -> list[Column]:
        """Return the score of each system, its p-value and its rank cluster."""
        score, *bounds = self.score_columns(metric)
        clusters = dict(zip(self.systems, self.clusters[metric], strict=True))
        p_value = self.p_value_column("p", lambda system: (metric, system, self.baseline))
        columns = [score, *bounds, replace(p_value, group=score.name)]
        agreements = {system: self.human_agreement(metric, system) for system in self.systems[1:]}
        shares = {system: own["agree"] for system, own in agreements.items() if own}
        if shares:
            name = f"{score.name} human agreement"
            columns.append(Column(name, lambda system: shares.get(system, ""), 2, show=False))
        rank = Column("rank", lambda system: clusters[system] or np.nan, 0, group=score.name)
        return [*columns, rank]

    def p_value_column(self, name: str, get: Callable[[Any], tuple[str, str, str]]) -> Column:
        """Return a column of p-values, marked with the sign of a significant difference.

        `get` returns the metric of a row, and the two systems.
        """

        def p_value(row: Any) -> float | None:
            metric, system, other = get(row)
            return None if system == other else self.p_value(metric, system, other)

        return self.mark_p_values(name, p_value, lambda row: self.difference(*get(row)))

    def mark_p_values(
        self, name: str, get: Callable[[Any], float | None], difference: Callable[[Any], float]
    ) -> Column:
        """Return a column of p-values, marked with the sign of a significant difference."""

        def sign(row: Any) -> str:
            p = get(row)
            if p is None or not p < self.alpha:
                return ""
            return "+" if difference(row) > 0 else "-"

        def text(row: Any, decimals: int) -> str:
            p = get(row)
            if p is None:
                return ""
            marked = f" *{sign(row)}" if sign(row) else "  " if p == p else ""
            return format_number(p, decimals) + marked

        marks: Mapping[str, Emphasis] = {"": "", "+": "good", "-": "bad"}
        return Column(name, get, 4, text=text, mark=lambda row: marks[sign(row)])

    def pair_table(self, metric: str) -> Table:
        """Return the p-values of all pairs of systems under one metric."""

        def column(other: str) -> Column:
            return self.p_value_column(other, lambda system: (metric, system, other))

        note = (
            f"{self.test_name}; * p < {self.alpha:g}: "
            "the row is better (+) or worse (-) than the column"
        )
        title = f"p-values of all pairs, {self.names[metric]}"
        return Table([Column("", str), *map(column, self.systems)], self.systems, title, [note])

    @property
    def test_name(self) -> str:
        """The significance test and its number of resamples."""
        if self.test == "bootstrap":
            return f"paired bootstrap, {self.resamples} resamples"
        return f"paired randomization, two-sided, {self.resamples} trials"

    def agreement_lines(self) -> list[str]:
        """Return how often human scores confirm such a difference, by metric and system."""
        lines = []
        for metric in self.metrics:
            for system in self.systems[1:]:
                if agreement := self.human_agreement(metric, system):
                    scores = self.scores[system][metric]
                    difference = self.difference(metric, system)
                    better = "better" if difference > 0 else "worse"
                    lines.append(
                        f"{system}: {abs(difference):.{scores.decimals}f} {scores.name} {better}: "
                        f"humans agree in {100 * agreement['agree']:.0f} % of such system pairs "
                        f"(n = {agreement['pairs']:,}, {agreement['direction']})"
                    )
        return lines

    def _sample_warnings(self) -> list[str]:
        """Warn if segments or resamples are too few for tests, intervals and human agreement."""
        lines = self._small_sample("tests and intervals", "p is undefined")
        if lines and self.scales:
            lines.append(
                f"warning: fewer than {MIN_SEGMENTS} segments: human agreement with the "
                "difference not shown"
            )
        return [*lines, *resampling_warnings(1, self.resamples, self.alpha)]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row for each system and metric.

        Columns are `score`, the bounds `low` and `high` of its interval, `difference` and
        `p_value` against the baseline (NaN for the baseline), `rank` by score and `cluster`.
        """
        if suffix == ".xlsx":
            return super().file_table(suffix)
        rows = []
        for metric, system in product(self.metrics, self.systems):
            leads = [self.difference(metric, other, system) for other in self.systems]
            bounds = self.intervals[system][metric]
            is_baseline = system == self.baseline
            row = {
                "system": system,
                "metric": metric,
                "score": self.scores[system][metric].system,
                "low": bounds.low,
                "high": bounds.high,
                "difference": np.nan if is_baseline else self.difference(metric, system),
                "p_value": np.nan if is_baseline else self.p_value(metric, system),
                "rank": 1 + sum(lead > 0 for lead in leads),
                "cluster": self.clusters[metric][self.systems.index(system)],
            }
            rows.append(row)
        return Table([*map(Column, rows[0])], rows)

    def records(self, *, segments: bool = False) -> list[dict[str, Any]]:
        """Return one dictionary for each system and metric, with p-values and clusters."""
        records = super().records(segments=segments)
        copies = find_reference_copies(self.testset)
        unmeasured = self._scales[1]
        for record in records:
            metric = record["spec"]
            system = record["system"]
            place = self.systems.index(system)
            row = self.p_values[metric][place].tolist()
            record |= {
                "test": self.test,
                "resamples": self.resamples,
                "seed": self.seed,
                "cluster": self.clusters[metric][place] or None,
                "p_values": dict(zip(self.systems, row, strict=True)),
            }
            if place:
                record["p_value"] = row[0]
                record["people_agree"] = self.human_agreement(metric, system) or None
            cautions = [unmeasured.get(metric, ""), copies.get(system, "")]
            if any(cautions):
                record["cautions"] = [*filter(None, cautions)]
        return records

    def _conclude(self) -> str:
        """Describe the system that is better than all others under some metric, if there is one."""
        systems = self.systems
        winners: dict[str, list[str]] = {}
        groups: list[list[str]] = []
        for metric, p_values in self.p_values.items():
            clusters = assign_clusters(self.metric_scores(metric), p_values, alpha=self.alpha)
            first = [s for s, cluster in zip(systems, clusters, strict=True) if cluster == 1]
            groups.append(first)
            if len(first) == 1:
                winners.setdefault(first[0], []).append(metric)
        if len(winners) > 1:
            return self._no_decision(winners)
        common = [s for s in systems if all(s in group for group in groups)]
        for best, metrics in winners.items():
            if best not in common:
                break
            rival = "all others" if len(systems) > 2 else next(s for s in systems if s != best)
            rest = [self.names[metric] for metric in self.p_values if metric not in metrics]
            undecided = f"; {_list(rest)} cannot tell" if rest else ""
            reasons = f"under {self._name_metrics(metrics)}{undecided}"
            return f"{best} is better than {rival} {reasons}: choose {best}."
        if len(systems) == 2:
            return self._of_tie(*systems)
        shared = common or [s for s in systems if any(s in group for group in groups)]
        return f"No system is better than all others: {_list(shared)} share the first rank."

    def _of_tie(self, first: str, second: str) -> str:
        if all(self.difference(metric, second) == 0 for metric in self.p_values):
            return f"{first} and {second} have the same scores: keep {first}."
        smallest = min(self.p_values, key=lambda metric: float(self.p_values[metric][0, 1]))
        has_several = len(self.p_values) > 1
        subject = "No metric separates" if has_several else "The metric does not separate"
        reason = f"{self.names[smallest]}: {self._format_p(smallest)}"
        return f"{subject} {first} and {second} ({reason}): keep {first}."

    def _no_decision(self, winners: Mapping[str, Sequence[str]]) -> str:
        texts = [
            f"{self._name_metrics(metrics)} {'prefers' if len(metrics) == 1 else 'prefer'} {system}"
            for system, metrics in winners.items()
        ]
        of_pair = f" of {_list([*winners][:2])}" if len(self.systems) > 2 else ""
        people = f"have people judge segments{of_pair} (`tertium plan`)"
        return f"{', '.join(texts)}: no decision; {people}."

    def _name_metrics(self, metrics: Iterable[str]) -> str:
        """Return the names of metrics; with two systems, also the p-values of the difference."""
        names = self.names
        if len(self.systems) > 2:
            return _list(names[metric] for metric in metrics)
        return _list(f"{names[metric]} ({self._format_p(metric)})" for metric in metrics)

    def _format_p(self, metric: str) -> str:
        p = float(self.p_values[metric][0, 1])
        return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def compare(
    testset: Translations,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    test: Test = "bootstrap",
    resamples: int | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Comparison:
    """Score all systems and test every pair of them.

    Parameters
    ----------
    testset
        A `TestSet`, a pandas or polars frame, or lists of translations by system name. The first
        system is the baseline.
    metrics
        Specs or metrics. By default BLEU, chrF and the recommended metric for the data.
    sources, references
        Texts for each segment, if `testset` is a dictionary of lists.
    test
        "bootstrap" (paired bootstrap) or "randomization" (paired approximate randomization).
    resamples
        Number of resamples; by default 1,000 for the bootstrap and 10,000 for randomization.
    seed
        Seed of the resampling.
    alpha
        Significance level of the clusters.

    Returns
    -------
    Comparison
        Scores, confidence intervals, p-values and clusters.
    """
    texts = as_testset(testset, sources, references)
    if len(texts.systems) < 2:
        raise UsageError("a comparison needs at least two systems; the first is the baseline")
    check_test_options(test, alpha, resamples)  # before the scoring, which may take long
    evaluation = score(texts, default_metrics(texts) if metrics is None else metrics)
    return compare_evaluation(evaluation, test=test, resamples=resamples, seed=seed, alpha=alpha)


def compare_evaluation(
    evaluation: Evaluation,
    *,
    test: Test = "bootstrap",
    resamples: int | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
    baseline_only: bool = False,
) -> Comparison:
    """Test every pair of systems of an evaluation.

    With `baseline_only`, systems are only compared with the first: other p-values are NaN, and
    there are no clusters.
    """
    check_test_options(test, alpha, resamples)
    count = DEFAULT_RESAMPLES[test] if resamples is None else resamples
    bootstrap_resamples = count if test == "bootstrap" else DEFAULT_RESAMPLES["bootstrap"]
    samples, intervals = bootstrap_systems(evaluation, bootstrap_resamples, seed)
    p_values = MetricDict[FloatArray]()
    clusters = MetricDict[Sequence[int]]()
    for metric in evaluation.metrics:
        scores = evaluation.metric_scores(metric)
        if test == "bootstrap":
            p = paired_bootstrap(scores, samples[metric])
        else:
            p = paired_randomization(
                scores, resamples=count, seed=seed, baseline_only=baseline_only
            )
        p_values[metric] = p
        clusters[metric] = (
            [0] * len(p) if baseline_only else assign_clusters(scores, p, alpha=alpha)
        )
    return Comparison(
        **field_values(evaluation, "intervals"),
        intervals=intervals,
        test=test,
        resamples=count,
        seed=seed,
        alpha=alpha,
        p_values=p_values,
        clusters=clusters,
    )


def add_significance(evaluation: Evaluation, *, seed: int = 12345, **choices: Any) -> Evaluation:
    """Compare two or more systems; for a single system, add confidence intervals."""
    if len(evaluation.systems) < 2:
        _, intervals = bootstrap_systems(evaluation, DEFAULT_RESAMPLES["bootstrap"], seed)
        return replace(evaluation, intervals=intervals)
    return compare_evaluation(evaluation, seed=seed, **choices)


def _strict_p_values(scores: Sequence[Scores], p_values: FloatArray) -> FloatArray:
    matrix = p_values.copy()
    for first, second in combinations(range(len(scores)), 2):
        own = measure_difference(scores[first], scores[second])
        p = min(1.0, 2 * min(own.p_less(0.0), own.p_greater(0.0)))
        matrix[first, second] = matrix[second, first] = np.maximum(matrix[first, second], p)
    return matrix


def _list(texts: Iterable[str]) -> str:
    """Join texts as in a sentence.

    >>> _list(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


SCALES_FILE = "differences.json"
INPUT_NAMES = {
    "source": "the source only",
    "reference": "the reference only",
    "source+reference": "source and reference",
}


@cache
def load_bundled_scales() -> tuple[DifferenceScale, ...]:
    """Load the difference scales that come with the package."""
    text = files("tertium.evaluation").joinpath(SCALES_FILE).read_text(encoding="utf-8")
    return tuple(DifferenceScale.from_record(record) for record in json.loads(text)["scales"])


def scale_name(metric: Metric) -> str:
    """Return the spec under which the scales of a metric are stored, whatever inputs it reads."""
    if getattr(type(metric), "against", "") == "auto":
        metric = replace_fields(metric, {"against": "auto"})
    return scale_spec(metric)


def find_metric_scales(spec: str | Metric) -> list[DifferenceScale]:
    """Return the scales of a metric for all inputs and directions; none if its model changed."""
    metric = load_metric(spec)
    name = scale_name(metric)
    models = tuple(metric.model_ids)
    return [own for own in load_bundled_scales() if (own.metric, own.learned) == (name, models)]


def find_scale(spec: str | Metric, direction: str, inputs: str) -> DifferenceScale | None:
    """Return the scale of a metric that was fitted with the same inputs and models, or None."""
    scales = {own.direction: own for own in find_metric_scales(spec) if own.inputs == inputs}
    return scales.get(direction) or scales.get(ALL_DIRECTIONS)


def describe_scale_inputs(spec: str | Metric, inputs: str) -> str:
    """Return with which inputs human agreement was measured; empty if also with these, or never.

    >>> describe_scale_inputs("tertium-multi", "source+reference")
    ''
    """
    measured = {scale.inputs: INPUT_NAMES[scale.inputs] for scale in find_metric_scales(spec)}
    if not measured or inputs in measured:
        return ""
    return (
        f"{INPUT_NAMES[inputs]}, and human agreement with its differences was measured only with "
        f"{' or '.join(measured.values())}"
    )


def find_scales(evaluation: Evaluation) -> tuple[dict[str, DifferenceScale], dict[str, str]]:
    """Return the scale of each metric for its inputs and the language direction of the systems.

    A metric has none if it was fitted with another tokenizer or other inputs, or if words cannot be
    split. The second dictionary has a sentence for each metric that read other inputs.
    """
    testset = evaluation.testset
    segments = testset.segments(evaluation.systems[0])
    direction = find_direction([(*s.references, s.hypothesis)[0] for s in segments])
    unfit = find_unfit_metrics(evaluation)
    scales = {}
    unmeasured = {}
    for spec in evaluation.metrics:
        with suppress(TertiumError):  # scores of a metric that is not installed
            metric = load_metric(spec)
            inputs = find_inputs(metric, segments)
            if reason := describe_scale_inputs(metric, inputs):
                name = evaluation.names[spec]
                unmeasured[spec] = f"{name} read {reason}: human agreement is not shown"
            scale = find_scale(metric, direction, inputs)
            if scale and spec not in unfit and not describe_tokenizers(testset, [spec]):
                scales[spec] = scale
    return scales, unmeasured


def find_direction(texts: Sequence[str]) -> str:
    """Return the language direction of texts; all directions if English and other texts are mixed.

    >>> find_direction(["The train to the coast leaves at seven in the morning, rain or shine."])
    'into English'
    """
    if are_english(texts):
        direction = INTO_ENGLISH
        count = len(texts)
        other_count = sum(map(is_clearly_not_english, texts))
    else:
        languages = [identify_language(text) for text in texts if not is_too_short(text)]
        direction = NOT_INTO_ENGLISH
        count = len(languages)
        other_count = languages.count("en")
    return direction if other_count <= MAX_OTHER_LANGUAGE_SHARE * count else ALL_DIRECTIONS
