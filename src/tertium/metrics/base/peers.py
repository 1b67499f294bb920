"""The calls people already know from sacrebleu, COMET and HF evaluate, on every metric.

They only rearrange their arguments into segments and call `score`. References may be given per
segment (`refs[i]` belongs to hypothesis i) or per stream (`refs[k][i]`, as sacrebleu has it); where
the shape fits both readings the call is refused until `layout` says which is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal, get_args

from tertium.errors import DataError, LengthError, UnknownNameError, UsageError, one_line
from tertium.frames import is_frame, is_missing, plain_column
from tertium.scores import Scores
from tertium.segment import Segment, check_texts
from tertium.spans import Span

Layout = Literal["auto", "streams", "segments"]
Texts = Iterable[str]  # a list, a column, an array, a generator
References = Iterable[str | None] | Iterable[Iterable[str | None] | None]


class Prediction(dict[str, Any]):
    """COMET's answer: `scores` and `system_score`, as attributes, keys or by their places.

    Of a metric that marks errors it has `metadata`, too, whose `error_spans` are XCOMET's.

    >>> output = Prediction(scores=[0.5, 1.0], system_score=0.75)
    >>> output[0], output.to_tuple()[1], output["system_score"]
    ([0.5, 1.0], 0.75, 0.75)
    """

    def __getitem__(self, key: str | int | slice) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        hint = ", which metrics have that mark errors, such as tertium-multi"
        raise AttributeError(f"no {name} here{hint if name == 'metadata' else ''}")

    def to_tuple(self) -> tuple[Any, ...]:
        """All of it, in order."""
        return tuple(self.values())

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
    """Compatibility calls; a mixin for metrics, which bring `score`, `mark` and `name`."""

    @property
    def gives_spans(self) -> bool:
        raise NotImplementedError

    def score(self, segments: Sequence[Segment]) -> Scores:
        raise NotImplementedError

    def mark(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        raise NotImplementedError

    def corpus_score(
        self,
        hypotheses: Texts,
        references: References | None = None,
        *,
        sources: Iterable[str | None] | None = None,
        layout: Layout = "auto",
    ) -> Scores:
        """As sacrebleu's `corpus_score(hypotheses, reference_streams)`."""
        return self.score(arrange(hypotheses, references, sources, layout))

    def sentence_score(
        self,
        hypothesis: str,
        references: Iterable[str | None] | None = (),
        *,
        source: str | None = None,
    ) -> float:
        """As sacrebleu's `sentence_score(hypothesis, references)`; the number itself."""
        segment = make_segment(hypothesis, () if references is None else references, source)
        return float(self.score([segment]).segments[0])

    def predict(self, data: Iterable[Mapping[str, Any]] | Any) -> Prediction:
        """As COMET's `predict([{"src": ..., "mt": ..., "ref": ...}])`.

        A metric that marks errors gives them as XCOMET does, in `metadata.error_spans`.
        A frame of pandas, polars or Arrow with such columns is taken row by row.
        """
        from tertium.data.formats import records_in_memory
        from tertium.data.records import fold_names, segment_from_record

        rows = records_in_memory(data, "item")
        segments = [segment_from_record(fold_names(row), where) for where, row in rows]
        scores = self.score(segments)
        said = Prediction(scores=scores.segments.tolist(), system_score=scores.system)
        if self.gives_spans:
            said["metadata"] = Prediction(error_spans=_error_spans(segments, self.mark(segments)))
        return said

    def compute(
        self,
        *,
        predictions: Texts,
        references: References | None = None,
        sources: Iterable[str | None] | None = None,
        layout: Layout = "segments",
    ) -> dict[str, Any]:
        """As HF evaluate's `compute(predictions=, references=)`: a dictionary."""
        scores = self.score(arrange(predictions, references, sources, layout))
        return {
            "score": scores.system,
            "scores": scores.segments.tolist(),
            "signature": scores.signature,
        }


def _error_spans(
    segments: Sequence[Segment], marked: Sequence[tuple[Span, ...]]
) -> list[list[dict[str, Any]]]:
    """Errors of translations as XCOMET tells them: a list of dictionaries for each."""
    return [
        [
            {
                "text": span.of(segment.hypothesis),
                "confidence": span.chance,
                "severity": span.severity,
                "start": span.start,
                "end": span.end,
            }
            for span in spans
            if span.side == "hypothesis"
        ]
        for segment, spans in zip(segments, marked, strict=True)
    ]


def arrange(
    hypotheses: Texts,
    references: References | None = None,
    sources: Iterable[str | None] | None = None,
    layout: Layout = "auto",
) -> list[Segment]:
    """Segments from parallel lists, whichever way the references are laid out.

    >>> arrange(["a", "b", "c"], [["A", "B", "C"]])[1].references
    ('B',)
    >>> arrange(["a", "b", "c"], [["A"], ["B", "BB"], ["C"]])[1].references
    ('B', 'BB')
    """
    texts = listed(hypotheses, "hypotheses")
    check_texts(texts, "hypotheses")
    n = len(texts)
    rows = [()] * n if references is None else _reference_rows(n, references, layout)
    origin = [None] * n if sources is None else listed(sources, "sources")
    if len(origin) != n:
        raise LengthError(f"{len(origin)} sources for {n} hypotheses")
    origin = [None if is_missing(source) else source for source in origin]
    return [Segment(h, s, r) for h, s, r in zip(texts, origin, rows, strict=True)]


def make_segment(
    hypothesis: str, references: Iterable[str | None], source: str | None = None
) -> Segment:
    """One segment with those of its references that are not missing.

    >>> make_segment("a", ["A", None]).references
    ('A',)
    """
    return Segment(hypothesis, source, _given(listed(references, "references")))


def listed(values: Any, label: str) -> list[Any]:
    """What is given for parallel texts as a list: of a column, an array or a generator, too.

    What has no order, and a table, of which a loop sees the names of columns, is refused.

    >>> listed((text.lower() for text in ("A", "B")), "hypotheses")
    ['a', 'b']
    """
    if isinstance(values, str | bytes):
        raise UsageError(f"{label} must be a list of texts, not one text: wrap it in [...]")
    if is_frame(values):
        raise UsageError(
            f"{label} must be a list of texts, not a table ({type(values).__name__}): choose one "
            'of its columns, as in frame["mt"], or give the table to predict'
        )
    if isinstance(values, Set | Mapping) or not isinstance(values, Iterable):
        raise UsageError(f"{label} must be a list of texts, not {one_line(values)}")
    return list(plain_column(values))


def _reference_rows(n: int, references: References, layout: Layout) -> list[tuple[str, ...]]:
    if layout not in get_args(Layout):
        raise UnknownNameError("layout", str(layout), get_args(Layout))
    given = listed(references, "references")
    flat = any(isinstance(r, str) for r in given)
    if flat:
        _check_all_texts(given)
    if flat or (given and all(map(is_missing, given))):
        if len(given) != n:
            raise LengthError(f"{len(given)} references for {n} hypotheses")
        return [() if is_missing(r) else (r,) for r in given]
    nested = [[] if is_missing(r) else listed(r, f"references[{k}]") for k, r in enumerate(given)]
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
        return [_given(row) for row in zip(*nested, strict=True)]
    if not per_segment:
        hint = '; of streams, say layout="streams"' if streams else ""
        raise LengthError(f"references for {len(nested)} segments, but {n} hypotheses{hint}")
    return [_given(row) for row in nested]


def _check_all_texts(references: Sequence[Any]) -> None:
    """Refuse what is neither a text nor missing, among references of which some are texts."""
    for number, reference in enumerate(references, start=1):
        if isinstance(reference, str) or is_missing(reference):
            continue
        if isinstance(reference, Iterable) and not isinstance(reference, bytes):
            raise DataError("references mix plain texts and lists of texts; give one or the other")
        raise DataError(f"references: segment {number} is {one_line(reference)}, not a text")


def _given(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(reference for reference in row if not is_missing(reference))
