"""Make `tertium/encoders/e5/directions.json`: the directions in which translations agree.

    python -m recipes.languages.directions DATA e5@8 src/tertium/encoders/e5/directions.json

Lines of FLORES in nine languages meet their English ones. Pieces that are each other's nearest, by
the cosine of vectors less the mean of their language, are taken for translations of each other:

    W = cov(x - y over such pairs)^(-1/2)      directions: eigenvectors of W cov(x) W, largest first

so that a word and its translation are equally far apart in all directions, and those come first in
which words spread the most. How many are used was chosen on da/wmt16 and the development part of
qe/wmt20.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np

from recipes.languages.lines import DEV, flores
from tertium.arrays import Float32Array, FloatArray
from tertium.atomic import write_text
from tertium.encoders import Encoder, load_encoder

LANGUAGES = ("de", "ru", "cs", "fi", "ro", "tr", "et", "lv", "zh")
LINES = 200
RIDGE = 0.03  # of the mean variance: directions that hardly vary are not blown up
TOKENS, SENTENCES = 64, 256

Texts = list[Float32Array]


def main(data: Path, name: str, target: Path) -> None:
    encoder, lines = load_encoder(name), flores(data, slice(0, DEV))
    english = centre(encoder, lines["en"][:LINES])
    others = [centre(encoder, lines[language][:LINES]) for language in LANGUAGES]
    gaps = np.concatenate([gap for other in others for gap in map(differences, other, english)])
    spread = covariance(np.concatenate([text for texts in (english, *others) for text in texts]))
    rows = directions(covariance(gaps), spread)[: max(TOKENS, SENTENCES)]
    stored = {
        "encoder": name,
        "weights": encoder.weights_hash,
        "tokens": TOKENS,
        "sentences": SENTENCES,
        "directions": base64.b64encode(rows.astype("<f2").tobytes()).decode(),
    }
    write_text(target, json.dumps(stored, indent=1) + "\n")


def centre(encoder: Encoder, texts: list[str]) -> Texts:
    """The token vectors of each text less the mean of all, (pieces, dim) each."""
    found = encoder.encode(texts, sentences=False)
    mean = found.vectors.mean(axis=0)
    return [found.token_vectors(row) - mean for row in range(len(texts))]


def differences(text: Float32Array, other: Float32Array) -> Float32Array:
    """x - y of the pieces of two texts that are each other's nearest, (pairs, dim)."""
    a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (text, other))
    cosines = a @ b.T
    nearest, back = cosines.argmax(axis=1), cosines.argmax(axis=0)
    mutual = back[nearest] == np.arange(len(text))
    gaps: Float32Array = text[mutual] - other[nearest[mutual]]
    return gaps


def covariance(vectors: Float32Array) -> FloatArray:
    """The mean of x x' over vectors (n, dim), which have a mean of about 0."""
    wide = vectors.astype(np.float64)
    result: FloatArray = wide.T @ wide / len(wide)
    return result


def directions(within: FloatArray, spread: FloatArray) -> FloatArray:
    """Rows (dim, dim) that vectors are multiplied with, the largest spread first."""
    ridge = RIDGE * np.trace(within) / len(within)
    values, vectors = np.linalg.eigh(within + ridge * np.eye(len(within)))
    whiten = (vectors / np.sqrt(values)) @ vectors.T
    _, axes = np.linalg.eigh(whiten @ spread @ whiten)
    rows: FloatArray = (whiten @ axes[:, ::-1]).T
    return rows / np.abs(rows).max()  # half precision holds numbers about 1 best


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
