"""The scores of systems under metrics: `Evaluation`, its records, columns and cautions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import TertiumError, UnknownNameError
from tertium.core.result import (
    Column,
    Emphasis,
    Result,
    Section,
    Table,
    bound_columns,
    format_number,
)
from tertium.core.scores import Scores, format_warning_counts
from tertium.data.testset import TestSet
from tertium.evaluation.metric_choice import describe_tokenizers
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.text_warnings import UNSEGMENTED

if TYPE_CHECKING:
    from tertium.core.charts import IntervalChart
    from tertium.evaluation.paired_tests import Interval


Value = TypeVar("Value")
NOTE = "note:"
MAX_UNSEGMENTED_SHARE = 0.1  # of references without blanks; with more, a metric is unfit
MIN_SEGMENTS = 30  # with fewer, resampling and differences do not generalize
MAX_LISTED = 10  # segments without a score
MAX_TITLE_SYSTEMS = 4


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
        if spec == name:
            raise UnknownNameError("metric", name, self)
        return self[spec]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(self._find_spec(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self._find_spec(name), default)

    def _find_spec(self, name: Any) -> Any:
        """Return the key of a metric; the only one with these settings may have more of them."""
        if super().__contains__(name):
            return name
        try:
            spec = load_metric(name).spec
        except TertiumError:
            return name
        if super().__contains__(spec):
            return spec
        settings = _split_spec(spec)
        keys = [key for key in self if settings <= _split_spec(key)]
        return keys[0] if len(keys) == 1 else spec


def _split_spec(spec: str) -> set[str]:
    """Return the name (with a colon) and the settings of a metric."""
    name, _, settings = spec.partition(":")
    return {f"{name}:", *settings.split(",")} - {""}


@dataclass(frozen=True)
class Evaluation(Result):
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

    @property
    def baseline(self) -> str:
        """The system that others are compared with: the first."""
        return self.systems[0]

    def difference(self, metric: str, system: str, other: str = "") -> float:
        """Return how much better (positive) a system is than another, by default the baseline."""
        own = self.scores[system][metric]
        reference = self.scores[other or self.baseline][metric]
        return own.sign * (own.system - reference.system)

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

    def tables(self) -> list[Table]:
        """Return systems x metrics."""
        return [self.system_table()]

    @property
    def page_title(self) -> str:
        """The names of the test set and of the systems."""
        names = ", ".join(self.systems[:MAX_TITLE_SYSTEMS])
        if len(self.systems) > MAX_TITLE_SYSTEMS:
            names += f" and {len(self.systems) - MAX_TITLE_SYSTEMS} more"
        return f"{self.testset.name}: {names}" if self.testset.name else names

    def sections(self) -> list[Section]:
        """Return the scores of systems and documents, and the ranking of systems."""
        contents: list[Any] = [*self.tables()]
        if self.testset.documents:
            documents = Section("Document scores", [self.document_table()], is_collapsed=True)
            contents.append(documents)
        ranking: list[Any] = [self._chart_note(), *self.charts()]
        return [Section("Overview", contents), Section("Ranking of systems", ranking)]

    def _chart_note(self) -> str:
        lines = " Lines are 95 % bootstrap intervals." if self.intervals else ""
        return f"Best first.{lines}"

    def charts(self) -> list[IntervalChart]:
        """Return the ranking of systems under each metric."""
        return [self._ranking_chart(metric) for metric in self.metrics]

    def _ranking_chart(self, metric: str) -> IntervalChart:
        scores = self.metric_scores(metric)
        bounds = []
        for system in self.systems:
            interval = self.intervals.get(system, {}).get(metric)
            bounds.append((interval.low, interval.high) if interval else (np.nan, np.nan))
        from tertium.core.charts import IntervalChart

        return IntervalChart(
            title=f"Systems by {self.names[metric]}",
            caption=self.names[metric],
            names=self.systems,
            values=np.array([own.system for own in scores]),
            intervals=np.array(bounds),
            clusters=[0] * len(scores),
            higher_is_better=scores[0].higher_is_better,
            decimals=scores[0].decimals,
        )

    def system_table(self) -> Table:
        """Return systems x metrics with intervals if computed; the best system is marked."""
        columns = [Column("system", str)]
        for metric in self.metrics:
            columns += self.score_columns(metric)
        notes = [*self.signatures, *self.warning_lines()]
        return Table(columns, self.systems, notes=notes)

    def score_columns(self, metric: str) -> list[Column]:
        """Return the column of a metric for rows of systems, and the bounds of its intervals."""

        def text(system: str, decimals: int) -> str:
            value = self.scores[system][metric].system
            rounded = format_number(value, decimals)
            if not self.intervals or value != value:
                return rounded
            bounds = self.intervals[system][metric]
            half_width = format_number(bounds.half_width, decimals)
            return f"{rounded} (μ = {format_number(bounds.mean, decimals)} ± {half_width})"

        def mark(system: str) -> Emphasis:
            return "best" if self.is_best(system, metric) else ""

        def bounds(system: str) -> tuple[float, float]:
            interval = self.intervals[system][metric]
            return interval.low, interval.high

        def value(system: str) -> float:
            return self.scores[system][metric].system

        column = self._score_column(metric, value)
        column = replace(column, mark=mark, text=text, group=column.name)
        return [column, *(bound_columns(column.name, bounds) if self.intervals else [])]

    def _score_column(self, metric: str, get: Callable[[Any], float]) -> Column:
        first = self.metric_scores(metric)[0]
        arrow = "↑" if first.higher_is_better else "↓"
        return Column(f"{self.names[metric]} {arrow}", get, first.decimals, adjustable=True)

    def is_best(self, system: str, metric: str) -> bool:
        """Return whether no other system has a better score; False for a single system."""
        leads = [self.difference(metric, system, s) for s in self.systems if s != system]
        has_score = not np.isnan(self.scores[system][metric].system)
        return bool(leads) and has_score and not any(lead < 0 for lead in leads)

    def document_table(self) -> Table:
        """Return one row per system and document with a column per metric."""
        documents = self.testset.documents
        columns = [Column("system", itemgetter(0)), Column("document", itemgetter(1))]
        return self._part_table(
            columns, dict.fromkeys(documents), lambda scores: scores.documents(documents)
        )

    def segment_table(self, *, include_texts: bool = False) -> Table:
        """Return one row per system and segment with a column per metric, and with texts."""
        items = as_numbers(self.testset.items)
        columns = [
            Column("system", itemgetter(0)),
            Column("segment", lambda row: items[row[1]], 0, text=lambda row, _: str(items[row[1]])),
            *(self._text_columns() if include_texts else []),
        ]
        return self._part_table(columns, range(len(items)), lambda scores: scores.segments)

    def _part_table(
        self, columns: Sequence[Column], keys: Iterable[Any], get: Callable[[Scores], Any]
    ) -> Table:
        """Return one row per system and key; `get` returns the scores of all keys."""
        metric_columns = []
        for metric in self.metrics:
            values = {system: get(self.scores[system][metric]) for system in self.systems}
            metric_columns.append(self._score_column(metric, partial(_look_up, values)))
        return Table([*columns, *metric_columns], [*product(self.systems, keys)])

    def _text_columns(self) -> list[Column]:
        """Return columns of the kinds of text that the test set has."""
        testset = self.testset
        columns = []
        if testset.sources:
            columns.append(Column("source", lambda row: testset.sources[row[1]]))
        columns.append(Column("translation", lambda row: testset.systems[row[0]][row[1]]))
        for place in range(max(map(len, testset.references or ()), default=0)):
            name = f"reference {place + 1}" if place else "reference"
            columns.append(Column(name, partial(_reference, testset, place)))
        return columns

    def file_table(self, suffix: str = "") -> Table:
        """Return one row for each system, metric and segment; a workbook has texts instead.

        The columns are `system`, `metric`, `segment` (its name in the test set, or its number from
        1), `document` if known, `score` and `higher_is_better`. `tertium meta --scores` reads them
        from a Parquet or TSV file.
        """
        if suffix == ".xlsx":
            return self.segment_table(include_texts=True)
        testset = self.testset
        documents: Any = testset.documents or [None] * len(testset)
        rows = [
            {
                "system": system,
                "metric": metric,
                "segment": item,
                "document": document,
                "score": score,
                "higher_is_better": self.scores[system][metric].higher_is_better,
            }
            for system, metric in product(self.systems, self.metrics)
            for item, document, score in zip(
                as_numbers(testset.items),
                documents,
                self.scores[system][metric].segments.tolist(),
                strict=True,
            )
        ]
        names = [name for name in rows[0] if name != "document" or testset.documents]
        return Table([*map(Column, names)], rows)

    @property
    def signatures(self) -> list[str]:
        """The signatures of the metrics."""
        first = self.scores[self.systems[0]]
        return [first[metric].signature for metric in self.metrics]

    def warning_lines(self) -> list[str]:
        """Return lines on tokenizers, warnings with counts, and what is missing or too small."""
        counts: dict[str, dict[str, int]] = {}
        for system in self.systems:
            for metric in self.metrics:
                for kind, count in self.scores[system][metric].warnings.items():
                    by_system = counts.setdefault(kind, {})
                    by_system[system] = max(count, by_system.get(system, 0))  # metrics may differ
        return [
            *tokenizer_notes(self.testset, self.metrics),
            *format_warning_counts(counts),
            *self.missing_score_lines(),
            *self._sample_warnings(),
        ]

    def _sample_warnings(self) -> list[str]:
        """Warn if there are too few segments for intervals."""
        return self._small_sample("intervals", "intervals have no width") if self.intervals else []

    def _small_sample(self, statistics: str, effect: str) -> list[str]:
        count = len(self.testset)
        if count >= MIN_SEGMENTS:
            return []
        if count == 1:
            return [f"warning: one segment: nothing to resample; {effect}"]
        limit = f"unreliable below {MIN_SEGMENTS} segments"
        return [f"warning: {count} segments: {statistics} are {limit}"]

    def missing_score_lines(self) -> list[str]:
        """Return a line for each system and metric without a score for some segments."""
        lines = []
        for system in self.systems:
            for metric in self.metrics:
                is_missing = np.isnan(self.scores[system][metric].segments)
                items = [self.testset.items[n] for n in np.flatnonzero(is_missing)]
                if items and len(items) < len(is_missing):
                    more = f" and {len(items) - MAX_LISTED} more" if len(items) > MAX_LISTED else ""
                    names = ", ".join(items[:MAX_LISTED])
                    lines.append(f"no score under {metric} for {system}: segment {names}{more}")
        return lines

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


def _look_up(values: Mapping[str, Any], row: tuple[str, Any]) -> float:
    """Return the score of a system on a segment or document."""
    system, key = row
    return float(values[system][key])


def _reference(testset: TestSet, place: int, row: tuple[str, int]) -> str:
    """Return a reference of a segment; empty if it has fewer."""
    references = testset.references[row[1]]
    return references[place] if place < len(references) else ""


def find_unfit_metrics(evaluation: Evaluation) -> dict[str, str]:
    """Return metrics that cannot split the texts into words, with a sentence about each."""
    unfit: dict[str, str] = {}
    for metric in evaluation.metrics:
        for scores in evaluation.metric_scores(metric):
            if scores.warnings.get(UNSEGMENTED, 0) > MAX_UNSEGMENTED_SHARE * len(scores):
                unfit[metric] = (
                    f"{evaluation.names[metric]} is unfit for these texts: it splits words at "
                    "blanks, and the language has none; choose a tokenizer, or chrf"
                )
    return unfit


def is_caution(line: str) -> bool:
    """Tell whether a warning is about all scores of a metric, such as how texts are split."""
    return UNSEGMENTED in line or line.startswith(NOTE)


def tokenizer_notes(testset: TestSet, specs: Sequence[str]) -> list[str]:
    """Return a line for each metric that splits texts in a language with its own tokenizer."""
    return [f"{NOTE} {sentence}" for sentence in describe_tokenizers(testset, specs)]


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


MIN_COPIES = 10  # segments
MIN_SHARE = 0.25  # of the segments
MIN_SHARE_ALONE = 0.5  # without another system to compare with
MIN_RATIO = 4  # to the median of the other systems
NEARLY_ALL = 0.9  # whatever other systems have


def find_reference_copies(testset: TestSet) -> dict[str, str]:
    """Return systems that equal the reference in far too many segments, with a sentence on each.

    Texts are compared without white space around them, with any of the references. A system is
    named if at least 10 segments are equal, and these are at least 25 % of the segments and four
    times the median of the other systems (without others, 50 %). 90 % are always enough.

    >>> texts = [f"sentence {n}" for n in range(40)]
    >>> systems = {"old": [f"a {text}" for text in texts], "new": texts}
    >>> [*find_reference_copies(TestSet.from_lists(systems, references=texts))]
    ['new']
    """
    counts = {}
    for system in testset.systems:
        pairs = [(s.hypothesis.strip(), s.references) for s in testset.segments(system)]
        counts[system] = sum(bool(text) and text in map(str.strip, r) for text, r in pairs)
    sentences: dict[str, str] = {}
    size = len(testset)
    for system, count in counts.items():
        other_shares = [counts[other] / size for other in counts if other != system]
        least = MIN_SHARE_ALONE
        if other_shares:
            least = min(NEARLY_ALL, max(MIN_SHARE, MIN_RATIO * median(other_shares)))
        if count >= MIN_COPIES and count >= least * size:
            sentences[system] = (
                f"{count:,} of {size:,} translations of {system} equal the reference: rule out a "
                "wrong file and training on the test set before using its scores"
            )
    return sentences
