"""Late interaction: two texts encoded apart, compared token by token, judged by a small head.

Puts four ideas of the field together on one encoder: greedy matching at several layers (BERTR),
soft alignment with a comparison of each token and its partner (ESIM), products and differences of
sentence vectors (RUSE), and what the encoder cannot see (`surface`). Since each text is
encoded without the other, its vectors can be computed once and kept.

`CrossHead` judges two texts read together instead, by the mean of all states. Each token sees the
other text from the first layer on, which tells fine differences best; the price is that nothing can
be kept, since every pair is a text of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

MATCHES = 4  # mean and least recall, mean and least precision, at each layer


class Tokens(NamedTuple):
    """The states of some texts at the chosen layers.

    `states` (layers, texts, tokens, dim), the last being the encoder's last layer; `mask`
    (texts, tokens) is true where there is a token (special tokens count as none).
    """

    states: Tensor
    mask: Tensor

    def take(self, rows: Tensor) -> Tokens:
        return Tokens(self.states[:, rows], self.mask[rows])


class LateInteraction(nn.Module):
    """A score for each pair of texts from their token states and surface features."""

    def __init__(
        self, *, layers: int, dim: int, surface: int, hidden: int = 256, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.compare = nn.Sequential(nn.Linear(4 * dim, hidden), nn.GELU())
        self.temperature = nn.Parameter(torch.tensor(10.0))
        self.surface_mean: Tensor
        self.surface_scale: Tensor
        self.register_buffer("surface_mean", torch.zeros(surface))
        self.register_buffer("surface_scale", torch.ones(surface))
        width = MATCHES * layers + 4 * hidden + 2 * dim + surface
        self.norm = nn.LayerNorm(width)
        self.head = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        )

    def forward(self, hypothesis: Tokens, reference: Tokens, surface: Tensor) -> Tensor:
        """Scores (pairs,) of parallel hypotheses and references; surface (pairs, features)."""
        last_h, last_r = hypothesis.states[-1], reference.states[-1]  # (pairs, tokens, dim)
        similar = similarities(hypothesis, reference)  # (layers, pairs, h tokens, r tokens)
        features = [
            greedy_matches(similar, hypothesis.mask, reference.mask),
            self._align(last_h, last_r, similar[-1], hypothesis.mask, reference.mask),
            self._align(
                last_r, last_h, similar[-1].transpose(1, 2), reference.mask, hypothesis.mask
            ),
            *_products(mean_pool(last_h, hypothesis.mask), mean_pool(last_r, reference.mask)),
            ((surface - self.surface_mean) / self.surface_scale).clamp(-8, 8),
        ]
        scores: Tensor = self.head(self.norm(torch.cat([f.float() for f in features], dim=-1)))
        return scores.squeeze(-1)

    def _align(
        self, own: Tensor, other: Tensor, similar: Tensor, own_mask: Tensor, other_mask: Tensor
    ) -> Tensor:
        """Each token beside its softly aligned partner, compared and pooled, (pairs, 2 hidden)."""
        weights = (similar.float() * self.temperature).masked_fill(~other_mask[:, None, :], -1e4)
        partner = weights.softmax(dim=-1).to(other.dtype) @ other  # (pairs, own tokens, dim)
        partner = partner * other_mask.any(dim=1)[:, None, None]  # nothing to align to: nothing
        joined = torch.cat([own, partner, own * partner, (own - partner).abs()], dim=-1)
        compared = self.compare(joined)  # (pairs, own tokens, hidden)
        return torch.cat([mean_pool(compared, own_mask), max_pool(compared, own_mask)], dim=-1)


def similarities(hypothesis: Tokens, reference: Tokens) -> Tensor:
    """Cosines of all token pairs at each layer, (layers, pairs, h tokens, r tokens)."""
    h = nn.functional.normalize(hypothesis.states, dim=-1)
    r = nn.functional.normalize(reference.states, dim=-1)
    return h @ r.transpose(-1, -2)


def greedy_matches(similar: Tensor, h_mask: Tensor, r_mask: Tensor) -> Tensor:
    """Mean and least best-match of both sides at each layer, (pairs, 4 layers)."""
    similar = similar.float()
    both = h_mask[:, :, None] & r_mask[:, None, :]  # (pairs, h tokens, r tokens)
    masked = similar.masked_fill(~both, -1.0)
    recall, precision = masked.amax(dim=2), masked.amax(dim=3)  # (layers, pairs, tokens)
    parts = [*_mean_and_least(recall, r_mask), *_mean_and_least(precision, h_mask)]
    return torch.cat(parts, dim=0).transpose(0, 1)


def mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """The mean over tokens, (texts, tokens, dim) -> (texts, dim); 0 for a text without tokens."""
    weights = mask.to(states.dtype)[..., None]
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def max_pool(states: Tensor, mask: Tensor) -> Tensor:
    """The maximum over tokens, (texts, tokens, dim) -> (texts, dim); 0 where there is no token."""
    highest = states.masked_fill(~mask[..., None], -1e4).amax(dim=1)
    return highest * mask.any(dim=1, keepdim=True)


def _mean_and_least(best: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    count = mask.sum(dim=-1).clamp(min=1)  # (texts,)
    mean = (best * mask).sum(dim=-1) / count
    least = best.masked_fill(~mask, 1.0).amin(dim=-1)
    return mean, least


def _products(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a * b, (a - b).abs()


class CrossHead(nn.Sequential):
    """From a pair's pooled state (pairs, dim) to its score (pairs, 1)."""

    def __init__(self, dim: int, dropout: float = 0.1) -> None:
        super().__init__(
            nn.Dropout(dropout),
            nn.Linear(dim, dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(dim, 1),
        )


def judge(head: CrossHead, states: Tensor, mask: Tensor) -> Tensor:
    """Scores (pairs,) from states (pairs, tokens, dim); special tokens count as tokens here."""
    scores: Tensor = head(mean_pool(states, mask))
    return scores.squeeze(-1).float()
