"""Make `tertium/encoders/e5/means.json`: the mean token vector of each language at a layer.

    python -m recipes.languages.means DATA e5@8 src/tertium/encoders/e5/means.json

A hundred lines a language, each piece counting alike. Prints for each language of FLORES how
often a line's translation is the nearest of the hundred, from English and into English.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np

from recipes.languages.lines import lines
from tertium.arrays import Float32Array
from tertium.atomic import write_text
from tertium.encoders import load_encoder

LINES = 100


def main(data: Path, name: str, target: Path) -> None:
    encoder = load_encoder(name, precision="bf16")
    known = encoder.languages or frozenset()
    means: dict[str, str] = {}
    english = encoder.encode(sample(lines(data)["en"]), tokens=False).sentences
    for language, texts in sorted(lines(data).items()):
        if language in known:
            found = encoder.encode(sample(texts))
            mean = found.vectors.mean(axis=0, dtype=np.float64).astype("<f2")
            means[language] = base64.b64encode(mean.tobytes()).decode()
            print(language, len(found.vectors), *nearest(english, found.sentences), flush=True)
            stored = {"encoder": name, "weights": encoder.weights_hash, "means": means}
            write_text(target, json.dumps(stored, indent=1) + "\n")


def sample(texts: list[str]) -> list[str]:
    """Lines spread over all of them; the same ones where languages have as many."""
    return texts[:: max(1, len(texts) // LINES)][:LINES]


def nearest(english: Float32Array, other: Float32Array) -> tuple[float, float]:
    """How often a line is nearest to its translation, from English and into English."""
    cosines = english @ other.T
    truth = np.arange(len(cosines))
    return float((cosines.argmax(1) == truth).mean()), float((cosines.argmax(0) == truth).mean())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
