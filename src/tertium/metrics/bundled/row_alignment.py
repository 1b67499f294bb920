"""Alignment of a hypothesis with the other texts of its row: similarities, soft and greedy matches.

The networks of all bundled metrics compare texts with these formulas. On a CPU, each row is a group
of its own, so that a result never depends on the rest of the batch. On a GPU, all rows are one
group: texts of a role are padded to the longest, and a mask hides the padding. Both give the same
results up to rounding.

`vectors` are those of all texts of a batch, (..., positions, d). `pieces` are those of the texts of
one role, row after row, (pieces, d). In a group, texts are (..., length, d), or padded
(..., texts, longest, d).

Heads that score two encoded texts: late interaction and cross-encoder.

`LateInteraction` compares texts that were encoded separately. It combines greedy matching at
several layers (BERTR), soft alignment with a comparison of each token and its match (ESIM),
products and differences of sentence vectors (RUSE), and surface features.

`CrossHead` scores two texts that were encoded jointly, from the mean of all states. Every token
sees the other text from the first layer on. This is more accurate, but takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from tertium.metrics.bundled.input_rows import HYPOTHESIS, REFERENCE, SOURCE

CONTEXT_ROLES = (SOURCE, REFERENCE)
MASKED_SIMILARITY = -1e4  # exp of it is 0, also after scaling by the learned sharpness
MATCH_FEATURES = 4  # of two texts at a layer: mean and minimum of both sides

RowSlices = Sequence[Mapping[int, slice]]  # positions of the texts of each row, by role
Similarities = Sequence[Tensor]  # (..., m, n) of each group; (..., texts, m, n) if it is padded


class TextGroup:
    """Texts of one role: a single one, or `padded` ones with a mask (texts, longest) of pieces."""

    def __init__(self, places: Sequence[slice], device: torch.device, padded: bool) -> None:
        sizes = torch.tensor([place.stop - place.start for place in places])
        self.pieces = int(sizes.sum())
        self.mask: Tensor | None = None
        self._place = places[0]
        if not padded:
            return
        starts = torch.tensor([place.start for place in places])
        within = torch.arange(max(1, int(sizes.max())))
        mask = within < sizes[:, None]
        self.mask = mask.to(device)
        self._positions = torch.where(mask, starts[:, None] + within, 0).to(device)
        self._real = mask.flatten().nonzero()[:, 0].to(device)

    def gather(self, vectors: Tensor) -> Tensor:
        """Return the vectors of the texts; copies start at aligned memory addresses."""
        if self.mask is None:
            return vectors[..., self._place, :].clone()
        return vectors[..., self._positions, :]

    def pad(self, pieces: Tensor) -> Tensor:
        """Arrange the pieces of the group, (pieces, d), as texts; padding is 0."""
        if self.mask is None:
            return pieces.clone()
        padded = pieces.new_zeros(self.mask.numel(), pieces.shape[1])
        padded[self._real] = pieces
        return padded.view(*self.mask.shape, -1)

    def unpad(self, texts: Tensor) -> Tensor:
        """Return the pieces of the texts, (pieces, d)."""
        return texts if self.mask is None else texts.flatten(0, 1)[self._real]


class RowAlignment:
    """Alignment of the texts of rows, row by row or `padded`; all rows have the same roles."""

    def __init__(self, rows: RowSlices, device: torch.device, *, padded: bool = False) -> None:
        self._padded = padded
        self._groups: dict[int, list[TextGroup]] = {role: [] for role in rows[0]}
        for group in [rows] if padded else [[row] for row in rows]:
            is_empty = any(place.start == place.stop for row in group for place in row.values())
            for role, texts in self._groups.items():
                places = [row[role] for row in group]
                texts.append(TextGroup(places, device, padded or is_empty))

    def pieces(self, vectors: Tensor, role: int) -> Tensor:
        """Return the pieces of the texts of a role, (pieces, d)."""
        return torch.cat([group.unpad(group.gather(vectors)) for group in self._groups[role]])

    def pool(self, pieces: Tensor, role: int) -> tuple[Tensor, Tensor]:
        """Return mean and maximum of the pieces of each text, (rows, d) each; 0 without pieces."""
        means = []
        maxima = []
        for texts, group in zip(self._split(pieces, role), self._groups[role], strict=True):
            if group.mask is None:
                means.append(texts.mean(-2, keepdim=True))
                maxima.append(texts.amax(-2, keepdim=True))
            else:
                hidden = texts.masked_fill(~group.mask[..., None], MASKED_SIMILARITY)
                means.append(texts.sum(-2) / _count(group.mask)[:, None])
                maxima.append(hidden.amax(-2) * group.mask.any(-1, keepdim=True))
        return torch.cat(means), torch.cat(maxima)

    def similarities(self, vectors: Tensor, role: int) -> Similarities:
        """Return the products of hypothesis pieces with those of the other text."""
        products = []
        for left, right in self._pairs(role):
            product = left.gather(vectors) @ right.gather(vectors).mT
            if left.mask is not None and right.mask is not None:
                is_pair = left.mask[:, :, None] & right.mask[:, None, :]
                product = product.masked_fill(~is_pair, MASKED_SIMILARITY)
            products.append(product)
        return products

    def align(
        self, similarities: Similarities, own: Tensor, other: Tensor, role: int
    ) -> tuple[Tensor, Tensor]:
        """Return softmax-weighted means of the opposite pieces, (pieces, d) for both texts."""
        forth = []
        back = []
        own_texts = self._split(own, HYPOTHESIS)
        other_texts = self._split(other, role)
        groups = zip(similarities, self._pairs(role), own_texts, other_texts, strict=True)
        for similarity, (left, right), left_texts, right_texts in groups:
            forth.append(left.unpad(similarity.softmax(-1) @ right_texts))
            back.append(right.unpad(similarity.softmax(-2).mT @ left_texts))
        return torch.cat(forth), torch.cat(back)

    def greedy_matches(self, similarities: Similarities, role: int) -> Tensor:
        """Return the mean and the minimum over the best matches of each side, layer by layer.

        Similarities are cosines, (layers, ..., m, n). The result is (rows, layers, 4): mean and
        minimum for the hypothesis, then for the other text.
        """
        features = []
        for similarity, (left, right) in zip(similarities, self._pairs(role), strict=True):
            sides = (similarity.amax(-1), left.mask), (similarity.amax(-2), right.mask)
            shares = [share for best, mask in sides for share in _mean_and_minimum(best, mask)]
            layers = torch.stack(shares, dim=-1)  # (layers, ..., 4)
            features.append(layers.movedim(0, -2).reshape(-1, len(similarity), MATCH_FEATURES))
        return torch.cat(features)

    def map_rows(self, function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """Apply a function to rows, (rows, d) -> (rows, k), one by one unless they are padded."""
        if self._padded:
            return function(rows)
        return torch.stack([function(row.clone()) for row in rows])

    def _pairs(self, role: int) -> Sequence[tuple[TextGroup, TextGroup]]:
        return list(zip(self._groups[HYPOTHESIS], self._groups[role], strict=True))

    def _split(self, pieces: Tensor, role: int) -> list[Tensor]:
        """Split the pieces of a role by group."""
        groups = self._groups[role]
        parts = torch.split(pieces, [group.pieces for group in groups])
        return [group.pad(part) for group, part in zip(groups, parts, strict=True)]


def _mean_and_minimum(best: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return mean and minimum of best matches, (..., pieces) -> (...); 0 and 1 without pieces."""
    if mask is None:
        return best.mean(-1), best.amin(-1)
    best = best.clamp(min=-1.0)  # the best match with an empty text
    return (best * mask).sum(-1) / _count(mask), best.masked_fill(~mask, 1.0).amin(-1)


def _count(mask: Tensor) -> Tensor:
    return mask.sum(-1).clamp(min=1)


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
            features += alignment.pool(self.compare(join_products(tokens, matched)), role)
            means.append(alignment.pool(tokens, role)[0])
        scaled = (surface - self.surface_mean) / self.surface_scale
        left, right = means
        features += [left * right, (left - right).abs()]
        features.append(scaled.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS))
        hidden = self.head[:-1](self.norm(torch.cat(features, dim=1).float()))  # (pairs, hidden)
        return alignment.map_rows(self.head[-1], hidden).squeeze(-1)


def join_products(left: Tensor, right: Tensor) -> Tensor:
    """Concatenate two texts, their products and their differences, (n, d) -> (n, 4 d)."""
    return torch.cat([left, right, left * right, (left - right).abs()], dim=-1)


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
