"""What the training of tertium-multi makes small, each as a function of one pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from recipes.multi.network import Prediction
from recipes.multi.packed_rows import ESA_TAGS, MQM_TAGS, WORD_TAGS

LOGISTIC_SLOPE = 1.5  # a difference of one standard deviation makes 82 % of the judges agree
WORST = -2.4  # what a translation that says something else scores at most


@dataclass(frozen=True)
class LossWeights:
    score: float = 1.0
    pairs: float = 1.0
    margin: float = 1.0
    tags: float = 0.3
    fit_uncertainty: float = 0.05
    clean: float = 0.1


def score_loss(said: Prediction, targets: Tensor, weights: Tensor) -> Tensor:
    """Smooth L1 between scores and targets, (rows, scales), NaN where nobody judged.

    A target below `WORST` is an upper bound: no harm in scoring such a row lower still.
    """
    known = ~targets.isnan()
    wanted = torch.where(known, targets, 0.0)
    wanted = torch.where(wanted < WORST, torch.minimum(wanted, said.scores.detach()), wanted)
    each = F.smooth_l1_loss(said.scores, wanted, reduction="none", beta=0.5)
    weight = known.float() * weights[:, None]
    return (each * weight).sum() / weight.sum().clamp(min=1)


def spread_loss(said: Prediction, targets: Tensor, weights: Tensor) -> Tensor:
    """Gaussian likelihood of the residuals; scores are not moved by it."""
    known = ~targets.isnan()
    residual = said.scores.detach() - torch.where(known, targets, 0.0)
    fit_uncertainty = said.spreads.clamp(-5, 3)
    each = 0.5 * (fit_uncertainty + residual.square() * torch.exp(-fit_uncertainty))
    weight = known.float() * weights[:, None]
    return (each * weight).sum() / weight.sum().clamp(min=1)


def pair_loss(said: Prediction, pairs: Tensor) -> Tensor:
    """Bradley-Terry on comparisons (better, worse, share, weight)."""
    da_scores = said.scores.mean(1)
    better, worse = da_scores[pairs[:, 0].long()], da_scores[pairs[:, 1].long()]
    each = F.binary_cross_entropy_with_logits(
        LOGISTIC_SLOPE * (better - worse), pairs[:, 2], reduction="none"
    )
    return (each * pairs[:, 3]).sum() / pairs[:, 3].sum().clamp(min=1)


def margin_loss(said: Prediction, margins: Tensor) -> Tensor:
    """How far damage (whole, damaged, cost) falls short of its cost, on every scale."""
    drop = said.scores[margins[:, 0].long()] - said.scores[margins[:, 1].long()]
    return F.relu(margins[:, 2:] - drop).mean()


def clean_loss(said: Prediction, clean: Tensor) -> Tensor:
    """Whether annotators found no error at all; -1 where nobody looked."""
    known = (clean >= 0).float()
    each = F.binary_cross_entropy_with_logits(said.clean, clean.clamp(min=0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1)


def tag_loss(said: Prediction, tags: Tensor, shares: Tensor, categories: Tensor) -> Tensor:
    """Cross-entropy of severities (by the share of raters), word tags and categories."""
    minor, major, bad = shares.unbind(-1)
    minor = torch.minimum(minor, 1 - major)
    severity = torch.stack([1 - minor - major, minor, major], -1)  # (rows, pieces, 3)
    word = torch.stack([1 - bad, bad], -1)
    inside = said.inside.float()
    total = said.tags.new_zeros(())
    for kind, wanted, first in (
        (MQM_TAGS, severity, 0),
        (ESA_TAGS, severity, 3),
        (WORD_TAGS, word, 6),
    ):
        logits = said.tags[..., first : first + wanted.shape[-1]].log_softmax(-1)
        mask = inside * (tags == kind).float()[:, None]
        total = total - ((wanted * logits).sum(-1) * mask).sum() / mask.sum().clamp(min=1)
    named = inside * (categories > 0).float()
    chosen = said.tags[..., 8:].log_softmax(-1).gather(-1, categories[..., None])[..., 0]
    return total - 0.2 * (chosen * named).sum() / named.sum().clamp(min=1)


def total_loss(
    said: Prediction, batch: dict[str, Tensor], weights: LossWeights
) -> dict[str, Tensor]:
    """All parts by name, `all` their weighted sum."""
    parts = {
        "score": score_loss(said, batch["targets"], batch["weights"]),
        "spread": spread_loss(said, batch["targets"], batch["weights"]),
        "clean": clean_loss(said, batch["clean"]),
        "tags": tag_loss(said, batch["tags"], batch["shares"], batch["categories"]),
    }
    if len(batch["pairs"]):
        parts["pairs"] = pair_loss(said, batch["pairs"])
    if len(batch["margins"]):
        parts["margin"] = margin_loss(said, batch["margins"])
    total = torch.stack([getattr(weights, name) * loss for name, loss in parts.items()]).sum()
    return {**parts, "all": total}
