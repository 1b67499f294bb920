"""Surface features of a row: what the network of tertium-multi cannot see in subword vectors.

The head of the network reads them next to its own states (`joint_network.JointHead`). Features of a
text that is missing are 0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import score_segments
from tertium.metrics.bundled.input_rows import REFERENCE, SOURCE, Row, reference_or_source
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
_NUMBER = re.compile(r"\d+")
_PLACEHOLDER = re.compile(
    r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\{[^{}\s]*\}|%(?:\d+\$)?[sdif@]|</?[A-Za-z][^<>]*>"
)


def row_features(rows: Sequence[Row], fragmentation: FloatArray) -> FloatArray:
    """Return the features of each row, (rows, features); `fragmentation` is (rows,).

    >>> row_features([("{n} cats", "{n} Katzen", None)], np.zeros(1)).round(2).tolist()
    [[0.0, 0.0, 0.0, 0.0, -0.2, 1.0, 1.0, 0.0]]
    """
    chrf = _chrf(rows, REFERENCE)
    has_reference = [row[REFERENCE] is not None for row in rows]
    deviation = np.where(np.array(has_reference, dtype=np.bool_), chrf - NEUTRAL_CHRF, 0.0)
    has_words = np.array([has_translatable_words(row[SOURCE] or "") for row in rows], dtype=float)
    columns = [
        chrf,
        fragmentation * deviation,
        np.maximum(2 * _chrf(rows, SOURCE) - 1, 0) * has_words,  # copied from the source
        *([_log_ratio(row[0], row[side]) for row in rows] for side in (REFERENCE, SOURCE)),
        [_kept_share(_NUMBER, row) for row in rows],
        [_kept_share(_PLACEHOLDER, row) for row in rows],
        [_repetition(row) for row in rows],
    ]
    return np.array(columns, dtype=np.float64).T.reshape(len(rows), len(ROW_FEATURES))


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


def mean_fragmentation(rows: Sequence[Row], pieces: Mapping[str, int]) -> FloatArray:
    """Return the mean fragmentation of hypothesis and reference, (rows,); 0 without a reference.

    `pieces` are the numbers of pieces of texts.

    >>> rows = [("a cat", None, "a dog"), ("a cat", "ein Hund", None)]
    >>> mean_fragmentation(rows, {"a cat": 5, "a dog": 5})
    array([0.9, 0. ])
    """
    means = np.zeros(len(rows))
    for number, (hypothesis, _, reference) in enumerate(rows):
        if reference is not None:
            texts = hypothesis, reference
            means[number] = sum(subword_fragmentation(text, pieces[text]) for text in texts) / 2
    return means


def _chrf(rows: Sequence[Row], role: int) -> FloatArray:
    """Return the chrF of hypotheses against their source or reference, 0 to 1; 0 if missing."""
    scores = np.zeros(len(rows))
    numbers = [n for n, row in enumerate(rows) if row[role] is not None]
    if numbers:
        segments = [Segment(rows[n][0], None, (rows[n][role] or "",)) for n in numbers]
        scores[numbers] = score_segments(load_metric("chrf"), segments) / 100
    return scores


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
