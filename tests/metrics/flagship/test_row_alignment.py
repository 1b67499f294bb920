"""Padded batches, as on a GPU, equal row-by-row computation up to rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.builders import record_calls
from tests.short_windows import short_windows

from tertium.core.runtime import runtime
from tertium.encoders.transformer_layer import PaddedLayout
from tertium.metrics.bundled.input_rows import Row
from tertium.metrics.bundled.row_scorer import RowScorer
from tertium.metrics.bundled.tertium_multi import TertiumMulti

ROUNDING = 1e-4  # the head divides some states by very small deviations
TRANSLATIONS = (
    ("the cat sat on the mat", "die Katze saß auf der Matte", "the cat was sitting on the mat"),
    ("", "nichts", "nothing"),
    ("no source", "", "no source at all"),
    ("猫坐在垫子上。", "die Katze saß auf der Matte", "猫在垫子上坐着。"),
    ("it rains " * 20, "es regnet " * 4, "it is raining " * 3),  # read in windows
)
ROWS: list[Row] = [
    row
    for hypothesis, source, reference in TRANSLATIONS
    for row in (
        (hypothesis, source, None),
        (hypothesis, None, reference),
        (hypothesis, source, reference),
    )
]


@pytest.fixture
def padded() -> Iterator[RowScorer]:
    """tertium-multi with padded batches on a CPU."""
    model = TertiumMulti().model
    scorer = RowScorer(model, "fp32", "cpu")
    scorer._network = network = RowScorer(model, "fp32", "cpu")._network
    network.padded = True
    yield scorer
    network.padded = False


@pytest.mark.parametrize("limits", [{}, {"token_budget": 40}, {"batch_size": 1}])
def test_padded_batches_equal_single_rows(
    padded: RowScorer, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = record_calls(monkeypatch, PaddedLayout, "__init__")
    rows = ROWS[:-3] if limits else ROWS
    with short_windows(), runtime(cache=False, **limits):
        outputs = [output for mode in range(3) for output in padded(rows[mode::3])]
        padded._network.padded = False
        expected = [output for mode in range(3) for output in padded(rows[mode::3])]
    batches = [(len(lengths), len(lengths) * max(lengths)) for _, lengths, *_ in calls]
    assert batches, "no batch was padded"
    assert all(n <= limits.get("batch_size", n) for n, _ in batches)
    assert all(n == 1 or size <= limits.get("token_budget", size) for n, size in batches)
    for left, right in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(left, right, atol=ROUNDING)
