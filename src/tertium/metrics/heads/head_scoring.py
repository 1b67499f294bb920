"""Score with a trained head: encode each text once, then compare pairs.

Layers are mixed on flat vectors. Texts and pairs run in batches of similar length, on a CPU with
one thread per batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tertium.core.arrays import IntArray
from tertium.encoders.batching import plan_batches
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import expand_ranges
from tertium.encoders.parallel import map_on_threads
from tertium.metrics.heads.bilstm import PaddedSequences
from tertium.metrics.heads.networks import PairNetwork, split_layers

# Tokens per batch, and the overhead of a batch in tokens.
TOKEN_BUDGET, BATCH_OVERHEAD = 4096, 256


class HeadScorer:
    """A network on its device, ready to score; its weights must not change afterwards."""

    def __init__(self, network: PairNetwork) -> None:
        self.network, self.device = network, network.mix.gamma.device

    def scores(self, representations: Tensor) -> Tensor:
        """Apply the regressor to comparisons, (m, width) -> (m,)."""
        result: Tensor = self.network.regressor(representations)
        return result

    def representations(self, chunk: Chunk) -> Tensor:
        """Represent each comparison of a chunk for the regressor, (m, width)."""
        states, texts = self.encode_texts(chunk), chunk.embeddings
        longest = np.maximum(texts.lengths[chunk.left], texts.lengths[chunk.right])
        result = torch.zeros(len(chunk), self.network.width, device=self.device)

        def run(rows: IntArray) -> None:
            indices = torch.from_numpy(rows).to(self.device)
            left, right = (
                gather(states, texts.offsets, side[rows]) for side in (chunk.left, chunk.right)
            )
            result[indices] = self.network.represent(left, right)

        self._process(run, longest)
        return result

    def encode_texts(self, chunk: Chunk) -> Tensor:
        """Encode all texts of a chunk, flat, (total tokens, width)."""
        texts, network = chunk.embeddings, self.network
        vectors = torch.from_numpy(texts.vectors).to(self.device)
        mixed = network.mix(split_layers(vectors, network.layers))  # (total tokens, d)
        states = torch.zeros(len(mixed), network.encoded_width, device=self.device)

        def run(rows: IntArray) -> None:
            read = network.encode_mixed(gather(mixed, texts.offsets, rows))
            places = expand_ranges(texts.offsets[rows], texts.offsets[rows + 1])
            states[torch.from_numpy(places).to(self.device)] = read.values[read.mask]

        self._process(run, texts.lengths)
        return states

    def _process(self, run: Callable[[IntArray], None], lengths: IntArray) -> None:
        """Run batches of items of these lengths, on a CPU several at once."""
        batches = plan_batches(lengths, budget=TOKEN_BUDGET, overhead=BATCH_OVERHEAD)

        def work(rows: IntArray) -> None:
            with torch.inference_mode():
                run(rows)

        for _ in (map_on_threads if self.device.type == "cpu" else map)(work, batches):
            pass


def gather(flat: Tensor, offsets: IntArray, rows: IntArray) -> PaddedSequences:
    """Select texts of a flat tensor (total tokens, d) as padded sequences."""
    lengths = offsets[rows + 1] - offsets[rows]
    width = max(1, int(lengths.max(initial=0)))
    places = np.minimum(offsets[rows][:, None] + np.arange(width), max(0, len(flat) - 1))
    if not len(flat):
        values = flat.new_zeros(len(rows), width, flat.shape[1])
    else:
        values = flat[torch.from_numpy(places).to(flat.device)]
    return PaddedSequences(values, torch.from_numpy(lengths))
