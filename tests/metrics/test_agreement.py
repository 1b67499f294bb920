"""Agreement with people on whole test sets; figures are average Pearson over language pairs.

The expected figures of WMT17 were measured once with plain scripts over the same weights, apart
from this package, and are given to three digits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.data.collection import Collection
from tertium.encoders.cards import CARDS
from tertium.encoders.weights import find
from tertium.meta.correlation import pearson
from tertium.metrics import load_metric
from tertium.models.checkpoint import read_config, shipped_models

TO_ENGLISH = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")

pytestmark = pytest.mark.slow


def agreement(data: Path, spec: str, name: str, pairs: tuple[str, ...]) -> float:
    """The average Pearson of a metric with human scores, distances turned around."""
    metric, collection = load_metric(spec), Collection(data)
    found = []
    for pair in pairs:
        judged = collection.judgments(name, pair)
        scores = metric.score(judged.segments)
        values = scores.segments if scores.higher_is_better else -scores.segments
        found.append(float(pearson(judged.scores, values)))
    return float(np.mean(found))


def require(encoder: str) -> None:
    name = encoder.partition("@")[0]
    if name in CARDS and find(name) is None:
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
    found = {spec: agreement(human_data, spec, "da/wmt17", TO_ENGLISH) for spec in expected}
    assert found == pytest.approx(expected, abs=0.003)


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
    found = {
        pair: agreement(human_data, "sss:encoder=use,against=source", "da/wmt17", (pair,))
        for pair in SOURCES
    }
    assert found == pytest.approx(SOURCES, abs=0.003)


def test_a_language_that_only_e5_knows(human_data: Path) -> None:
    """Measured on a GPU: docs/results/song2021-3.json."""
    found = agreement(human_data, "sss:against=source,lp=lv-en", "da/wmt17", ("lv-en",))
    assert found == pytest.approx(0.400, abs=0.003)


@pytest.mark.parametrize("name", ["bilstm", "bilstm-attention", "esim"])
def test_a_shipped_head_reaches_what_its_training_told(human_data: Path, name: str) -> None:
    told = read_config(shipped_models() / name)["training"]["pearson"]
    found = {pair: agreement(human_data, name, "da/wmt17", (pair,)) for pair in told}
    assert list(found) == list(TO_ENGLISH)
    assert found == pytest.approx(told, abs=0.003)
