"""What training minimises: squared error on scores, logistic or hinge on comparisons, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from tertium.models.options import PairLoss


class OfMargins(Protocol):
    """Margins (comparisons,) to losses (comparisons,)."""

    def __call__(self, margins: Tensor) -> Tensor: ...


def squared_error(scores: Tensor, targets: Tensor) -> Tensor:
    """mean (y - human)^2 over pairs, both (pairs,).

    >>> squared_error(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 2.0]))
    tensor(0.5000)
    """
    return ((scores - targets) ** 2).mean()


def logistic(margins: Tensor) -> Tensor:
    """log(1 + e^-m): the surprise of a model in which the better of two wins with sigmoid(m).

    >>> logistic(torch.tensor([0.0]))
    tensor([0.6931])
    """
    return torch.nn.functional.softplus(-margins)


def hinge(margins: Tensor) -> Tensor:
    """max(0, 1 - m): nothing to gain past a margin of 1.

    >>> hinge(torch.tensor([0.25, 2.0]))
    tensor([0.7500, 0.0000])
    """
    return (1.0 - margins).clamp(min=0)


PAIR_LOSSES: Mapping[str, OfMargins] = {"logistic": logistic, "hinge": hinge}


def pairwise_loss(
    scores: Tensor, better: Tensor, worse: Tensor, weights: Tensor, kind: PairLoss = "logistic"
) -> Tensor:
    """The weighted mean loss of the margins y_better - y_worse.

    `better` and `worse` are rows of `scores`, `weights` how many people said so, all
    (comparisons,).

    >>> scores = torch.tensor([0.0, 2.0])
    >>> pairwise_loss(scores, torch.tensor([1]), torch.tensor([0]), torch.tensor([3.0]), "hinge")
    tensor(0.)
    """
    losses = PAIR_LOSSES[kind](scores[better] - scores[worse])
    return (losses * weights).sum() / weights.sum().clamp(min=1)
