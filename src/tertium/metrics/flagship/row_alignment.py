"""Alignment of a hypothesis with the other texts of its row: similarities, soft and greedy matches.

On a CPU, rows are computed one by one (`RowwiseAlignment`), so that a result never depends on the
rest of the batch. On a GPU, texts of a role are padded to the longest of the batch and padding is
masked (`PaddedAlignment`). Both give the same results up to rounding.

`vectors` are those of all texts of a batch, (..., positions, d). `pieces` are those of the texts of
one role, row after row, (pieces, d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

HYPOTHESIS, SOURCE, REFERENCE = range(3)
CONTEXT_ROLES = (SOURCE, REFERENCE)
MASKED_SIMILARITY = -1e4  # exp of it is 0, also after scaling by the learned sharpness

RowSlices = Sequence[Mapping[int, slice]]  # positions of the texts of each row, by role
Similarities = Sequence[Tensor]  # (..., m, n) of each row; a padded batch has one tensor


class RowwiseAlignment:
    """Alignment of rows one by one."""

    def __init__(self, rows: RowSlices) -> None:
        self._rows = rows

    def pieces(self, vectors: Tensor, role: int) -> Tensor:
        """Return the pieces of the texts of a role, (pieces, d)."""
        return torch.cat(self._texts(vectors, role))

    def means(self, pieces: Tensor, role: int) -> Tensor:
        """Return the mean of the pieces of each text, (rows, d)."""
        return torch.stack([text.mean(0) for text in self._split(pieces, role)])

    def maxima(self, pieces: Tensor, role: int) -> Tensor:
        """Return the maximum of the pieces of each text, (rows, d)."""
        return torch.stack([text.amax(0) for text in self._split(pieces, role)])

    def similarities(self, vectors: Tensor, role: int) -> Similarities:
        """Return the products of hypothesis pieces with those of the other text."""
        texts = self._texts(vectors, HYPOTHESIS), self._texts(vectors, role)
        return [own.clone() @ other.clone().mT for own, other in zip(*texts, strict=True)]

    def align(
        self, similarities: Similarities, own: Tensor, other: Tensor, role: int
    ) -> tuple[Tensor, Tensor]:
        """Return softmax-weighted means of the opposite pieces, (pieces, d) for both texts."""
        texts = zip(
            similarities, self._split(own, HYPOTHESIS), self._split(other, role), strict=True
        )
        soft = [(s.softmax(1) @ right, s.softmax(0).T @ left) for s, left, right in texts]
        forth, back = zip(*soft, strict=True)
        return torch.cat(forth), torch.cat(back)

    def greedy_matches(self, vectors: Tensor, role: int) -> Tensor:
        """Return precision and recall of greedy matches, layer by layer, (rows, 2 layers)."""
        best = [(s.amax(2), s.amax(1)) for s in self.similarities(vectors, role)]
        shares = [torch.stack([side.mean(1) for side in sides], dim=1) for sides in best]
        return torch.stack([share.flatten() for share in shares])

    def map_rows(self, function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """Apply a function to each row, (rows, d) -> (rows, k)."""
        return torch.stack([function(row.clone()) for row in rows])

    def _texts(self, vectors: Tensor, role: int) -> list[Tensor]:
        """Return views of the texts of a role."""
        return [vectors[..., row[role], :] for row in self._rows]

    def _split(self, pieces: Tensor, role: int) -> list[Tensor]:
        """Split pieces by text; copies start at aligned memory addresses."""
        sizes = [row[role].stop - row[role].start for row in self._rows]
        return [text.clone() for text in torch.split(pieces, sizes)]


class PaddedAlignment:
    """Alignment of all rows at once, with texts padded to the longest of their role."""

    def __init__(self, rows: RowSlices, device: torch.device) -> None:
        self._texts = {
            role: _PaddedTexts([row[role] for row in rows], device) for role in sorted(rows[0])
        }

    def pieces(self, vectors: Tensor, role: int) -> Tensor:
        texts = self._texts[role]
        return vectors[texts.places.flatten()[texts.true]]

    def means(self, pieces: Tensor, role: int) -> Tensor:
        texts = self._texts[role]
        return texts.pad(pieces).sum(1) / texts.sizes[:, None]

    def maxima(self, pieces: Tensor, role: int) -> Tensor:
        texts = self._texts[role]
        return texts.pad(pieces).masked_fill(~texts.mask[..., None], -torch.inf).amax(1)

    def similarities(self, vectors: Tensor, role: int) -> Similarities:
        own, other = self._texts[HYPOTHESIS], self._texts[role]
        products = vectors[..., own.places, :] @ vectors[..., other.places, :].mT
        is_pair = own.mask[:, :, None] & other.mask[:, None, :]
        return [products.masked_fill(~is_pair, MASKED_SIMILARITY)]

    def align(
        self, similarities: Similarities, own: Tensor, other: Tensor, role: int
    ) -> tuple[Tensor, Tensor]:
        [similarity], left, right = similarities, self._texts[HYPOTHESIS], self._texts[role]
        forth = similarity.softmax(2) @ right.pad(other)
        back = similarity.softmax(1).mT @ left.pad(own)
        return left.unpad(forth), right.unpad(back)

    def greedy_matches(self, vectors: Tensor, role: int) -> Tensor:
        [similarity] = self.similarities(vectors, role)
        own, other = self._texts[HYPOTHESIS], self._texts[role]
        sides = (similarity.amax(3), own), (similarity.amax(2), other)  # (layers, rows, pieces)
        shares = [(best * texts.mask).sum(2) / texts.sizes for best, texts in sides]
        return torch.stack(shares, dim=2).transpose(0, 1).flatten(1)

    def map_rows(self, function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        return function(rows)


RowAlignment = RowwiseAlignment | PaddedAlignment


class _PaddedTexts:
    """Texts of one role, padded to the longest.

    `places` are the positions of their pieces in the batch and `mask` marks real pieces, both
    (texts, longest). `true`, (pieces,), are the indices of real pieces in the flattened arrays.
    """

    def __init__(self, at: Sequence[slice], device: torch.device) -> None:
        starts, stops = (np.array([getattr(p, end) for p in at]) for end in ("start", "stop"))
        sizes = stops - starts
        within = np.arange(sizes.max())
        mask = within < sizes[:, None]
        places = np.where(mask, starts[:, None] + within, 0)
        self.places, self.mask, self.sizes, self.true = (
            torch.from_numpy(array).to(device)
            for array in (places, mask, sizes, np.flatnonzero(mask))
        )

    def pad(self, pieces: Tensor) -> Tensor:
        """Pad shorter texts with zeros, (pieces, d) -> (texts, longest, d)."""
        padded = pieces.new_zeros(self.mask.numel(), pieces.shape[1])
        padded[self.true] = pieces
        return padded.view(*self.mask.shape, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """Remove the padding, (texts, longest, d) -> (pieces, d)."""
        return padded.flatten(0, 1)[self.true]
