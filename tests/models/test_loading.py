"""Weights are loaded into a network that is created without initialization."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tertium.encoders.network_building import build_network  # noqa: E402


def make_network() -> nn.Module:
    return nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3), nn.LSTM(3, 2), nn.LayerNorm(2))


def test_loading_draws_no_random_numbers() -> None:
    """Loading a model does not change the random state of the caller."""
    tensors = make_network().state_dict()
    before = torch.get_rng_state()
    network = build_network(make_network, tensors, "here")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, tensors[name]) for name, value in network.state_dict().items())
    assert not any(weights.requires_grad for weights in network.parameters())
