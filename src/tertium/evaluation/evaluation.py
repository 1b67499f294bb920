"""The scores of systems under metrics: `Evaluation`, its records, columns and display names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.testset import TestSet
from tertium.display import Displayable
from tertium.errors import TertiumError, UnknownNameError
from tertium.evaluation.resampling import Interval
from tertium.frames import make_frame
from tertium.metrics.base.loading import load_metric, replace_fields
from tertium.scores import Scores

if TYPE_CHECKING:
    from pandas import DataFrame

Value = TypeVar("Value")
LANGUAGE_FIELDS = ("tokenize", "lp", "language")  # `metric_choice.set_languages` sets them


class SystemDict(dict[str, Value]):
    """Values by system name; an unknown name raises an error with a suggestion."""

    def __missing__(self, name: str) -> Value:
        raise UnknownNameError("system", name, self)


class MetricDict(dict[str, Value]):
    """Values by metric spec, found under any spelling of the spec.

    >>> values = MetricDict({"chrf:word_order=2": 1})
    >>> values["chrf++"], "chrf++" in values, values.get("bleu")
    (1, True, None)
    """

    def __missing__(self, name: str) -> Value:
        spec = self._find_spec(name)
        if not super().__contains__(spec):
            raise UnknownNameError("metric", name, self)
        return self[spec]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or not isinstance(name, str):
            return super().__contains__(name)
        return super().__contains__(self._find_spec(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self._find_spec(name), default)

    def _find_spec(self, name: str) -> str:
        """Return the key of a metric; languages of the texts may have set some of its fields."""
        spec = name if super().__contains__(name) else _canonical_spec(name)
        if super().__contains__(spec) or _has_language_field(name):
            return spec
        same = [key for key in self if _has_language_field(key) and _without_languages(key) == spec]
        return same[0] if len(same) == 1 else spec


def _canonical_spec(name: str) -> str:
    """Return the canonical spec of a metric, or the name itself if there is no such metric."""
    try:
        return load_metric(name).spec
    except TertiumError:
        return name


def _has_language_field(spec: str) -> bool:
    return any(f"{name}=" in spec for name in LANGUAGE_FIELDS)


def _without_languages(spec: str) -> str:
    """Return the spec of a metric with the defaults of the fields that languages set."""
    try:
        metric = load_metric(spec)
    except TertiumError:
        return spec
    defaults = {name: getattr(type(metric), name, None) for name in LANGUAGE_FIELDS}
    known_defaults = {name: value for name, value in defaults.items() if value is not None}
    return replace_fields(metric, known_defaults).spec


@dataclass(frozen=True)
class Evaluation(Displayable):
    """The scores of systems under metrics, as returned by `tertium.score`.

    Attributes
    ----------
    testset
        The scored test set.
    systems, metrics
        Names of the systems and specs of the metrics.
    scores
        `scores[system][metric]`, also `evaluation[system][metric]`, under any spelling of a spec.
    intervals
        Bootstrap confidence intervals in the same layout; empty if they were not computed.

    >>> from tertium import score
    >>> evaluation = score(["hello world"], "chrf", references=["hello there"])
    >>> round(evaluation["system"]["chrf"].system, 1)
    31.2
    """

    testset: TestSet
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Scores]] = field(repr=False)
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for part in ("scores", "intervals"):
            by_system = getattr(self, part).items()
            object.__setattr__(self, part, SystemDict({s: MetricDict(v) for s, v in by_system}))

    def __getitem__(self, system: str) -> Mapping[str, Scores]:
        """Return the scores of a system by metric."""
        return self.scores[system]

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems)

    @cached_property
    def names(self) -> dict[str, str]:
        """Display names of the metrics by spec."""
        first = self.scores[self.systems[0]]
        return distinct_labels({metric: first[metric].name or metric for metric in self.metrics})

    def metric_scores(self, metric: str) -> list[Scores]:
        """Return the scores of all systems under one metric, in the order of `systems`."""
        return [self.scores[system][metric] for system in self.systems]

    def records(self, *, segments: bool = True) -> list[dict[str, Any]]:
        """Return one dictionary for each system and metric, in the layout of sacrebleu's JSON."""
        return [
            self._record(system, metric, segments)
            for system in self.systems
            for metric in self.metrics
        ]

    def to_frame(self) -> DataFrame:
        """Return a pandas frame of `segment_columns`: a row per system, metric and segment."""
        return make_frame(self.segment_columns())

    def segment_columns(self) -> dict[str, Sequence[Any]]:
        """Return columns with one value for each system, metric and segment.

        The columns are `system`, `metric`, `segment` (its name in the test set, or its number from
        1), `document` if known, `score` and `higher_is_better`. `tertium meta --scores` reads them
        from a Parquet or TSV file.
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
        if scores.usage:
            record["usage"] = dict(scores.usage)
        if scores.warnings:
            record["warnings"] = dict(scores.warnings)
        return record


def segment_fields(testset: TestSet, values: FloatArray) -> dict[str, Any]:
    """Return segment scores as record fields, with `items` unless these are 1, 2, ..."""
    items = as_numbers(testset.items)
    item_field = {} if items == [*range(1, len(items) + 1)] else {"items": items}
    return {**item_field, "segments": values.tolist()}


def as_numbers(items: Sequence[str]) -> list[str | int]:
    """Convert items to numbers if all of them are numbers, so that they sort numerically.

    >>> as_numbers(["9", "10"]), as_numbers(["9", "010"])
    ([9, 10], ['9', '010'])
    """
    if all(item.isdecimal() and item == str(int(item)) for item in items):
        return [int(item) for item in items]
    return list(items)


def distinct_labels(names: Mapping[str, str]) -> dict[str, str]:
    """Return display names by spec; metrics that share a name are shown by their specs.

    >>> distinct_labels({"chrf": "chrF", "bleu": "BLEU", "bleu:lowercase=true": "BLEU"})
    {'chrf': 'chrF', 'bleu': 'bleu', 'bleu:lowercase=true': 'bleu:lowercase=true'}
    """
    labels = list(names.values())
    return {spec: name if labels.count(name) == 1 else spec for spec, name in names.items()}
