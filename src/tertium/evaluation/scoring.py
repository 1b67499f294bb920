"""Score a test set: every system under every metric, each distinct text looked at once.

The segments of all systems go to a metric in one call, so that work on references, sources and
repeated outputs is shared; the rows of statistics are then dealt back to their systems.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.testset import TestSet, check_testset
from tertium.display import Displayed
from tertium.errors import DataError, NeedsError, TertiumError, UnknownNameError
from tertium.evaluation.resampling import Interval, bootstrap, interval
from tertium.extras import explain_missing, install_command, is_installed
from tertium.frames import make_frame
from tertium.metrics.base.loading import load_metric, load_metrics
from tertium.metrics.base.metric import Metric, foresee
from tertium.models.checkpoint import WEIGHTS_WANTED, are_installed
from tertium.scores import Scores
from tertium.segment import Segment
from tertium.text.language_identification import seem_english

if TYPE_CHECKING:
    from pandas import DataFrame


logger = logging.getLogger(__name__)

Value = TypeVar("Value")
FAN = 8  # into how many pieces segments are divided to find those that a warning is about


class BySystem(dict[str, Value]):
    """Values by the name of a system; an unknown one is answered with what was meant."""

    def __missing__(self, name: str) -> Value:
        raise UnknownNameError("system", name, self)


class ByMetric(dict[str, Value]):
    """Values by the spec of a metric, found under every spelling of it.

    >>> found = ByMetric({"chrf:word_order=2": 1})
    >>> found["chrf++"], "chrf++" in found, found.get("bleu")
    (1, True, None)
    """

    def __missing__(self, name: str) -> Value:
        spec = _usual_spelling(name)
        if not super().__contains__(spec):
            raise UnknownNameError("metric", name, self)
        return self[spec]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or not isinstance(name, str):
            return super().__contains__(name)
        return super().__contains__(_usual_spelling(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name if super().__contains__(name) else _usual_spelling(name), default)


def _usual_spelling(name: str) -> str:
    """The spec that a metric of this name prints; the name itself where there is none."""
    try:
        return load_metric(name).spec
    except TertiumError:
        return name


@dataclass(frozen=True)
class Evaluation(Displayed):
    """What some metrics say of some systems.

    `scores[system][metric]` holds the scores, metrics by their specs, also spelt another way;
    `intervals` likewise holds bootstrap intervals where they were asked for.
    """

    testset: TestSet
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Scores]] = field(repr=False)
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for part in ("scores", "intervals"):
            by_system = getattr(self, part).items()
            object.__setattr__(self, part, BySystem({s: ByMetric(v) for s, v in by_system}))

    @cached_property
    def names(self) -> dict[str, str]:
        """What tables call each metric, by its spec."""
        first = self.scores[self.systems[0]]
        return distinct_labels({metric: first[metric].name or metric for metric in self.metrics})

    def of_metric(self, metric: str) -> list[Scores]:
        """The scores of all systems under one metric, in the order of `systems`."""
        return [self.scores[system][metric] for system in self.systems]

    def records(self, *, segments: bool = True) -> list[dict[str, Any]]:
        """One plain dictionary for each system and metric, shaped like sacrebleu's JSON."""
        return [
            self._record(system, metric, segments)
            for system in self.systems
            for metric in self.metrics
        ]

    def to_frame(self) -> DataFrame:
        """A pandas frame with a row for each system, metric and segment, and its score.

        Its columns are those of `segment_columns`.
        """
        return make_frame(self.segment_columns())

    def segment_columns(self) -> dict[str, Sequence[Any]]:
        """Named columns with a value for each system, metric and segment.

        They are `system`, `metric`, `segment` (as the test set's file calls it, else its number
        from 1), `document` where there are any, `score` and `higher_is_better`: what `tertium meta
        --scores` reads from a Parquet or TSV file.
        """
        count = len(self.testset)
        pairs = [(system, metric) for system in self.systems for metric in self.metrics]
        documents = {"document": list(self.testset.documents) * len(pairs)}
        return {
            "system": [system for system, _ in pairs for _ in range(count)],
            "metric": [metric for _, metric in pairs for _ in range(count)],
            "segment": as_numbers(self.testset.items) * len(pairs),
            **(documents if self.testset.documents else {}),
            "score": np.concatenate([self.scores[s][m].segments for s, m in pairs]).tolist(),
            "higher_is_better": [
                self.scores[s][m].higher_is_better for s, m in pairs for _ in range(count)
            ],
        }

    def _record(self, system: str, metric: str, segments: bool) -> dict[str, Any]:
        scores = self.scores[system][metric]
        record: dict[str, Any] = {
            "system": system,
            "name": scores.name,
            "spec": metric,
            "score": scores.system,
            "signature": scores.signature,
            "verbose_score": scores.verbose,
            "higher_is_better": scores.higher_is_better,
        }
        if system in self.intervals:
            bounds = self.intervals[system][metric]
            record["confidence_mean"] = bounds.mean
            record["confidence_var"] = bounds.half_width
            record["confidence_interval"] = [bounds.low, bounds.high]
        if self.testset.documents:
            record["documents"] = scores.documents(self.testset.documents)
        if segments:
            record |= segment_fields(self.testset, scores.segments)
        if scores.warnings:
            record["warnings"] = dict(scores.warnings)
        return record


def segment_fields(testset: TestSet, values: FloatArray) -> dict[str, Any]:
    """Scores of segments in a record, with `items` where these are not called 1, 2, ..."""
    items = as_numbers(testset.items)
    named = {} if items == [*range(1, len(items) + 1)] else {"items": items}
    return {**named, "segments": values.tolist()}


def as_numbers(items: Sequence[str]) -> list[str | int]:
    """Items as numbers where all are such, which programs sort as one expects.

    >>> as_numbers(["9", "10"]), as_numbers(["9", "010"])
    ([9, 10], ['9', '010'])
    """
    if all(item.isdecimal() and item == str(int(item)) for item in items):
        return [int(item) for item in items]
    return list(items)


def distinct_labels(names: Mapping[str, str]) -> dict[str, str]:
    """Names by spec; two settings of one metric keep their specs.

    >>> distinct_labels({"chrf": "chrF", "bleu": "BLEU", "bleu:lowercase=true": "BLEU"})
    {'chrf': 'chrF', 'bleu': 'bleu', 'bleu:lowercase=true': 'bleu:lowercase=true'}
    """
    shown = list(names.values())
    return {spec: name if shown.count(name) == 1 else spec for spec, name in names.items()}


def score(
    testset: TestSet,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    confidence: int = 0,
    seed: int = 12345,
) -> Evaluation:
    """Score every system of a test set under every metric.

    `metrics` are specs ("chrf:word_order=2") or metrics, the best that serves where none is given;
    `confidence` is the number of bootstrap
    resamples for 95 % intervals, 0 for none.

    >>> small = TestSet(systems={"ours": ["hello world"]}, references=[["hello world"]])
    >>> score(small, ["chrf"]).scores["ours"]["chrf"].system
    100.0
    """
    check_testset(testset)
    loaded = load_metrics(best_metric(testset) if metrics is None else metrics)
    with foresee(loaded, testset.segments(next(iter(testset.systems)))):
        by_metric = {metric.spec: score_systems(testset, metric) for metric in loaded}
    systems = tuple(testset.systems)
    scores = {
        system: {spec: by_metric[spec][n] for spec in by_metric} for n, system in enumerate(systems)
    }
    evaluation = Evaluation(testset, systems, tuple(by_metric), scores)
    return with_intervals(evaluation, confidence, seed) if confidence else evaluation


def score_systems(testset: TestSet, metric: Metric) -> list[Scores]:
    """The scores of each system under one metric, in the order of the test set."""
    parts = [testset.segments(system) for system in testset.systems]
    for part in parts:
        metric.check(part)
    if metric.reads_corpus:
        return [metric.score(part) for part in parts]
    together: list[Segment] = [segment for part in parts for segment in part]
    size = len(testset)
    with explain_missing(metric.name):
        rows = metric.distinct_statistics(together)  # (systems * segments, k)
        return [metric.wrap(part, rows[n * size : (n + 1) * size]) for n, part in enumerate(parts)]


def serves(segments: Sequence[Segment], metric: Metric) -> list[bool]:
    """Which translations have what a metric reads: the others have no score, and are counted.

    Of a metric that reads whatever there is and refuses a mix, those that have all that any has:
    human translations among the systems are often the reference themselves, and have no other.
    """
    parts = [(bool(s.references), s.source is not None) for s in segments]
    needs = ("references" in metric.needs, "source" in metric.needs)
    mask = [all(h or not n for h, n in zip(has, needs, strict=True)) for has in parts]
    try:
        metric.check([s for s, will_do in zip(segments, mask, strict=True) if will_do])
    except NeedsError:
        whole = tuple(map(any, zip(*parts, strict=True)))
        narrow = [has == whole for has in parts]
        return narrow if any(narrow) else mask
    except DataError:  # there are none
        return mask
    return mask


def served_by_all(segments: Sequence[Segment], metrics: Sequence[Metric]) -> list[bool]:
    """Which translations have what every metric reads."""
    masks = [serves(segments, metric) for metric in metrics]
    return [all(mask) for mask in zip(*masks, strict=True)] if masks else [True] * len(segments)


def locate_warnings(metric: Metric, segments: Sequence[Segment]) -> list[tuple[str, ...]]:
    """The kinds of warning of each segment; most have none.

    Metrics count warnings over many segments. Rows without any are told at once; the others are
    found by dividing them again and again.
    """
    counted = metric.warnings(segments)
    if not counted or len(segments) == 1:
        return [tuple(counted)] * len(segments)
    size = -(-len(segments) // FAN)
    pieces = [segments[start : start + size] for start in range(0, len(segments), size)]
    return [kinds for piece in pieces for kinds in locate_warnings(metric, piece)]


def with_intervals(evaluation: Evaluation, resamples: int, seed: int = 12345) -> Evaluation:
    """The same evaluation with 95 % bootstrap intervals, all from the same samples."""
    pairs = [(s, m) for s in evaluation.systems for m in evaluation.metrics]
    samples = bootstrap([evaluation.scores[s][m] for s, m in pairs], resamples=resamples, seed=seed)
    bounds: dict[str, dict[str, Interval]] = {system: {} for system in evaluation.systems}
    for (system, metric), row in zip(pairs, samples, strict=True):
        bounds[system][metric] = interval(row)
    return replace(evaluation, intervals=bounds)


COMPANIONS = ("bleu", "chrf")  # what comparisons and reports show beside the best metric


def best_metric(testset: TestSet) -> str:
    """The metric that agrees best with people on such a test set, of those that can run here."""
    first = [texts[0] for texts in testset.references if texts]
    return best_metric_for(first, sources=bool(testset.sources))


def best_metric_for(references: Sequence[str], *, sources: bool) -> str:
    """The same by the first references of the segments, and by whether there are sources."""
    if not references and not sources:
        return "chrf"  # whose refusal says what is missing
    runs = is_installed("torch", "tokenizers")
    if runs and are_installed():
        return "tertium-small" if references and seem_english(references) else "tertium-multi"
    if not references:
        return "sss" if runs else "tertium-multi"  # whose refusal says what to install
    logger.warning(
        "no metric is named, so chrf is used: what agrees better with people needs %s",
        WEIGHTS_WANTED if runs else f"torch: {install_command('neural')}",
    )
    return "chrf"


def usual_metrics(testset: TestSet) -> list[str]:
    """The best metric beside those that readers of a comparison know."""
    companions = COMPANIONS if testset.references else ()
    return list(dict.fromkeys([*companions, best_metric(testset)]))
