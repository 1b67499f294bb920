"""Greedy matching on a GPU: many comparisons at once, their texts padded to one length.

What `matching` says of a CPU holds here but for the last bits: cosines are of single precision, and
neighbors decide how far a text is padded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tertium.arrays import Float32Array, FloatArray, IntArray
from tertium.encoders.encoder import deal

ROWS = 1 << 17  # vectors, padding included, that are compared at a time


def match_padded(
    vectors: Float32Array, mass: Float32Array, left: IntArray, right: IntArray, device: str
) -> FloatArray:
    """Precision and recall of m comparisons, (m, 2).

    `left` and `right` (m, 2) say where the rows of both texts, which are not empty, begin and end;
    `mass` (rows,) is the weight of each row in its text.
    """
    directions = normalize(torch.from_numpy(vectors).to(device, torch.float32), dim=1)
    weights = torch.from_numpy(mass).to(device)
    result = np.zeros((len(left), 2))
    longest = np.maximum(*(np.diff(side).ravel() for side in (left, right)))
    order = np.argsort(longest, kind="stable")
    for share in deal(order.tolist(), (2 * longest[order]).tolist(), ROWS):
        sides = [_Texts(side[share], device) for side in (left, right)]
        result[share] = _match(directions, weights, sides).cpu().numpy()
    return result


class _Texts:
    """The rows of some texts (n, longest), and which of these places are of the text."""

    def __init__(self, bounds: IntArray, device: str) -> None:
        starts, stops = torch.from_numpy(bounds).to(device).unbind(1)
        places = starts[:, None] + torch.arange(int(np.diff(bounds).max()), device=device)
        self.mask = places < stops[:, None]
        self.rows = torch.where(self.mask, places, starts[:, None])


def _match(directions: Tensor, weights: Tensor, sides: Sequence[_Texts]) -> Tensor:
    left, right = sides
    cosines = directions[left.rows] @ directions[right.rows].mT  # (n, left rows, right rows)
    met = left.mask[:, :, None] & right.mask[:, None, :]
    cosines = cosines.masked_fill_(~met, -torch.inf)
    best = [
        torch.where(side.mask, cosines.amax(axis) * weights[side.rows], 0).sum(1)
        for side, axis in ((left, 2), (right, 1))
    ]
    return torch.stack(best, dim=1)
