"""Center vectors by language and project them on directions in which translations agree.

Vectors of a multilingual encoder cluster by language, which distorts the similarity of a
translation to its source. Subtracting the mean of the language removes this. What remains differs
between a word and its translation more in some directions than in others. After scaling these
differences to equal size, the directions of largest variance are those that carry meaning. Means
and directions were computed once from parallel text (`python -m recipes.languages.means`,
`directions`) and are stored with the encoder.

The language of a text comes from the language pair, or else is identified from the text alone, so
scores do not depend on other texts. Special tokens are excluded. Sentence vectors are means of
centered token vectors.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, exact_dot_products, round_to_grid
from tertium.core.segment import Segment
from tertium.encoders import Chunk, Embeddings
from tertium.encoders.encoder import offsets_from_lengths
from tertium.metrics.base.text_warnings import Flags, as_flags, merge_flags
from tertium.text.language_codes import macrolanguage
from tertium.text.language_identification import identify_language

ENCODER_PACKAGES: Mapping[str, str] = {"e5@8": "tertium.encoders.e5"}
MEANS, DIRECTIONS = "means.json", "directions.json"


@dataclass(frozen=True, eq=False)
class LanguageMeans:
    """Mean vector of each language, (dim,); other languages get the mean of all of them."""

    means: Mapping[str, Float32Array]
    general: Float32Array

    def __contains__(self, language: str) -> bool:
        return macrolanguage(language) in self.means

    def of(self, languages: Sequence[str]) -> Float32Array:
        """Return the means of languages, (languages, dim)."""
        rows = [self.means.get(macrolanguage(code), self.general) for code in languages]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.general))


@dataclass(frozen=True, eq=False)
class TranslationDirections:
    """Directions in which translations agree, the best first, as rows (directions, dim).

    Token vectors use the first `tokens` of them, sentence vectors the first `sentences`.
    """

    rows: FloatArray
    tokens: int
    sentences: int

    def __call__(self, vectors: Float32Array, count: int) -> Float32Array:
        """Project vectors on the first directions, (n, dim) -> (n, count); batch-invariant."""
        return exact_dot_products(vectors, self.rows[:count]).astype(np.float32)


@cache
def language_means(encoder: str) -> LanguageMeans | None:
    """Load the language means of an encoder, such as e5@8, or return None."""
    if encoder not in ENCODER_PACKAGES:
        return None
    means = {code: _decode_vectors(text) for code, text in _read(encoder, MEANS)["means"].items()}
    return LanguageMeans(means, np.mean(list(means.values()), axis=0))


@cache
def translation_directions(encoder: str) -> TranslationDirections | None:
    """Load the translation directions of an encoder, or return None."""
    if encoder not in ENCODER_PACKAGES:
        return None
    stored = _read(encoder, DIRECTIONS)
    rows = _decode_vectors(stored["directions"]).reshape(stored["sentences"], -1)
    return TranslationDirections(round_to_grid(rows), stored["tokens"], stored["sentences"])


def _read(encoder: str, file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        files(ENCODER_PACKAGES[encoder]).joinpath(file).read_text("utf-8")
    )
    return content


def _decode_vectors(text: str) -> Float32Array:
    return np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float32)


@dataclass(frozen=True)
class LanguageCentering:
    """Centering for a language pair; empty languages are identified from each text."""

    means: LanguageMeans
    source: str = ""
    target: str = ""
    directions: TranslationDirections | None = None

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return the chunk with centered vectors."""
        rows: dict[tuple[int, str], int] = {}
        indices = []
        for numbers, language in ((chunk.left, self.target), (chunk.right, self.source)):
            keys = [(n, language or identify_language(chunk.texts[n])) for n in numbers.tolist()]
            indices.append(np.array([rows.setdefault(key, len(rows)) for key in keys], np.int64))
        texts = self._center(chunk.embeddings, rows)
        return Chunk(pairs=chunk.pairs, left=indices[0], right=indices[1], embeddings=texts)

    def _center(self, texts: Embeddings, rows: dict[tuple[int, str], int]) -> Embeddings:
        centers = self.means.of([language for _, language in rows])
        vectors, pieces = [], []
        for (row, _), mean in zip(rows, centers, strict=True):
            pieces_at = [place for place, piece in enumerate(texts.tokens[row]) if piece]
            vectors.append(texts.token_vectors(row)[pieces_at] - mean)
            pieces.append(tuple(texts.tokens[row][place] for place in pieces_at))
        width = texts.vectors.shape[1]
        means = [v.mean(axis=0) if len(v) else np.zeros(width) for v in vectors]
        tokens, sentences = np.concatenate(vectors), np.array(means, dtype=np.float32)
        if self.directions:
            tokens = self.directions(tokens, self.directions.tokens)
            sentences = self.directions(sentences, self.directions.sentences)
        return Embeddings(
            vectors=tokens.astype(np.float32, copy=False),
            offsets=offsets_from_lengths([len(v) for v in vectors]),
            tokens=tuple(pieces),
            sentences=sentences,
            truncated=texts.truncated[[row for row, _ in rows]],
        )

    def flags(self, segments: Sequence[Segment]) -> Flags:
        """Flag segments with a text whose language is unknown or has no stored mean."""
        parts: list[Flags] = []
        for side, given_language in (("hypothesis", self.target), ("source", self.source)):
            texts = [getattr(segment, side) or "" for segment in segments]
            languages = [given_language or identify_language(text) for text in texts]
            is_known = np.array([language in self.means for language in languages], dtype=np.bool_)
            is_identified = as_flags(languages)
            is_text = as_flags(text.strip() for text in texts)
            parts.append({"language not identified": ~is_identified & is_text})
            parts.append({"language without a mean": is_identified & ~is_known})
        return merge_flags(parts)

    def signature(self) -> dict[str, str]:
        """Return the signature fields: languages and number of directions."""
        means = f"{self.source or 'identified'}-{self.target or 'identified'}"
        if not self.directions:
            return {"means": means}
        return {"means": means, "dirs": f"{self.directions.tokens}+{self.directions.sentences}"}
