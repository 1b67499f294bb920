"""Inputs of a blend: scores of its metrics, documents of judgments, constants for z-scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.data.judgments import JudgmentSet
from tertium.data.train_test_overlap import number_shared_texts
from tertium.errors import UsageError
from tertium.metrics.base.metric import Metric, share_encoding
from tertium.segment import Judgment, Segment

MAX_METRICS = 6  # every subset of the metrics has weights
CONSTANTS = "blend_constants.json"  # mean and deviation of scores, for blends without training


def check_metrics(metrics: Sequence[str]) -> None:
    """Raise for one metric or more than `MAX_METRICS`; none at all is left to the caller."""
    if len(metrics) == 1 or len(metrics) > MAX_METRICS:
        raise UsageError(f"a blend has 2 to {MAX_METRICS} metrics, not {len(metrics)}")


def score_parts(parts: Sequence[Metric], segments: Sequence[Segment]) -> FloatArray:
    """Return the oriented scores of metrics, (n, metrics); NaN for a missing score."""
    columns = []
    with share_encoding(parts, segments):
        for part in parts:
            values = part.reduce_segments(part.compute_statistics(segments))
            columns.append(values if part.higher_is_better else -values)
    return np.column_stack(columns)


def collect_judgments(sets: Sequence[JudgmentSet]) -> list[Judgment]:
    """List the judgments of all sets."""
    return [judgment for judgment_set in sets for judgment in judgment_set.judgments]


def known_scores(parts: Sequence[Metric], sets: Sequence[JudgmentSet]) -> FloatArray:
    """Return the oriented scores of metrics for all judgments, (n, metrics).

    Scores that the judgments of a set contain are used; the others are computed.
    """
    rows = []
    for judgment_set in sets:
        stored = judgment_set.metric_scores()
        columns = []
        for part in parts:
            if part.spec in stored:
                columns.append(stored[part.spec] if part.higher_is_better else -stored[part.spec])
            else:
                part.check(judgment_set.segments)
                columns.append(score_parts([part], judgment_set.segments)[:, 0])
        rows.append(np.column_stack(columns))
    return np.concatenate(rows)


def number_documents(data: Sequence[Judgment]) -> IntArray:
    """Number the document of each judgment, (n,); without one, segments that share a text."""
    shared = number_shared_texts([judgment.segment for judgment in data]).tolist()
    names = [one.document or f"#{number}" for one, number in zip(data, shared, strict=True)]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


@lru_cache(maxsize=1)
def read_constants() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Return mean and deviation of oriented scores by spec, and of judges by label."""
    content = files("tertium.metrics.regression").joinpath(CONSTANTS).read_text(encoding="utf-8")
    constants: Mapping[str, Mapping[str, Mapping[str, float]]] = json.loads(content)
    return constants


def find_constants(part: Metric) -> tuple[float, float]:
    constants = read_constants()
    own = constants["specs"].get(part.scale_spec) or constants["labels"].get(part.label)
    if own is None:
        supported = ", ".join([*constants["specs"], *map(str.lower, constants["labels"])])
        raise UsageError(
            f"the scores of {part.spec} have no known mean and deviation: train a blend with it "
            f"(tertium train blend), or use some of {supported}"
        )
    return own["mean"], own["deviation"]
