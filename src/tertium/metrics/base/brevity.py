"""Brevity penalties of BLEU and NIST: factors below 1 for hypotheses shorter than their reference.

Statistics rows, (..., k), start with the length of the hypothesis and of the reference in words.
"""

from __future__ import annotations

import math

import numpy as np

from tertium.core.arrays import FloatArray

NIST_BETA = math.log(0.5) / math.log(1.5) ** 2  # a penalty of 1/2 at a length ratio of 2/3

# The exp of the C library, as in sacrebleu; numpy's vectorized one differs in the last bit.
exact_exp = np.frompyfunc(math.exp, 1, 1)


def bleu_brevity_penalty(totals: FloatArray) -> FloatArray:
    """Return min(1, exp(1 - r/c)), (..., k) -> (...); 0 for an empty hypothesis.

    >>> bleu_brevity_penalty(np.array([[8.0, 8.0], [4.0, 8.0], [0.0, 8.0]])).round(3).tolist()
    [1.0, 0.368, 0.0]
    """
    hypothesis, reference = totals[..., 0], totals[..., 1]
    safe = np.where(hypothesis > 0, hypothesis, 1.0)
    penalty = np.asarray(exact_exp(np.minimum(1.0 - reference / safe, 0.0)), dtype=np.float64)
    penalty = np.where(hypothesis < reference, penalty, 1.0)
    return np.where((hypothesis == 0) & (hypothesis < reference), 0.0, penalty)


def nist_brevity_penalty(totals: FloatArray) -> FloatArray:
    """Return exp(beta log^2 min(1, c/r)), (..., k) -> (...); 0 for an empty hypothesis.

    >>> nist_brevity_penalty(np.array([[8.0, 8.0], [4.0, 6.0], [0.0, 8.0]])).round(3).tolist()
    [1.0, 0.5, 0.0]
    """
    length, reference = totals[..., 0], totals[..., 1]
    ratio = np.divide(length, reference, out=np.ones_like(length), where=reference > 0)
    ratio = np.minimum(ratio, 1.0)
    logs = np.log(ratio, out=np.full_like(ratio, -np.inf), where=ratio > 0)
    return np.exp(NIST_BETA * logs**2)
