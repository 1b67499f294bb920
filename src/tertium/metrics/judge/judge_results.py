"""The results of a segment: the answers of all passes, with errors placed in the texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from tertium.core.spans import Span, score_spans
from tertium.metrics.judge.answer_store import StoredAnswer
from tertium.metrics.judge.judge_answers import Answer, ReportedError
from tertium.metrics.judge.span_placement import place_errors


@dataclass(frozen=True, kw_only=True)
class PassResult:
    """The answer of one pass: score, placed errors, and the number of quotes without a place."""

    score: float
    errors: tuple[tuple[Span, ReportedError], ...]
    unplaced: int
    reason: str
    answer: StoredAnswer

    @classmethod
    def read(
        cls,
        stored: StoredAnswer,
        answer: Answer,
        hypothesis: str,
        source: str | None,
        worst_score: float,
    ) -> PassResult:
        """Place the errors of an answer in the texts, and compute its score."""
        errors, unplaced = place_errors(answer.errors, hypothesis, source)
        points = score_spans(span for span, _ in errors) if answer.score is None else answer.score
        return cls(
            score=max(points, worst_score),
            errors=tuple(errors),
            unplaced=unplaced,
            reason=answer.reason,
            answer=stored,
        )


@dataclass(frozen=True, kw_only=True)
class SegmentResult:
    """The answers of all passes for a segment, and the reasons of those without one."""

    passes: tuple[PassResult, ...]
    failures: tuple[str, ...]

    @property
    def score(self) -> float:
        """The mean score of the passes, NaN without a valid answer."""
        return float(np.mean([p.score for p in self.passes])) if self.passes else np.nan

    @property
    def spread(self) -> float:
        """The standard deviation of the scores of the passes, 0 for one pass."""
        scores = [p.score for p in self.passes]
        return float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0


def list_reasons(result: PassResult) -> list[str]:
    """Return the reasons of a judge as sentences, each error with its quote."""
    lines = [
        f"{span.severity}, {span.category}, {error.quote.strip()!r}: {error.reason}"
        for span, error in result.errors
    ]
    return [result.reason, *lines] if result.reason else lines


def merge_spans(result: SegmentResult) -> tuple[Span, ...]:
    """Merge the spans of all passes; with several, `chance` is the share of passes that agree.

    A span gets the severity and category that most passes give it, the first one in a tie, and the
    message of the first pass that marks it.
    """
    if len(result.passes) <= 1:
        return tuple(span for p in result.passes for span, _ in p.errors)
    votes: dict[tuple[str, int, int], list[Span]] = {}
    for p in result.passes:
        for span, _ in p.errors:
            votes.setdefault((span.side, span.start, span.end), []).append(span)
    spans = []
    for marked in votes.values():
        kinds = Counter((span.severity, span.category) for span in marked)
        severity, category = kinds.most_common(1)[0][0]
        chance = round(len(marked) / len(result.passes), 4)
        spans.append(replace(marked[0], severity=severity, category=category, chance=chance))
    return tuple(sorted(spans, key=lambda s: (s.side != "hypothesis", s.start, s.end)))
