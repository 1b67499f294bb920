"""Scores of several metrics for the same translations, which a blend adds up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.train_test_overlap import number_shared_texts
from tertium.metrics.base.metric import Metric, score_segments, share_encoding

HOW_TO_CHOOSE = (
    "give them with -m (tertium train blend -m chrf tertium-multi ...), or in the spec, "
    "blend:metrics=[chrf]+[tertium-multi]"
)


def orientation(parts: Sequence[Metric]) -> FloatArray:
    """Return 1 for metrics whose higher scores are better, and -1 for the others, (metrics,)."""
    return np.array([1.0 if part.higher_is_better else -1.0 for part in parts])


def score_parts(parts: Sequence[Metric], segments: Sequence[Segment]) -> FloatArray:
    """Return the oriented scores of metrics, (n, metrics); NaN for a missing score."""
    with share_encoding(parts, segments):
        columns = [score_segments(part, segments) for part in parts]
    return np.column_stack(columns) * orientation(parts)


def collect_judgments(sets: Sequence[JudgmentSet]) -> list[Judgment]:
    """List the judgments of all sets."""
    return [judgment for judgment_set in sets for judgment in judgment_set.judgments]


def known_scores(parts: Sequence[Metric], sets: Sequence[JudgmentSet]) -> FloatArray:
    """Return the oriented scores of metrics for all judgments, (n, metrics).

    Scores that the judgments of a set contain are used; the others are computed.
    """
    rows = []
    for judgment_set in sets:
        scores = judgment_set.metric_scores()
        for part in parts:
            if part.spec not in scores:
                part.check(judgment_set.segments)
                scores[part.spec] = score_segments(part, judgment_set.segments)
        rows.append(np.column_stack([scores[part.spec] for part in parts]))
    return np.concatenate(rows) * orientation(parts)


def number_documents(data: Sequence[Judgment]) -> IntArray:
    """Number the document of each judgment, (n,); without one, segments that share a text."""
    shared = number_shared_texts([judgment.segment for judgment in data]).tolist()
    names = [one.document or f"#{number}" for one, number in zip(data, shared, strict=True)]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
