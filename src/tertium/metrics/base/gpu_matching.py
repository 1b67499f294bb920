"""Greedy matching on a GPU, in padded batches.

Results equal those of `greedy_matching` except for the last bits: cosines are computed in single
precision, and padding depends on the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tertium.core.arrays import Float32Array, FloatArray, IntArray
from tertium.encoders.batching import split_by_size

BATCH_ROWS = 1 << 17  # rows of vectors in a batch, including padding


def match_padded(
    vectors: Float32Array, mass: Float32Array, left: IntArray, right: IntArray, device: str
) -> FloatArray:
    """Compute precision and recall of m comparisons, (m, 2).

    `left` and `right` (m, 2) are the row ranges of both texts, which must not be empty; `mass`
    (rows,) is the weight of each row in its text.
    """
    directions = normalize(torch.from_numpy(vectors).to(device, torch.float32), dim=1)
    weights = torch.from_numpy(mass).to(device)
    result = np.zeros((len(left), 2))
    longest = np.maximum(*(np.diff(side).ravel() for side in (left, right)))
    order = np.argsort(longest, kind="stable")
    for batch in split_by_size(order.tolist(), (2 * longest[order]).tolist(), BATCH_ROWS):
        sides = [_Texts(side[batch], device) for side in (left, right)]
        result[batch] = _match(directions, weights, sides).cpu().numpy()
    return result


class _Texts:
    """Row indices of a batch of texts, (n, longest), and the mask of rows that are not padding."""

    def __init__(self, bounds: IntArray, device: str) -> None:
        starts, stops = torch.from_numpy(bounds).to(device).unbind(1)
        rows = starts[:, None] + torch.arange(int(np.diff(bounds).max()), device=device)
        self.mask = rows < stops[:, None]
        self.rows = torch.where(self.mask, rows, starts[:, None])


def _match(directions: Tensor, weights: Tensor, sides: Sequence[_Texts]) -> Tensor:
    left, right = sides
    cosines = directions[left.rows] @ directions[right.rows].mT  # (n, left rows, right rows)
    mask = left.mask[:, :, None] & right.mask[:, None, :]
    cosines = cosines.masked_fill_(~mask, -torch.inf)
    best = [
        torch.where(side.mask, cosines.amax(axis) * weights[side.rows], 0).sum(1)
        for side, axis in ((left, 2), (right, 1))
    ]
    return torch.stack(best, dim=1)
