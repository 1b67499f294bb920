"""Heads that score two encoded texts: late interaction and cross-encoder.

`LateInteraction` compares texts that were encoded separately. It combines greedy matching at
several layers (BERTR), soft alignment with a comparison of each token and its match (ESIM),
products and differences of sentence vectors (RUSE), and surface features. Since each text is
encoded on its own, its vectors can be cached.

`CrossHead` scores two texts that were encoded jointly, from the mean of all states. Every token
sees the other text from the first layer on. This is more accurate, but nothing can be cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

MATCH_FEATURES = 4  # mean and minimum recall, mean and minimum precision, at each layer


class Tokens(NamedTuple):
    """States of texts at several layers.

    `states` is (layers, texts, tokens, dim), with the encoder's last layer last. `mask`, (texts,
    tokens), is true for tokens and false for padding and special tokens.
    """

    states: Tensor
    mask: Tensor

    def take(self, rows: Tensor) -> Tokens:
        return Tokens(self.states[:, rows], self.mask[rows])


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

    def forward(self, hypothesis: Tokens, reference: Tokens, surface: Tensor) -> Tensor:
        """Return the scores of padded pairs, (pairs,); `surface` is (pairs, features)."""
        last_h, last_r = hypothesis.states[-1], reference.states[-1]  # (pairs, tokens, dim)
        similarity = similarities(hypothesis, reference)  # (layers, pairs, h tokens, r tokens)
        features = [
            greedy_matches(similarity, hypothesis.mask, reference.mask),
            self._align(last_h, last_r, similarity[-1], hypothesis.mask, reference.mask),
            self._align(
                last_r, last_h, similarity[-1].transpose(1, 2), reference.mask, hypothesis.mask
            ),
            *_products(mean_pool(last_h, hypothesis.mask), mean_pool(last_r, reference.mask)),
            self._scale_surface(surface),
        ]
        scores: Tensor = self.head(self.norm(torch.cat([f.float() for f in features], dim=-1)))
        return scores.squeeze(-1)

    def score_concatenated(
        self, states: Tensor, pairs: Sequence[tuple[slice, slice]], surface: Tensor
    ) -> Tensor:
        """Return the scores of pairs of texts, each with at least one token, (pairs,).

        `states` are those of all texts, (layers, tokens, dim). A pair is the positions of its
        hypothesis and of its reference. Linear layers read the tokens of all pairs, other steps one
        pair or one token: with int8 layers, a score does not depend on the other pairs.
        """
        last, unit = states[-1], nn.functional.normalize(states, dim=-1)
        matches, partners = [], []
        for h, r in pairs:
            similarity = unit[:, h] @ unit[:, r].mT  # (layers, h tokens, r tokens)
            best = similarity.amax(1), similarity.amax(2)  # of each token of r, of h
            parts = [part for side in best for part in (side.mean(1), side.amin(1))]
            matches.append(torch.cat(parts))
            weights = similarity[-1] * self.temperature
            partners += [weights.softmax(1) @ last[r], weights.softmax(0).T @ last[h]]
        texts = [last[side] for pair in pairs for side in pair]
        compared = self._compare(torch.cat(texts), torch.cat(partners))  # (tokens, hidden)
        pooled = [
            torch.cat([part.mean(0), part.amax(0)])
            for part in torch.split(compared, [len(text) for text in texts])
        ]
        means = torch.stack([text.mean(0) for text in texts])  # (2 pairs, dim)
        features = [
            torch.stack(matches),
            torch.stack(pooled).view(len(pairs), -1),
            *_products(means[::2], means[1::2]),
            self._scale_surface(surface),
        ]
        hidden = self.head[:-1](self.norm(torch.cat(features, dim=1)))  # (pairs, hidden)
        return torch.cat([self.head[-1](row) for row in hidden])

    def _align(
        self, own: Tensor, other: Tensor, similarity: Tensor, own_mask: Tensor, other_mask: Tensor
    ) -> Tensor:
        """Compare each token with its soft match, and pool, (pairs, 2 hidden)."""
        weights = (similarity.float() * self.temperature).masked_fill(~other_mask[:, None, :], -1e4)
        partner = weights.softmax(dim=-1).to(other.dtype) @ other  # (pairs, own tokens, dim)
        partner = partner * other_mask.any(dim=1)[:, None, None]  # zeros if the other text is empty
        compared = self._compare(own, partner)  # (pairs, own tokens, hidden)
        return torch.cat([mean_pool(compared, own_mask), max_pool(compared, own_mask)], dim=-1)

    def _compare(self, own: Tensor, partner: Tensor) -> Tensor:
        """Compare tokens with their soft matches, (..., dim) -> (..., hidden)."""
        compared: Tensor = self.compare(torch.cat([own, partner, *_products(own, partner)], dim=-1))
        return compared

    def _scale_surface(self, surface: Tensor) -> Tensor:
        return ((surface - self.surface_mean) / self.surface_scale).clamp(-8, 8)


def similarities(hypothesis: Tokens, reference: Tokens) -> Tensor:
    """Return the cosines of all token pairs, (layers, pairs, h tokens, r tokens)."""
    h = nn.functional.normalize(hypothesis.states, dim=-1)
    r = nn.functional.normalize(reference.states, dim=-1)
    return h @ r.transpose(-1, -2)


def greedy_matches(similarity: Tensor, h_mask: Tensor, r_mask: Tensor) -> Tensor:
    """Return mean and minimum of the best matches of both sides, (pairs, 4 layers)."""
    similarity = similarity.float()
    both = h_mask[:, :, None] & r_mask[:, None, :]  # (pairs, h tokens, r tokens)
    masked = similarity.masked_fill(~both, -1.0)
    recall, precision = masked.amax(dim=2), masked.amax(dim=3)  # (layers, pairs, tokens)
    parts = [*_mean_and_minimum(recall, r_mask), *_mean_and_minimum(precision, h_mask)]
    return torch.cat(parts, dim=0).transpose(0, 1)


def mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over tokens, (texts, tokens, dim) -> (texts, dim); 0 without tokens."""
    weights = mask.to(states.dtype)[..., None]
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def max_pool(states: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over tokens, (texts, tokens, dim) -> (texts, dim); 0 without tokens."""
    highest = states.masked_fill(~mask[..., None], -1e4).amax(dim=1)
    return highest * mask.any(dim=1, keepdim=True)


def _mean_and_minimum(best: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    count = mask.sum(dim=-1).clamp(min=1)  # (texts,)
    mean = (best * mask).sum(dim=-1) / count
    return mean, best.masked_fill(~mask, 1.0).amin(dim=-1)


def _products(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a * b, (a - b).abs()


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
    scores: Tensor = head(mean_pool(states, mask))
    return scores.squeeze(-1).float()
