"""WMD, WMDO and SMD: hand-computed distances and POT."""

from __future__ import annotations

import numpy as np
import ot
import pytest

from tertium.core.segment import Segment
from tertium.encoders import load_encoder
from tertium.metrics.embedding.optimal_transport import SMD, WMD, WMDO, fragmentation

TEXTS = [
    ("the cat sat on the mat", "the cat sat on a mat"),
    ("Parliament rejected the budget.", "The new budget was voted down by parliament on Tuesday."),
    ("It costs 3.5 million euros.", "The price is 3.5 million euros."),
    ("ok", "Everything is in order now, thank you very much!"),
    ("He went home.", "He went home."),
]
SEGMENTS = [Segment(left, None, (right,)) for left, right in TEXTS]


def cost_matrix(left: str, right: str, encoder: str = "minilm@4") -> np.ndarray:
    result = load_encoder(encoder).encode([left, right], sentences=False)
    x, y = (result.token_vectors(i).astype(np.float64) for i in (0, 1))
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    return np.linalg.norm(x[:, None] - y, axis=2)


def test_exact_distances_equal_pot() -> None:
    expected = [ot.emd2([], [], cost_matrix(*pair)) for pair in TEXTS]
    result = WMD(encoder="minilm@4").score(SEGMENTS).segments
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_word_order_does_not_matter_with_static_vectors() -> None:
    assert WMD(encoder="toy").sentence_score("a cat sat", ["sat a cat"]) == pytest.approx(0.0)


def test_equal_tokens_are_weighted_by_frequency() -> None:
    # Mass 2/3 of "a" and 1/3 of "b" against 1/2 and 1/2: a sixth moves from a to b.
    result = WMD(encoder="toy").sentence_score("a a b", ["a b"])
    gap = cost_matrix("a", "b", encoder="toy")[0, 0]
    assert result == pytest.approx(gap / 6)


@pytest.mark.parametrize("metric", [WMD(encoder="toy"), SMD(encoder="toy"), WMDO(encoder="toy")])
def test_distances_have_defined_limits(metric: WMD) -> None:
    far = metric.score([Segment("", None, ("a b",)), Segment("a b", None, (" ",))]).segments
    assert (far >= 2.0).all()
    assert metric.sentence_score("", [" "]) == metric.identical
    assert not metric.higher_is_better
    assert far.max() > metric.sentence_score("c d", ["a b"])


@pytest.mark.parametrize("pieces", [1, 2, 4, 50])
def test_copy_is_one_chunk_in_wmdo(pieces: int) -> None:
    # WMD is 0, one chunk of n pieces: -gamma (1/2 - 1/n); -0.1 is never reached
    text = " ".join(f"w{n}" for n in range(pieces))
    result = WMDO(encoder="toy").sentence_score(text, [text])
    assert result == pytest.approx(0.2 / pieces - 0.1)
    assert result > -0.1


def test_smd_equals_the_distance_of_means() -> None:
    vectors = load_encoder("toy").encode(["a b", "c"])
    expected = np.linalg.norm(vectors.token_vectors(0).mean(axis=0) - vectors.token_vectors(1)[0])
    assert SMD(encoder="toy").sentence_score("a b", ["c"]) == pytest.approx(float(expected))


@pytest.mark.parametrize(
    ("order", "expected"),
    [([0, 1, 2, 3], 1 / 4), ([2, 3, 0, 1], 2 / 4), ([3, 2, 1, 0], 1.0), ([0, 1, 3, 2], 3 / 4)],
)
def test_fragmentation_counts_chunks(order: list[int], expected: float) -> None:
    assert fragmentation(np.eye(4)[order]) == expected


def test_wmdo_penalizes_broken_order() -> None:
    metric, plain = WMDO(encoder="toy"), WMD(encoder="toy")
    words = "a b c d"
    straight, reversed_order = (metric.sentence_score(h, [words]) for h in (words, "d c b a"))
    assert straight == pytest.approx(plain.sentence_score(words, [words]) - 0.2 * (0.5 - 0.25))
    assert reversed_order == pytest.approx(0.2 * 0.5)
    assert WMDO(encoder="toy", gamma=0.0).sentence_score("d c", ["c d"]) == pytest.approx(0.0)


def test_plan_explains_the_distance() -> None:
    metric = WMD(encoder="minilm@4")
    explained = metric.explain(SEGMENTS[1])
    (comparison,) = explained.comparisons
    assert sum(link.weight for link in comparison.links) == pytest.approx(1.0)
    total = sum(link.weight * link.similarity for link in comparison.links)
    assert total == pytest.approx(explained.score, abs=1e-6)
