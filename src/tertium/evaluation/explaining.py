"""Explain a score, or which of several translations wins; mark errors where a metric can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from math import inf, isfinite
from typing import Any

from tertium.data.human import Evidence
from tertium.data.records import record_from_segment
from tertium.data.testset import TestSet
from tertium.display import Displayed
from tertium.errors import UsageError, one_line
from tertium.evaluation.ranking import best_ranker
from tertium.evaluation.scoring import Evaluation, as_numbers
from tertium.extras import explain_missing
from tertium.metrics.base.explanation import Explanation, MarkedText
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE, Metric
from tertium.metrics.base.ranker import Ranker, find_ranker
from tertium.models.checkpoint import are_installed
from tertium.registry import RANKERS
from tertium.segment import Segment
from tertium.spans import Span, Unplaced, check_places, score_spans
from tertium.specs import split_spec
from tertium.text.language_identification import seem_english


def explain(
    translation: Segment, *rivals: Segment, metric: str | Metric | Ranker | None = None
) -> Explanation:
    """Why a translation has its score; with rivals, the chance of each to beat each other one.

    `metric` is a spec or a metric: rte-r for English references unless it is given, tertium-multi
    for all others and where there is none (without its weights sentsim).
    Beside rivals it is a ranker, that of `tertium.rank` unless it is given, or a metric, whose
    better score wins.

    >>> good, bad = (Segment(text, None, ("a cat sat",)) for text in ("a cat sits", "a dog"))
    >>> explain(good, bad, metric="chrf").votes.chances
    ((0.5, 1.0), (0.0, 0.5))
    """
    for given in (translation, *rivals):
        if not isinstance(given, Segment):
            raise UsageError(
                f"expected a Segment, got {one_line(given, 60)}: "
                'Segment("a translation", references=["a reference"]) is one'
            )
    if rivals:
        ranker = find_ranker(metric or best_ranker([translation]))
        every = [translation, *rivals]
        return replace(ranker.explain(every), warnings=tuple(ranker.warnings(every)))
    if isinstance(metric, Ranker) or (isinstance(metric, str) and split_spec(metric)[0] in RANKERS):
        name = metric if isinstance(metric, str) else metric.name
        raise UsageError(f"{name} compares translations: give it two or more (-t again)")
    chosen = metric or _usual_metric(translation)
    judge = chosen if isinstance(chosen, Metric) else load_metric(chosen)
    with explain_missing(judge.name):
        explained = add_marks(_explain(judge, translation), judge, translation)
        lost = () if isfinite(explained.score) else (NO_SCORE,)
        return replace(explained, warnings=(*judge.warnings([translation]), *lost))


def add_marks(explained: Explanation, judge: Metric, translation: Segment) -> Explanation:
    """The same with the errors that the metric marks, where it marks any."""
    if not judge.gives_spans:
        return explained
    spans = judge.mark([translation])[0]
    text = MarkedText(hypothesis=translation.hypothesis, source=translation.source, spans=spans)
    return replace(explained, marked=text)


def _explain(judge: Metric, translation: Segment) -> Explanation:
    if judge.explains or not judge.gives_spans:
        return judge.explain(translation)
    return Explanation(metric=judge.spec, score=float(judge.score([translation]).segments[0]))


def _usual_metric(translation: Segment) -> str:
    if translation.references and seem_english(translation.references):
        return "rte-r"
    return "tertium-multi" if are_installed() else "sentsim"


# the gravest first; categories do not matter to which translations are shown first
WEIGHTS = {"critical": 10.0, "major": 5.0, "minor": 1.0, "bad": 1.0, "neutral": 0.0}
COLUMNS = ("system", "segment", "side", "start", "end", "severity", "category", "chance", "text")


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
        """A record for each translation, which every reader of judgements takes."""
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
        """A row of `COLUMNS` for each error; None for a chance that is not told."""
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
