"""Compressed weights: the error of int8 rows and low-rank deltas is bounded."""

from __future__ import annotations

import torch
from recipes.flagship.package import low_rank_difference, quantize

from tertium.metrics.bundled.bundled_model import apply_weight_delta, dequantize


def test_int8_rows_have_an_error_of_at_most_half_a_step() -> None:
    weights = {"w": torch.randn(70, 64) * torch.logspace(-3, 1, 70)[:, None], "b": torch.randn(5)}
    compact = quantize(weights)
    assert compact["w"].dtype == torch.int8
    restored = dequantize(compact)
    step = weights["w"].abs().amax(dim=1, keepdim=True) / 127
    assert bool(((restored["w"] - weights["w"]).abs() <= step / 2 * 1.001).all())
    torch.testing.assert_close(restored["b"], weights["b"], atol=2e-3, rtol=1e-3)


def test_low_rank_delta_is_restored() -> None:
    torch.manual_seed(1)
    public = {"w": torch.randn(40, 30), "b": torch.randn(40), "same": torch.randn(4, 4)}
    tuned = {
        "w": public["w"] + torch.randn(40, 3) @ torch.randn(3, 30) * 0.1,
        "b": public["b"] + 0.25,
        "same": public["same"],
        "head": torch.randn(2, 2),
    }
    compact = low_rank_difference(tuned, public, rank=3)
    assert "same" not in compact
    assert compact["w.left"].shape == (3, 40)
    assert compact["w.left"].dtype == torch.int8
    restored = apply_weight_delta(public, compact)
    for name, value in tuned.items():
        torch.testing.assert_close(restored[name], value, atol=1e-2, rtol=3e-3)


def test_truncated_delta_is_the_best_of_its_rank() -> None:
    torch.manual_seed(2)
    public, tuned = {"w": torch.zeros(20, 20)}, {"w": torch.randn(20, 20)}
    restored = apply_weight_delta(public, low_rank_difference(tuned, public, rank=5))["w"]
    error = torch.linalg.matrix_norm(restored - tuned["w"]) ** 2
    rest = (torch.linalg.svdvals(tuned["w"])[5:] ** 2).sum()
    torch.testing.assert_close(error, rest, rtol=1e-2, atol=1e-2)
