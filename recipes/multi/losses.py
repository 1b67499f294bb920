"""Losses of tertium-multi, each a function of one forward pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from recipes.multi.network import Prediction
from recipes.multi.packed_rows import ESA_TAGS, MQM_TAGS, WORD_TAGS

LOGISTIC_SLOPE = 1.5  # one standard deviation of difference: 82 % of raters agree
UNRELATED_SCORE = -2.4  # highest score of an unrelated translation


@dataclass(frozen=True)
class LossWeights:
    score: float = 1.0
    pairs: float = 1.0
    margin: float = 1.0
    tags: float = 0.3
    spread: float = 0.05
    clean: float = 0.1


def score_loss(prediction: Prediction, targets: Tensor, weights: Tensor) -> Tensor:
    """Return the smooth L1 loss between scores and targets (rows, scales); NaN targets are ignored.

    A target below `UNRELATED_SCORE` is an upper bound: a lower score costs nothing.
    """
    has_target = ~targets.isnan()
    target = torch.where(has_target, targets, 0.0)
    target = torch.where(
        target < UNRELATED_SCORE, torch.minimum(target, prediction.scores.detach()), target
    )
    losses = F.smooth_l1_loss(prediction.scores, target, reduction="none", beta=0.5)
    weight = has_target.float() * weights[:, None]
    return (losses * weight).sum() / weight.sum().clamp(min=1)


def spread_loss(prediction: Prediction, targets: Tensor, weights: Tensor) -> Tensor:
    """Return the Gaussian negative log-likelihood of the residuals, without gradient to scores."""
    has_target = ~targets.isnan()
    residual = prediction.scores.detach() - torch.where(has_target, targets, 0.0)
    spread = prediction.spreads.clamp(-5, 3)
    losses = 0.5 * (spread + residual.square() * torch.exp(-spread))
    weight = has_target.float() * weights[:, None]
    return (losses * weight).sum() / weight.sum().clamp(min=1)


def pair_loss(prediction: Prediction, pairs: Tensor) -> Tensor:
    """Return the Bradley-Terry loss of comparisons (better, worse, share of votes, weight)."""
    means = prediction.scores.mean(1)
    better, worse = means[pairs[:, 0].long()], means[pairs[:, 1].long()]
    losses = F.binary_cross_entropy_with_logits(
        LOGISTIC_SLOPE * (better - worse), pairs[:, 2], reduction="none"
    )
    return (losses * pairs[:, 3]).sum() / pairs[:, 3].sum().clamp(min=1)


def margin_loss(prediction: Prediction, margins: Tensor) -> Tensor:
    """Return the mean shortfall of score drops of damaged texts (intact, damaged, cost)."""
    drop = prediction.scores[margins[:, 0].long()] - prediction.scores[margins[:, 1].long()]
    return F.relu(margins[:, 2:] - drop).mean()


def clean_loss(prediction: Prediction, clean: Tensor) -> Tensor:
    """Return the cross-entropy of "no error was marked"; -1 where nobody annotated errors."""
    has_target = (clean >= 0).float()
    losses = F.binary_cross_entropy_with_logits(
        prediction.clean, clean.clamp(min=0), reduction="none"
    )
    return (losses * has_target).sum() / has_target.sum().clamp(min=1)


def tag_loss(prediction: Prediction, tags: Tensor, shares: Tensor, categories: Tensor) -> Tensor:
    """Return the cross-entropy of severities (share of raters), word tags and categories."""
    minor, major, bad = shares.unbind(-1)
    minor = torch.minimum(minor, 1 - major)
    severity = torch.stack([1 - minor - major, minor, major], -1)  # (rows, pieces, 3)
    word = torch.stack([1 - bad, bad], -1)
    is_piece = prediction.is_piece.float()
    total = prediction.tags.new_zeros(())
    for kind, target, first in (
        (MQM_TAGS, severity, 0),
        (ESA_TAGS, severity, 3),
        (WORD_TAGS, word, 6),
    ):
        logits = prediction.tags[..., first : first + target.shape[-1]].log_softmax(-1)
        mask = is_piece * (tags == kind).float()[:, None]
        total = total - ((target * logits).sum(-1) * mask).sum() / mask.sum().clamp(min=1)
    has_category = is_piece * (categories > 0).float()
    chosen = prediction.tags[..., 8:].log_softmax(-1).gather(-1, categories[..., None])[..., 0]
    return total - 0.2 * (chosen * has_category).sum() / has_category.sum().clamp(min=1)


def total_loss(
    prediction: Prediction, batch: dict[str, Tensor], weights: LossWeights
) -> dict[str, Tensor]:
    """Return all losses by name; `all` is their weighted sum."""
    parts = {
        "score": score_loss(prediction, batch["targets"], batch["weights"]),
        "spread": spread_loss(prediction, batch["targets"], batch["weights"]),
        "clean": clean_loss(prediction, batch["clean"]),
        "tags": tag_loss(prediction, batch["tags"], batch["shares"], batch["categories"]),
    }
    if len(batch["pairs"]):
        parts["pairs"] = pair_loss(prediction, batch["pairs"])
    if len(batch["margins"]):
        parts["margin"] = margin_loss(prediction, batch["margins"])
    total = torch.stack([getattr(weights, name) * loss for name, loss in parts.items()]).sum()
    return {**parts, "all": total}
