"""Surface features of a row: what the network of tertium-multi cannot see in subword vectors.

The head of the network reads them next to its own states (`joint_network.JointHead`). Features of a
text that is missing are 0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.loading import load_metric
from tertium.segment import Segment
from tertium.text.language_identification import has_translatable_words
from tertium.text.scripts import UNSPACED_SCRIPTS, is_unspaced_script, script_share

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
FAMILIAR_PIECES_PER_WORD = 1.6  # typical of languages that the vocabulary covers well
NEUTRAL_CHRF = 0.55  # chrF of an average translation
MAX_LOG_RATIO = 2.0
Row = tuple[str, str | None, str | None]  # hypothesis, source, reference; None if not used
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
    chrf[with_reference] = _chrf([rows[n] for n in with_reference], 2)
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


def _chrf(rows: Sequence[Row], side: int) -> FloatArray:
    """Return the chrF of hypotheses against their source (side 1) or reference (2), 0 to 1."""
    segments = [Segment(row[0], None, (row[side] or "",)) for row in rows]
    return load_metric("chrf").score(segments).segments / 100 if rows else np.zeros(0)


def _copied_share(rows: Sequence[Row]) -> FloatArray:
    """Return how much of the source is copied; 0 for sources without words, such as URLs."""
    has_words = np.array([has_translatable_words(row[1] or "") for row in rows], dtype=float)
    copied: FloatArray = np.maximum(2 * _chrf(rows, 1) - 1, 0) * has_words
    return copied


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
