"""Apply a route to new translations: outcomes with reasons, drift of the scores, saved cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.core.errors import UsageError
from tertium.core.options import Compute, InFile, Names, Option
from tertium.core.result import Column, Result, Table
from tertium.core.spans import Span
from tertium.decide.route import (
    OUTCOMES,
    POST_EDIT,
    PUBLISH,
    Outcome,
    PairThresholds,
    Route,
    RouteStage,
    decide_by_conditions,
    decide_by_score,
    fit_route,
    measure_drift,
)
from tertium.evaluation.checking import find_errors
from tertium.evaluation.judged import HumanInputs
from tertium.evaluation.metric_choice import MetricOptions
from tertium.evaluation.rows import Row, RowScores, group_by_pair, rows_of_testset, score_rows
from tertium.evaluation.scoring import References, Translations, as_testset
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.metric import NO_SCORE

MIN_DRIFT_ROWS = 30  # fewer rows show no drift
DRIFT_LEVEL, MIN_DRIFT = 0.01, 0.1  # p-value and distance from which a change is reported


@dataclass(frozen=True, kw_only=True)
class RoutedRow:
    """One translation with its outcome, the reason and the scores that decided."""

    row: Row
    outcome: Outcome
    reason: str
    scores: Mapping[str, float]
    findings: tuple[Span, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            **self.row.record(),
            "outcome": self.outcome,
            "reason": self.reason,
            "scores": dict(self.scores),
            "findings": [span.as_dict() for span in self.findings],
        }


@dataclass(frozen=True, kw_only=True)
class Saving:
    """How many rows a further metric of a route did not have to score."""

    metric: str
    scored: int
    avoided: int
    seconds: float
    cost: float | None

    def describe(self) -> str:
        """Describe the saving in one line; time and cost are those of the scored rows.

        >>> Saving(metric="judge", scored=20, avoided=80, seconds=10, cost=0.5).describe()
        'judge scored 20 of 100 rows: 80 % avoided, about 40 s and a cost of 2.00 saved'
        """
        total = self.scored + self.avoided
        ratio = self.avoided / self.scored
        cost = "" if self.cost is None else f" and a cost of {ratio * self.cost:,.2f}"
        return (
            f"{self.metric} scored {self.scored:,} of {total:,} rows: "
            f"{100 * self.avoided / total:.0f} % avoided, about {ratio * self.seconds:,.0f} s"
            f"{cost} saved"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RoutedTranslations(Result):
    """The outcome of each translation.

    `drift` compares the scores of each metric and language pair with those of the fit. `notes` are
    warnings: language pairs without a promise, and scores unlike those of the fit.
    """

    is_spreadsheet = True
    route: Route
    rows: tuple[RoutedRow, ...]
    drift: Mapping[str, Mapping[str, Mapping[str, float]]]
    notes: tuple[str, ...] = ()
    savings: tuple[Saving, ...] = ()

    def records(self) -> dict[str, Any]:
        """Return counts, drift, warnings and savings as plain values, for JSON."""
        return {
            "outcomes": self.counts(),
            "drift": self.drift,
            "warnings": list(self.notes),
            "savings": [asdict(saving) for saving in self.savings],
        }

    def warning_lines(self) -> Sequence[str]:
        """Return the warnings."""
        return self.notes

    def counts(self) -> dict[str, dict[str, int]]:
        """Count the outcomes in each language pair."""
        counted: dict[str, dict[str, int]] = {}
        for row in self.rows:
            counts = counted.setdefault(row.row.lp, dict.fromkeys(OUTCOMES, 0))
            counts[row.outcome] += 1
        return counted

    def tables(self) -> list[Table]:
        """Return the number and share of each outcome by language pair."""
        counts = {lp or "all rows": own for lp, own in self.counts().items()}
        if len(counts) > 1:
            total = Counter(row.outcome for row in self.rows)
            counts["all pairs"] = {name: total[name] for name in OUTCOMES}
        rows = []
        for pair, own in counts.items():
            size = sum(own.values())
            shares = {f"{name} %": 100 * count / size for name, count in own.items()}
            rows.append({"pair": pair, "rows": size, **own, **shares})
        columns = [Column("pair", group="pair"), Column("rows", decimals=0, group="pair")]
        for name in OUTCOMES:
            columns.append(Column(name, decimals=0, group=name))
            columns.append(Column("%", f"{name} %", 1, group=name))
        notes = [saving.describe() for saving in self.savings]
        return [Table(columns, rows, notes=notes, cautions=self.notes)]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per translation with its outcome and scores."""
        columns = [
            Column("system", "row.system"),
            Column("segment", "row.item"),
            Column("lp", "row.lp"),
            Column("document", "row.document"),
            Column("source", "row.segment.source"),
            Column("translation", "row.segment.hypothesis"),
            Column("outcome"),
            Column("reason"),
        ]
        for stage in self.route.stages:
            columns.append(Column(stage.metric, partial(_score, stage.metric)))
        return Table(columns, self.rows)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the record of each translation."""
        return (row.record() for row in self.rows)


def _score(spec: str, row: RoutedRow) -> float | None:
    return row.scores.get(spec)


def apply_route(
    route: Route,
    testset: Translations,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    lp: str = "",
) -> RoutedTranslations:
    """Decide for each translation whether to publish, post-edit or translate it again.

    The scores of language pairs without judged rows decide nothing: they are post-edited.

    Parameters
    ----------
    route
        A route, from `fit_route` or `Route.load`.
    testset
        A `TestSet`, a frame, a list of translations, or lists by system name. A column `lp` names
        the language pair of each segment.
    sources, references
        Texts for each segment, if `testset` is a list or a dictionary of lists.
    lp
        The language pair of all rows, if there is no column.
    """
    rows = rows_of_testset(as_testset(testset, sources, references), lp)
    findings = find_errors(rows)
    decisions = decide_by_conditions(findings, route.conditions)
    routed = [
        RoutedRow(
            row=row,
            outcome=outcome or POST_EDIT,
            reason=f"check {name}" if name else "",
            scores={},
            findings=spans,
        )
        for row, spans, (outcome, name) in zip(rows, findings, decisions, strict=True)
    ]
    notes = [*_describe_unfitted_pairs(route.stages[0], rows)]
    undecided = [n for n, (outcome, _) in enumerate(decisions) if outcome is None]
    candidates = len(undecided)
    savings = []
    drift: dict[str, dict[str, dict[str, float]]] = {}
    for stage in route.stages:
        count = len(undecided)
        if not count:
            break
        [scores] = score_rows([rows[n] for n in undecided], [stage.metric])
        stage.check_signatures(scores)
        if NO_SCORE in scores.flags:
            missing = int(scores.flags[NO_SCORE].sum())
            notes.append(
                f"warning: {stage.metric}: no score for {missing:,} of {count:,} rows: it decides "
                "nothing about them"
            )
        drifts = _measure_drift(stage, [rows[n] for n in undecided], scores)
        notes += _describe_drift(stage, drifts)
        drift |= {stage.metric: drifts} if drifts else {}
        undecided = _apply_stage(stage, scores, routed, undecided)
        if stage is not route.stages[0]:
            saving = Saving(
                metric=stage.metric,
                scored=count,
                avoided=candidates - count,
                seconds=scores.seconds,
                cost=scores.usage.get("cost"),
            )
            savings.append(saving)
    return RoutedTranslations(
        route=route,
        rows=tuple(routed),
        drift=drift,
        notes=tuple(notes),
        savings=tuple(savings),
    )


def _describe_unfitted_pairs(stage: RouteStage, rows: Sequence[Row]) -> Iterator[str]:
    """Yield warnings about language pairs without judged rows; refuse rows without a pair."""
    fitted = ", ".join(stage.pairs) or "no pair"
    for lp, indices in group_by_pair(rows).items():
        if lp in stage.pairs:
            continue
        if not lp:
            raise UsageError(
                f"the rows have no language pair, but the route was fitted for {fitted}: add "
                "a column lp, or give --source-language and --target-language"
            )
        yield (
            f"warning: {lp}: {len(indices):,} rows, but fewer than 100 judged rows in the "
            f"route (fitted: {fitted}): its scores decide nothing"
        )


def _apply_stage(
    stage: RouteStage, scores: RowScores, routed: list[RoutedRow], places: Sequence[int]
) -> list[int]:
    """Decide about the rows in these places; return the places of those that stay undecided."""
    undecided = []
    for position, n in enumerate(places):
        thresholds = stage.pairs.get(routed[n].row.lp)
        outcome = None
        reason = f"{stage.metric}: {', '.join(scores.warnings[position])}"
        if scores.is_reliable[position]:
            outcome = decide_by_score(thresholds, float(scores.oriented[position]))
            reason = f"{stage.metric}{_explain(stage, thresholds, outcome)}"
        if outcome is None:
            undecided.append(n)
        routed[n] = replace(
            routed[n],
            outcome=outcome or POST_EDIT,
            reason=reason,
            scores={**routed[n].scores, stage.metric: float(scores.values[position])},
        )
    return undecided


def _measure_drift(
    stage: RouteStage, rows: Sequence[Row], scores: RowScores
) -> dict[str, dict[str, float]]:
    """Compare the scores of each language pair with those of its judged rows."""
    drifts = {}
    for lp, indices in group_by_pair(rows).items():
        values = scores.oriented[indices]
        values = values[np.isfinite(values)]
        if lp in stage.pairs and len(values) >= MIN_DRIFT_ROWS:
            drifts[lp] = measure_drift(stage.pairs[lp].scores, values)
    return drifts


def _describe_drift(stage: RouteStage, drifts: Mapping[str, dict[str, float]]) -> Iterator[str]:
    """Yield warnings about scores that differ significantly and by more than a trifle."""
    for lp, drift in drifts.items():
        distance = drift["distance"]
        p_value = drift["p_value"]
        if p_value < DRIFT_LEVEL and distance >= MIN_DRIFT:
            yield (
                f"warning: {lp or 'all rows'}: scores of {stage.metric} are unlike those of "
                f"the judged rows (Kolmogorov-Smirnov distance {distance:.2f}, p = "
                f"{p_value:.1g}): the promised precision may not hold; judge some rows "
                "and fit the route again"
            )


def _explain(stage: RouteStage, thresholds: PairThresholds | None, outcome: Outcome | None) -> str:
    """Explain the outcome of a score by the threshold on the scale of the metric."""
    if thresholds is None:
        return ": no threshold"
    if outcome is None:
        return ": undecided"
    threshold = thresholds.publish if outcome == PUBLISH else thresholds.retranslate
    assert threshold is not None
    is_above = (outcome == PUBLISH) == stage.higher_is_better
    return f" {'>=' if is_above else '<='} {stage.sign * threshold.score:.4g}"


Share = Annotated[float, Option(metavar="P")]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a route promises, and which translations are good.

    Attributes
    ----------
    target_precision
        Share of good translations among the published ones.
    alpha
        Probability that this share, or that of bad translations below the lower threshold (.5), is
        not reached.
    good_score
        Human score of a good translation (default: 80 for ESA and DA, -1 MQM).
    bad_score
        Human score below which it is bad (default: 50 for ESA and DA, -10 MQM).
    """

    group: ClassVar[str] = "Statistics"
    target_precision: Share = 0.95
    alpha: Share = 0.05
    good_score: float | None = None
    bad_score: float | None = None


def fit_route_to_files(
    inputs: HumanInputs,
    metrics: MetricOptions,
    promise: Promise,
    compute: Compute,
    judge: JudgeConnection,
    *,
    escalate: Annotated[str | None, Option(group="Metrics", metavar="METRIC")] = None,
    ignore: Annotated[Names, Option(group="Metrics", metavar="ID")] = (),
) -> Route:
    """Fit thresholds with a promised precision on judged translations.

    Parameters
    ----------
    escalate
        A more expensive metric for rows that the first leaves undecided.
    ignore
        Checks that do not decide; see `tertium list checks` (default: none).

    Examples
    --------
    tertium route fit --human judged.jsonl -m tertium-multi --target-precision 0.9 -o route.json
    tertium route fit --human judged.jsonl -m chrf --escalate judge:model=NAME -o route.json

    Notes
    -----
    At least 100 judged rows with texts, a human score and a language pair (lp) are needed.
    """
    if len(metrics.metrics) != 1:
        raise UsageError("`route fit` needs one metric: give it with -m, a second with --escalate")
    metric, *more = metrics.load_specs([*metrics.metrics, *([escalate] if escalate else [])])
    return fit_route(
        inputs,
        metric.spec,
        escalate=more[0].spec if more else None,
        ignore=ignore,
        **asdict(promise),
    )


def apply_route_to_files(
    route: Annotated[InFile, Option(metavar="ROUTE")],
    /,
    inputs: InputFiles,
    compute: Compute,
    judge: JudgeConnection,
) -> RoutedTranslations:
    """Decide which translations to publish, to post-edit and to translate again.

    Parameters
    ----------
    route
        File of the fitted route.

    Examples
    --------
    tertium route apply route.json -t new.jsonl -o labeled.jsonl

    Notes
    -----
    Each row gets an outcome and its reason. A warning says if the scores are unlike those of the
    fit.
    """
    fitted = Route.load(route)
    return apply_route(fitted, inputs.read().testset, lp=inputs.language_pair)
