"""Score with a trained head: encode each text once, then compare pairs.

Layers are mixed on flat vectors. On a GPU, texts and pairs run in batches of similar length. On a
CPU, results are batch-invariant to the last bit (`encoders.batch_invariance`): interactions are
computed pair by pair, products over tokens have a few fixed numbers of rows, and a BiLSTM advances
several texts per step in products of one shape (`RecurrentSteps`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tertium.arrays import IntArray
from tertium.encoders.batch_invariance import (
    apply_in_padded_blocks,
    count_test_rows,
    find_invariant_block_sizes,
    map_single_threaded,
    single_threaded,
)
from tertium.encoders.batching import plan_batches
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import expand_ranges
from tertium.metrics.heads.bilstm import BidirectionalLSTM, PaddedSequences, fast_tanh
from tertium.metrics.heads.networks import PairNetwork, split_layers

# Tokens per batch, and the overhead of a batch in tokens.
TOKEN_BUDGET, BATCH_OVERHEAD = 4096, 256
ITEMS_PER_THREAD = 64
TEXTS = 6  # per step: AVX2 and AVX-512 kernels sum six rows in the same order
TRIAL_STEPS = 3  # steps that test whether the position of a text matters
Product = Callable[[Tensor, IntArray], Tensor]  # tokens (total, d), lengths of the texts


class HeadScorer:
    """A network on its device, ready to score; its weights must not change afterwards."""

    def __init__(self, network: PairNetwork) -> None:
        self.network, self.device = network, network.mix.gamma.device
        if self.device.type == "cpu":
            with torch.inference_mode(), single_threaded():
                projection, second = network.projection_weights(), network.compose
                self._first_lstm = RecurrentSteps(network.encoder)
                self._project = None if projection is None else make_product(projection)
                self._second_lstm = None if second is None else RecurrentSteps(second)

    def scores(self, representations: Tensor) -> Tensor:
        """Apply the regressor to comparisons, (m, width) -> (m,)."""
        result = representations.new_zeros(len(representations))

        def run_batch(rows: IntArray) -> None:
            indices = torch.from_numpy(rows).to(representations.device)
            result[indices] = self.network.regressor(representations[indices])

        def run_each(rows: IntArray) -> None:
            for row in rows:
                run_batch(row[None])

        self._process(run_batch, run_each, np.ones(len(representations), dtype=np.int64))
        return result

    def representations(self, chunk: Chunk) -> Tensor:
        """Represent each comparison of a chunk for the regressor, (m, width)."""
        states, texts = self.encode_texts(chunk), chunk.embeddings
        offsets, lengths = texts.offsets, texts.lengths
        longest = np.maximum(lengths[chunk.left], lengths[chunk.right])
        result = torch.zeros(len(chunk), self.network.width, device=self.device)

        def sides(rows: IntArray) -> tuple[PaddedSequences, PaddedSequences]:
            left, right = (gather(states, offsets, t[rows]) for t in (chunk.left, chunk.right))
            return left, right

        def run_batch(rows: IntArray) -> None:
            indices = torch.from_numpy(rows).to(self.device)
            result[indices] = self.network.represent(*sides(rows))

        def run_each(rows: IntArray) -> None:
            pairs = [self.network.interact(*sides(row[None])) for row in rows]
            for row, pair in zip(rows, self._apply_second_lstm(pairs), strict=True):
                result[row] = self.network.summarize(*pair)[0]

        self._process(run_batch, run_each, longest)
        return result

    def encode_texts(self, chunk: Chunk) -> Tensor:
        """Encode all texts of a chunk, flat, (total tokens, width)."""
        texts, network = chunk.embeddings, self.network
        vectors = torch.from_numpy(texts.vectors).to(self.device)
        mixed = network.mix(split_layers(vectors, network.layers))  # (total tokens, d)
        states = torch.zeros(len(mixed), network.encoded_width, device=self.device)

        def run_batch(rows: IntArray) -> None:
            read = network.encode_mixed(gather(mixed, texts.offsets, rows))
            places = expand_ranges(texts.offsets[rows], texts.offsets[rows + 1])
            states[torch.from_numpy(places).to(self.device)] = read.values[read.mask]

        def run_each(rows: IntArray) -> None:
            places = torch.from_numpy(expand_ranges(texts.offsets[rows], texts.offsets[rows + 1]))
            read = self._first_lstm(mixed[places], texts.lengths[rows])
            if self._project is not None:
                read = torch.cat([read, self._project(read, texts.lengths[rows])], dim=-1)
            states[places] = read

        self._process(run_batch, run_each, texts.lengths)
        return states

    def _apply_second_lstm(
        self, pairs: list[tuple[PaddedSequences, PaddedSequences]]
    ) -> list[tuple[PaddedSequences, ...]]:
        """Apply the second BiLSTM to interacting texts, if there is one."""
        if self._second_lstm is None:
            return [*pairs]
        sides = [side for pair in pairs for side in pair]
        lengths = np.array([int(side.lengths[0]) for side in sides])
        flat = torch.cat([side.values[0, :n] for side, n in zip(sides, lengths, strict=True)])
        parts = torch.split(self._second_lstm(flat, lengths), lengths.tolist())
        # copies are memory-aligned; an empty text gets one arbitrary row
        read = [
            PaddedSequences(
                part[None].clone() if n else part.new_zeros(1, 1, part.shape[1]), side.lengths
            )
            for part, n, side in zip(parts, lengths, sides, strict=True)
        ]
        return [*zip(read[::2], read[1::2], strict=True)]

    def _process(
        self,
        run_batch: Callable[[IntArray], None],
        run_each: Callable[[IntArray], None],
        lengths: IntArray,
    ) -> None:
        """Process items of these lengths: in batches on a GPU, in shares per thread on a CPU."""
        if self.device.type != "cpu":
            for rows in plan_batches(lengths, budget=TOKEN_BUDGET, overhead=BATCH_OVERHEAD):
                run_batch(rows)
            return

        def work(share: IntArray) -> None:
            with torch.inference_mode():
                run_each(share)

        order = np.argsort(-lengths, kind="stable")
        for _ in map_single_threaded(
            work, np.array_split(order, max(1, len(order) // ITEMS_PER_THREAD))
        ):
            pass


class RecurrentSteps:
    """A BiLSTM on a CPU that computes a step of `TEXTS` texts in both directions in one product.

    The product has the same shape for any number of texts, so only the position of a text could
    affect its result. The constructor tests this; if it does, each text runs alone in position 0.
    """

    def __init__(self, module: BidirectionalLSTM) -> None:
        self.size = size = module.lstm.hidden_size

        def both(name: str) -> Tensor:
            sides = [getattr(module.lstm, f"{name}_l0{side}") for side in ("", "_reverse")]
            weights = torch.stack(sides).detach().clone()
            weights[:, 2 * size : 3 * size] *= 2  # tanh(x) is 2 sigmoid(2x) - 1
            return weights

        bias = both("bias_ih") + both("bias_hh")
        self._input_gates = make_product(both("weight_ih").flatten(0, 1), bias.flatten())
        self._recurrent = both("weight_hh").transpose(1, 2).contiguous()  # (2, h, 4h)
        generator = torch.Generator().manual_seed(1)
        texts = count_test_rows(TRIAL_STEPS * 2 * size), TRIAL_STEPS, 2, 1, 4 * size
        trials = (
            self._run(trial.expand(-1, -1, TEXTS, -1).contiguous())
            for trial in torch.randn(texts, generator=generator)
        )
        is_invariant = all(bool((states == states[:, :, :1]).all()) for states in trials)
        self.texts_per_step = TEXTS if is_invariant else 1

    def __call__(self, flat: Tensor, lengths: IntArray) -> Tensor:
        """Compute the states of concatenated texts, (total, d) -> (total, 2h)."""
        gates = self._input_gates(flat, lengths).view(len(flat), 2, 4 * self.size)
        states = flat.new_empty(len(flat), 2, self.size)
        starts = np.cumsum(lengths) - lengths
        order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
        for first in range(0, len(order), self.texts_per_step):
            batch = order[first : first + self.texts_per_step]
            steps = np.arange(lengths[batch[0]])[:, None]  # (steps, 1)
            mask = torch.from_numpy(steps < lengths[batch])  # (steps, texts)
            forward = starts[batch] + np.minimum(steps, lengths[batch] - 1)
            backward = 2 * starts[batch] + lengths[batch] - 1 - forward  # from the end of each
            inputs = flat.new_zeros(len(steps), 2, TEXTS, 4 * self.size)
            row_indices = [torch.from_numpy(rows) for rows in (forward, backward)]
            for direction, rows in enumerate(row_indices):
                inputs[:, direction, : len(batch)] = gates[rows, direction]
            outputs = self._run(inputs)
            for direction, rows in enumerate(row_indices):
                states[rows[mask], direction] = outputs[:, direction, : len(batch)][mask]
        return states.flatten(1)

    def _run(self, inputs: Tensor) -> Tensor:
        """Run both directions on gate inputs; returns states (steps, 2, TEXTS, h)."""
        h = c = inputs.new_zeros(*inputs.shape[1:3], self.size)
        states = inputs.new_empty(len(inputs), *h.shape)
        for state, step in zip(states, inputs, strict=True):
            i, f, g, o = torch.baddbmm(step, h, self._recurrent).sigmoid_().chunk(4, dim=-1)
            c = (f * c).add_(i * g.mul_(2).sub_(1))
            h = torch.mul(o, fast_tanh(c), out=state)
        return states


def make_product(weight: Tensor, bias: Tensor | None = None) -> Product:
    """Return a batch-invariant function x W' + b over the tokens of texts."""

    def multiply(rows: Tensor) -> Tensor:
        return F.linear(rows, weight, bias)

    kind = F.linear, weight.shape, weight.dtype, bias is None
    sizes = find_invariant_block_sizes(multiply, weight.shape[1], kind)

    def multiply_texts(flat: Tensor, lengths: IntArray) -> Tensor:
        if not len(flat):
            return flat.new_zeros(0, len(weight))
        if sizes:
            return apply_in_padded_blocks(multiply, flat, block_sizes=sizes)
        return torch.cat([multiply(one.clone()) for one in torch.split(flat, lengths.tolist())])

    return multiply_texts


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
