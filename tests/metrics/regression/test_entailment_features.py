"""Entailment features: each fires on one pair of sentences and does not fire on another.

`entailment_pairs.tsv` has both pairs of each feature: a hypothesis and a premise on which it fires,
and a hypothesis and a premise on which it does not. A measure of quality, which never fires, is
higher for the first pair.
"""

from __future__ import annotations

import csv
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from tertium.metrics.linguistics.semantic_attributes import Sentence
from tertium.metrics.regression.entailment import FEATURES
from tertium.metrics.regression.entailment.feature_extraction import load_sentences
from tertium.metrics.regression.entailment.feature_types import Pair, make_pairs

with Path(__file__).with_name("entailment_pairs.tsv").open(encoding="utf-8") as stream:
    CASES = {name: texts for name, *texts in [*csv.reader(stream, delimiter="\t")][1:]}
MEASURES = [name for name, feature in FEATURES.items() if feature.template == "-"]
FIRING = [name for name in CASES if name not in MEASURES]


@lru_cache
def parse_all() -> dict[str, Sentence]:
    """Parse all sentences in one batch."""
    return load_sentences([text for texts in CASES.values() for text in texts])


def pairs_of(name: str) -> tuple[Pair, Pair]:
    """Return the pair on which a feature fires, and the other one."""
    sentences = parse_all()
    first, second, third, fourth = (sentences[text] for text in CASES[name])
    return make_pairs(first, second)[0], make_pairs(third, fourth)[0]


def test_every_feature_has_a_case() -> None:
    assert set(CASES) == set(FEATURES)


def test_groups_have_the_published_sizes() -> None:
    # Pado et al. 2009, figure 2
    sizes = Counter(feature.group for feature in FEATURES.values())
    assert sizes == {
        "alignment": 8,
        "compatibility": 34,
        "insertions": 20,
        "reference": 16,
        "structure": 28,
    }


@pytest.mark.parametrize("name", FIRING)
def test_feature_fires_on_one_pair_only(name: str) -> None:
    feature, (pair, other) = FEATURES[name], pairs_of(name)
    assert feature.find(pair), pair.alignment
    assert feature.value(pair) > 0
    for direction in ("forward", "backward"):
        assert all("{" not in s and "''" not in s for s in feature.describe(pair, direction))
    assert not feature.find(other)
    assert feature.value(other) == 0.0


@pytest.mark.parametrize("name", MEASURES)
def test_quality_measure_is_higher_for_the_better_pair(name: str) -> None:
    high, low = (FEATURES[name].value(pair) for pair in pairs_of(name))
    assert 0 <= low < high <= 1
