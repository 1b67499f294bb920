"""Heads that score two encoded texts: late interaction and cross-encoder.

`LateInteraction` compares texts that were encoded separately. It combines greedy matching at
several layers (BERTR), soft alignment with a comparison of each token and its match (ESIM),
products and differences of sentence vectors (RUSE), and surface features.

`CrossHead` scores two texts that were encoded jointly, from the mean of all states. Every token
sees the other text from the first layer on. This is more accurate, but takes longer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tertium.metrics.bundled.input_rows import HYPOTHESIS, REFERENCE
from tertium.metrics.bundled.row_alignment import MATCH_FEATURES, RowAlignment

MAX_DEVIATIONS = 8.0  # surface features are clipped here


class LateInteraction(nn.Module):
    """Score of a pair of texts from their token states and surface features."""

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
        width = MATCH_FEATURES * layers + 4 * hidden + 2 * dim + surface
        self.norm = nn.LayerNorm(width)
        self.head = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        )

    def forward(self, states: Tensor, alignment: RowAlignment, surface: Tensor) -> Tensor:
        """Return the scores of pairs, (pairs,), given their surface features (pairs, features).

        `states` are those of all texts, (layers, positions, dim), with the encoder's last layer
        last. Linear layers read the tokens of all pairs: with int8 layers, the score of a pair does
        not depend on the others unless the alignment is padded.
        """
        similarities = alignment.similarities(nn.functional.normalize(states, dim=-1), REFERENCE)
        own, other = (alignment.pieces(states[-1], role) for role in (HYPOTHESIS, REFERENCE))
        weights = [similarity[-1] * self.temperature for similarity in similarities]
        partners, partners_back = alignment.align(weights, own, other, REFERENCE)
        matches = alignment.greedy_matches(similarities, REFERENCE)  # (pairs, layers, 4)
        features = [matches[..., [2, 3, 0, 1]].mT.flatten(1)]  # those of the reference come first
        means = []
        sides = (HYPOTHESIS, own, partners), (REFERENCE, other, partners_back)
        for role, tokens, matched in sides:
            compared = self.compare(torch.cat([tokens, matched, *_products(tokens, matched)], 1))
            features += [alignment.means(compared, role), alignment.maxima(compared, role)]
            means.append(alignment.means(tokens, role))
        scaled = (surface - self.surface_mean) / self.surface_scale
        features += [*_products(*means), scaled.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)]
        hidden = self.head[:-1](self.norm(torch.cat(features, dim=1).float()))  # (pairs, hidden)
        return alignment.map_rows(self.head[-1], hidden).squeeze(-1)


def _products(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    return left * right, (left - right).abs()


class CrossHead(nn.Sequential):
    """Score (pairs, 1) of pairs from their pooled states (pairs, dim)."""

    def __init__(self, dim: int, dropout: float = 0.1) -> None:
        super().__init__(
            nn.Dropout(dropout),
            nn.Linear(dim, dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(dim, 1),
        )


def score_pooled(head: CrossHead, states: Tensor, mask: Tensor) -> Tensor:
    """Return scores, (pairs,), of states (pairs, tokens, dim), special tokens included."""
    weights = mask.to(states.dtype)[..., None]
    means = (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    scores: Tensor = head(means)
    return scores.squeeze(-1).float()
