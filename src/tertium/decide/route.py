"""A route: which translations to publish, to post-edit or to translate again, with guarantees.

Translations with a finding of a check in `conditions` are decided by it. Others are decided by
their score: at or above one threshold they are published, at or below another translated again,
and post-edited in between. Both thresholds are fitted on judged rows for each language pair.
Rows that the first metric leaves undecided may go to a second, more expensive one.

Thresholds with a guaranteed precision, from judged rows (conformal risk control).

A threshold is accepted if the precision of the rows beyond it is shown to reach a target: the lower
Clopper-Pearson bound of the share of right rows is at least the target. Many thresholds are tried,
so they are tested in a fixed order (Angelopoulos et al. 2021, "Learn then Test"): from strict to
lenient, up to the first that fails, from `STARTS` places that share the error probability. The
chance that the precision of the chosen threshold is below the target is at most `alpha`, for
independent rows drawn like those of the fit. Rows of one document or source are alike, so counts
are divided by the design effect (Korn and Graubard 1998).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from tertium.checks.check_settings import CHECKS, CHECKS_BY_ID
from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, ModelError, UnknownNameError, UsageError
from tertium.core.fields import NON_NEGATIVE, POSITIVE, Rule, read_dataclass, read_json_object
from tertium.core.result import Column, Result, Table
from tertium.core.spans import ErrorAnnotations
from tertium.data.rankings import RankingSet
from tertium.evaluation.checking import FAILED_OUTPUT, find_errors, finding_kinds
from tertium.evaluation.judged import HumanInputs, Sources
from tertium.evaluation.rows import Row, RowScores, group_by_pair, score_rows
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric

Outcome = Literal["publish", "post-edit", "retranslate"]
OUTCOMES: tuple[Outcome, ...] = ("publish", "post-edit", "retranslate")
PUBLISH, POST_EDIT, RETRANSLATE = OUTCOMES
MIN_JUDGED_ROWS = 100  # of a language pair with thresholds
OpenShare = Annotated[float, Rule(lambda value: 0 < value < 1, "a number between 0 and 1")]
# Outcome of translations with a finding of a check; other checks do not matter.
DEFAULT_CONDITIONS: Mapping[str, Outcome] = {
    check.id: RETRANSLATE if check.id in FAILED_OUTPUT else POST_EDIT
    for check in CHECKS
    if check.severity in ("critical", "major")
}


MAJOR = ("major", "critical")  # severities of a serious error
# Human score that a good translation reaches, and below which a translation is bad.
ESA_SCORES = (80.0, 50.0)
MQM_SCORES = (-1.0, -10.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedRows:
    """Translations with human scores, (n,); `has_major` are those with a marked major error.

    `clusters` names the document of each row, or its segment if documents are unknown: rows of one
    cluster are alike.
    """

    rows: Sequence[Row]
    scores: FloatArray
    has_major: BoolArray
    is_annotated: bool
    clusters: Sequence[str]

    @property
    def default_scores(self) -> tuple[float, float] | None:
        """The scores of good and bad translations on the scale of ESA and DA, or of MQM."""
        low = float(self.scores.min())
        high = float(self.scores.max())
        if low >= 0 and 10 < high <= 100:
            return ESA_SCORES
        return MQM_SCORES if low < 0 and high <= 0 else None


@dataclass(frozen=True, kw_only=True)
class QualityCriteria:
    """Which human judgments are good and which are bad.

    A translation is good if its human score is at least `good_score` and, unless `allow_major`, no
    major error is marked. It is bad if its score is below `bad_score` (None: no score is bad).
    """

    good_score: float
    bad_score: float | None = None
    allow_major: bool = False

    def flag_good(self, judged_rows: JudgedRows) -> BoolArray:
        """Return which rows are good, (n,)."""
        good: BoolArray = judged_rows.scores >= self.good_score
        return good if self.allow_major else good & ~judged_rows.has_major

    def flag_bad(self, judged_rows: JudgedRows) -> BoolArray:
        """Return which rows are bad, (n,)."""
        limit = -np.inf if self.bad_score is None else self.bad_score
        return judged_rows.scores < limit


def choose_criteria(
    judged_rows: JudgedRows,
    good_score: float | None = None,
    bad_score: float | None = None,
) -> QualityCriteria:
    """Return the criteria; scores that are not given are those of the scale."""
    good, bad = judged_rows.default_scores or (good_score, None)
    if good is None:
        low = judged_rows.scores.min()
        high = judged_rows.scores.max()
        raise UsageError(
            f"human scores are {low:g} to {high:g}, not a scale with a default (0 to 100, or MQM "
            "below 0): give the score of a good translation with --good-score"
        )
    good = good if good_score is None else good_score
    if bad_score is not None and bad_score > good:
        raise UsageError(f"--bad-score {bad_score:g} is above --good-score {good:g}: exchange them")
    if bad is not None:
        bad = min(bad, good)
    return QualityCriteria(
        good_score=good,
        bad_score=bad if bad_score is None else bad_score,
        allow_major=not judged_rows.is_annotated,
    )


def read_judged_rows(human: Sources | HumanInputs | JudgedRows) -> JudgedRows:
    """Read judged translations from files, datasets or sets of judgments."""
    if isinstance(human, JudgedRows):
        return human
    is_options = isinstance(human, HumanInputs)
    inputs: Any = human if is_options else HumanInputs(human=human)  # type: ignore[arg-type]
    rows: list[Row] = []
    scores: list[float] = []
    marked: list[ErrorAnnotations | None] = []
    for entry in inputs.read().values():
        if isinstance(entry, RankingSet):
            raise DataError(f"{entry.title}: comparisons have no scale: expected human scores")
        cells = entry.segment_scores().cells()
        annotations = entry.error_annotations()
        documents = entry.labels().get("document", {})
        for (system, item), segment in entry.texts().items():
            score = cells.get((system, item), np.nan)
            if np.isnan(score) or system in inputs.exclude:
                continue
            scores.append(score)
            marked.append(annotations.get((system, item)))
            document = documents.get(item, "")
            row = Row(segment=segment, system=system, item=item, lp=entry.lp, document=document)
            rows.append(row)
    if not rows:
        raise DataError("no judged translations with texts: expected a translation and a score")
    annotated = [errors for errors in marked if errors is not None]
    return JudgedRows(
        rows=rows,
        scores=np.array(scores),
        has_major=np.array([errors is not None and _has_major(errors) for errors in marked]),
        is_annotated=2 * len(annotated) > len(rows),
        clusters=[f"{row.lp} {row.document or row.item}" for row in rows],
    )


def _has_major(annotations: ErrorAnnotations) -> bool:
    return any(error.severity in MAJOR for error in annotations.errors)


@dataclass(frozen=True, kw_only=True)
class PairThresholds:
    """The thresholds of one metric for one language pair, and the judged rows behind them.

    `good` is the share of good translations among the judged ones. A threshold is None if no score
    reaches the target precision; `best_publish` is then the best that could be shown. `scores` are
    quantiles of the judged rows, to notice other data later.
    """

    rows: Annotated[int, POSITIVE]
    good: Share
    publish: Threshold | None = None
    retranslate: Threshold | None = None
    best_publish: Threshold | None = None
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RouteStage:
    """One metric of a route, with its thresholds by language pair."""

    metric: str
    signatures: tuple[str, ...]
    higher_is_better: bool
    pairs: Mapping[str, PairThresholds]

    @property
    def sign(self) -> int:
        """1 if higher scores are better, else -1."""
        return 1 if self.higher_is_better else -1

    def check_signatures(self, scores: RowScores) -> None:
        """Raise an error if scores were computed in another way than those of the fit."""
        for signature in scores.signatures.values():
            if signature not in self.signatures:
                raise ModelError(
                    f"the route was fitted with {' and '.join(self.signatures)}, but the scores "
                    f"are {signature}: fit the route again, or use the same version and inputs"
                )


@dataclass(frozen=True, kw_only=True)
class Route(Result):
    """A fitted route; write it to a `.json` file and read it with `Route.load`."""

    target_precision: OpenShare
    bad_precision: OpenShare
    alpha: OpenShare
    criteria: QualityCriteria
    conditions: Mapping[str, Outcome]
    stages: tuple[RouteStage, ...]
    format: Literal["tertium-route-2"] = "tertium-route-2"

    def __post_init__(self) -> None:
        _check_ids(self.conditions)
        if not self.stages:
            raise ModelError("stages is empty: expected at least one metric")

    @classmethod
    def load(cls, path: PathLike) -> Route:
        """Read and validate the file of a route."""
        try:
            content = read_json_object(Path(path))
        except FileNotFoundError:
            raise UsageError(f"{path}: no such file") from None
        try:
            return read_dataclass(cls, content, str(path))
        except ModelError as error:
            raise ModelError(f"{error}; fit the route again with this version") from None

    def records(self) -> dict[str, Any]:
        """Return plain values, as `load` reads them."""
        return {"format": self.format, **asdict(self)}

    def tables(self) -> list[Table]:
        """Return the thresholds of each metric by language pair."""
        return [self._stage_table(stage) for stage in self.stages]

    def _stage_table(self, stage: RouteStage) -> Table:
        columns = [
            Column("pair", lambda row: row[0] or "all rows", group="judged"),
            Column("judged", lambda row: row[1].rows, 0, group="judged"),
            Column("good (%)", lambda row: 100 * row[1].good, 1, group="judged"),
            *_threshold_columns("publish from", "good (%)", attrgetter("publish"), stage.sign),
            *_threshold_columns("retranslate to", "bad (%)", attrgetter("retranslate"), stage.sign),
        ]
        criteria = self.criteria
        bad = "" if criteria.bad_score is None else f"; bad: below {criteria.bad_score:g}"
        notes = [
            f"promise: at least {100 * self.target_precision:g} % of the published translations "
            f"are good, with {100 * (1 - self.alpha):g} % confidence",
            f"good: human score of at least {criteria.good_score:g}"
            f"{'' if criteria.allow_major else ' and no major error'}{bad}",
        ]
        for lp, own in stage.pairs.items():
            if own.publish is None:
                low = own.best_publish and 100 * own.best_publish.low
                reason = f"the best lower bound is {low:.1f} %" if low else "too few rows"
                notes.append(f"{lp or 'all rows'}: nothing is published: {reason}")
        title = f"Route by {stage.metric}"
        return Table(columns, [*stage.pairs.items()], title, [*notes, *stage.signatures])


def _threshold_columns(
    group: str, quality: str, get: Callable[[PairThresholds], Threshold | None], sign: int
) -> list[Column]:
    """Return the columns of a threshold, for rows of a language pair and its thresholds."""

    def value(row: tuple[str, PairThresholds], name: str, factor: int) -> float:
        threshold = get(row[1])
        return math.nan if threshold is None else factor * getattr(threshold, name)

    score = partial(value, name="score", factor=sign)
    shares = {"share (%)": "share", quality: "precision", "at least (%)": "low"}
    return [
        Column(group, score, 0, text=lambda row, _: _format_score(score(row)), group=group),
        *(
            Column(heading, partial(value, name=name, factor=100), 1, group=group)
            for heading, name in shares.items()
        ),
    ]


def _format_score(score: float) -> str:
    return "–" if math.isnan(score) else f"{score:.4g}"


def decide_by_conditions(
    findings: Sequence[Sequence[Any]], conditions: Mapping[str, Outcome]
) -> list[tuple[Outcome | None, str]]:
    """Return outcome and deciding check of each row, (None, "") if no check decides."""
    order = sorted(conditions, key=lambda name: conditions[name] != RETRANSLATE)
    firsts = [next(finding_kinds(spans, order), "") for spans in findings]
    return [(conditions[name] if name else None, name) for name in firsts]


def fit_route(
    human: Sources | HumanInputs | JudgedRows,
    metric: str | Metric,
    *,
    escalate: str | Metric | None = None,
    target_precision: float = 0.95,
    bad_precision: float = 0.5,
    alpha: float = 0.05,
    good_score: float | None = None,
    bad_score: float | None = None,
    ignore: Iterable[str] = (),
) -> Route:
    """Fit the thresholds of a route on judged translations.

    Parameters
    ----------
    human
        Files or sets of human scores of translations, with texts and language pairs.
    metric, escalate
        The metric that decides, and a more expensive one for rows that it leaves undecided.
    target_precision
        Share of good translations among the published ones.
    bad_precision
        Share of bad translations among those with a score below the lower threshold.
    alpha
        Probability that one of the two shares is not reached, divided among the metrics.
    good_score, bad_score
        What is good and bad (`QualityCriteria`); by default 80 and 50 for ESA and DA, -1 and -10
        for MQM, and a good translation has no major error.
    ignore
        Ids of checks that do not decide.
    """
    shares = {"target_precision": target_precision, "bad_precision": bad_precision, "alpha": alpha}
    for name, value in shares.items():
        if not 0 < value < 1:
            raise UsageError(f"{name} is {value:g}: expected a number between 0 and 1")
    _check_ids(ignore)
    judged_rows = read_judged_rows(human)
    metrics = [load_metric(m) for m in (metric, escalate) if m is not None]
    criteria = choose_criteria(judged_rows, good_score, bad_score)
    conditions = {k: v for k, v in DEFAULT_CONDITIONS.items() if k not in {*ignore}}
    decisions = decide_by_conditions(find_errors(judged_rows.rows), conditions)
    remaining = np.array([outcome is None for outcome, _ in decisions])
    stages: list[RouteStage] = []
    for loaded in metrics:
        stage, remaining = _fit_stage(
            loaded,
            remaining,
            judged_rows,
            criteria,
            targets=(target_precision, bad_precision),
            alpha=alpha / len(metrics),
        )
        stages.append(stage)
    _check_target_reached(stages, target_precision, alpha)
    return Route(
        target_precision=target_precision,
        bad_precision=bad_precision,
        alpha=alpha,
        criteria=criteria,
        conditions=conditions,
        stages=tuple(stages),
    )


def _fit_stage(
    metric: Metric,
    remaining: BoolArray,
    judged_rows: JudgedRows,
    criteria: QualityCriteria,
    *,
    targets: tuple[float, float],
    alpha: float,
) -> tuple[RouteStage, BoolArray]:
    """Fit a metric on the remaining rows; return its stage and the rows it leaves undecided."""
    places = np.flatnonzero(remaining)
    if not len(places):
        raise DataError(f"{metric.spec}: no judged row is left to fit it")
    rows = judged_rows.rows
    [scored] = score_rows([rows[n] for n in places.tolist()], [metric.spec])
    oriented = np.full(len(rows), np.nan)
    oriented[places] = np.where(scored.is_reliable, scored.oriented, np.nan)
    good = criteria.flag_good(judged_rows)
    bad = criteria.flag_bad(judged_rows)
    pairs = {}
    for lp, members in group_by_pair(rows).items():
        usable = [n for n in members if np.isfinite(oriented[n])]
        if len(members) < MIN_JUDGED_ROWS or not usable:
            continue
        scores = oriented[usable]
        total = len(members)
        clusters = [judged_rows.clusters[n] for n in usable]
        publish, best = find_threshold(
            scores, good[usable], clusters, targets[0], alpha, total=total
        )
        above = -math.inf if publish is None else -publish.score
        retranslate, _ = find_threshold(
            scores, bad[usable], clusters, targets[1], alpha, total=total, sign=-1, above=above
        )
        pairs[lp] = PairThresholds(
            rows=total,
            good=float(good[members].mean()),
            publish=publish,
            retranslate=retranslate,
            best_publish=None if publish else best,
            scores=stored_quantiles(scores),
        )
    stage = RouteStage(
        metric=metric.spec,
        signatures=tuple(sorted({*scored.signatures.values()})),
        higher_is_better=metric.higher_is_better,
        pairs=pairs,
    )
    undecided = [
        decide_by_score(pairs.get(row.lp), score) is None
        for row, score in zip(rows, oriented.tolist(), strict=True)
    ]
    return stage, remaining & np.array(undecided)


def decide_by_score(thresholds: PairThresholds | None, oriented: float) -> Outcome | None:
    """Return the outcome of an oriented score, None if it is between the thresholds or NaN."""
    if thresholds is None:
        return None
    if thresholds.publish is not None and oriented >= thresholds.publish.score:
        return PUBLISH
    if thresholds.retranslate is not None and oriented <= thresholds.retranslate.score:
        return RETRANSLATE
    return None


def _check_ids(names: Iterable[str]) -> None:
    for name in names:
        if name not in CHECKS_BY_ID:
            raise UnknownNameError("check", name, CHECKS_BY_ID)


def _check_target_reached(stages: Sequence[RouteStage], target: float, alpha: float) -> None:
    """Raise an error with the best bound if no metric reaches the target in any pair."""
    attempts = []
    for stage in stages:
        for lp, pair in stage.pairs.items():
            if pair.publish:
                return
            if pair.best_publish:
                attempts.append((pair.best_publish, stage, lp))
    hint = "lower --target-precision, judge more rows, or use a metric with better agreement"
    if not attempts:
        raise DataError(
            f"too few judged rows for a precision of {target:g}: expected at least "
            f"{MIN_JUDGED_ROWS} of a language pair; {hint}"
        )
    best, stage, lp = max(attempts, key=lambda attempt: attempt[0].low)
    raise DataError(
        f"no threshold reaches a precision of {target:g} with {100 * (1 - alpha):g} % confidence. "
        f"The best is {best.low:.3f}, for the {best.rows} judged rows with the highest "
        f"{stage.metric}{f' of {lp}' if lp else ''} ({100 * best.precision:.1f} % good): {hint}"
    )


STARTS = (0.1, 0.3)  # shares of the rows at which tests start
STEP = 0.02  # share of the rows from one tested threshold to the next
MAX_STORED_SCORES = 501

Share = Annotated[float, Rule(lambda value: 0 <= value <= 1, "a number from 0 to 1")]


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A threshold on oriented scores, and the judged rows at or above it.

    `low` is the lower bound of `precision` that was tested, `share` the share of all judged rows,
    `effective_rows` their number after the design effect.
    """

    score: float
    rows: Annotated[int, NON_NEGATIVE]
    effective_rows: Annotated[float, NON_NEGATIVE]
    share: Share
    precision: Share
    low: Share


def precision_bounds(
    right: FloatArray, rows: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return one-sided Clopper-Pearson bounds of shares, each wrong with probability `alpha`.

    >>> low, high = precision_bounds(np.array([59.0]), np.array([59.0]), 0.05)
    >>> low.round(3).tolist(), high.tolist()
    ([0.95], [1.0])
    """
    from scipy.special import betaincinv

    wrong = rows - right
    low = np.where(right > 0, betaincinv(np.maximum(right, 1e-9), wrong + 1, alpha), 0.0)
    high = np.where(wrong > 0, betaincinv(right + 1, np.maximum(wrong, 1e-9), 1 - alpha), 1.0)
    return low, high


def min_rows(target: float, alpha: float) -> int:
    """Return how many rows without a wrong one show that the target is reached.

    >>> min_rows(0.95, 0.05)
    59
    """
    return math.ceil(math.log(alpha) / math.log(target))


def intraclass_correlation(labels: BoolArray, clusters: Sequence[str]) -> float:
    """Estimate how alike labels of one cluster are, 0 to 1, by analysis of variance.

    >>> intraclass_correlation(np.array([True, True, False, False]), ["a", "a", "b", "b"])
    1.0
    """
    _, index, sizes = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    count = len(labels)
    groups = len(sizes)
    if groups < 2 or groups == count:
        return 0.0
    means = np.bincount(index, labels) / sizes
    between = float(sizes @ (means - labels.mean()) ** 2) / (groups - 1)
    within = float(((labels - means[index]) ** 2).sum()) / (count - groups)
    mean_size = (count - float(sizes @ sizes) / count) / (groups - 1)
    total = between + (mean_size - 1) * within
    return min(1.0, max(0.0, (between - within) / total)) if total > 0 else 0.0


def find_threshold(
    scores: FloatArray,
    labels: BoolArray,
    clusters: Sequence[str],
    target: float,
    alpha: float,
    *,
    total: int,
    sign: int = 1,
    above: float = -math.inf,
) -> tuple[Threshold | None, Threshold | None]:
    """Find the lowest score such that rows at or above it are right with the target precision.

    `scores` (n,), times `sign`, are higher for rows that are more probably right. Only thresholds
    for which this product is `above` a value are tried. `total` is the number of judged rows, also
    of those without a score. Also returns the threshold with the highest lower bound, which tells
    how far the target is if no threshold reaches it.
    """
    order = np.argsort(-sign * scores, kind="stable")
    scores = scores[order]
    labels = labels[order]
    count = len(scores)
    rows = np.arange(1, count + 1)
    effects = _design_effects(labels, [clusters[n] for n in order])
    right = np.cumsum(labels)
    level = alpha / len(STARTS)
    low, _ = precision_bounds(right / effects, rows / effects, level)
    ends = np.flatnonzero(np.append(np.diff(scores) != 0, True))  # the last row of each score
    ends = ends[sign * scores[ends] > above]
    tested: list[int] = []
    passed: list[int] = []
    for start in STARTS:
        first = max(min_rows(target, level), start * count)
        steps = np.arange(first, count + 1, max(1.0, STEP * count))
        places = np.searchsorted(rows[ends], steps)
        for row in ends[np.unique(places[places < len(ends)])].tolist():
            tested.append(row)
            if low[row] < target:
                break
            passed.append(row)

    def measure(row: int | None) -> Threshold | None:
        if row is None:
            return None
        return Threshold(
            score=float(scores[row]),
            rows=row + 1,
            effective_rows=round(float((row + 1) / effects[row]), 1),
            share=(row + 1) / total,
            precision=float(right[row] / (row + 1)),
            low=float(low[row]),
        )

    best = max(sorted(tested), key=lambda row: low[row], default=None)
    return measure(max(passed, default=None)), measure(best)


def _design_effects(labels: BoolArray, clusters: Sequence[str]) -> FloatArray:
    """Return, for the first 1, 2, ... n rows, by how much clusters shrink their number, (n,).

    effect = 1 + (sum of squared cluster sizes / rows - 1) correlation
    """
    sizes: Counter[str] = Counter()
    growth = np.empty(len(clusters))
    for n, cluster in enumerate(clusters):
        growth[n] = 2 * sizes[cluster] + 1  # of the sum of squared sizes
        sizes[cluster] += 1
    mean_sizes = np.cumsum(growth) / np.arange(1, len(clusters) + 1)
    return 1 + (mean_sizes - 1) * intraclass_correlation(labels, clusters)


def stored_quantiles(scores: FloatArray) -> tuple[float, ...]:
    """Return sorted scores, at most `MAX_STORED_SCORES` evenly spaced quantiles of them."""
    count = len(scores)
    places = np.linspace(0, count - 1, min(count, MAX_STORED_SCORES)).round().astype(int)
    return tuple(np.sort(scores)[places].tolist())


def measure_drift(calibration_scores: Sequence[float], scores: FloatArray) -> dict[str, float]:
    """Compare scores with those of a fit, or with quantiles of them, as Kolmogorov and Smirnov do.

    >>> measure_drift([0.1, 0.2, 0.3, 0.4], np.array([0.5, 0.6, 0.7]))["distance"]
    1.0
    """
    from scipy.stats import ks_2samp

    test = ks_2samp(calibration_scores, scores, method="asymp")
    return {"distance": float(test.statistic), "p_value": float(test.pvalue)}
