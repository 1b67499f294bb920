"""Where each language lies among an encoder's vectors, and in which directions translations agree.

Vectors of one model lie apart by language, so that a translation's similarity to its source says
first which languages they are in. Less the mean of their language they can be compared. What is
left differs between a word and its translation more in some directions than in others: scaled so
that it differs alike in all, the directions in which words spread most are those that tell meaning.
Both are fixed: made once of parallel lines (`python -m recipes.languages.means`, `directions`) and
stored with the encoder.
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

from tertium.arrays import Float32Array, FloatArray, on_grid, products

STORED: Mapping[str, str] = {"e5@8": "tertium.encoders.e5"}
MEANS, DIRECTIONS = "means.json", "directions.json"
# Other codes of the same language.
ALIASES: Mapping[str, str] = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl"}


@dataclass(frozen=True, eq=False)
class LanguageMeans:
    """A mean for each language, (dim,); of a language without one, the mean of all of them."""

    means: Mapping[str, Float32Array]
    general: Float32Array

    def __contains__(self, language: str) -> bool:
        return ALIASES.get(language, language) in self.means

    def of(self, languages: Sequence[str]) -> Float32Array:
        """The means of languages, (languages, dim)."""
        codes = [ALIASES.get(language, language) for language in languages]
        rows = [self.means.get(code, self.general) for code in codes]
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
