"""Greedy matching on a GPU, in padded batches.

Results equal those of `greedy_matching` except for the last bits: cosines are computed in single
precision, and padding depends on the batch.
"""

from __future__ import annotations

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
    longest = np.maximum(np.ptp(left, axis=1), np.ptp(right, axis=1))
    order = np.argsort(longest, kind="stable")
    for batch in split_by_size(order.tolist(), (2 * longest[order]).tolist(), BATCH_ROWS):
        left_rows, left_mask = _pad(left[batch], device)
        right_rows, right_mask = _pad(right[batch], device)
        cosines = directions[left_rows] @ directions[right_rows].mT  # (n, left rows, right rows)
        mask = left_mask[:, :, None] & right_mask[:, None, :]
        cosines = cosines.masked_fill_(~mask, -torch.inf)
        precision = torch.where(left_mask, cosines.amax(2) * weights[left_rows], 0).sum(1)
        recall = torch.where(right_mask, cosines.amax(1) * weights[right_rows], 0).sum(1)
        result[batch] = torch.stack([precision, recall], dim=1).cpu().numpy()
    return result


def _pad(bounds: IntArray, device: str) -> tuple[Tensor, Tensor]:
    """Return row indices of a batch of texts, (n, longest), and the mask of rows that are real."""
    starts, stops = torch.from_numpy(bounds).to(device).unbind(1)
    rows = starts[:, None] + torch.arange(int(np.ptp(bounds, axis=1).max()), device=device)
    mask = rows < stops[:, None]
    return torch.where(mask, rows, starts[:, None]), mask
