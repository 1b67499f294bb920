"""The linguistic analysis of a text as plain values, and its store on disk as compressed JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tertium.core.cached_files import ANALYSES
from tertium.core.errors import DataError
from tertium.core.store import Store, open_store

LAYOUT_VERSION = 2  # increase it when analyses change and the parser does not
MAX_STORED_BYTES = 512 << 20  # about 400,000 analyses


@dataclass(frozen=True, slots=True)
class Token:
    """A word or punctuation mark.

    `pos` is the universal and `tag` the Penn part of speech; `morph` has the form
    `Number=Plur|Tense=Past`. `head` is the index of the governing token (a root governs itself)
    and `label` the relation to it. `entity` is the type of the named entity, or empty. `start` is
    the character offset in the text.
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


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Tokens `start` to `end` (exclusive) with a type and a value.

    `kind` is the type of an entity (PERSON, GPE, ORG ...), of a quantity (number, date ...) or of a
    multi-word (noun, verb, expression). `value` is its text, canonical value or lemma.
    """

    start: int
    end: int
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one text; `is_truncated` if the text was too long and its end is dropped."""

    text: str
    tokens: tuple[Token, ...] = ()
    entities: tuple[TokenSpan, ...] = ()
    quantities: tuple[TokenSpan, ...] = ()
    multiwords: tuple[TokenSpan, ...] = ()
    is_truncated: bool = False

    def character_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the character offsets of tokens `start` to `end`."""
        last = self.tokens[end - 1]
        return self.tokens[start].start, last.start + len(last.text)


def serialize_analysis(analysis: Analysis) -> str:
    """Serialize an analysis without its text as one line of JSON, with one list per token field."""
    columns = [[getattr(t, name) for t in analysis.tokens] for name in Token.__slots__]
    spans = [
        [[s.start, s.end, s.kind, s.value] for s in group]
        for group in (analysis.entities, analysis.quantities, analysis.multiwords)
    ]
    row = [columns, spans, analysis.is_truncated]
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def deserialize_analysis(text: str, row: str) -> Analysis:
    """Restore the analysis of `text` from a row written by `serialize_analysis`."""
    try:
        columns, spans, is_truncated = json.loads(row)
        tokens = tuple(map(Token, *columns)) if columns[0] else ()
        entities, quantities, multiwords = (
            tuple(TokenSpan(*span) for span in group) for group in spans
        )
    except (ValueError, TypeError, IndexError) as error:
        raise DataError(f"a stored analysis cannot be read ({error})") from None
    return Analysis(text, tokens, entities, quantities, multiwords, is_truncated)


class AnalysisStore:
    """A store on disk for the analyses of one parser."""

    def __init__(self, parser: str, folder: Path | None = None) -> None:
        path = ANALYSES.path(f"{LAYOUT_VERSION}-{parser}")
        self._path = folder / path.name if folder else path

    @property
    def _store(self) -> Store:
        return open_store(self._path, MAX_STORED_BYTES, log_level=logging.INFO)

    def get(self, texts: Iterable[str]) -> dict[str, Analysis]:
        """Return the stored analyses of these texts."""
        analyses: dict[str, Analysis] = {}
        for text, row in self._store.read(ANALYSES.name, texts).items():
            with contextlib.suppress(DataError, zlib.error, UnicodeDecodeError):
                analyses[text] = deserialize_analysis(text, zlib.decompress(row).decode())
        return analyses

    def put(self, analyses: Iterable[Analysis]) -> None:
        """Store analyses."""
        rows = {}
        for analysis in analyses:
            row = serialize_analysis(analysis).encode("utf-8", errors="replace")
            rows[analysis.text] = zlib.compress(row, 1)
        self._store.write(ANALYSES.name, rows)
