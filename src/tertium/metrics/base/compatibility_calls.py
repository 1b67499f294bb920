"""Calls with the conventions of sacrebleu, COMET and Hugging Face evaluate, for every metric.

They turn their arguments into segments and call `score`. References may be given per segment
(`refs[i]` belongs to hypothesis i) or as streams (`refs[k][i]`, the sacrebleu layout). If the
shape fits both layouts, the call is refused until `layout` is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal

from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError, short_repr
from tertium.core.fields import choices
from tertium.core.result import is_frame, is_missing, unwrap_arrow_column
from tertium.core.scores import Scores
from tertium.core.segment import Segment, check_texts
from tertium.core.spans import Span
from tertium.metrics.base.capabilities import can_mark_errors

Layout = Literal["auto", "streams", "segments"]
Texts = Iterable[str]
References = Iterable[str | None] | Iterable[Iterable[str | None] | None]


class Prediction(dict[str, Any]):
    """Result of `predict`: a dictionary whose entries are also attributes and tuple items.

    `scores` is the list of segment scores and `system_score` the system score. Metrics that mark
    errors add `metadata`, whose `error_spans` have the format of XCOMET.

    >>> output = Prediction(scores=[0.5, 1.0], system_score=0.75)
    >>> output[0], output.to_tuple()[1], output["system_score"]
    ([0.5, 1.0], 0.75, 0.75)
    """

    def __getitem__(self, key: str | int | slice) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        hint = ": only metrics that mark errors provide it" if name == "metadata" else ""
        raise AttributeError(f"this prediction has no {name}{hint}")

    def to_tuple(self) -> tuple[Any, ...]:
        """Return all entries in order."""
        return tuple(self.values())


class CompatibilityCalls:
    """Mixin of `Metric` with the calls of other toolkits."""

    def score(self, segments: Sequence[Segment]) -> Scores:
        raise NotImplementedError

    def mark_errors(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        raise NotImplementedError

    def corpus_score(
        self,
        hypotheses: Texts,
        references: References | None = None,
        *,
        sources: Iterable[str | None] | None = None,
        layout: Layout = "auto",
    ) -> Scores:
        """Score a corpus; returns `Scores` with `system`, `segments` and `signature`.

        Takes the arguments of sacrebleu's `corpus_score(hypotheses, reference_streams)`; references
        per segment are accepted as well.

        >>> from tertium.metrics import load_metric
        >>> scores = load_metric("ter").corpus_score(["a b", "c", "d"], [["a c", "c", "d"]])
        >>> scores.system, scores.segments.tolist()
        (25.0, [50.0, 0.0, 0.0])
        """
        return self.score(make_segments(hypotheses, references, sources, layout))

    def sentence_score(
        self,
        hypothesis: str,
        references: Iterable[str | None] | None = (),
        *,
        source: str | None = None,
    ) -> float:
        """Score one hypothesis; returns a float.

        Takes the arguments of sacrebleu's `sentence_score(hypothesis, references)`.

        >>> from tertium.metrics import load_metric
        >>> load_metric("ter").sentence_score("a b", ["a c"])
        50.0
        """
        segment = make_segment(hypothesis, () if references is None else references, source)
        return float(self.score([segment]).segments[0])

    def predict(self, data: Iterable[Mapping[str, Any]] | Any) -> Prediction:
        """Score records with the keys `src`, `mt` and `ref`; returns a `Prediction`.

        Takes the arguments of COMET's `predict`, or a pandas, polars or Arrow table with these
        columns. The result has `scores` (a list) and `system_score`, and `metadata.error_spans` if
        the metric marks errors.

        >>> from tertium.metrics import load_metric
        >>> load_metric("ter").predict([{"mt": "a b", "ref": "a c"}])
        {'scores': [50.0], 'system_score': 50.0}
        """
        from tertium.data.record_files import iterate_records
        from tertium.data.records import lowercase_known_columns, segment_from_record

        rows = iterate_records(data, "item")
        segments = [segment_from_record(lowercase_known_columns(row), where) for where, row in rows]
        scores = self.score(segments)
        prediction = Prediction(scores=scores.segments.tolist(), system_score=scores.system)
        if can_mark_errors(self):  # type: ignore[arg-type]
            spans = _error_spans(segments, self.mark_errors(segments))
            prediction["metadata"] = Prediction(error_spans=spans)
        return prediction

    def compute(
        self,
        *,
        predictions: Texts,
        references: References | None = None,
        sources: Iterable[str | None] | None = None,
        layout: Layout = "segments",
    ) -> dict[str, Any]:
        """Score predictions; returns a dictionary with `score`, `scores` and `signature`.

        Takes the arguments of Hugging Face evaluate's `compute`. `score` is the system score and
        `scores` the list of segment scores.

        >>> from tertium.metrics import load_metric
        >>> result = load_metric("ter").compute(predictions=["a b"], references=["a c"])
        >>> result["score"], result["scores"]
        (50.0, [50.0])
        """
        scores = self.score(make_segments(predictions, references, sources, layout))
        return {
            "score": scores.system,
            "scores": scores.segments.tolist(),
            "signature": scores.signature,
        }


def _error_spans(
    segments: Sequence[Segment], marked: Sequence[tuple[Span, ...]]
) -> list[list[dict[str, Any]]]:
    """Convert error spans of translations to the format of XCOMET: a list of dictionaries each."""
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


def make_segments(
    hypotheses: Texts,
    references: References | None = None,
    sources: Iterable[str | None] | None = None,
    layout: Layout = "auto",
) -> list[Segment]:
    """Build segments from parallel lists, with references in either layout.

    >>> make_segments(["a", "b", "c"], [["A", "B", "C"]])[1].references
    ('B',)
    >>> make_segments(["a", "b", "c"], [["A"], ["B", "BB"], ["C"]])[1].references
    ('B', 'BB')
    """
    texts = as_text_list(hypotheses, "hypotheses")
    check_texts(texts, "hypotheses")
    n = len(texts)
    rows = [()] * n if references is None else _reference_rows(n, references, layout)
    source_texts = [None] * n if sources is None else as_text_list(sources, "sources")
    if len(source_texts) != n:
        raise LengthError(f"{len(source_texts)} sources for {n} hypotheses")
    source_texts = [None if is_missing(source) else source for source in source_texts]
    return [Segment(h, s, r) for h, s, r in zip(texts, source_texts, rows, strict=True)]


def make_segment(
    hypothesis: str, references: Iterable[str | None], source: str | None = None
) -> Segment:
    """Build one segment; missing references are left out.

    >>> make_segment("a", ["A", None]).references
    ('A',)
    """
    return Segment(hypothesis, source, _drop_missing(as_text_list(references, "references")))


def as_text_list(values: Any, label: str) -> list[Any]:
    """Convert a list, column, array or generator of texts to a list.

    Refuses single texts, unordered collections and whole tables.

    >>> as_text_list((text.lower() for text in ("A", "B")), "hypotheses")
    ['a', 'b']
    """
    if isinstance(values, str | bytes):
        raise UsageError(f"{label} must be a list of texts, got a single text: wrap it in [...]")
    if is_frame(values):
        raise UsageError(
            f"{label} must be a list of texts, got a table ({type(values).__name__}): select a "
            'column, such as frame["mt"], or pass the table to predict'
        )
    is_single = getattr(values, "ndim", 1) == 0
    if isinstance(values, Set | Mapping) or not isinstance(values, Iterable) or is_single:
        raise UsageError(f"{label} must be a list of texts, got {short_repr(values)}")
    return list(unwrap_arrow_column(values))


def _reference_rows(n: int, references: References, layout: Layout) -> list[tuple[str, ...]]:
    if layout not in choices(Layout):
        raise UnknownNameError("layout", str(layout), choices(Layout))
    entries = as_text_list(references, "references")
    is_flat = any(isinstance(r, str) for r in entries)
    if is_flat or (entries and all(map(is_missing, entries))):
        _check_all_texts(entries)
        if len(entries) != n:
            raise LengthError(f"{len(entries)} references for {n} hypotheses")
        return [_drop_missing([r]) for r in entries]
    nested: list[Sequence[Any]] = [
        [] if is_missing(r) else as_text_list(r, f"references[{k}]") for k, r in enumerate(entries)
    ]
    lengths = sorted({len(stream) for stream in nested})
    fits_streams = lengths == [n]
    fits_segments = len(nested) == n
    if layout == "auto":
        if fits_streams and fits_segments and n > 1:
            raise UsageError(
                f"references of shape {n} x {n} may be per segment or per stream: "
                'choose layout="segments" or layout="streams"'
            )
        layout = "streams" if fits_streams else "segments"
    if layout == "streams":
        if not fits_streams:
            raise LengthError(f"reference streams of lengths {lengths} for {n} hypotheses")
        nested = list(zip(*nested, strict=True))
    elif not fits_segments:
        hint = ': for reference streams use layout="streams"' if fits_streams else ""
        raise LengthError(f"references for {len(nested)} segments, but {n} hypotheses{hint}")
    return [_drop_missing(row) for row in nested]


def _check_all_texts(references: Sequence[Any]) -> None:
    for number, reference in enumerate(references, start=1):
        if isinstance(reference, str) or is_missing(reference):
            continue
        if isinstance(reference, Iterable) and not isinstance(reference, bytes):
            raise DataError("references mix texts and lists of texts: use only one of them")
        raise DataError(f"reference {number} is {short_repr(reference)}: expected a text")


def _drop_missing(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(reference for reference in row if not is_missing(reference))
