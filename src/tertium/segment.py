"""The values everything is about: a hypothesis, what it may be compared to, what people said.

A metric sees `Segment`s only; judgments and preferences are segments with a human verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tertium.errors import DataError, LengthError, UsageError, one_line
from tertium.spans import Markings

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Segment:
    """One hypothesis and what it may be compared to; what is not text is refused.

    `context` says where it stands in its document, where that is known. It is no part of the
    value: segments of the same texts are equal, wherever they stand, and a metric that reads
    context (`Metric.reads_context`) looks at both.

    >>> Segment("the cat sat", references=("the cat sat down", "a cat sat"))
    Segment(hypothesis='the cat sat', source=None, references=('the cat sat down', 'a cat sat'))
    """

    hypothesis: str
    source: str | None = None
    references: tuple[str, ...] = ()
    context: Context | None = field(default=None, compare=False, repr=False)

    if TYPE_CHECKING:  # what is written by `dataclass` takes lists as well, which become tuples

        def __init__(
            self,
            hypothesis: str,
            source: str | None = None,
            references: Sequence[str] = (),
            context: Context | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.hypothesis, str):
            raise DataError(f"the hypothesis of a segment is {self.hypothesis!r}, not a text")
        check_characters(self.hypothesis, "the hypothesis of a segment")
        if self.source is not None:
            if not isinstance(self.source, str):
                raise DataError(f"the source of a segment is {self.source!r}, not a text")
            check_characters(self.source, "the source of a segment")
        check_texts(self.references, "the references of a segment", "reference")
        if not isinstance(self.references, tuple):  # a list has no hash, and equals no tuple
            object.__setattr__(self, "references", tuple(self.references))

    def sides(self, against: str) -> list[tuple[str, ...]]:
        """What it is compared with, by reference, source or both: texts for each comparison.

        >>> Segment("a", "A", ("x", "y")).sides("both")
        [('x', 'A'), ('y', 'A')]
        """
        if against == "source":
            return [(self.source or "",)]
        behind = (self.source or "",) if against == "both" else ()
        return [(reference, *behind) for reference in self.references]


@dataclass(frozen=True, slots=True)
class Document:
    """One system's segments of a document, in their order and without context of their own."""

    name: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """Where a segment stands: at `place`, from 0, of its document."""

    document: Document
    place: int

    def before(self, count: int) -> tuple[Segment, ...]:
        """The segments just before this one, at most so many."""
        return self.document.segments[max(0, self.place - count) : self.place]

    def after(self, count: int) -> tuple[Segment, ...]:
        """The segments just behind this one, at most so many."""
        return self.document.segments[self.place + 1 : self.place + 1 + count]


def place_segments(segments: Sequence[Segment], documents: Sequence[str]) -> list[Segment]:
    """Segments of one system with their context; each has the name of its document beside it.

    >>> [a, b] = place_segments([Segment("One."), Segment("Two.")], ["talk", "talk"])
    >>> b.context.before(3), b == Segment("Two.")
    ((Segment(hypothesis='One.', source=None, references=()),), True)
    """
    if len(segments) != len(documents):
        raise LengthError(f"{len(documents)} names of documents for {len(segments)} segments")
    rows: dict[str, list[Segment]] = {}
    places = []
    for segment, name in zip(segments, documents, strict=True):
        own = rows.setdefault(name, [])
        places.append(len(own))
        own.append(segment if segment.context is None else replace(segment, context=None))
    whole = {name: Document(name, tuple(own)) for name, own in rows.items()}
    return [
        replace(segment, context=Context(whole[name], place))
        for segment, name, place in zip(segments, documents, places, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Judgment:
    """A human score of one translation: higher is better, whatever the scale.

    `item` names the source segment, so that several systems' translations of it can be grouped;
    `system`, `annotator`, `lp` (language pair) and `document` are empty where they were not
    published; `markings` are the errors that were marked, None where nobody looked for any.
    """

    segment: Segment
    score: float
    item: str = ""
    system: str = ""
    annotator: str = ""
    lp: str = ""
    document: str = ""
    markings: Markings | None = None

    def __post_init__(self) -> None:
        _check_judged(self.segment)


@dataclass(frozen=True, slots=True)
class Preference:
    """A human comparison of two translations of one item.

    `verdict` is 1.0 where people preferred `left`, 0.0 where they preferred `right`, 0.5 for a tie.
    """

    left: Segment
    right: Segment
    verdict: float
    item: str = ""
    left_system: str = ""
    right_system: str = ""
    judge: str = ""
    lp: str = ""

    def __post_init__(self) -> None:
        _check_judged(self.left)
        _check_judged(self.right)

    @property
    def is_tie(self) -> bool:
        return self.verdict == 0.5


def _check_judged(given: object) -> None:
    """Refuse a bare text where a segment was judged."""
    if not isinstance(given, Segment):
        raise UsageError(
            f"people judge segments, not {one_line(given)}: "
            'Segment("a translation", references=["a reference"]) is one'
        )


def check_texts(texts: Any, label: str, each: str = "segment") -> None:
    """Refuse what is no list of texts: `label` says whose, the number of `each`, from 1, where."""
    if isinstance(texts, str):
        raise UsageError(
            f"{label}: expected a list of texts, got the one text {texts[:40]!r}; wrap it in [...]"
        )
    if not hasattr(texts, "__len__"):
        raise UsageError(f"{label}: expected a list of texts, got {type(texts).__name__}")
    if isinstance(texts, Set | Mapping):
        kind = type(texts).__name__
        raise UsageError(f"{label}: expected a list of texts in their order, got a {kind}")
    if hasattr(texts, "columns"):
        raise UsageError(
            f"{label}: expected a list of texts, got a table ({type(texts).__name__}): choose one "
            "of its columns"
        )
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"{label}: {each} {number} is {text!r}, not a text")
        if not text.isascii():  # or a place would be written down for each of millions
            check_characters(text, f"{label}: {each} {number}")


def check_characters(text: str, where: str) -> None:
    """Refuse halves of surrogate pairs: no file can hold them, and no tokenizer takes them."""
    found = None if text.isascii() else _SURROGATE.search(text)
    if found is None:
        return
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte that it could not decode
        raise DataError(f"{where}: not UTF-8 (byte 0x{code - 0xDC00:02x}); convert the text first")
    raise DataError(
        f"{where}: U+{code:04X} is half of a surrogate pair, not a character; the text was cut or "
        "decoded wrongly, so make it anew"
    )
