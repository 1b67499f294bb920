"""Baselines stored as JSON: segment scores that `tertium score -o FILE.json` wrote.

They serve metrics whose score of a system is the mean of its segment scores. Others need the
translations of the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tertium.core.errors import DataError, ModelError, UsageError
from tertium.core.fields import load_json
from tertium.core.scores import Scores
from tertium.data.testset import TestSet
from tertium.evaluation.system_scores import MetricDict

HOW_TO_STORE = "store it with `tertium score -o FILE.json`"


@dataclass(frozen=True)
class StoredBaseline:
    """The results of one system by metric, read from a file."""

    path: str
    system: str
    records: Mapping[str, Mapping[str, Any]]

    def scores_like(self, scores: Scores, testset: TestSet) -> Scores:
        """Return the stored scores of the metric and the segments of other scores.

        Raises `UsageError` if the signature, the number of segments or the texts differ.
        """
        if scores.metric not in self.records:
            names = ", ".join(self.records)
            raise UsageError(f"{self.path} has no scores of {scores.metric} (it has: {names})")
        record = self.records[scores.metric]
        where, signature = f"{self.path}: {scores.metric}", record.get("signature")
        if signature != scores.signature:
            raise UsageError(
                f"{where} has another signature than the candidate: {signature} (stored) and "
                f"{scores.signature} (candidate); score the baseline again"
            )
        if record.get("inputs", testset.hash_inputs()) != testset.hash_inputs():
            raise UsageError(
                f"{where} was scored with other sources or references; score the baseline again"
            )
        if scores.statistics.shape[1] != 2 or not np.all(scores.statistics[:, 1] == 1):
            raise UsageError(
                f"{where}: its score is not a mean of segment scores, so stored scores are not "
                "enough: give the translations of the baseline"
            )
        try:
            segments = np.array(record["segments"], dtype=np.float64)  # null is NaN
        except (KeyError, TypeError, ValueError):
            raise DataError(f"{where}: no list of segment scores: {HOW_TO_STORE}") from None
        if len(segments) != len(scores):
            raise UsageError(
                f"{where} has {len(segments)} segments, but the candidate has {len(scores)}"
            )
        statistics = np.column_stack([segments, np.ones(len(segments))])
        return replace(scores, statistics=statistics, flags={}, verbose="", usage={})


def read_baseline(path: str) -> StoredBaseline:
    """Read the results of one system, as `tertium score` writes them."""
    try:
        content = load_json(Path(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except ModelError as error:
        raise DataError(str(error)) from None
    records = [content] if isinstance(content, dict) else content
    try:
        systems = list(dict.fromkeys(str(record["system"]) for record in records))
        overall = {record["spec"]: record for record in records if "slice" not in record}
    except (KeyError, TypeError):
        raise DataError(f"{path}: not results of `tertium score`: {HOW_TO_STORE}") from None
    if len(systems) != 1:
        raise UsageError(f"{path}: results of {len(systems)} systems; store only the baseline")
    return StoredBaseline(path, systems[0], MetricDict(overall))
