"""What a parser says of a text, as plain values: tokens, dependencies, entities, groups of words.

Nothing here knows which parser it was. An `Analysis` can be written as a row of JSON and read back
equal, which is how it is kept on disk.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tertium.cache.database import ByteStore
from tertium.cache.files import ANALYSES
from tertium.errors import DataError

LAYOUT = 1  # raise it when analyses change without the parser changing
MOST_ROWS = 400_000  # about 300 MB


@dataclass(frozen=True, slots=True)
class Token:
    """One word or mark of a text.

    `pos` is the universal and `tag` the Penn part of speech, `morph` the features as
    `Number=Plur|Tense=Past`; `head` is the number of the governing token (its own for a root),
    `label` the relation to it; `entity` the type of the named entity it belongs to, or empty;
    `start` where it begins in the text, in characters.
    """

    text: str
    lemma: str
    pos: str
    tag: str
    morph: str
    head: int
    label: str
    entity: str
    start: int

    def feature(self, name: str) -> str:
        """One of the morphological features, or nothing.

        >>> Token("mice", "mouse", "NOUN", "NNS", "Number=Plur", 0, "ROOT", "", 0).feature("Number")
        'Plur'
        """
        for item in self.morph.split("|"):
            key, _, value = item.partition("=")
            if key == name:
                return value
        return ""


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Tokens `start` to `end` (not included) taken together.

    `kind` is the type of an entity (PERSON, GPE, ORG ...), of a quantity (number, date ...) or of a
    multi-word (noun, verb, expression); `value` its text, canonical value or lemma.
    """

    start: int
    end: int
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one text; `cut` says that its end was left out because it was too long."""

    text: str
    tokens: tuple[Token, ...] = ()
    entities: tuple[TokenRun, ...] = ()
    quantities: tuple[TokenRun, ...] = ()
    multiwords: tuple[TokenRun, ...] = ()
    cut: bool = False

    @property
    def roots(self) -> tuple[int, ...]:
        """The tokens that depend on no other: one a sentence."""
        return tuple(i for i, token in enumerate(self.tokens) if token.head == i)

    def words(self, span: TokenRun) -> str:
        """The text of a span as it stands."""
        if span.start >= span.end:
            return ""
        last = self.tokens[span.end - 1]
        return self.text[self.tokens[span.start].start : last.start + len(last.text)]


def pack(analysis: Analysis) -> str:
    """An analysis without its text as one line of JSON, a column for each field of the tokens."""
    columns = [[getattr(t, name) for t in analysis.tokens] for name in Token.__slots__]
    spans = [
        [[s.start, s.end, s.kind, s.value] for s in group]
        for group in (analysis.entities, analysis.quantities, analysis.multiwords)
    ]
    return json.dumps([columns, spans, analysis.cut], ensure_ascii=False, separators=(",", ":"))


def unpack(text: str, row: str) -> Analysis:
    """The analysis of `text` that `pack` wrote."""
    try:
        columns, spans, cut = json.loads(row)
        tokens = tuple(map(Token, *columns)) if columns[0] else ()
        entities, quantities, multiwords = (_spans(group) for group in spans)
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"a stored analysis cannot be read ({error})") from None
    return Analysis(text, tokens, entities, quantities, multiwords, cut)


class AnalysisStore:
    """The analyses of one parser, so that a text is parsed once in the life of a cache folder."""

    def __init__(self, parser: str, folder: Path | None = None) -> None:
        own = ANALYSES.path(f"{LAYOUT}-{parser}")
        path = folder / own.name if folder else own
        self._rows = ByteStore(path, ANALYSES.name, MOST_ROWS)

    def get(self, texts: Iterable[str]) -> dict[str, Analysis]:
        """The analyses it holds of these texts."""
        found: dict[str, Analysis] = {}
        for text, row in self._rows.get(texts).items():
            with contextlib.suppress(DataError, zlib.error, UnicodeDecodeError):
                found[text] = unpack(text, zlib.decompress(row).decode())
        return found

    def put(self, analyses: Iterable[Analysis]) -> None:
        """Keep analyses."""
        packed = {a.text: pack(a).encode("utf-8", errors="replace") for a in analyses}
        self._rows.put({text: zlib.compress(row, 1) for text, row in packed.items()})


def _spans(rows: list[list[Any]]) -> tuple[TokenRun, ...]:
    return tuple(TokenRun(*row) for row in rows)
