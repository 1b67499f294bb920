"""Losses compared with values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from tertium.models.training_loop import pairwise_loss


def test_pairwise_losses_by_hand() -> None:
    scores = torch.tensor([2.0, 0.5, 1.0])
    better, worse = torch.tensor([0, 1]), torch.tensor([1, 2])  # margins 1.5 and -0.5
    weights = torch.tensor([1.0, 3.0])
    logistic = (math.log1p(math.exp(-1.5)) + 3 * math.log1p(math.exp(0.5))) / 4
    assert float(pairwise_loss(scores, better, worse, weights)) == pytest.approx(logistic)
    hinge = (0.0 + 3 * 1.5) / 4
    assert float(pairwise_loss(scores, better, worse, weights, "hinge")) == pytest.approx(hinge)
