"""The calls people already know from sacrebleu, COMET and HF evaluate, on every metric.

They only rearrange their arguments into segments and call `score`. References may be given per
segment (`refs[i]` belongs to hypothesis i) or per stream (`refs[k][i]`, as sacrebleu has it); where
the shape fits both readings the call is refused until `layout` says which is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tertium.errors import DataError, LengthError, UsageError
from tertium.scores import Scores
from tertium.segment import Segment

Layout = Literal["auto", "streams", "segments"]
References = Sequence[str] | Sequence[Sequence[str]]


class Prediction(dict[str, Any]):
    """COMET's answer: `scores` and `system_score`, as attributes or keys."""

    @property
    def scores(self) -> list[float]:
        """The score of each segment."""
        scores: list[float] = self["scores"]
        return scores

    @property
    def system_score(self) -> float:
        """The score of all together."""
        score: float = self["system_score"]
        return score


class PeerCalls:
    """Compatibility calls; a mixin for metrics, which bring `score` and `name`."""

    def score(self, segments: Sequence[Segment]) -> Scores:
        raise NotImplementedError

    def corpus_score(
        self,
        hypotheses: Sequence[str],
        references: References | None = None,
        *,
        sources: Sequence[str] | None = None,
        layout: Layout = "auto",
    ) -> Scores:
        """As sacrebleu's `corpus_score(hypotheses, reference_streams)`."""
        return self.score(arrange(hypotheses, references, sources, layout))

    def sentence_score(
        self, hypothesis: str, references: Sequence[str] = (), *, source: str | None = None
    ) -> float:
        """As sacrebleu's `sentence_score(hypothesis, references)`; the number itself."""
        if isinstance(references, str):
            raise UsageError("references must be a list of texts, not one text: wrap it in [...]")
        return float(self.score([Segment(hypothesis, source, tuple(references))]).segments[0])

    def predict(self, data: Sequence[Mapping[str, Any]]) -> Prediction:
        """As COMET's `predict([{"src": ..., "mt": ..., "ref": ...}])`."""
        from tertium.data.formats import segment_from_record

        rows = enumerate(data, start=1)
        scores = self.score([segment_from_record(row, where=f"item {n}") for n, row in rows])
        return Prediction(scores=scores.segments.tolist(), system_score=scores.system)

    def compute(
        self,
        *,
        predictions: Sequence[str],
        references: References | None = None,
        sources: Sequence[str] | None = None,
        layout: Layout = "segments",
    ) -> dict[str, Any]:
        """As HF evaluate's `compute(predictions=, references=)`: a dictionary."""
        scores = self.score(arrange(predictions, references, sources, layout))
        return {
            "score": scores.system,
            "scores": scores.segments.tolist(),
            "signature": scores.signature,
        }


def arrange(
    hypotheses: Sequence[str],
    references: References | None = None,
    sources: Sequence[str] | None = None,
    layout: Layout = "auto",
) -> list[Segment]:
    """Segments from parallel lists, whichever way the references are laid out.

    >>> arrange(["a", "b", "c"], [["A", "B", "C"]])[1].references
    ('B',)
    >>> arrange(["a", "b", "c"], [["A"], ["B", "BB"], ["C"]])[1].references
    ('B', 'BB')
    """
    if isinstance(hypotheses, str):
        raise UsageError("hypotheses must be a list of texts, not one text: wrap it in [...]")
    rows = _reference_rows(hypotheses, references, layout)
    if sources is not None and len(sources) != len(hypotheses):
        raise LengthError(f"{len(sources)} sources for {len(hypotheses)} hypotheses")
    origin = sources if sources is not None else [None] * len(hypotheses)
    return [Segment(h, s, r) for h, s, r in zip(hypotheses, origin, rows, strict=True)]


def _reference_rows(
    hypotheses: Sequence[str], references: References | None, layout: Layout
) -> list[tuple[str, ...]]:
    n = len(hypotheses)
    if references is None:
        return [()] * n
    if isinstance(references, str):
        raise UsageError("references must be lists of texts, not one text")
    flat = [r for r in references if isinstance(r, str)]
    if flat and len(flat) != len(references):
        raise DataError("references mix plain texts and lists of texts; give one or the other")
    if flat:
        if len(flat) != n:
            raise LengthError(f"{len(flat)} references for {n} hypotheses")
        return [(r,) for r in flat]
    nested: list[Sequence[str]] = [r for r in references if not isinstance(r, str)]
    streams = bool(nested) and all(len(stream) == n for stream in nested)
    per_segment = len(nested) == n
    if layout == "auto":
        if streams and per_segment and n > 1:
            raise UsageError(
                f"references of shape {n} x {n} can be read per segment or per stream: "
                'say which with layout="segments" or layout="streams"'
            )
        layout = "streams" if streams else "segments"
    if layout == "streams":
        if not streams:
            lengths = sorted({len(stream) for stream in nested})
            raise LengthError(f"reference streams of lengths {lengths} for {n} hypotheses")
        return [tuple(r for r in row if r is not None) for row in zip(*nested, strict=True)]
    if not per_segment:
        raise LengthError(f"references for {len(nested)} segments, but {n} hypotheses")
    return [tuple(r for r in row if r is not None) for row in nested]
