"""The results of a segment: the answers of all passes, with errors placed in the texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tertium.core.spans import Span, score_spans
from tertium.metrics.judge.answer_store import StoredAnswer
from tertium.metrics.judge.judge_answers import Answer, ReportedError
from tertium.metrics.judge.span_placement import place_errors

NO_REQUEST = StoredAnswer("", "", 0, 0)


@dataclass(frozen=True)
class PassResult:
    """The answer of one pass: score, placed errors, and the number of quotes without a place."""

    score: float
    answer: StoredAnswer = NO_REQUEST
    errors: Sequence[tuple[Span, ReportedError]] = ()
    unplaced: int = 0
    reason: str = ""


def read_pass(
    stored: StoredAnswer, answer: Answer, hypothesis: str, source: str | None, worst_score: float
) -> PassResult:
    """Place the errors of an answer in the texts, and compute its score."""
    reported = getattr(answer, "errors", ())
    errors, unplaced = place_errors(reported, hypothesis, source)
    score = getattr(answer, "score", None)
    if score is None:
        score = max(score_spans(span for span, _ in errors), worst_score)
    return PassResult(score, stored, errors, unplaced, getattr(answer, "reason", ""))


@dataclass(frozen=True)
class SegmentResult:
    """The answers of all passes for a segment, and the reasons of those without one.

    `key` identifies the first question; it is empty if none is asked.
    """

    key: str
    passes: Sequence[PassResult]
    failures: Sequence[str] = ()

    @property
    def score(self) -> float:
        """The mean score of the passes, NaN without a valid answer."""
        return float(np.mean([p.score for p in self.passes])) if self.passes else np.nan

    @property
    def spread(self) -> float:
        """The standard deviation of the scores of the passes, 0 for one pass."""
        scores = [p.score for p in self.passes]
        return float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0

    def reasons(self) -> tuple[str, ...]:
        """Return the distinct reasons of the judge as sentences, each error with its quote."""
        lines = []
        for p in self.passes:
            if p.reason:
                lines.append(p.reason)
            for span, error in p.errors:
                quote = error.quote.strip()
                lines.append(f"{span.severity}, {span.category}, {quote!r}: {error.reason}")
        return tuple(dict.fromkeys(lines))

    def spans(self) -> tuple[Span, ...]:
        """Merge the spans of all passes; with several, `chance` is the share that agrees.

        A span gets the severity and category that most passes give it, the first one in a tie, and
        the message of the first pass that marks it.
        """
        votes: dict[tuple[str, int, int], list[Span]] = {}
        for p in self.passes:
            for span, _ in p.errors:
                votes.setdefault((span.side, span.start, span.end), []).append(span)
        spans = []
        for marked in votes.values():
            kinds = Counter((span.severity, span.category) for span in marked)
            severity, category = kinds.most_common(1)[0][0]
            span = replace(marked[0], severity=severity, category=category)
            if len(self.passes) > 1:
                span = replace(span, chance=round(len(marked) / len(self.passes), 4))
            spans.append(span)
        return tuple(
            sorted(spans, key=lambda span: (span.side != "hypothesis", span.start, span.end))
        )
