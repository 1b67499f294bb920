"""How well metrics support decisions: accept a translation, choose an output.

accept    is this translation good enough? precision and recall over thresholds
choose    which output of a segment is best? reranking
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, divide
from tertium.core.errors import DataError, LengthError
from tertium.meta.agreement import to_float_array


def accept_translations(
    human: ArrayLike, metric: ArrayLike, min_good_score: float
) -> tuple[dict[str, float], FloatArray]:
    """Measure how well a metric finds translations with a human score of at least `min_good_score`.

    Return the values of a table, and rows of threshold, precision and recall, highest first. The
    threshold of the table has the highest F1. `average_precision` is averaged over steps of recall;
    random scores reach `good`, the share of good translations.

    >>> values, curve = accept_translations([90, 80, 40, 30], [0.9, 0.5, 0.6, 0.1], 70)
    >>> curve.round(2).tolist()
    [[0.9, 1.0, 0.5], [0.6, 0.5, 0.5], [0.5, 0.67, 1.0], [0.1, 0.5, 1.0]]
    >>> values["threshold"], values["good"]
    (0.5, 0.5)
    """
    human_scores, scores = _common_values(human, metric)
    good = human_scores >= min_good_score
    if not good.any() or good.all():
        share = "all" if good.all() else "none"
        raise DataError(
            f"{share} of {len(human_scores)} judged translations reach {min_good_score:g} (human "
            f"scores are {human_scores.min():g} to {human_scores.max():g}): choose another minimum"
        )
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    good_accepted = np.cumsum(good[order])[ends]
    precision, recall = good_accepted / (ends + 1.0), good_accepted / good.sum()
    curve = np.stack([scores[order][ends], precision, recall], axis=1)
    f1 = np.nan_to_num(divide(2 * precision * recall, precision + recall))
    best = curve[np.argmax(f1)].tolist()
    values = {
        "good": int(good.sum()) / len(good),
        "average_precision": float(np.diff(recall, prepend=0.0) @ precision),
        **dict(zip(("threshold", "precision", "recall"), best, strict=True)),
        "precision_at_90": float(precision[np.argmax(recall >= 0.9 - 1e-12)]),
    }
    return values, curve


def rerank_outputs(human: ArrayLike, metric: ArrayLike) -> dict[str, float]:
    """Choose the output of each segment that the metric scores best; ties count by expectation.

    Matrices are (systems, segments). Segments with fewer than two scored outputs are left out; if
    none remain, all values are NaN. `reranking` is the share of segments whose chosen output has
    the best human score, and `reranking_chance` that of a random choice. `gain` is the share of the
    possible improvement over a random choice: 1 if always best, 0 if random.

    >>> rerank_outputs([[3, 1, 5], [2, 4, 5]], [[0.9, 0.1, 0.1], [0.1, 0.2, 0.1]])["gain"]
    1.0
    """
    human_scores = to_float_array(human, "human scores")
    scores = to_float_array(metric, "metric scores")
    if human_scores.shape != scores.shape or human_scores.ndim != 2:
        raise LengthError(
            f"reranking needs two matrices of one shape, got {human_scores.shape}, {scores.shape}"
        )
    is_known = ~np.isnan(human_scores) & ~np.isnan(scores)
    used = is_known.sum(axis=0) > 1
    if not used.any():
        return dict.fromkeys(("reranking", "reranking_chance", "gain"), np.nan)
    is_known, human_scores = is_known[:, used], np.where(is_known, human_scores, -np.inf)[:, used]
    scores = np.where(is_known, scores[:, used], -np.inf)
    first, top = human_scores == human_scores.max(axis=0), scores == scores.max(axis=0)
    values = np.where(is_known, human_scores, 0.0)
    chosen = float(((values * top).sum(axis=0) / top.sum(axis=0)).mean())
    random = float((values.sum(axis=0) / is_known.sum(axis=0)).mean())
    reach = float(human_scores.max(axis=0).mean()) - random
    return {
        "reranking": float(((first & top).sum(axis=0) / top.sum(axis=0)).mean()),
        "reranking_chance": float((first.sum(axis=0) / is_known.sum(axis=0)).mean()),
        "gain": (chosen - random) / reach if reach > 0 else np.nan,
    }


def _common_values(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    a = to_float_array(first, "human scores").ravel()
    b = to_float_array(second, "metric scores").ravel()
    if a.shape != b.shape:
        raise LengthError(f"{len(a)} human values, but {len(b)} metric values")
    is_known = ~np.isnan(a) & ~np.isnan(b)
    if not is_known.any():
        raise DataError("no translation has both a human and a metric score")
    return a[is_known], b[is_known]
