"""Error spans in all translations of a test set, and copies of localization files with them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from tertium.core.errors import UsageError, short_repr
from tertium.core.result import (
    Column,
    MarkedLine,
    Result,
    Section,
    Table,
    count_column,
    mark_texts,
)
from tertium.core.segment import Segment
from tertium.core.spans import Span, UnlocatedError, check_span_bounds, score_spans
from tertium.data.human_data import HumanData
from tertium.data.records import record_from_segment
from tertium.data.testset import TestSet
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
    def weight(self) -> float:
        """The total weight of the errors."""
        return -score_spans(self.errors, weights=WEIGHTS)

    @property
    def severity(self) -> str:
        """The severity of the most severe error."""
        return min((error.severity for error in self.errors), key=[*WEIGHTS].index)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkedTranslations:
    """The error spans of one metric in every translation, system by system.

    `decimals` is None for human scores as given. `sign` is -1 if lower is better. `note` says what
    the metric leaves out.
    """

    metric: str
    label: str
    translations: tuple[MarkedTranslation, ...]
    decimals: int | None = None
    sign: float = 1.0
    note: str = ""

    def counts(self) -> dict[str, int]:
        """Count the errors of each severity, the most severe first."""
        errors: Counter[str] = Counter(
            error.severity for entry in self.translations for error in entry.errors
        )
        return {severity: errors[severity] for severity in WEIGHTS if errors[severity]}

    def worst(self, count: int) -> list[MarkedTranslation]:
        """Return empty translations, then those with the largest error weight and worst score."""
        marked = [entry for entry in self.translations if entry.errors]

        def badness(entry: MarkedTranslation) -> tuple[bool, float, float]:
            score = self.sign * entry.score if isfinite(entry.score) else inf
            return (EMPTY_TRANSLATION not in entry.missing, -entry.weight, score)

        return sorted(marked, key=badness)[:count]

    def section(self) -> Section:
        """Return the number of errors, and the worst translations with marked errors."""
        worst = self.worst(MAX_LISTED)
        counts = [f"{count:,} {severity}" for severity, count in self.counts().items()]
        total = len(self.translations)
        unit = "translation" if total == 1 else "translations"
        summary = f"{', '.join(counts) or 'no errors marked'} in {total:,} {unit}."
        if any(span.chance is not None for entry in worst for span in entry.spans):
            summary = f"suspected: {summary}"  # only predicted errors have a probability
        columns = [
            Column("segment", "item"),
            Column("system"),
            Column("score", decimals=4 if self.decimals is None else self.decimals),
            Column("severity"),
            Column("texts", _mark),
        ]
        title = f"{self.label}: the worst {len(worst)} translations"
        table = Table(columns, worst, title, filters=["system", "severity"])
        notes = [self.note] if self.note else []
        return Section(self.label, [summary, *notes, *([table] if worst else [])])


class MarkedErrors(Result, list[MarkedTranslations]):
    """The error spans of several metrics."""

    def tables(self) -> list[Table]:
        """Return the number of errors by metric and severity."""
        rows = [{"metric": own.metric, **dict.fromkeys(WEIGHTS, 0), **own.counts()} for own in self]
        severities = [name for name in WEIGHTS if any(row[name] for row in rows)]
        return [Table([Column("metric"), *map(count_column, severities)], rows, "Marked errors")]

    def sections(self) -> list[Section]:
        """Return the worst translations of each metric with marked errors."""
        return [Section("Error spans", [entry.section() for entry in self])]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row for each error; an unknown probability is blank."""
        rows = []
        for own in self:
            for entry in own.translations:
                texts = {"hypothesis": entry.segment.hypothesis, "source": entry.segment.source}
                for span in entry.spans:
                    about = {"metric": own.metric, "system": entry.system, "segment": entry.item}
                    rows.append(about | asdict(span) | {"text": span.of(texts[span.side] or "")})
        return Table([*map(Column, ("metric", *ERROR_COLUMNS))], rows)

    def records(self) -> list[dict[str, Any]]:
        """Return one record for each translation, in a layout that readers of judgments accept."""
        return [
            {
                "metric": own.metric,
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

    def lines(self) -> list[dict[str, Any]]:
        return self.records()

    def warn_about_missing_spans(self) -> None:
        """Warn about each metric that marked nothing, if it says why."""
        for entry in self:
            if entry.note and not entry.counts():
                logger.warning("warning: %s: no spans; %s", entry.metric, entry.note)


def _mark(entry: MarkedTranslation) -> list[MarkedLine]:
    kinds = "; ".join(f"{error.severity}: {error.category}" for error in entry.missing)
    notes = f"errors without a position: {kinds}" if kinds else ""
    return mark_texts(entry.segment, entry.spans, notes)


def mark_errors(evaluation: Evaluation, metrics: Sequence[Metric]) -> MarkedErrors:
    """Mark errors with each metric that marks error spans."""
    return MarkedErrors(_mark_all(evaluation, m) for m in metrics if can_mark_errors(m))


def _mark_all(evaluation: Evaluation, metric: Metric) -> MarkedTranslations:
    testset, scores = evaluation.testset, evaluation.scores
    segments = [segment for system in testset.systems for segment in testset.segments(system)]
    places = product(testset.systems, enumerate(as_numbers(testset.items)))
    translations = tuple(
        MarkedTranslation(
            system=system,
            item=item,
            segment=segment,
            score=float(scores[system][metric.spec].segments[n]),
            spans=spans,
            missing=(EMPTY_TRANSLATION,) if is_empty else (),
        )
        for (system, (n, item)), segment, spans, is_empty in zip(
            places,
            segments,
            metric.mark_errors(segments),
            flag_empty(metric, segments),
            strict=True,
        )
    )
    return MarkedTranslations(
        metric=metric.spec,
        label=metric.label,
        translations=translations,
        decimals=metric.decimals,
        sign=1.0 if metric.higher_is_better else -1.0,
        note=span_note(metric),
    )


def human_marked_errors(testset: TestSet, human_data: HumanData) -> MarkedErrors:
    """Return the human error annotations of a test set as one entry, or an empty list."""
    annotations, scores = human_data.error_annotations(), human_data.segment_scores().cells()
    documents = human_data.labels().get("document")
    items = testset.match_item_names({item for _, item in scores}, documents)  # annotated or not
    marked = []
    for system in testset.systems:
        for name, item, segment in zip(items, testset.items, testset.segments(system), strict=True):
            key = (system, name)
            if key not in annotations or key not in scores:
                continue
            spans = annotations[key].spans
            where = f"{human_data.title}, item {name} of {system!r}"
            check_span_bounds(spans, segment.hypothesis, "hypothesis", where)
            check_span_bounds(spans, segment.source or "", "source", where)
            translation = MarkedTranslation(
                system=system,
                item=item,
                segment=segment,
                score=scores[key],
                spans=spans,
                missing=annotations[key].missing,
            )
            marked.append(translation)
    people = MarkedTranslations(metric="people", label="Human", translations=tuple(marked))
    return MarkedErrors([people] if marked else [])


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
    for system in evaluation.systems:
        scores = {name: evaluation.scores[system][name].segments for name in evaluation.metrics}
        spans = [
            [entry.spans for entry in own.translations if entry.system == system] for own in marked
        ]
        rows[system] = [
            Annotation(
                {name: float(values[n]) for name, values in scores.items()},
                tuple(span for own in spans for span in own[n]),
            )
            for n in range(len(evaluation.testset))
        ]
    return rows
