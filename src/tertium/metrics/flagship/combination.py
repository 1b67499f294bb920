"""What the network of tertium-multi says, bounded, and corrected by what costs nothing beside it.

Far from what it learned from, a network's scores run away in both directions. Its hidden layer
knows more than that: a second reading of it, linear and learned from people's scores alone, tells
apart what the score does not, and matches of letters and words hold where a language was hardly
learned:

    raw = share * b + copied * min(b, 0) + reading + letters * chrF + words * F + kept * chrF'
      b = s / sqrt(1 + (s / softness)^2)

of the network's score s, the second reading for a view, chrF and the F-score of words beside the
reference, and chrF' beside the source; the factors are each view's own. The reading does not know
copies of the source, which nobody judged: the more of it was copied, the more counts what the
network holds against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.metric import load_metric
from tertium.schema import POSITIVE
from tertium.segment import Segment

Row = tuple[str, str | None, str | None]  # hypothesis, source, reference, as far as they are read


@dataclass(frozen=True, kw_only=True)
class Correction:
    """How a view's raw score comes about."""

    share: Annotated[float, POSITIVE]
    softness: Annotated[float, POSITIVE]
    letters: float
    words: float = 0.0
    kept: float = 0.0  # for letters of the source that are in the translation

    def __call__(self, rows: Sequence[Row], said: FloatArray, read: FloatArray) -> FloatArray:
        """The raw score of rows of a view, from what the network says and what is read of it, (n,).

        >>> correct = Correction(share=0.5, softness=3.0, letters=2.0)
        >>> correct([("a cat", None, "a cat")], np.array([4.0]), np.array([0.3])).tolist()
        [3.5]
        """
        bounded = said / np.sqrt(1 + (said / self.softness) ** 2)
        total = self.share * bounded + read
        if rows[0][1] is not None:
            same = match_letters(rows, 1)
            total = total + np.maximum(2 * same - 1, 0) * np.minimum(bounded, 0) + self.kept * same
        if rows[0][2] is not None:
            total = total + self.letters * match_letters(rows, 2) + self.words * match_words(rows)
        return total


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """The same for each view."""

    source: Correction
    reference: Correction
    both: Correction


def match_letters(rows: Sequence[Row], side: int, spec: str = "chrf") -> FloatArray:
    """chrF of hypotheses beside their sources or references, 0 to 1."""
    segments = [Segment(row[0], None, (row[side] or "",)) for row in rows]
    return load_metric(spec).score(segments).segments / 100


def match_words(rows: Sequence[Row]) -> FloatArray:
    """The same beside references of single words as chrF++ counts them, 0 to 1."""
    return match_letters(rows, 2, "chrf:char_order=0,word_order=1")
