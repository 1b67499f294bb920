"""Errors marked in all translations of a test set, by a metric or by people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import inf, isfinite
from typing import Any

from tertium.data.human import Evidence
from tertium.data.records import record_from_segment
from tertium.data.testset import TestSet
from tertium.display import Displayed
from tertium.evaluation.scoring import Evaluation, as_numbers
from tertium.metrics.base.metric import Metric
from tertium.segment import Segment
from tertium.spans import Span, Unplaced, check_places, score_spans

# the gravest first; categories do not matter to which translations are shown first
WEIGHTS = {"critical": 10.0, "major": 5.0, "minor": 1.0, "bad": 1.0, "neutral": 0.0}
ERROR_COLUMNS = (
    "system",
    "segment",
    "side",
    "start",
    "end",
    "severity",
    "category",
    "chance",
    "text",
)


@dataclass(frozen=True, kw_only=True)
class MarkedTranslation:
    """One translation, what its segment is called in the test set, its score and its errors.

    `missing` are those without a place in the texts, such as omissions, which people note.
    """

    system: str
    item: str | int
    segment: Segment
    score: float
    spans: tuple[Span, ...]
    missing: tuple[Unplaced, ...] = ()

    @property
    def errors(self) -> tuple[Span | Unplaced, ...]:
        """All of them, with a place or without."""
        return (*self.spans, *self.missing)

    @property
    def weight(self) -> float:
        """What the errors weigh together."""
        return -score_spans(self.errors, weights=WEIGHTS)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkedTranslations(Displayed):
    """What one metric marked of every translation, system by system.

    `decimals` of its scores are shown, those that people gave as they are; `sign` is -1 where a
    lower score is better.
    """

    metric: str
    label: str
    translations: tuple[MarkedTranslation, ...]
    decimals: int | None = None
    sign: float = 1.0

    def counts(self) -> dict[str, int]:
        """How many errors of each severity there are, the gravest first."""
        found: Counter[str] = Counter(
            error.severity for entry in self.translations for error in entry.errors
        )
        return {severity: found[severity] for severity in WEIGHTS if found[severity]}

    def worst(self, count: int) -> list[MarkedTranslation]:
        """The translations whose errors weigh most; of equal weight, those that score worst.

        Errors weigh a few whole numbers, so that ties are many: in the order of systems, the list
        would hold those of the first one alone.
        """
        marked = [entry for entry in self.translations if entry.errors]

        def badness(entry: MarkedTranslation) -> tuple[float, float]:
            return (-entry.weight, self.sign * entry.score if isfinite(entry.score) else inf)

        return sorted(marked, key=badness)[:count]

    def records(self) -> list[dict[str, Any]]:
        """A record for each translation, which every reader of judgments takes."""
        return [
            {
                "metric": self.metric,
                "system": entry.system,
                "segment": entry.item,
                **record_from_segment(entry.segment),
                "score": entry.score,
                "spans": [span.as_dict() for span in entry.spans],
                **({"missing": [asdict(e) for e in entry.missing]} if entry.missing else {}),
            }
            for entry in self.translations
        ]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """A row of `ERROR_COLUMNS` for each error; None for a chance that is not told."""
        for entry in self.translations:
            for span in entry.spans:
                text = entry.segment.hypothesis
                marked = span.of(text if span.side == "hypothesis" else entry.segment.source or "")
                place = (span.side, span.start, span.end)
                kind = (span.severity, span.category, span.chance)
                yield (entry.system, entry.item, *place, *kind, marked)


def mark_systems(evaluation: Evaluation, metrics: Sequence[Metric]) -> list[MarkedTranslations]:
    """What each metric marks of what it scored, of those that say where a translation is wrong."""
    return [_mark_all(evaluation, metric) for metric in metrics if metric.gives_spans]


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
        )
        for (system, (n, item)), segment, spans in zip(
            places, segments, metric.mark(segments), strict=True
        )
    )
    return MarkedTranslations(
        metric=metric.spec,
        label=metric.label,
        translations=translations,
        decimals=metric.decimals,
        sign=1.0 if metric.higher_is_better else -1.0,
    )


def people_marks(testset: TestSet, people: Evidence) -> list[MarkedTranslations]:
    """What people marked in translations of a test set: one entry, or none if that is nothing."""
    marks, scores = people.markings(), people.segment_scores().cells()
    documents = people.labels().get("document")
    items = testset.items_among({item for _, item in scores}, documents)  # marked or not
    found = []
    for system in testset.systems:
        own = zip(items, testset.items, testset.segments(system), strict=True)
        for called, item, segment in own:
            key = (system, called)
            if key not in marks or key not in scores:
                continue
            spans, missing = marks[key].spans, marks[key].missing
            where = f"{people.title}, item {called} of {system!r}"
            check_places(spans, segment.hypothesis, "hypothesis", where)
            check_places(spans, segment.source or "", "source", where)
            found.append(
                MarkedTranslation(
                    system=system,
                    item=item,
                    segment=segment,
                    score=scores[key],
                    spans=spans,
                    missing=missing,
                )
            )
    marked = MarkedTranslations(metric="people", label="People", translations=tuple(found))
    return [marked] if found else []
