"""What the network of tertium-multi says, bounded, and corrected by what costs nothing beside it.

Far from what it learned from, a network's scores run away in both directions. Its hidden layer
knows more than that: a second reading of it, linear and learned from people's scores alone, tells
apart what the score does not, and matches of letters hold where a language was hardly learned:

    raw = share * b + copied * min(b, 0) + reading + letters * chrF
      b = s / sqrt(1 + (s / softness)^2)

of the network's score s and the second reading for a view; share, softness and letters are each
view's own. The reading does not know copies of the source, which nobody judged: the more of it was
copied, the more counts what the network holds against it.
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

    def __call__(self, rows: Sequence[Row], said: FloatArray, read: FloatArray) -> FloatArray:
        """The raw score of rows of a view, from what the network says and what is read of it, (n,).

        >>> correct = Correction(share=0.5, softness=3.0, letters=2.0)
        >>> correct([("a cat", None, "a cat")], np.array([4.0]), np.array([0.3])).tolist()
        [3.5]
        """
        bounded = said / np.sqrt(1 + (said / self.softness) ** 2)
        total = self.share * bounded + read
        if rows[0][1] is not None:
            copied = np.maximum(2 * match_letters(rows, 1) - 1, 0)
            total = total + copied * np.minimum(bounded, 0)
        return total + self.letters * match_letters(rows, 2) if rows[0][2] is not None else total


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """The same for each view."""

    source: Correction
    reference: Correction
    both: Correction


def match_letters(rows: Sequence[Row], side: int) -> FloatArray:
    """chrF of hypotheses beside their sources or references, 0 to 1."""
    segments = [Segment(row[0], None, (row[side] or "",)) for row in rows]
    return load_metric("chrf").score(segments).segments / 100
