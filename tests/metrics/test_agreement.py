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


@pytest.mark.parametrize("encoder", ["minilm@3", "minilm@4", "use@3"])
@pytest.mark.parametrize("parts", ["", ",token=wmd", ",sentence=smd", ",sentence=smd,token=wmd"])
def test_fixed_bounds_lose_little_on_wmt16(human_data: Path, encoder: str, parts: str) -> None:
    pairs = ("cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en")
    spec = f"sentsim:encoder={encoder}{parts}"
    fixed = agreement(human_data, spec, "da/wmt16", pairs)
    corpus = agreement(human_data, f"{spec},normalise=corpus", "da/wmt16", pairs)
    assert fixed >= corpus - 0.005


# SRC-MT with `use`, SSS.
SOURCES = {
    "de-en": 0.293,
    "ru-en": 0.326,
    "tr-en": 0.296,
    "zh-en": 0.403,
    "en-ru": 0.386,
    "en-zh": 0.270,
}


def test_wmt17_against_the_source(human_data: Path) -> None:
    correlations = {
        pair: agreement(human_data, "sss:encoder=use,against=source", "da/wmt17", (pair,))
        for pair in SOURCES
    }
    assert correlations == pytest.approx(SOURCES, abs=0.003)


def test_language_that_only_e5_supports(human_data: Path) -> None:
    """Measured on a GPU: docs/results/song2021-3.json."""
    correlations = agreement(human_data, "sss:against=source,lp=lv-en", "da/wmt17", ("lv-en",))
    assert correlations == pytest.approx(0.400, abs=0.003)


@pytest.mark.parametrize("name", ["bilstm", "bilstm-attention", "esim"])
def test_bundled_head_reaches_the_agreement_of_its_training(human_data: Path, name: str) -> None:
    expected = read_config(bundled_models_folder() / name)["training"]["pearson"]
    correlations = {pair: agreement(human_data, name, "da/wmt17", (pair,)) for pair in expected}
    assert list(correlations) == list(TO_ENGLISH)
    assert correlations == pytest.approx(expected, abs=0.003)
