"""Segments, documents and human judgments: the values that metrics and data share.

Metrics see `Segment`s only; judgments and preferences are segments with a human score.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tertium.core.errors import DataError, LengthError, UsageError, short_repr
from tertium.core.spans import ErrorAnnotations, Side

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Segment:
    """One hypothesis with its source and references.

    `context` is its position in a document, if known. It does not take part in comparisons:
    segments with the same texts are equal. Metrics that read context (`Metric.reads_context`)
    look at both.

    >>> Segment("the cat sat", references=("the cat sat down", "a cat sat"))
    Segment(hypothesis='the cat sat', source=None, references=('the cat sat down', 'a cat sat'))
    """

    hypothesis: str
    source: str | None = None
    references: tuple[str, ...] = ()
    context: Context | None = field(default=None, compare=False, repr=False)

    if TYPE_CHECKING:  # the generated constructor also accepts lists of references

        def __init__(
            self,
            hypothesis: str,
            source: str | None = None,
            references: Sequence[str] = (),
            context: Context | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("hypothesis", "source"):
            text = getattr(self, name)
            if not isinstance(text, str) and not (name == "source" and text is None):
                raise DataError(f"the {name} of a segment is {text!r}, not a text")
            check_surrogates(text or "", f"the {name} of a segment")
        check_texts(self.references, "the references of a segment", "reference")
        if not isinstance(self.references, tuple):  # lists are not hashable
            object.__setattr__(self, "references", tuple(self.references))

    def text_of(self, side: Side) -> str:
        """Return the translation or the source; a missing source is empty."""
        return self.hypothesis if side == "hypothesis" else self.source or ""

    def comparison_texts(self, against: str) -> list[tuple[str, ...]]:
        """Return the texts of each comparison, for `against` "reference", "source" or "both".

        >>> Segment("a", "A", ("x", "y")).comparison_texts("both")
        [('x', 'A'), ('y', 'A')]
        """
        if against == "source":
            return [(self.source or "",)]
        source = (self.source or "",) if against == "both" else ()
        return [(reference, *source) for reference in self.references]


def checked_segment(
    hypothesis: str, source: str | None = None, references: tuple[str, ...] = ()
) -> Segment:
    """Build a segment of texts that were checked when they were read; they are not checked again.

    >>> checked_segment("hello", references=("hi",)) == Segment("hello", references=("hi",))
    True
    """
    segment = object.__new__(Segment)
    object.__setattr__(segment, "hypothesis", hypothesis)
    object.__setattr__(segment, "source", source)
    object.__setattr__(segment, "references", references)
    object.__setattr__(segment, "context", None)
    return segment


@dataclass(frozen=True, slots=True)
class Document:
    """One system's segments of a document, in order."""

    name: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """The position of a segment in its document, counted from 0."""

    document: Document
    position: int

    def before(self, count: int) -> tuple[Segment, ...]:
        """Return up to `count` segments directly before this one."""
        return self.document.segments[max(0, self.position - count) : self.position]

    def after(self, count: int) -> tuple[Segment, ...]:
        """Return up to `count` segments directly after this one."""
        return self.document.segments[self.position + 1 : self.position + 1 + count]


def attach_context(segments: Sequence[Segment], documents: Sequence[str]) -> list[Segment]:
    """Add context to one system's segments, given the document name of each.

    >>> [a, b] = attach_context([Segment("One."), Segment("Two.")], ["talk", "talk"])
    >>> b.context.before(3), b == Segment("Two.")
    ((Segment(hypothesis='One.', source=None, references=()),), True)
    """
    copies = [checked_segment(s.hypothesis, s.source, s.references) for s in segments]
    set_context(copies, documents)
    return copies


def set_context(segments: Sequence[Segment], documents: Sequence[str]) -> None:
    """Add context, as `attach_context` does, to new segments that nothing else refers to."""
    if len(segments) != len(documents):
        raise LengthError(f"{len(documents)} document names for {len(segments)} segments")
    members: dict[str, list[Segment]] = {}
    positions = []
    for segment, name in zip(segments, documents, strict=True):
        in_document = members.setdefault(name, [])
        positions.append(len(in_document))
        in_document.append(segment)
    by_name = {name: Document(name, tuple(texts)) for name, texts in members.items()}
    for segment, name, position in zip(segments, documents, positions, strict=True):
        object.__setattr__(segment, "context", Context(by_name[name], position))


@dataclass(frozen=True, slots=True)
class Judgment:
    """A human score of one translation; higher is better on every scale.

    `item` identifies the source segment, to group the translations of several systems. `system`,
    `annotator`, `lp` (language pair) and `document` are empty if not published.
    `error_annotations` are the marked errors, None if nobody was asked to mark errors.
    `metric_scores` are scores of metrics that were published with the judgment, by name.
    """

    segment: Segment
    score: float
    item: str = ""
    system: str = ""
    annotator: str = ""
    lp: str = ""
    document: str = ""
    error_annotations: ErrorAnnotations | None = None
    metric_scores: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_is_segment(self.segment)


@dataclass(frozen=True, slots=True)
class Preference:
    """A human comparison; `verdict` is 1.0 for `left`, 0.0 for `right`, 0.5 for a tie."""

    left: Segment
    right: Segment
    verdict: float
    item: str = ""
    left_system: str = ""
    right_system: str = ""
    judge: str = ""
    lp: str = ""

    def __post_init__(self) -> None:
        _check_is_segment(self.left)
        _check_is_segment(self.right)

    @property
    def is_tie(self) -> bool:
        return self.verdict == 0.5


def _check_is_segment(value: object) -> None:
    if not isinstance(value, Segment):
        raise UsageError(
            f"a judgment needs a segment, not {short_repr(value)}: write "
            'Segment("a translation", references=["a reference"])'
        )


def check_texts(texts: Any, label: str, element: str = "segment") -> None:
    """Raise an error if a value is not a list of texts; the message counts elements from 1."""
    if isinstance(texts, str):
        raise UsageError(
            f"{label}: expected a list of texts, got the one text {texts[:40]!r}; wrap it in [...]"
        )
    is_column = hasattr(texts, "__len__") and getattr(texts, "ndim", 1) == 1
    if not is_column or isinstance(texts, Set | Mapping):
        raise UsageError(f"{label}: expected a list of texts, got {type(texts).__name__}")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"{label}: {element} {number} is {text!r}, not a text")
        if not text.isascii():  # formatting the location of every text would be slow
            check_surrogates(text, f"{label}: {element} {number}")


def check_surrogates(text: str, where: str) -> None:
    """Raise `DataError` for lone surrogates, which cannot be encoded as UTF-8."""
    match = None if text.isascii() else _SURROGATE.search(text)
    if match is None:
        return
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that Python could not decode
        raise DataError(f"{where}: not UTF-8 (byte 0x{code - 0xDC00:02x}); convert the text first")
    raise DataError(
        f"{where}: U+{code:04X} is half of a surrogate pair, not a character; the text was cut or "
        "decoded wrongly; create it again"
    )


Against = Literal["reference", "source", "both"]
REQUIRED_INPUTS: Mapping[str, frozenset[str]] = {
    "reference": frozenset({"references"}),
    "source": frozenset({"source"}),
    "both": frozenset({"references", "source"}),
}


def check_against(against: str) -> None:
    """Raise unless `against` is reference, source or both."""
    if against not in REQUIRED_INPUTS:
        raise UsageError(f"against={against}: expected reference, source or both")
