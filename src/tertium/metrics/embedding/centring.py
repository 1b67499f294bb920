"""Take the mean of its language from every vector, and look where translations agree.

Vectors of one model lie apart by language, so that a translation's similarity to its source says
first which languages they are in. Less the mean of their language they can be compared. What is
left differs between a word and its translation more in some directions than in others: scaled so
that it differs alike in all, the directions in which words spread most are those that tell meaning.
Both are fixed: made once of parallel lines (`python -m recipes.languages.means`, `directions`) and
stored with the encoder.

The language of a text is that of its side where the pair is given, else it is identified from the
text alone: no score depends on the other texts of a run. Special tokens are left out, and the
sentence vector of a text is the mean of its centred token vectors. Where directions are given, all
vectors are taken in these.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tertium.arrays import Float32Array, FloatArray, on_grid, products
from tertium.encoders import Chunk, Embeddings
from tertium.encoders.encoder import offsets_of
from tertium.text.language_codes import language_of
from tertium.text.language_identification import identify

STORED: Mapping[str, str] = {"e5@8": "tertium.encoders.e5"}
MEANS, DIRECTIONS = "means.json", "directions.json"


@dataclass(frozen=True, eq=False)
class LanguageMeans:
    """A mean for each language, (dim,); of a language without one, the mean of all of them."""

    means: Mapping[str, Float32Array]
    general: Float32Array

    def __contains__(self, language: str) -> bool:
        return language_of(language) in self.means

    def of(self, languages: Sequence[str]) -> Float32Array:
        """The means of languages, (languages, dim)."""
        rows = [self.means.get(language_of(code), self.general) for code in languages]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.general))


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions in which translations agree, the best first, as rows (directions, dim).

    Vectors of pieces are compared in the first `tokens` of them, of sentences in the first
    `sentences`: a sentence's is a mean, in which the noise of its pieces has cancelled out.
    """

    rows: FloatArray
    tokens: int
    sentences: int

    def __call__(self, vectors: Float32Array, count: int) -> Float32Array:
        """Vectors (n, dim) in the first directions, (n, count); exact, so no row minds another."""
        return products(vectors, self.rows[:count]).astype(np.float32)


@cache
def language_means(encoder: str) -> LanguageMeans | None:
    """The means stored for an encoder at a layer, such as e5@8."""
    if encoder not in STORED:
        return None
    means = {code: _numbers(text) for code, text in _read(encoder, MEANS)["means"].items()}
    return LanguageMeans(means, np.mean(list(means.values()), axis=0))


@cache
def translation_directions(encoder: str) -> Directions | None:
    """The directions stored for an encoder at a layer."""
    if encoder not in STORED:
        return None
    stored = _read(encoder, DIRECTIONS)
    rows = _numbers(stored["directions"]).reshape(stored["sentences"], -1)
    return Directions(on_grid(rows), stored["tokens"], stored["sentences"])


def _read(encoder: str, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(STORED[encoder]).joinpath(file).read_text("utf-8"))
    return found


def _numbers(text: str) -> Float32Array:
    return np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float32)


@dataclass(frozen=True)
class Centring:
    """Means, and the languages of hypotheses (`target`) and sources, empty to identify them."""

    means: LanguageMeans
    source: str = ""
    target: str = ""
    directions: Directions | None = None

    def __call__(self, chunk: Chunk, left: Sequence[str], right: Sequence[str]) -> Chunk:
        """A chunk over centred vectors; `left` and `right` are the texts of its comparisons."""
        rows: dict[tuple[int, str], int] = {}
        places = [
            np.array(
                [
                    rows.setdefault((row, language or identify(text)), len(rows))
                    for row, text in zip(numbers.tolist(), texts, strict=True)
                ],
                dtype=np.int64,
            )
            for numbers, texts, language in (
                (chunk.left, left, self.target),
                (chunk.right, right, self.source),
            )
        ]
        texts = self._centre(chunk.texts, rows)
        return Chunk(pairs=chunk.pairs, left=places[0], right=places[1], texts=texts)

    def _centre(self, texts: Embeddings, rows: dict[tuple[int, str], int]) -> Embeddings:
        centres = self.means.of([language for _, language in rows])
        vectors, pieces = [], []
        for (row, _), mean in zip(rows, centres, strict=True):
            real = [place for place, piece in enumerate(texts.pieces[row]) if piece]
            vectors.append(texts.tokens(row)[real] - mean)
            pieces.append(tuple(texts.pieces[row][place] for place in real))
        width = texts.vectors.shape[1]
        means = [v.mean(axis=0) if len(v) else np.zeros(width) for v in vectors]
        found, sentences = np.concatenate(vectors), np.array(means, dtype=np.float32)
        if self.directions:
            found = self.directions(found, self.directions.tokens)
            sentences = self.directions(sentences, self.directions.sentences)
        return Embeddings(
            vectors=found.astype(np.float32, copy=False),
            offsets=offsets_of([len(v) for v in vectors]),
            pieces=tuple(pieces),
            sentences=sentences,
            truncated=texts.truncated[[row for row, _ in rows]],
        )

    def warnings(self, hypotheses: Sequence[str], sources: Sequence[str]) -> Counter[str]:
        """What should be known of the languages of these texts."""
        counts: Counter[str] = Counter()
        for texts, said in ((hypotheses, self.target), (sources, self.source)):
            for text in texts:
                language = said or identify(text)
                counts["language not told"] += not language and bool(text.strip())
                counts["language without a mean"] += bool(language) and language not in self.means
        return counts

    def signature(self) -> dict[str, str]:
        """The languages as given, or that they were identified, and how many directions."""
        means = f"{self.source or 'identified'}-{self.target or 'identified'}"
        if not self.directions:
            return {"means": means}
        return {"means": means, "dirs": f"{self.directions.tokens}+{self.directions.sentences}"}
