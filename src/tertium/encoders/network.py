"""The network of a model folder: numbers of pieces in, states of layers and pooled vectors out.

A pass of our own (`bert`) runs the models that it knows, transformers (`hooked`) all others. On a
CPU texts are grouped by their length, on a GPU padded to one; batches are planned to suit either.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tertium.arrays import BoolArray, IntArray
from tertium.encoders.apart import on_one_thread
from tertium.encoders.bert import Bert, read_shape
from tertium.encoders.pieces import plan_batches
from tertium.encoders.pooling import Pooling
from tertium.encoders.products import DTYPES, check_precision
from tertium.encoders.weights import Tensors
from tertium.runtime import current_runtime

if TYPE_CHECKING:
    from tertium.encoders.hooked import Hooked

# Tokens of one forward pass, and what starting one costs in tokens, measured with minilm: on a CPU
# activations that stay in its cache are worth more than large products, and nothing is padded.
BUDGETS = {"cpu": 1024, "gpu": 16384}
OVERHEADS = {"cpu": 1024, "gpu": 2048}
LEAST = 256  # tokens that are worth a pass of their own, where threads wait for one


class Network:
    """The model of a folder on a device: numbers of pieces in, states out.

    `depth` is its number of layers; states of layer 0 are the embeddings, of layer `depth` the
    model's output. `tensors` gives the weights where those of the folder are not to be taken.
    `alone` says that texts must not share a pass: tried when a model is first run, they changed
    each other.
    """

    def __init__(
        self, folder: Path, *, device: str, precision: str, tensors: Tensors | None = None
    ) -> None:
        check_precision(precision, device)
        self.device, self.precision = device, precision
        self._model = _load(folder, tensors, precision, device)
        self.depth, self.padding = self._model.depth, self._model.padding

    @cached_property
    def alone(self) -> bool:
        if self.device != "cpu":
            return False
        with torch.inference_mode(), on_one_thread():
            return not self._model.keeps_apart()

    def __call__(
        self, rows: Sequence[Sequence[int]], layers: Sequence[int], pooling: Pooling | None
    ) -> tuple[list[Tensor], Tensor | None]:
        """States of the layers, each (texts, positions, d), and pooled vectors where asked for.

        `rows` holds the numbers of each text's pieces, special tokens among them.
        """
        groups, mask = self._group(rows)
        wanted = frozenset(layers) | ({self.depth} if pooling else set())
        with torch.inference_mode():
            states = self._model(groups, mask, wanted)
            pooled = self._pool(pooling, states[self.depth], mask) if pooling else None
            return [self._round(join_groups(states[layer])) for layer in layers], pooled

    def plan(self, sizes: Sequence[int] | IntArray) -> list[IntArray]:
        """Texts of so many tokens in the batches that suit it, its device and the runtime."""
        runtime, kind = current_runtime(), "cpu" if self.device == "cpu" else "gpu"
        budget = BUDGETS[kind]
        if kind == "cpu":
            threads = runtime.threads or torch.get_num_threads()
            budget = min(budget, max(LEAST, -(-int(np.sum(sizes)) // threads)))
        return plan_batches(
            sizes,
            budget=runtime.token_budget or budget,
            overhead=OVERHEADS[kind],
            limit=1 if self.alone else runtime.batch_size,
        )

    def _group(self, rows: Sequence[Sequence[int]]) -> tuple[list[Tensor], Tensor | None]:
        """Numbers of texts, (texts, pieces): on a CPU by length, on a GPU padded, with a mask."""
        if self.device == "cpu":
            return [torch.tensor(list(same)) for _, same in groupby(rows, len)], None
        ids, mask = pad(rows, self.padding)
        masks = None if mask is None else torch.from_numpy(mask).to(self.device)
        return [torch.from_numpy(ids).to(self.device)], masks

    def _pool(self, pooling: Pooling, groups: Sequence[Tensor], mask: Tensor | None) -> Tensor:
        if self.device != "cpu":
            [states] = groups
            full = mask if mask is not None else states.new_ones(states.shape[:2])
            return pooling(states.float(), full)
        texts = [group[i : i + 1].float().clone() for group in groups for i in range(len(group))]
        return torch.cat([pooling(text, text.new_ones(text.shape[:2])) for text in texts])

    def _round(self, states: Tensor) -> Tensor:
        """Values that the precision can hold, as fp32, so that storing them loses nothing."""
        return states.to(DTYPES[self.precision]).float()


def _load(folder: Path, tensors: Tensors | None, precision: str, device: str) -> Bert | Hooked:
    """The model that runs a folder."""
    shape = read_shape(folder)
    if shape is None:
        from tertium.encoders.hooked import Hooked

        return Hooked(folder, tensors, precision=precision, device=device)
    return Bert(folder, shape, tensors, precision=precision, device=device)


def join_groups(groups: Sequence[Tensor]) -> Tensor:
    """Groups of texts, each (texts, pieces, d), as one, zeros behind those that are shorter."""
    width = max(group.shape[1] for group in groups)
    fit = [F.pad(g, (0, 0, 0, width - g.shape[1])) for g in groups]
    return fit[0] if len(fit) == 1 else torch.cat(fit)


def pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[IntArray, BoolArray | None]:
    """Rows of numbers as one matrix, with a mask where their lengths differ.

    >>> pad([[5, 6, 7], [8]], 0)
    (array([[5, 6, 7],
           [8, 0, 0]]), array([[ True,  True,  True],
           [ True, False, False]]))
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    width = int(lengths.max())
    if int(lengths.min()) == width:
        return np.array(rows, dtype=np.int64), None
    ids = np.full((len(rows), width), padding, dtype=np.int64)
    mask = np.arange(width) < lengths[:, None]
    ids[mask] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids, mask
