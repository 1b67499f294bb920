"""Correction of tertium-multi's network score by a readout, by chrF and by word fragmentation.

Network scores of unusual inputs can become extreme, so they are bounded. A second, linear readout
of the hidden layer, trained on human scores only, adds what the score misses. chrF helps in
languages that the network hardly saw in training:

    raw = (share - strange_share * f) * b + copied * min(b, 0) + readout
          + letters * chrF + strange_letters * f * (chrF - .55)
      b = s / sqrt(1 + (s / softness)^2)

s is the network's score and f the subword fragmentation: how many pieces the words split into. Rare
languages have many pieces per word, and there chrF gets more weight. The coefficients differ by
input mode. The readout never saw copies of the source, so the more of the source is copied, the
more a negative network score counts; except for sources without words (URLs, handles, formulas).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.loading import load_metric
from tertium.schema import NON_NEGATIVE, POSITIVE
from tertium.segment import Segment
from tertium.text.language_identification import has_translatable_words
from tertium.text.scripts import UNSPACED_SCRIPTS, script_share

FAMILIAR_PIECES_PER_WORD = 1.6  # typical of languages that the vocabulary covers well
NEUTRAL_CHRF = 0.55  # chrF of an average translation, where fragmentation changes no score
Row = tuple[str, str | None, str | None]  # hypothesis, source, reference; None if not used


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Coefficients of the correction for one input mode."""

    share: Annotated[float, NON_NEGATIVE]
    softness: Annotated[float, POSITIVE]
    letters: float
    strange_share: Annotated[float, NON_NEGATIVE]
    strange_letters: Annotated[float, NON_NEGATIVE]

    def __call__(
        self,
        rows: Sequence[Row],
        scores: FloatArray,
        readouts: FloatArray,
        fragmentation: FloatArray,
    ) -> FloatArray:
        """Return the corrected raw scores of rows of this input mode, (n,).

        >>> shares = {"strange_share": 0.5, "strange_letters": 1.0}
        >>> correct = Correction(share=0.5, softness=3.0, letters=2.0, **shares)
        >>> row, score, readout = ("a cat", None, "a cat"), np.array([4.0]), np.array([0.3])
        >>> correct([row], score, readout, np.array([0.0])).tolist()
        [3.5]
        >>> correct([row], score, readout, np.array([1.0])).round(2).tolist()
        [2.75]
        """
        bounded = scores / np.sqrt(1 + (scores / self.softness) ** 2)
        total = (self.share - self.strange_share * fragmentation) * bounded + readouts
        if rows[0][1] is not None:
            copied = np.maximum(2 * chrf_similarity(rows, 1) - 1, 0)
            copied *= [has_translatable_words(row[1] or "") for row in rows]
            total = total + copied * np.minimum(bounded, 0)
        if rows[0][2] is None:
            return total
        chrf = chrf_similarity(rows, 2)
        rare_language = self.strange_letters * fragmentation * (chrf - NEUTRAL_CHRF)
        return total + self.letters * chrf + rare_language


@dataclass(frozen=True, kw_only=True)
class ModeCorrections:
    """Corrections of the input modes."""

    source: Correction
    reference: Correction
    both: Correction


def reference_or_source(row: Row) -> str:
    """Return the reference of a row, or its source if there is no reference.

    >>> reference_or_source(("a", "A", "b")), reference_or_source(("a", "A", None))
    ('b', 'A')
    """
    return row[1] or "" if row[2] is None else row[2]


def subword_fragmentation(text: str, pieces: int) -> float:
    """Return how much the words of a text are split into pieces, 0 to 1; 0 in unspaced scripts.

    >>> subword_fragmentation("a cat sat", 3), subword_fragmentation("um kaţki rõvst", 9)
    (0.0, 1.0)
    >>> subword_fragmentation("火车不开。", 4)
    0.0
    """
    words = len(text.split())
    if not words or script_share(text, UNSPACED_SCRIPTS) > 0.5:
        return 0.0
    return min(max(pieces / words - FAMILIAR_PIECES_PER_WORD, 0.0), 1.0)


def mean_fragmentation(
    rows: Sequence[Row], tokenize: Callable[[list[str]], Sequence[Sequence[int]]]
) -> FloatArray:
    """Return the mean fragmentation of hypothesis and reference, (n,); 0 without a reference.

    >>> rows = [("a cat", None, "a dog"), ("a cat", "ein Hund", None)]
    >>> mean_fragmentation(rows, lambda texts: texts)
    array([0.9, 0. ])
    """
    pairs = [(row[0], row[2]) for row in rows if row[2] is not None]
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    counts = map(len, tokenize(texts))
    values = dict(zip(texts, map(subword_fragmentation, texts, counts), strict=True))
    means = [0.0 if row[2] is None else (values[row[0]] + values[row[2]]) / 2 for row in rows]
    return np.array(means)


def chrf_similarity(rows: Sequence[Row], side: int) -> FloatArray:
    """Return the chrF of hypotheses against their source (side 1) or reference (2), 0 to 1."""
    segments = [Segment(row[0], None, (row[side] or "",)) for row in rows]
    return load_metric("chrf").score(segments).segments / 100
