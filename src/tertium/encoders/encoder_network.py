"""The network of a model folder on a device: token ids in, hidden states and pooled vectors out.

Our own forward pass (`bert`) runs the architectures it supports, transformers all others
(`transformers_model`). On a CPU, texts of a batch are grouped by length; on a GPU, they are padded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from tertium.core.arrays import IntArray
from tertium.core.errors import ModelError
from tertium.core.runtime import current_runtime
from tertium.encoders.batching import plan_batches, run_or_split
from tertium.encoders.linear_layers import DTYPES
from tertium.encoders.parallel import map_on_threads
from tertium.encoders.pooling import Pooling

R = TypeVar("R")

# Tokens per batch, and the cost of starting a batch in tokens, measured with minilm. On a CPU it
# pays more to keep activations in the cache than to multiply large matrices.
TOKEN_BUDGETS = {"cpu": 1024, "gpu": 16384}
BATCH_OVERHEADS = {"cpu": 1024, "gpu": 2048}
MIN_BATCH_TOKENS = 256  # batches are not made smaller than this to occupy all threads


class EncoderNetwork(nn.Module):
    """A network of `depth` layers; layer 0 is the embedding layer, layer `depth` the output."""

    def __init__(self, *, depth: int, pad_token_id: int, device: str, precision: str) -> None:
        super().__init__()
        self.depth, self.pad_token_id = depth, pad_token_id
        self.device, self.precision = device, precision

    @abstractmethod
    def compute_states(
        self, groups: Sequence[Tensor], mask: Tensor | None, layers: frozenset[int]
    ) -> dict[int, list[Tensor]]:
        """Return the states of the requested layers for each group of texts of equal length.

        Each group is (texts, length) token ids; its states are (texts, length, hidden). A padded
        batch is one group with a mask (texts, length), True for tokens.
        """

    def forward(
        self, rows: Sequence[Sequence[int]], layers: Sequence[int], pooling: Pooling | None
    ) -> tuple[list[Tensor], Tensor | None]:
        """Run texts, given as token ids with special tokens, through the network.

        Returns the states of each layer, (texts, positions, d), and the pooled vectors
        (texts, width) if `pooling` is given.
        """
        groups, mask = self._group(rows)
        needed = frozenset(layers) | ({self.depth} if pooling else set())
        with torch.inference_mode():
            states = self.compute_states(groups, mask, needed)
            pooled = self._pool(pooling, states[self.depth], mask) if pooling else None
            joined = [join_groups(states[layer]) for layer in layers]
        # rounded to the precision, as fp32, so that a cache stores the exact values
        return [layer.to(DTYPES[self.precision]).float() for layer in joined], pooled

    def plan_batches(self, lengths: Sequence[int] | IntArray) -> list[IntArray]:
        """Partition texts of these token counts into batches that suit device and runtime."""
        runtime, kind = current_runtime(), "cpu" if self.device == "cpu" else "gpu"
        budget = TOKEN_BUDGETS[kind]
        if kind == "cpu":
            threads = runtime.threads or torch.get_num_threads()
            budget = min(budget, max(MIN_BATCH_TOKENS, -(-int(np.sum(lengths)) // threads)))
        return plan_batches(
            lengths,
            budget=runtime.token_budget or budget,
            overhead=BATCH_OVERHEADS[kind],
            limit=runtime.batch_size,
        )

    def map_batches(
        self, function: Callable[[IntArray], R], lengths: Sequence[int] | IntArray
    ) -> Iterator[R]:
        """Yield the results of batches of texts of these token counts, on a CPU by thread.

        `function` takes the indices of texts. A batch that does not fit into memory is split.
        """
        run = partial(run_or_split, function)
        apply = map_on_threads if self.device == "cpu" else map
        yield from chain.from_iterable(apply(run, self.plan_batches(lengths)))

    def check_finite(self, vocab_size: int) -> None:
        """Reject settings with which a short text has states that are not finite."""
        ids = torch.arange(4, device=self.device)[None] % vocab_size
        with torch.inference_mode():
            [states] = self.compute_states([ids], None, frozenset({self.depth}))[self.depth]
        if not states.isfinite().all():
            raise ModelError("the model's config.json and weights give NaN or infinite states")

    def _group(self, rows: Sequence[Sequence[int]]) -> tuple[list[Tensor], Tensor | None]:
        """Convert rows to tensors (texts, length): by length on a CPU, padded on a GPU."""
        if self.device == "cpu":
            return [torch.tensor(list(same)) for _, same in groupby(rows, len)], None
        tensors = [torch.tensor(row) for row in rows]
        ids = pad_sequence(tensors, batch_first=True, padding_value=self.pad_token_id)
        mask = torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
        return [ids.to(self.device)], None if mask.all() else mask.to(self.device)

    def _pool(self, pooling: Pooling, groups: Sequence[Tensor], mask: Tensor | None) -> Tensor:
        if self.device != "cpu":
            [states] = groups
            full = mask if mask is not None else states.new_ones(states.shape[:2])
            return pooling(states.float(), full)
        texts = [group[i : i + 1].float().clone() for group in groups for i in range(len(group))]
        return torch.cat([pooling(text, text.new_ones(text.shape[:2])) for text in texts])


def join_groups(groups: Sequence[Tensor]) -> Tensor:
    """Concatenate groups of texts (texts, length, d), padding shorter ones with zeros."""
    width = max(group.shape[1] for group in groups)
    padded = [F.pad(group, (0, 0, 0, width - group.shape[1])) for group in groups]
    return padded[0] if len(padded) == 1 else torch.cat(padded)
