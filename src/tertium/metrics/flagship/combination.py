"""What the network of tertium-multi says, bounded, and corrected by what costs nothing beside it.

Far from what it learned from, a network's scores run away in both directions. Its hidden layer
knows more than that: a second reading of it, linear and learned from people's scores alone, tells
apart what the score does not, and matches of letters hold where a language was hardly learned:

    raw = (share - strange_share * f) * b + copied * min(b, 0) + reading
          + letters * chrF + strange_letters * f * (chrF - .55)
      b = s / sqrt(1 + (s / softness)^2)

of the network's score s, the second reading for a view, and how strange the words are to the
vocabulary, f; the numbers are each view's own. Where words fall into many pieces, the network saw
little of the language and letters say more. The reading does not know copies of the source, which
nobody judged: the more of it was copied, the more counts what the network holds against it. Of a
source without words (an address, a handle, a formula) a copy is the translation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.loading import load_metric
from tertium.schema import NOT_NEGATIVE, POSITIVE
from tertium.segment import Segment
from tertium.text.language_identification import holds_words
from tertium.text.scripts import WITHOUT_BLANKS, share_in

FAMILIAR = 1.6  # pieces a word, about what languages have that the vocabulary knows well
FAIR = 0.55  # chrF of a fair translation, where strange words move no score
Row = tuple[str, str | None, str | None]  # hypothesis, source, reference, as far as they are read


@dataclass(frozen=True, kw_only=True)
class Correction:
    """How a view's raw score comes about."""

    share: Annotated[float, NOT_NEGATIVE]
    softness: Annotated[float, POSITIVE]
    letters: float
    strange_share: Annotated[float, NOT_NEGATIVE]
    strange_letters: Annotated[float, NOT_NEGATIVE]

    def __call__(
        self, rows: Sequence[Row], said: FloatArray, read: FloatArray, strange: FloatArray
    ) -> FloatArray:
        """The raw score of rows of a view, from what the network says, what is read of it, and how
        strange the words are, (n,) each.

        >>> shares = {"strange_share": 0.5, "strange_letters": 1.0}
        >>> correct = Correction(share=0.5, softness=3.0, letters=2.0, **shares)
        >>> row, said, read = ("a cat", None, "a cat"), np.array([4.0]), np.array([0.3])
        >>> correct([row], said, read, np.array([0.0])).tolist()
        [3.5]
        >>> correct([row], said, read, np.array([1.0])).round(2).tolist()
        [2.75]
        """
        bounded = said / np.sqrt(1 + (said / self.softness) ** 2)
        total = (self.share - self.strange_share * strange) * bounded + read
        if rows[0][1] is not None:
            copied = np.maximum(2 * match_letters(rows, 1) - 1, 0)
            copied *= [holds_words(row[1] or "") for row in rows]
            total = total + copied * np.minimum(bounded, 0)
        if rows[0][2] is None:
            return total
        letters = match_letters(rows, 2)
        return total + self.letters * letters + self.strange_letters * strange * (letters - FAIR)


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """The same for each view."""

    source: Correction
    reference: Correction
    both: Correction


def asked_for(row: Row) -> str:
    """The text that a hypothesis should say: its reference, else its source.

    >>> asked_for(("a", "A", "b")), asked_for(("a", "A", None))
    ('b', 'A')
    """
    return row[1] or "" if row[2] is None else row[2]


def strangeness(text: str, pieces: int) -> float:
    """How far the words of a text that has so many pieces fall into them, 0 to 1.

    Texts that are mostly written without blanks have no words to count, and 0.

    >>> strangeness("a cat sat", 3), strangeness("um kaţki rõvst", 9), strangeness("火车不开。", 4)
    (0.0, 1.0, 0.0)
    """
    words = len(text.split())
    if not words or share_in(text, WITHOUT_BLANKS) > 0.5:
        return 0.0
    return min(max(pieces / words - FAMILIAR, 0.0), 1.0)


def strange_words(
    rows: Sequence[Row], number: Callable[[list[str]], Sequence[Sequence[int]]]
) -> FloatArray:
    """The mean strangeness of hypothesis and reference, 0 without one; `number` makes pieces, (n,).

    >>> strange_words([("a cat", None, "a dog"), ("a cat", "ein Hund", None)], lambda texts: texts)
    array([0.9, 0. ])
    """
    judged = [(row[0], row[2]) for row in rows if row[2] is not None]
    texts = list(dict.fromkeys(text for pair in judged for text in pair))
    counts = map(len, number(texts))
    each = dict(zip(texts, map(strangeness, texts, counts), strict=True))
    means = [0.0 if row[2] is None else (each[row[0]] + each[row[2]]) / 2 for row in rows]
    return np.array(means)


def match_letters(rows: Sequence[Row], side: int) -> FloatArray:
    """chrF of hypotheses beside their sources or references, 0 to 1."""
    segments = [Segment(row[0], None, (row[side] or "",)) for row in rows]
    return load_metric("chrf").score(segments).segments / 100
