"""The linguistic analysis of a text as plain values, and its store on disk as compressed JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tertium.core.cached_files import ANALYSES
from tertium.core.store import Store, open_store

LAYOUT_VERSION = 3  # increase it when analyses change and the parser does not
MAX_STORED_BYTES = 512 << 20  # about 400,000 analyses


class Token(NamedTuple):
    """A word or punctuation mark.

    `pos` is the universal and `tag` the Penn part of speech. `head` is the index of the governing
    token (a root governs itself) and `label` the relation to it. `entity` is the type of the named
    entity, or empty. `start` is the character offset in the text.
    """

    text: str
    lemma: str
    pos: str
    tag: str
    head: int
    label: str
    entity: str
    start: int


class TypedSpan(NamedTuple):
    """Tokens or characters `start` to `end` (exclusive) with a type and a value.

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
    entities: tuple[TypedSpan, ...] = ()
    quantities: tuple[TypedSpan, ...] = ()
    multiwords: tuple[TypedSpan, ...] = ()
    is_truncated: bool = False

    def character_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the character offsets of tokens `start` to `end`."""
        last = self.tokens[end - 1]
        return self.tokens[start].start, last.start + len(last.text)


def serialize_analysis(analysis: Analysis) -> bytes:
    """Serialize an analysis without its text."""
    parts = analysis.tokens, analysis.entities, analysis.quantities, analysis.multiwords
    row = json.dumps([*parts, analysis.is_truncated], ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(row.encode("utf-8", errors="replace"), 1)


def deserialize_analysis(text: str, row: bytes) -> Analysis:
    """Restore the analysis of `text` from a row written by `serialize_analysis`."""
    tokens, *spans, is_truncated = json.loads(zlib.decompress(row))
    entities, quantities, multiwords = (tuple(TypedSpan(*span) for span in part) for part in spans)
    words = tuple(Token(*token) for token in tokens)
    return Analysis(text, words, entities, quantities, multiwords, is_truncated)


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
            with contextlib.suppress(ValueError, TypeError, zlib.error):  # a damaged row
                analyses[text] = deserialize_analysis(text, row)
        return analyses

    def put(self, analyses: Iterable[Analysis]) -> None:
        """Store analyses."""
        rows = {analysis.text: serialize_analysis(analysis) for analysis in analyses}
        self._store.write(ANALYSES.name, rows)
