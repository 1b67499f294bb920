"""Scores by a trained head: texts are read once, then pairs are compared and judged.

Layers are mixed while the vectors lie flat. On a GPU texts, and later pairs, go through the network
in batches of nearly equal length. On a CPU none changes another's last bits (`encoders.apart`):
what meets in a pair is computed for that pair alone; products over tokens have a few fixed numbers
of rows; and a BiLSTM takes a step of several texts at once (`RecurrentSteps`), in products of one
shape however many texts there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tertium.arrays import IntArray
from tertium.encoders.apart import (
    agreeing_sizes,
    each_on_one_thread,
    in_filled_blocks,
    on_one_thread,
    rows_to_try,
)
from tertium.encoders.encoder import rows_of
from tertium.encoders.pieces import plan_batches
from tertium.encoders.stream import Chunk
from tertium.metrics.heads.networks import PairNetwork, split_layers
from tertium.metrics.heads.recurrence import Recurrent, Sequences, fast_tanh

# Tokens that go through a network at once, and what starting a batch costs in tokens.
BUDGET, OVERHEAD = 4096, 256
SHARE = 64  # items dealt to a thread of a CPU
TEXTS = 6  # of a step: kernels of AVX2 and AVX-512 alike add up six rows in one way
TRIED_STEPS = 3  # of a text that tells whether its place among others matters
Product = Callable[[Tensor, IntArray], Tensor]  # tokens of texts (total, d), the texts' lengths


class HeadScorer:
    """A network on its device, ready to score; its weights must not change any more."""

    def __init__(self, network: PairNetwork) -> None:
        self.network, self.device = network, network.mix.gamma.device
        if self.device.type == "cpu":
            with torch.inference_mode(), on_one_thread():
                shown, second = network.shown_weights(), network.compose
                self._read = RecurrentSteps(network.encoder)
                self._show = None if shown is None else product(shown)
                self._reread = None if second is None else RecurrentSteps(second)

    def scores(self, found: Tensor) -> Tensor:
        """What the regressor says of comparisons, (m, width) -> (m,)."""
        result = found.new_zeros(len(found))

        def run(rows: IntArray) -> None:
            places = torch.from_numpy(rows).to(found.device)
            result[places] = self.network.regressor(found[places])

        def run_share(rows: IntArray) -> None:
            for row in rows:
                run(row[None])

        self._run_all(run, run_share, np.ones(len(found), dtype=np.int64))
        return result

    def representations(self, chunk: Chunk) -> Tensor:
        """What each comparison of a chunk looks like to the regressor, (m, width)."""
        states, offsets, lengths = self.read_texts(chunk), chunk.texts.offsets, chunk.texts.lengths
        longest = np.maximum(lengths[chunk.left], lengths[chunk.right])
        result = torch.zeros(len(chunk), self.network.width, device=self.device)

        def sides(rows: IntArray) -> tuple[Sequences, Sequences]:
            left, right = (gather(states, offsets, t[rows]) for t in (chunk.left, chunk.right))
            return left, right

        def run(rows: IntArray) -> None:
            found = self.network.represent(*sides(rows))
            result[torch.from_numpy(rows).to(self.device)] = found

        def run_share(rows: IntArray) -> None:
            met = [self.network.meet(*sides(row[None])) for row in rows]
            for row, pair in zip(rows, self._read_again(met), strict=True):
                result[row] = self.network.describe(*pair)[0]

        self._run_all(run, run_share, longest)
        return result

    def read_texts(self, chunk: Chunk) -> Tensor:
        """What the network reads in all texts of a chunk, flat, (total tokens, width)."""
        texts, network = chunk.texts, self.network
        vectors = torch.from_numpy(texts.vectors).to(self.device)
        mixed = network.mix(split_layers(vectors, network.layers))  # (total tokens, d)
        states = torch.zeros(len(mixed), network.reading_width, device=self.device)

        def run(rows: IntArray) -> None:
            read = network.read_mixed(gather(mixed, texts.offsets, rows))
            places = rows_of(texts.offsets[rows], texts.offsets[rows + 1])
            states[torch.from_numpy(places).to(self.device)] = read.values[read.mask]

        def run_share(rows: IntArray) -> None:
            places = torch.from_numpy(rows_of(texts.offsets[rows], texts.offsets[rows + 1]))
            read = self._read(mixed[places], texts.lengths[rows])
            if self._show is not None:
                read = torch.cat([read, self._show(read, texts.lengths[rows])], dim=-1)
            states[places] = read

        self._run_all(run, run_share, texts.lengths)
        return states

    def _read_again(self, met: list[tuple[Sequences, Sequences]]) -> list[tuple[Sequences, ...]]:
        """Pairs whose sides have seen each other, behind the second BiLSTM where there is one."""
        if self._reread is None:
            return [*met]
        sides = [side for pair in met for side in pair]
        lengths = np.array([int(side.lengths[0]) for side in sides])
        flat = torch.cat([side.values[0, :n] for side, n in zip(sides, lengths, strict=True)])
        parts = torch.split(self._reread(flat, lengths), lengths.tolist())
        # a copy each: it begins where memory is aligned; an empty text has one row of anything
        read = [
            Sequences(part[None].clone() if n else part.new_zeros(1, 1, part.shape[1]), one.lengths)
            for part, n, one in zip(parts, lengths, sides, strict=True)
        ]
        return [*zip(read[::2], read[1::2], strict=True)]

    def _run_all(
        self,
        run: Callable[[IntArray], None],
        run_share: Callable[[IntArray], None],
        lengths: IntArray,
    ) -> None:
        """Run items of these lengths: on a GPU batches, on a CPU shares of them by threads."""
        if self.device.type != "cpu":
            for rows in plan_batches(lengths, budget=BUDGET, overhead=OVERHEAD):
                run(rows)
            return

        def work(share: IntArray) -> None:
            with torch.inference_mode():
                run_share(share)

        order = np.argsort(-lengths, kind="stable")
        for _ in each_on_one_thread(work, np.array_split(order, max(1, len(order) // SHARE))):
            pass


class RecurrentSteps:
    """A BiLSTM on a CPU: a step of `TEXTS` texts in both directions is one product.

    Its shape is the same for one text and for many, so that only a text's place could matter. That
    is tried; where it does, a text has the first place, and the others are left free.
    """

    def __init__(self, module: Recurrent) -> None:
        self.size = size = module.lstm.hidden_size

        def both(name: str) -> Tensor:
            sides = [getattr(module.lstm, f"{name}_l0{side}") for side in ("", "_reverse")]
            weights = torch.stack(sides).detach().clone()
            weights[:, 2 * size : 3 * size] *= 2  # tanh(x) is 2 sigmoid(2x) - 1
            return weights

        bias = both("bias_ih") + both("bias_hh")
        self._enter = product(both("weight_ih").flatten(0, 1), bias.flatten())
        self._recurrent = both("weight_hh").transpose(1, 2).contiguous()  # (2, h, 4h)
        generator = torch.Generator().manual_seed(1)
        texts = rows_to_try(TRIED_STEPS * 2 * size), TRIED_STEPS, 2, 1, 4 * size
        tried = (
            self._run(one.expand(-1, -1, TEXTS, -1).contiguous())
            for one in torch.randn(texts, generator=generator)
        )
        apart = all(bool((states == states[:, :, :1]).all()) for states in tried)
        self.at_once = TEXTS if apart else 1

    def __call__(self, flat: Tensor, lengths: IntArray) -> Tensor:
        """States of texts that lie one behind the other, (total, d) -> (total, 2h)."""
        gates = self._enter(flat, lengths).view(len(flat), 2, 4 * self.size)
        states = flat.new_empty(len(flat), 2, self.size)
        starts = np.cumsum(lengths) - lengths
        order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
        for first in range(0, len(order), self.at_once):
            some = order[first : first + self.at_once]
            steps = np.arange(lengths[some[0]])[:, None]  # (steps, 1)
            here = torch.from_numpy(steps < lengths[some])  # (steps, texts)
            forth = starts[some] + np.minimum(steps, lengths[some] - 1)
            back = 2 * starts[some] + lengths[some] - 1 - forth  # from the end of each
            inputs = flat.new_zeros(len(steps), 2, TEXTS, 4 * self.size)
            places = [torch.from_numpy(way) for way in (forth, back)]
            for way, place in enumerate(places):
                inputs[:, way, : len(some)] = gates[place, way]
            found = self._run(inputs)
            for way, place in enumerate(places):
                states[place[here], way] = found[:, way, : len(some)][here]
        return states.flatten(1)

    def _run(self, inputs: Tensor) -> Tensor:
        """States of both directions, (steps, 2, TEXTS, h), of gates before the recurrence."""
        h = c = inputs.new_zeros(*inputs.shape[1:3], self.size)
        states = inputs.new_empty(len(inputs), *h.shape)
        for state, step in zip(states, inputs, strict=True):
            i, f, g, o = torch.baddbmm(step, h, self._recurrent).sigmoid_().chunk(4, dim=-1)
            c = (f * c).add_(i * g.mul_(2).sub_(1))
            h = torch.mul(o, fast_tanh(c), out=state)
        return states


def product(weight: Tensor, bias: Tensor | None = None) -> Product:
    """x W' + b of tokens, in which no text's rows depend on others: see `apart`."""

    def multiply(rows: Tensor) -> Tensor:
        return F.linear(rows, weight, bias)

    kind = F.linear, weight.shape, weight.dtype, bias is None
    sizes = agreeing_sizes(multiply, weight.shape[1], kind)

    def multiply_texts(flat: Tensor, lengths: IntArray) -> Tensor:
        if not len(flat):  # no text has a token
            return flat.new_zeros(0, len(weight))
        if sizes:
            return in_filled_blocks(multiply, flat, sizes=sizes)
        return torch.cat([multiply(one.clone()) for one in torch.split(flat, lengths.tolist())])

    return multiply_texts


def gather(flat: Tensor, offsets: IntArray, rows: IntArray) -> Sequences:
    """Some texts of a flat tensor (total tokens, d), padded; what is padding is anything."""
    lengths = offsets[rows + 1] - offsets[rows]
    width = max(1, int(lengths.max(initial=0)))
    places = np.minimum(offsets[rows][:, None] + np.arange(width), max(0, len(flat) - 1))
    if not len(flat):
        values = flat.new_zeros(len(rows), width, flat.shape[1])
    else:
        values = flat[torch.from_numpy(places).to(flat.device)]
    return Sequences(values, torch.from_numpy(lengths))
