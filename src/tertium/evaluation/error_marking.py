"""Error spans in all translations of a test set, and copies of localization files with them."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain, product
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tertium.core.errors import UsageError, short_repr
from tertium.core.result import (
    Column,
    MarkedLine,
    Result,
    Section,
    Table,
    mark_texts,
)
from tertium.core.segment import Segment
from tertium.core.spans import Span, UnlocatedError, score_spans
from tertium.data.records import record_from_segment
from tertium.evaluation.system_scores import Evaluation, as_numbers
from tertium.files.annotations import Annotation
from tertium.files.projects import Project
from tertium.files.write_back import annotate_files
from tertium.metrics.base.capabilities import can_mark_errors, span_note
from tertium.metrics.base.explanation import EMPTY_TRANSLATION
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import flag_empty

if TYPE_CHECKING:
    from tertium.evaluation.checking import CheckReport

logger = logging.getLogger(__name__)

# the most severe first; the order in which translations are shown ignores categories
WEIGHTS = {"critical": 10.0, "major": 5.0, "minor": 1.0, "bad": 1.0, "neutral": 0.0}
MAX_LISTED = 50  # translations of a metric on a page
ERROR_COLUMNS = tuple("system segment side start end severity category chance text".split())


@dataclass(frozen=True, kw_only=True)
class MarkedTranslation:
    """One translation with its score and marked errors; `missing` are errors without a position."""

    system: str
    item: str | int
    segment: Segment
    score: float
    spans: tuple[Span, ...]
    missing: tuple[UnlocatedError, ...] = ()

    @property
    def errors(self) -> tuple[Span | UnlocatedError, ...]:
        """All errors, with a position or without."""
        return (*self.spans, *self.missing)

    @property
    def severity(self) -> str:
        """The severity of the most severe error."""
        return min((error.severity for error in self.errors), key=[*WEIGHTS].index)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkedTranslations:
    """The error spans of one metric in every translation, system by system."""

    metric: Metric
    translations: tuple[MarkedTranslation, ...]

    def counts(self) -> dict[str, int]:
        """Count the errors of each severity, the most severe first."""
        errors = chain(*(entry.errors for entry in self.translations))
        counts: Counter[str] = Counter(error.severity for error in errors)
        return {name: counts[name] for name in WEIGHTS if counts[name]}

    def worst(self, count: int) -> list[MarkedTranslation]:
        """Return empty translations, then those with the largest error weight and worst score."""
        marked = [entry for entry in self.translations if entry.errors]
        sign = 1 if self.metric.higher_is_better else -1

        def badness(entry: MarkedTranslation) -> tuple[bool, float, float]:
            score = sign * entry.score if isfinite(entry.score) else inf
            return not entry.missing, score_spans(entry.errors, weights=WEIGHTS), score

        return sorted(marked, key=badness)[:count]

    def section(self) -> Section:
        """Return the number of errors, and the worst translations with marked errors."""
        worst = self.worst(MAX_LISTED)
        counts = [f"{count:,} {severity}" for severity, count in self.counts().items()]
        total = len(self.translations)
        unit = "translation" if total == 1 else "translations"
        summary = f"{', '.join(counts) or 'no errors marked'} in {total:,} {unit}."
        if any(span.chance is not None for entry in worst for span in entry.spans):
            summary = f"suspected: {summary}"
        columns = [
            Column("segment", "item"),
            Column("system"),
            Column("score", decimals=self.metric.decimals),
            Column("severity"),
            Column("texts", _mark),
        ]
        label = self.metric.label
        title = f"{label}: the worst {len(worst)} translations"
        table = Table(columns, worst, title, filters=["system", "severity"])
        notes = filter(None, [span_note(self.metric)])
        return Section(label, [summary, *notes, *([table] if worst else [])])


class MarkedErrors(Result, list[MarkedTranslations]):
    """The error spans of several metrics."""

    @classmethod
    def file_kind(cls, suffix: str) -> str:
        """Return what a file holds: always error spans."""
        return "spans"

    def tables(self) -> list[Table]:
        """Return no tables: pages show the errors, and files list them."""
        return []

    def sections(self) -> list[Section]:
        """Return the worst translations of each metric with marked errors."""
        return [Section("Error spans", [entry.section() for entry in self])]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row for each error; an unknown probability is blank."""
        rows = []
        for own in self:
            for entry in own.translations:
                texts = {"hypothesis": entry.segment.hypothesis, "source": entry.segment.source}
                about = {"metric": own.metric.spec, "system": entry.system, "segment": entry.item}
                for span in entry.spans:
                    rows.append(about | asdict(span) | {"text": span.of(texts[span.side] or "")})
        return Table([*map(Column, ("metric", *ERROR_COLUMNS))], rows)

    def records(self) -> list[dict[str, Any]]:
        """Return one record for each translation, in a layout that readers of judgments accept."""
        return [
            {
                "metric": own.metric.spec,
                "system": entry.system,
                "segment": entry.item,
                **record_from_segment(entry.segment),
                "score": entry.score,
                "spans": [span.as_dict() for span in entry.spans],
                **({"missing": [asdict(e) for e in entry.missing]} if entry.missing else {}),
            }
            for own in self
            for entry in own.translations
        ]

    lines = records

    def warn_about_missing_spans(self) -> None:
        """Warn about each metric that marked nothing, if it says why."""
        for own in self:
            if (note := span_note(own.metric)) and not own.counts():
                logger.warning("warning: %s: no spans; %s", own.metric.spec, note)


def _mark(entry: MarkedTranslation) -> list[MarkedLine]:
    kinds = "; ".join(f"{error.severity}: {error.category}" for error in entry.missing)
    notes = f"errors without a position: {kinds}" if kinds else ""
    return mark_texts(entry.segment, entry.spans, notes)


def mark_errors(evaluation: Evaluation, metrics: Sequence[Metric]) -> MarkedErrors:
    """Mark errors with each metric that marks error spans."""
    return MarkedErrors(_mark_all(evaluation, m) for m in metrics if can_mark_errors(m))


def _mark_all(evaluation: Evaluation, metric: Metric) -> MarkedTranslations:
    testset = evaluation.testset
    scores = evaluation.scores
    segments = [segment for system in testset.systems for segment in testset.segments(system)]
    places = product(testset.systems, enumerate(as_numbers(testset.items)))
    spans = metric.mark_errors(segments)
    is_empty = flag_empty(metric, segments)
    translations = tuple(
        MarkedTranslation(
            system=system,
            item=item,
            segment=segments[row],
            score=float(scores[system][metric.spec].segments[n]),
            spans=spans[row],
            missing=(EMPTY_TRANSLATION,) if is_empty[row] else (),
        )
        for row, (system, (n, item)) in enumerate(places)
    )
    return MarkedTranslations(metric=metric, translations=translations)


def write_back(
    project: Project,
    result: Evaluation | CheckReport,
    output: str,
    *,
    metrics: Sequence[Metric] = (),
) -> list[str]:
    """Write copies of localization files with scores or findings; all other bytes stay the same.

    Parameters
    ----------
    project
        The files, from `read_project`.
    result
        What `score` or `check` returned for `project.testset`.
    output
        The name of the copy, or of a folder for several files.
    metrics
        Metrics whose error spans are written too, if they mark errors.

    Returns
    -------
    list of str
        The names of the copies.

    Examples
    --------
    >>> from tertium import check, read_project
    >>> project = read_project(["examples/localization/app.de.xliff"])
    >>> write_back(project, check(project.testset), "checked.xliff")  # doctest: +SKIP
    ['checked.xliff']
    """
    if isinstance(result, Evaluation):
        rows = _annotate_scores(result, mark_errors(result, metrics))
    elif hasattr(result, "spans"):
        rows = {
            system: [Annotation(findings=spans) for spans in segments]
            for system, segments in result.spans.items()
        }
    else:
        raise UsageError(f"write_back takes the result of score or check, not {short_repr(result)}")
    return annotate_files(project, output, rows)


def _annotate_scores(
    evaluation: Evaluation, marked: Sequence[MarkedTranslations]
) -> dict[str, list[Annotation]]:
    rows: dict[str, list[Annotation]] = {}
    confidence_metric = _find_confidence(evaluation)
    count = len(evaluation.testset)
    for place, system in enumerate(evaluation.systems):
        scores = {name: evaluation.scores[system][name].segments for name in evaluation.metrics}
        rows[system] = []
        for n in range(count):
            spans = [own.translations[place * count + n].spans for own in marked]
            annotation = Annotation(
                {name: float(values[n]) for name, values in scores.items()},
                tuple(chain(*spans)),
                float(scores[confidence_metric][n]) if confidence_metric else math.nan,
            )
            rows[system].append(annotation)
    return rows


def _find_confidence(evaluation: Evaluation) -> str:
    """Return the first metric whose scores can be read as a confidence: all are from 0 to 1."""
    for name in evaluation.metrics:
        scores = evaluation.metric_scores(name)
        values = np.concatenate([own.segments for own in scores])
        low = np.nanmin(values, initial=inf)
        high = np.nanmax(values, initial=-inf)
        if 0.0 <= low <= high <= 1.0 and scores[0].higher_is_better:
            return name
    return ""
