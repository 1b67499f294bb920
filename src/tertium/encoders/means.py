"""Where each language lies among an encoder's vectors: the mean of its token vectors.

Vectors of one model lie apart by language, so that a translation's similarity to its source says
first which languages they are in. Less the mean of their language they can be compared. Means are
fixed: made once of parallel lines (`python -m recipes.languages.means`), stored with the encoder.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from tertium.arrays import Float32Array

STORED: Mapping[str, tuple[str, str]] = {"e5@8": ("tertium.encoders.e5", "means.json")}
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


@cache
def language_means(encoder: str) -> LanguageMeans | None:
    """The means stored for an encoder at a layer, such as e5@8."""
    if encoder not in STORED:
        return None
    package, file = STORED[encoder]
    stored = json.loads(files(package).joinpath(file).read_text("utf-8"))
    means = {
        language: np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float32)
        for language, text in stored["means"].items()
    }
    return LanguageMeans(means, np.mean(list(means.values()), axis=0))
