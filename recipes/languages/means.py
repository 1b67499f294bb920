"""Compute `tertium/encoders/e5/means.json`: the mean token vector of each language.

    python -m recipes.languages.means DATA e5@8 src/tertium/encoders/e5/means.json

Uses a hundred lines per language. Prints for each language of FLORES how often the translation of
a line is its nearest neighbor, from and into English.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np

from recipes.languages.lines import language_lines
from tertium.core.arrays import Float32Array
from tertium.core.atomic import write_text
from tertium.encoders import load_encoder

LINES_PER_LANGUAGE = 100


def main(data: Path, name: str, target: Path) -> None:
    encoder = load_encoder(name, precision="bf16")
    languages = encoder.languages or frozenset()
    means: dict[str, str] = {}
    english = encoder.encode(sample_lines(language_lines(data)["en"]), tokens=False).sentences
    for language, texts in sorted(language_lines(data).items()):
        if language in languages:
            embeddings = encoder.encode(sample_lines(texts))
            mean = embeddings.vectors.mean(axis=0, dtype=np.float64).astype("<f2")
            means[language] = base64.b64encode(mean.tobytes()).decode()
            print(
                language,
                len(embeddings.vectors),
                *retrieval_accuracy(english, embeddings.sentences),
                flush=True,
            )
            stored = {"encoder": name, "weights": encoder.weights_hash, "means": means}
            write_text(target, json.dumps(stored, indent=1) + "\n")


def sample_lines(texts: list[str]) -> list[str]:
    """Return evenly spaced lines; the same ones for parallel languages."""
    return texts[:: max(1, len(texts) // LINES_PER_LANGUAGE)][:LINES_PER_LANGUAGE]


def retrieval_accuracy(english: Float32Array, other: Float32Array) -> tuple[float, float]:
    """Return how often a line is nearest to its translation, from and into English."""
    cosines = english @ other.T
    expected = np.arange(len(cosines))
    return float((cosines.argmax(1) == expected).mean()), float(
        (cosines.argmax(0) == expected).mean()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
