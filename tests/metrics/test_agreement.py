"""Agreement with human scores on test sets: average Pearson correlation over language pairs.

The expected figures of WMT17 were measured once with plain scripts over the same weights, apart
from this package, and are given to three digits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders.weight_files import MODEL_CARDS, find_installed_weights
from tertium.meta.agreement import pearson
from tertium.metrics import load_metric
from tertium.models.checkpoint import bundled_models_folder, read_config

TO_ENGLISH = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")

pytestmark = pytest.mark.slow


def agreement(data: Path, spec: str, name: str, pairs: tuple[str, ...]) -> float:
    """Return the average Pearson correlation of a metric with human scores; distances negated."""
    metric, collection = load_metric(spec), DatasetFolder(data)
    correlations = []
    for pair in pairs:
        judgments = collection.judgments(name, pair)
        scores = metric.score(judgments.segments)
        values = scores.segments if scores.higher_is_better else -scores.segments
        correlations.append(float(pearson(judgments.scores, values)))
    return float(np.mean(correlations))


def require(encoder: str) -> None:
    name = encoder.partition("@")[0]
    if name in MODEL_CARDS and find_installed_weights(name) is None:
        pytest.skip(f"the weights of {name} are not installed")


@pytest.mark.parametrize(
    ("encoder", "recall", "f1", "sss", "sentsim"),
    [
        ("minilm@3", 0.626, 0.655, 0.606, 0.682),
        ("minilm@4", 0.639, 0.665, 0.606, 0.680),
        ("minilm@6", 0.642, 0.657, 0.606, 0.648),
        ("mpnet@6", 0.709, 0.732, 0.659, 0.746),
        ("mpnet@8", 0.713, 0.732, 0.659, 0.740),
        ("mpnet@12", 0.679, 0.685, 0.659, 0.688),
        ("use@3", 0.565, 0.591, 0.598, 0.638),
    ],
)
def test_wmt17_to_english(
    human_data: Path, encoder: str, recall: float, f1: float, sss: float, sentsim: float
) -> None:
    require(encoder)
    expected = {
        f"bertr:encoder={encoder}": recall,
        f"bertscore:encoder={encoder}": f1,
        f"sss:encoder={encoder}": sss,
        f"sentsim:encoder={encoder},normalise=corpus": sentsim,
    }
    correlations = {spec: agreement(human_data, spec, "da/wmt17", TO_ENGLISH) for spec in expected}
    assert correlations == pytest.approx(expected, abs=0.003)


@pytest.mark.parametrize("name", ["bilstm", "bilstm-attention", "esim"])
def test_bundled_head_reaches_the_agreement_of_its_training(human_data: Path, name: str) -> None:
    expected = read_config(bundled_models_folder() / name)["training"]["pearson"]
    correlations = {pair: agreement(human_data, name, "da/wmt17", (pair,)) for pair in expected}
    assert list(correlations) == list(TO_ENGLISH)
    assert correlations == pytest.approx(expected, abs=0.003)
