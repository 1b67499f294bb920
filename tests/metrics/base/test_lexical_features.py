"""Component columns of BLEU, NIST and TER compared with their definitions and metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.metrics.base.lexical_features import (
    COSTS,
    NAMES,
    LexicalFeatures,
    split_references,
)
from tertium.metrics.lexical.bleu_metric import BLEU
from tertium.metrics.lexical.nist_metric import NIST
from tertium.metrics.regression.linear_metric import CHUNK, extract_features
from tertium.text.ter_edits import Costs

PAIRS = [
    ("the cat sat on the mat", "the cat sat on a mat"),
    ("on the mat sat a black cat", "a cat sat on the mat"),
    ("It costs 3.5 million euros.", "The price is 3.5 million euros."),
    ("a", "completely different words"),
]
SEGMENTS = [Segment(h, None, (r,)) for h, r in PAIRS]


def columns(part: str, segments: list[Segment] = SEGMENTS) -> dict[str, np.ndarray]:
    extractor = LexicalFeatures(parts=(part,))  # type: ignore[arg-type]
    return dict(zip(extractor.names, extractor(segments).T, strict=True))


def test_number_of_columns_is_as_published() -> None:
    # Pado et al. 2009, section 4.3: 18, 16 and 50, in linear and log space
    sizes = {part: len(names) for part, names in NAMES.items()}
    assert sizes == {"bleu": 18, "nist": 16, "ter": 50}
    assert len(LexicalFeatures().names) == 2 * 84
    assert len(COSTS) == 10
    assert COSTS[0] == Costs()
    assert min(costs.insertion for costs in COSTS) < 0.1


def test_bleu_components_are_bleus() -> None:
    values = columns("bleu")
    for name, smooth in (("bleu.bleu-4", "none"), ("bleu.smooth-bleu-4", "add-k")):
        metric = BLEU(smooth_method=smooth, lowercase=True, effective_order=False)  # type: ignore[arg-type]
        np.testing.assert_allclose(
            100 * values[name][:3], metric.score(SEGMENTS).segments[:3], rtol=1e-9
        )


def test_bleu_components_by_hand() -> None:
    values = columns("bleu", [Segment("a b c", None, ("a b d e",))])
    assert values["bleu.precision-1"][0] == pytest.approx(2 / 3)
    assert values["bleu.precision-2"][0] == pytest.approx(1 / 2)
    assert values["bleu.precision-3"][0] == 0
    assert values["bleu.smooth-precision-3"][0] == pytest.approx(1 / 2)
    assert values["bleu.penalty"][0] == pytest.approx(math.exp(1 - 4 / 3))
    assert values["log bleu.precision-1"][0] == pytest.approx(math.log(2 / 3 + 0.01))


def test_nist_of_one_reference_is_nists() -> None:
    # without training texts both count the n-grams of the one reference
    values = columns("nist", [SEGMENTS[0]])
    expected = [NIST(order=n).sentence_score(PAIRS[0][0], [PAIRS[0][1]]) for n in (1, 5, 10)]
    assert [values[f"nist.nist-{n}"][0] for n in (1, 5, 10)] == pytest.approx(expected)


def test_ter_components_count_edits() -> None:
    values = columns("ter", [Segment("on the mat sat a cat", None, ("a cat sat on the mat",))])
    assert values["ter.ter 1/1/1/1"][0] == pytest.approx(2 / 6)
    assert values["ter.shifts 1/1/1/1"][0] == pytest.approx(2 / 6)
    assert values["ter.insertions 1/1/1/1"][0] == 0
    cheap = columns("ter", [Segment("a cat", None, ("a black cat sat",))])
    assert cheap["ter.ter 0.05/1/1/1"][0] == pytest.approx(2 * 0.05 / 4)


def test_segments_are_split_by_reference() -> None:
    parts, owner = split_references([Segment("h", "s", ("a", "b")), Segment("k", None, ("c",))])
    assert [p.references for p in parts] == [("a",), ("b",), ("c",)]
    assert parts[0].source == "s"
    assert owner.tolist() == [0, 0, 1]
    with pytest.raises(UsageError, match="one reference"):
        LexicalFeatures()([Segment("h", None, ("a", "b"))])


def test_many_segments_are_computed_in_chunks_with_the_same_rows() -> None:
    extractor = LexicalFeatures(parts=("bleu",))
    segments = [Segment(f"the cat {n}", None, (f"a cat {n % 97}",)) for n in range(CHUNK + 50)]
    np.testing.assert_array_equal(extract_features(extractor, segments), extractor(segments))
