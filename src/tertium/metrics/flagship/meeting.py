"""Where a hypothesis meets the other texts of its row: likeness of pieces, and what they find.

On a CPU every row is computed for itself (`RowByRow`), so that neighbors change no bit of it. For
a GPU a row is less work than telling it of one: there the texts of a role are padded to the longest
of a pass, and padding is masked (`PaddedRows`). Both say the same but for rounding.

Vectors are those of all that lies in a pass, (..., pass, d); pieces those of one role's texts, row
after row, (pieces, d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

HYPOTHESIS, SOURCE, REFERENCE = range(3)
OTHERS = (SOURCE, REFERENCE)
UNLIKE = -1e4  # a likeness that is none: exp(UNLIKE) is 0, and what is learned scales it by 10

Rows = Sequence[Mapping[int, slice]]  # where the pieces of each row's texts lie in a pass, by role
Likeness = Sequence[Tensor]  # (..., m, n) of each row; the padded ones are all in one


class RowByRow:
    """Rows that are computed one after the other."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def pieces(self, vectors: Tensor, role: int) -> Tensor:
        """The pieces of a role's texts, (pieces, d)."""
        return torch.cat([vectors[row[role]] for row in self._rows])

    def means(self, pieces: Tensor, role: int) -> Tensor:
        """The mean of each text's pieces, (rows, d)."""
        return torch.stack([text.mean(0) for text in self._part(pieces, role)])

    def maxima(self, pieces: Tensor, role: int) -> Tensor:
        """The maximum of each text's pieces, (rows, d)."""
        return torch.stack([text.amax(0) for text in self._part(pieces, role)])

    def likeness(self, vectors: Tensor, role: int) -> Likeness:
        """Products of the hypothesis' pieces with those of the other text."""
        return [
            vectors[..., row[HYPOTHESIS], :].clone() @ vectors[..., row[role], :].clone().mT
            for row in self._rows
        ]

    def align(
        self, likeness: Likeness, own: Tensor, other: Tensor, role: int
    ) -> tuple[Tensor, Tensor]:
        """What each piece of the hypothesis finds in the other text, and each there in it.

        Means of pieces, (pieces, d) each, weighted by a softmax of likeness.
        """
        texts = zip(likeness, self._part(own, HYPOTHESIS), self._part(other, role), strict=True)
        found = [(like.softmax(1) @ right, like.softmax(0).T @ left) for like, left, right in texts]
        forth, back = zip(*found, strict=True)
        return torch.cat(forth), torch.cat(back)

    def matches(self, vectors: Tensor, role: int) -> Tensor:
        """Precision and recall of best matches, layer after layer, (rows, 2 layers)."""
        found = [(like.amax(2), like.amax(1)) for like in self.likeness(vectors, role)]
        shares = [torch.stack([best.mean(1) for best in both], dim=1) for both in found]
        return torch.stack([share.flatten() for share in shares])

    def each(self, work: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """What some work makes of each row, (rows, d) -> (rows, k)."""
        return torch.stack([work(row.clone()) for row in rows])

    def _part(self, pieces: Tensor, role: int) -> list[Tensor]:
        """Pieces by their text; a copy begins where memory is aligned."""
        sizes = [row[role].stop - row[role].start for row in self._rows]
        return [text.clone() for text in torch.split(pieces, sizes)]


class PaddedRows:
    """Rows that are computed at once, each role's texts padded to one length."""

    def __init__(self, rows: Rows, device: torch.device) -> None:
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

    def likeness(self, vectors: Tensor, role: int) -> Likeness:
        own, other = self._texts[HYPOTHESIS], self._texts[role]
        products = vectors[..., own.places, :] @ vectors[..., other.places, :].mT
        met = own.mask[:, :, None] & other.mask[:, None, :]
        return [products.masked_fill(~met, UNLIKE)]

    def align(
        self, likeness: Likeness, own: Tensor, other: Tensor, role: int
    ) -> tuple[Tensor, Tensor]:
        [like], left, right = likeness, self._texts[HYPOTHESIS], self._texts[role]
        forth = like.softmax(2) @ right.pad(other)
        back = like.softmax(1).mT @ left.pad(own)
        return left.unpad(forth), right.unpad(back)

    def matches(self, vectors: Tensor, role: int) -> Tensor:
        [like], own, other = (
            self.likeness(vectors, role),
            self._texts[HYPOTHESIS],
            self._texts[role],
        )
        found = (like.amax(3), own), (like.amax(2), other)  # (layers, rows, pieces)
        shares = [(best * texts.mask).sum(2) / texts.sizes for best, texts in found]
        return torch.stack(shares, dim=2).transpose(0, 1).flatten(1)

    def each(self, work: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        return work(rows)


Meeting = RowByRow | PaddedRows


class _PaddedTexts:
    """Texts that lie at some places of a pass, all as long as the longest.

    `places` of their pieces, padding's among them, `mask` of those that are no padding, both
    (texts, longest); `true`, (pieces,), says where these are in the flattened ones.
    """

    def __init__(self, at: Sequence[slice], device: torch.device) -> None:
        starts, stops = (np.array([getattr(p, end) for p in at]) for end in ("start", "stop"))
        sizes = stops - starts
        within = np.arange(sizes.max())
        mask = within < sizes[:, None]
        places = np.where(mask, starts[:, None] + within, 0)
        self.places, self.mask, self.sizes, self.true = (
            torch.from_numpy(given).to(device)
            for given in (places, mask, sizes, np.flatnonzero(mask))
        )

    def pad(self, pieces: Tensor) -> Tensor:
        """Pieces, (pieces, d), with zeros behind those of shorter texts, (texts, longest, d)."""
        padded = pieces.new_zeros(self.mask.numel(), pieces.shape[1])
        padded[self.true] = pieces
        return padded.view(*self.mask.shape, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """The same without what is padding, (texts, longest, d) -> (pieces, d)."""
        return padded.flatten(0, 1)[self.true]
