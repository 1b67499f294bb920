"""A route: which translations to publish, to post-edit or to translate again, with guarantees.

Translations with a finding of a check in `conditions` are decided by it. Others are decided by
their score: at or above one threshold they are published, at or below another translated again,
and post-edited in between. Both thresholds are fitted on judged rows for each language pair
(`calibration`). Rows that the first metric leaves undecided may go to a second, more expensive one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from tertium.checks.catalog import CHECKS, CHECKS_BY_ID
from tertium.core.arrays import BoolArray
from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import DataError, ModelError, UnknownNameError, UsageError
from tertium.core.result import Column, Result, Table
from tertium.core.schema import POSITIVE, Rule, read_dataclass, read_json_object
from tertium.decide.judged_rows import (
    JudgedRows,
    QualityCriteria,
    choose_criteria,
    read_judged_rows,
)
from tertium.decide.margin_calibration import (
    Drift,
    Share,
    Threshold,
    find_threshold,
    measure_drift,
    min_rows,
    precision_bounds,
    stored_quantiles,
)
from tertium.evaluation.checking import FAILED_OUTPUT, find_errors, finding_kinds
from tertium.evaluation.judged_inputs import Sources
from tertium.evaluation.rows import RowScores, score_rows
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

    def drift(self, scores: Sequence[float]) -> Drift:
        """Compare oriented scores with those of the judged rows."""
        return measure_drift(self.scores, self.rows, np.asarray(scores, dtype=np.float64))


@dataclass(frozen=True, kw_only=True)
class RouteStage:
    """One metric of a route, with its thresholds by language pair."""

    metric: str
    signatures: tuple[str, ...]
    higher_is_better: bool
    pairs: Mapping[str, PairThresholds]

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
    """A fitted route; save it as a JSON file with `save` and read it with `Route.load`."""

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
        if content.get("format") == "tertium-route-1":
            raise ModelError(f"{path} was fitted with an earlier version: fit the route again")
        return read_dataclass(cls, content, str(path))

    def save(self, path: PathLike) -> None:
        """Write the route as JSON, atomically."""
        write_text(path, json.dumps(self.records(), ensure_ascii=False, indent=1) + "\n")

    def records(self) -> dict[str, Any]:
        """Return plain values, as `load` reads them."""
        return {"format": self.format, **asdict(self)}

    def tables(self) -> list[Table]:
        """Return the thresholds of each metric by language pair."""
        return [self._stage_table(stage) for stage in self.stages]

    def _stage_table(self, stage: RouteStage) -> Table:
        sign = 1 if stage.higher_is_better else -1
        rows = []
        for lp, own in stage.pairs.items():
            thresholds = _shares(own.publish, sign) + _shares(own.retranslate, sign)
            rows.append((lp or "all rows", own.rows, 100 * own.good, *thresholds))
        columns = [
            Column("pair", itemgetter(0), group="judged"),
            Column("judged", itemgetter(1), 0, group="judged"),
            Column("good (%)", itemgetter(2), 1, group="judged"),
            *_threshold_columns("publish from", "good (%)", 3),
            *_threshold_columns("retranslate to", "bad (%)", 7),
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
                best = own.best_publish
                reached = (
                    f"the best lower bound is {100 * best.low:.1f} %" if best else "too few rows"
                )
                notes.append(f"{lp or 'all rows'}: nothing is published: {reached}")
        title = f"Route by {stage.metric}"
        return Table(columns, rows, title, [*notes, *stage.signatures])


def _shares(threshold: Threshold | None, sign: int) -> tuple[float, ...]:
    """Return a threshold and its shares in percent; NaN without one."""
    if threshold is None:
        return (math.nan,) * 4
    shares = threshold.share, threshold.precision, threshold.low
    return (sign * threshold.score, *(100 * share for share in shares))


def _threshold_columns(group: str, quality: str, first: int) -> list[Column]:
    """Return the columns of a threshold, whose values begin at place `first` of a row."""

    def score_text(row: Sequence[float], _: int) -> str:
        return "–" if math.isnan(row[first]) else f"{row[first]:.4g}"

    names = ("share (%)", quality, "at least (%)")
    return [
        Column(group, itemgetter(first), 0, text=score_text, group=group),
        *(
            Column(name, itemgetter(place), 1, group=group)
            for place, name in enumerate(names, start=first + 1)
        ),
    ]


def decide_by_conditions(
    findings: Sequence[Sequence[Any]], conditions: Mapping[str, Outcome]
) -> list[tuple[Outcome | None, str]]:
    """Return outcome and deciding check of each row, (None, "") if no check decides."""
    order = sorted(conditions, key=lambda name: conditions[name] != RETRANSLATE)
    firsts = [next(finding_kinds(spans, order), "") for spans in findings]
    return [(conditions[name] if name else None, name) for name in firsts]


def fit_route(
    human: Sources | JudgedRows,
    metric: str | Metric,
    *,
    escalate: str | Metric | None = None,
    target_precision: float = 0.95,
    bad_precision: float = 0.5,
    alpha: float = 0.05,
    good_score: float | None = None,
    bad_score: float | None = None,
    allow_major: bool = False,
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
    good_score, bad_score, allow_major
        What is good and bad (`QualityCriteria`); by default 80 and 50 for ESA and DA, -1 and -10
        for MQM, and a good translation has no major error.
    ignore
        Ids of checks that do not decide.
    """
    shares = {
        "target_precision": target_precision,
        "bad_precision": bad_precision,
        "alpha": alpha,
    }
    for name, value in shares.items():
        if not 0 < value < 1:
            raise UsageError(f"{name} is {value:g}: expected a number between 0 and 1")
    _check_ids(ignore)
    judged_rows = read_judged_rows(human)
    metrics = [load_metric(m) for m in (metric, escalate) if m is not None]
    own_alpha = alpha / len(metrics)
    _check_row_count(judged_rows, target_precision, own_alpha)
    criteria = choose_criteria(judged_rows, good_score, bad_score, allow_major)
    conditions = {k: v for k, v in DEFAULT_CONDITIONS.items() if k not in {*ignore}}
    decisions = decide_by_conditions(find_errors(judged_rows.rows), conditions)
    remaining = np.array([outcome is None for outcome, _ in decisions])
    fitter = _StageFitter(judged_rows, criteria, target_precision, bad_precision, own_alpha)
    stages: list[RouteStage] = []
    for spec in metrics:
        stage, remaining = fitter.fit(spec, remaining)
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


class _StageFitter:
    """Fits one metric after the other on the rows that the earlier ones leave undecided."""

    def __init__(
        self,
        judged_rows: JudgedRows,
        criteria: QualityCriteria,
        target: float,
        bad_target: float,
        alpha: float,
    ) -> None:
        self.judged_rows, self.alpha = judged_rows, alpha
        self.target, self.bad_target = target, bad_target
        self.good, self.bad = criteria.flag_good(judged_rows), criteria.flag_bad(judged_rows)
        self.pairs = np.array([row.lp for row in judged_rows.rows])

    def fit(self, metric: Metric, remaining: BoolArray) -> tuple[RouteStage, BoolArray]:
        """Return the stage of a metric, and the rows that it leaves undecided."""
        indices = np.flatnonzero(remaining)
        if not len(indices):
            raise DataError(f"{metric.spec}: no judged row is left to fit it")
        rows = [self.judged_rows.rows[n] for n in indices.tolist()]
        [scores] = score_rows(rows, [metric.spec])
        usable = scores.is_reliable
        oriented = np.full(len(remaining), np.nan)
        oriented[indices[usable]] = scores.oriented[usable]
        counts = {lp: int((self.pairs == lp).sum()) for lp in dict.fromkeys(self.pairs.tolist())}
        pairs = {
            lp: self._thresholds(oriented, self.pairs == lp)
            for lp, count in counts.items()
            if count >= MIN_JUDGED_ROWS and np.isfinite(oriented[self.pairs == lp]).any()
        }
        stage = RouteStage(
            metric=metric.spec,
            signatures=tuple(sorted({*scores.signatures.values()})),
            higher_is_better=metric.higher_is_better,
            pairs=pairs,
        )
        undecided = [
            bool(keep) and decide_by_score(pairs.get(lp), value) is None
            for keep, lp, value in zip(remaining, self.pairs.tolist(), oriented, strict=True)
        ]
        return stage, np.array(undecided, dtype=np.bool_)

    def _thresholds(self, oriented: np.ndarray, members: BoolArray) -> PairThresholds:
        usable = members & np.isfinite(oriented)
        scores = oriented[usable]
        clusters = [self.judged_rows.clusters[n] for n in np.flatnonzero(usable).tolist()]
        rows = int(members.sum())
        publish = find_threshold(scores, self.good[usable], clusters, self.target, self.alpha)
        above = -math.inf if publish.chosen is None else -publish.chosen.score
        discard = find_threshold(
            -scores, self.bad[usable], clusters, self.bad_target, self.alpha, above=above
        )
        return PairThresholds(
            rows=rows,
            good=float(self.good[members].mean()),
            publish=_of_all_rows(publish.chosen, rows),
            retranslate=_of_all_rows(discard.chosen, rows, sign=-1),
            best_publish=None if publish.chosen else _of_all_rows(publish.best, rows),
            scores=stored_quantiles(scores),
        )


def _of_all_rows(threshold: Threshold | None, rows: int, sign: int = 1) -> Threshold | None:
    """Return a threshold with its share of all judged rows, for scores times `sign`."""
    if threshold is None:
        return None
    return replace(threshold, score=sign * threshold.score, share=threshold.rows / rows)


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


def _check_row_count(judged_rows: JudgedRows, target: float, alpha: float) -> None:
    """Raise an error if no language pair has enough rows for thresholds of its own."""
    rows = max(Counter(row.lp for row in judged_rows.rows).values())
    needed = max(MIN_JUDGED_ROWS, min_rows(target, alpha))
    if rows >= needed:
        return
    low = float(precision_bounds(np.array([rows]), np.array([rows]), alpha)[0][0])
    raise DataError(
        f"{rows} judged rows are too few: expected at least {needed} of a language pair. Even if "
        f"all {rows} were published and good, a precision of only {low:.3f} could be promised"
    )


def _check_target_reached(stages: Sequence[RouteStage], target: float, alpha: float) -> None:
    """Raise an error with the best bound if no metric reaches the target in any pair."""
    thresholds = [(stage, lp, own) for stage in stages for lp, own in stage.pairs.items()]
    if any(own.publish for _, _, own in thresholds):
        return
    attempts = [(own.best_publish, stage, lp) for stage, lp, own in thresholds if own.best_publish]
    hint = "lower --target-precision, judge more rows, or use a metric with better agreement"
    if not attempts:
        raise DataError(f"no threshold reaches a precision of {target:g}: {hint}")
    best, stage, lp = max(attempts, key=lambda attempt: attempt[0].low)
    raise DataError(
        f"no threshold reaches a precision of {target:g} with {100 * (1 - alpha):g} % confidence. "
        f"The best is {best.low:.3f}, for the {best.rows} judged rows with the highest "
        f"{stage.metric}{f' of {lp}' if lp else ''} ({100 * best.precision:.1f} % good): {hint}"
    )
