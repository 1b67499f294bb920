"""Compute `tertium/encoders/e5/directions.json`: directions in which translations agree.

    python -m recipes.languages.directions DATA e5@8 src/tertium/encoders/e5/directions.json

FLORES lines in nine languages are compared with English. Pieces that are mutual nearest neighbors
by the cosine of centered vectors are treated as translations of each other:

    W = cov(x - y over such pairs)^(-1/2)      directions: eigenvectors of W cov(x) W, largest first

A word and its translation are then equally far apart in all directions; directions with the largest
spread of words come first. Their number was chosen on da/wmt16 and the development part of
qe/wmt20.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np

from recipes.languages.lines import FLORES_DEV_LINES, read_flores
from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.atomic import write_text
from tertium.encoders import Encoder, load_encoder

LANGUAGES = ("de", "ru", "cs", "fi", "ro", "tr", "et", "lv", "zh")
LINES_PER_LANGUAGE = 200
RIDGE = 0.03  # relative to the mean variance
TOKEN_DIRECTIONS, SENTENCE_DIRECTIONS = 64, 256

Texts = list[Float32Array]


def main(data: Path, name: str, target: Path) -> None:
    encoder, lines_by_language = load_encoder(name), read_flores(data, slice(0, FLORES_DEV_LINES))
    english = center(encoder, lines_by_language["en"][:LINES_PER_LANGUAGE])
    other_languages = [
        center(encoder, lines_by_language[language][:LINES_PER_LANGUAGE]) for language in LANGUAGES
    ]
    gaps = np.concatenate(
        [gap for other in other_languages for gap in map(nearest_differences, other, english)]
    )
    spread = covariance(
        np.concatenate([text for texts in (english, *other_languages) for text in texts])
    )
    rows = principal_directions(covariance(gaps), spread)[
        : max(TOKEN_DIRECTIONS, SENTENCE_DIRECTIONS)
    ]
    stored = {
        "encoder": name,
        "weights": encoder.weights_hash,
        "tokens": TOKEN_DIRECTIONS,
        "sentences": SENTENCE_DIRECTIONS,
        "directions": base64.b64encode(rows.astype("<f2").tobytes()).decode(),
    }
    write_text(target, json.dumps(stored, indent=1) + "\n")


def center(encoder: Encoder, texts: list[str]) -> Texts:
    """Return the token vectors of each text minus the overall mean, (pieces, dim) each."""
    embeddings = encoder.encode(texts, sentences=False)
    mean = embeddings.vectors.mean(axis=0)
    return [embeddings.token_vectors(row) - mean for row in range(len(texts))]


def nearest_differences(text: Float32Array, other: Float32Array) -> Float32Array:
    """Return x - y of mutual nearest pieces of two texts, (pairs, dim)."""
    a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (text, other))
    cosines = a @ b.T
    nearest, back = cosines.argmax(axis=1), cosines.argmax(axis=0)
    mutual = back[nearest] == np.arange(len(text))
    gaps: Float32Array = text[mutual] - other[nearest[mutual]]
    return gaps


def covariance(vectors: Float32Array) -> FloatArray:
    """Return the mean of x x' over vectors (n, dim) with a mean of about 0."""
    vectors_ = vectors.astype(np.float64)
    result: FloatArray = vectors_.T @ vectors_ / len(vectors_)
    return result


def principal_directions(within: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the rows (dim, dim) that vectors are multiplied with, by spread."""
    ridge = RIDGE * np.trace(within) / len(within)
    values, vectors = np.linalg.eigh(within + ridge * np.eye(len(within)))
    whiten = (vectors / np.sqrt(values)) @ vectors.T
    _, axes = np.linalg.eigh(whiten @ spread @ whiten)
    rows: FloatArray = (whiten @ axes[:, ::-1]).T
    return rows / np.abs(rows).max()  # scaled for half precision


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
