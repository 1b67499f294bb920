"""Surface features of a row: what the network of tertium-multi cannot see in subword vectors.

A head that is trained by `recipes.multi.fine_tune` reads them next to the states of the network.
Features of a text that is missing are 0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.flagship.score_correction import (
    NEUTRAL_CHRF,
    Row,
    chrf_similarity,
    reference_or_source,
)
from tertium.text.language_identification import has_translatable_words
from tertium.text.scripts import is_unspaced_script

ROW_FEATURES = (
    "chrF",
    "chrF of fragmented words",
    "copied",
    "length against reference",
    "length against source",
    "numbers",
    "placeholders",
    "repetition",
)
MAX_LOG_RATIO = 2.0
_NUMBER = re.compile(r"\d+")
_PLACEHOLDER = re.compile(
    r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\{[^{}\s]*\}|%(?:\d+\$)?[sdif@]|</?[A-Za-z][^<>]*>"
)


def row_features(rows: Sequence[Row], fragmentation: FloatArray) -> FloatArray:
    """Return the features of each row, (rows, features); `fragmentation` is (rows,).

    >>> row_features([("{n} cats", "{n} Katzen", None)], np.zeros(1)).round(2).tolist()
    [[0.0, 0.0, 0.0, 0.0, -0.2, 1.0, 1.0, 0.0]]
    """
    chrf, copied = np.zeros(len(rows)), np.zeros(len(rows))
    with_reference = [n for n, row in enumerate(rows) if row[2] is not None]
    with_source = [n for n, row in enumerate(rows) if row[1] is not None]
    if with_reference:
        chrf[with_reference] = chrf_similarity([rows[n] for n in with_reference], 2)
    if with_source:
        copied[with_source] = _copied_share([rows[n] for n in with_source])
    is_compared = np.array([row[2] is not None for row in rows], dtype=bool)
    columns = [
        chrf,
        fragmentation * np.where(is_compared, chrf - NEUTRAL_CHRF, 0.0),
        copied,
        *([_log_ratio(row[0], row[side]) for row in rows] for side in (2, 1)),
        [_kept_share(_NUMBER, row) for row in rows],
        [_kept_share(_PLACEHOLDER, row) for row in rows],
        [_repetition(row) for row in rows],
    ]
    return np.array(columns, dtype=np.float64).T.reshape(len(rows), len(ROW_FEATURES))


def _copied_share(rows: Sequence[Row]) -> FloatArray:
    """Return how much of the source is copied; 0 for sources without words, such as URLs."""
    copied = np.maximum(2 * chrf_similarity(rows, 1) - 1, 0)
    return copied * np.array([has_translatable_words(row[1] or "") for row in rows], dtype=float)


def _log_ratio(hypothesis: str, other: str | None) -> float:
    if other is None:
        return 0.0
    ratio = math.log((len(hypothesis) + 1) / (len(other) + 1))
    return min(max(ratio, -MAX_LOG_RATIO), MAX_LOG_RATIO)


def _kept_share(pattern: re.Pattern[str], row: Row) -> float:
    """Return the F1 of the matches in the hypothesis and in the other text; 1 without matches.

    >>> _kept_share(_NUMBER, ("7 of 10", None, "10 of 8"))
    0.5
    """
    texts = row[0], reference_or_source(row)
    own, other = (Counter(pattern.findall(text)) for text in texts)
    total = own.total() + other.total()
    return 2 * (own & other).total() / total if total else 1.0


def _repetition(row: Row) -> float:
    """Return by how much the share of repeated phrases exceeds that of the other text.

    >>> round(_repetition(("no no no no", None, "no it is not")), 2)
    0.67
    """
    return max(_repeated_share(row[0]) - _repeated_share(reference_or_source(row)), 0.0)


def _repeated_share(text: str) -> float:
    """Return the share of repeated word pairs, or of four characters in scripts without spaces."""
    unspaced = is_unspaced_script(text)
    units, size = (text, 4) if unspaced else (text.split(), 2)
    count = len(units) - size + 1
    return 1 - len({tuple(units[n : n + size]) for n in range(count)}) / count if count > 0 else 0.0
