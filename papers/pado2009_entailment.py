"""Weights of entailment features for translation and for entailment (Padó et al. 2009, section 6).

The RTE corpora of the paper are replaced by SICK (Marelli et al. 2014), whose 9,927 sentence pairs
are labeled as entailment, neutral or contradiction. Both models are plain ridge regressions on the
212 features of RTER; for entailment, the target is 1 for entailment and 0 for other pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from papers.table import Figure
from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.segment import Judgment, Segment
from tertium.data import record_files
from tertium.data.dataset_folder import DatasetFolder
from tertium.meta.correlation import spearman
from tertium.metrics.regression.linear_metric import Regression, RegressionOptions
from tertium.metrics.regression.regression_metrics import RTER

ENTAILMENT = "ENTAILMENT"


def read_sick(datasets: DatasetFolder, *parts: str) -> list[Judgment]:
    """Read sentence pairs of SICK; the score is 1 if `a` entails `b`, else 0."""
    dataset = datasets.find("sts", "sentence pairs")
    return [
        Judgment(Segment(record["b"], None, (record["a"],)), float(record["label"] == ENTAILMENT))
        for part in parts
        for _, record in record_files.read_jsonl(dataset.file("", f"sick.{part}"))
    ]


@lru_cache(maxsize=2)
def train_on_sick(datasets: DatasetFolder, column: str = "") -> Regression:
    """Train RTER on the training part of SICK; its dev part chooses the strength."""
    train, dev = read_sick(datasets, "train"), read_sick(datasets, "dev")
    return RTER.train(train, dev=dev, options=RegressionOptions(prior=False))


@dataclass(frozen=True, kw_only=True)
class EntailmentAndTranslation:
    """Accuracy of entailment decisions on SICK, and Spearman's rho on WMT17.

    A pair is entailment if its prediction exceeds the threshold with the highest accuracy on the
    training and dev parts. The majority decision is never entailment. Predictions have no bounds.
    """

    lps: tuple[str, ...]
    columns: tuple[str, ...] = ("SICK", "SICK, majority", "WMT17")
    data: str = "sts, sick.test; da/wmt17"
    statistic: str = (
        "SICK: accuracy of entailment decisions; WMT17: Spearman's rho with human scores of "
        "segments, average over language pairs"
    )

    def measure(self, datasets: DatasetFolder, model: Regression, column: str) -> Figure:
        if column == "WMT17":
            sets = [datasets.judgments("da/wmt17", lp) for lp in self.lps]
            values = [float(spearman(s.scores, _predict(model, s.judgments))) for s in sets]
            return Figure(value=float(np.mean(values)), count=sum(map(len, sets)))
        test = read_sick(datasets, "test")
        is_entailed = _labels(test)
        if column == "SICK":
            train = read_sick(datasets, "train", "dev")
            threshold = best_threshold(_predict(model, train), _labels(train))
            is_right = (_predict(model, test) > threshold) == is_entailed
        else:
            is_right = ~is_entailed
        return Figure(value=float(is_right.mean()), count=len(test))


def best_threshold(predictions: FloatArray, is_entailed: BoolArray) -> float:
    """Return the threshold with the highest accuracy: above it, a pair is entailment.

    >>> best_threshold(np.array([0.1, 0.4, 0.3, 0.9]), np.array([False, True, False, True]))
    0.35
    """
    order = np.argsort(predictions)
    values, labels = predictions[order], is_entailed[order]
    # Right decisions if the first n pairs are below the threshold.
    right = np.concatenate([[0], np.cumsum(~labels)]) + labels.sum()
    right = right - np.concatenate([[0], np.cumsum(labels)])
    edges = np.concatenate([[values[0] - 1], values, [values[-1] + 1]])
    return float(edges[:-1][np.argmax(right)] / 2 + edges[1:][np.argmax(right)] / 2)


def _predict(model: Regression, pairs: Sequence[Judgment]) -> FloatArray:
    return model.fitted.linear.predict(model.compute_features([one.segment for one in pairs]))


def _labels(pairs: Sequence[Judgment]) -> BoolArray:
    labels: BoolArray = np.array([one.score for one in pairs]) > 0.5
    return labels


@dataclass(frozen=True, kw_only=True)
class FeatureRanks:
    """Rank of a feature among all features by the size of its weight; a column is a feature.

    The weight of a feature is the sum over both directions.
    """

    columns: tuple[str, ...]
    data: str = "weights of models trained on sts, sick.train, or on da/wmt15 and da/wmt16"
    statistic: str = "rank of the summed weight of both directions by its size; 1 is largest"

    def measure(self, datasets: DatasetFolder, model: Regression, column: str) -> Figure:
        weights: dict[str, float] = {}
        for name, weight in model.fitted.linear.coefficients.items():
            feature = name.partition(".")[2]
            weights[feature] = weights.get(feature, 0.0) + weight
        rank = 1 + sum(abs(weight) > abs(weights[column]) for weight in weights.values())
        return Figure(value=float(rank), count=len(weights))
