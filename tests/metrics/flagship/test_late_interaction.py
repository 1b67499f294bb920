"""Late interaction equals a loop over tokens and does not depend on padding or the batch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from tertium.encoders.transformer_layer import consecutive_slices
from tertium.metrics.bundled.input_rows import HYPOTHESIS, REFERENCE
from tertium.metrics.bundled.row_alignment import RowAlignment

CPU = torch.device("cpu")


def make_pairs(
    lengths: Sequence[tuple[int, int]], *, padded: bool, dim: int = 8, seed: int = 1
) -> tuple[Tensor, RowAlignment]:
    """Return random states at three layers of pairs of texts, and their alignment."""
    sizes = [size for pair in lengths for size in pair]
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(3, sum(sizes), dim, generator=generator)
    places = consecutive_slices(sizes)
    rows = [
        {HYPOTHESIS: left, REFERENCE: right}
        for left, right in zip(places[::2], places[1::2], strict=True)
    ]
    return states, RowAlignment(rows, CPU, padded=padded)


@pytest.mark.parametrize("padded", [False, True])
def test_greedy_matches_equal_a_loop(padded: bool) -> None:
    lengths = [(4, 3), (2, 5)]
    states, alignment = make_pairs(lengths, padded=padded)
    unit = torch.nn.functional.normalize(states, dim=-1)
    matches = alignment.greedy_matches(alignment.similarities(unit, REFERENCE), REFERENCE)
    start = 0
    for pair, (left, right) in enumerate(lengths):
        for layer in range(3):
            a = unit[layer, start : start + left]
            b = unit[layer, start + left : start + left + right]
            cosines = [[float(x @ y) for y in b] for x in a]
            precision = [max(row) for row in cosines]
            recall = [max(row[j] for row in cosines) for j in range(right)]
            sides = (precision, recall)
            expected = [share for side in sides for share in (sum(side) / len(side), min(side))]
            torch.testing.assert_close(matches[pair, layer], torch.tensor(expected))
        start += left + right
