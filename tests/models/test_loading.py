"""Weights are put into a network that was made without any."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tertium.models.checkpoint import build_network  # noqa: E402


def make_network() -> nn.Module:
    return nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3), nn.LSTM(3, 2), nn.LayerNorm(2))


def test_no_first_numbers_are_drawn() -> None:
    """Whoever seeds torch and then loads a model draws what they would have drawn without it."""
    tensors = make_network().state_dict()
    before = torch.get_rng_state()
    found = build_network(make_network, tensors, "here")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, tensors[name]) for name, value in found.state_dict().items())
    assert not any(weights.requires_grad for weights in found.parameters())
