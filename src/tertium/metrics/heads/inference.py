"""Scores of many comparisons by a trained network on the vectors a stream brings.

Layers are mixed while the vectors still lie flat; then texts, and later pairs, go through the
network: on a CPU one by one, each on one thread, so that none changes another's last bits
(`encoders.apart`), on a GPU in batches of equal length or nearly so. Nothing is learned here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tertium.arrays import IntArray
from tertium.encoders.apart import each_on_one_thread
from tertium.encoders.batching import plan_batches
from tertium.encoders.stream import Chunk
from tertium.metrics.heads.networks import PairNetwork
from tertium.metrics.heads.sequences import Sequences
from tertium.metrics.heads.states import split_layers

# Tokens that go through a network at once, and what starting a batch costs in tokens.
BUDGET, OVERHEAD = 4096, 256
SHARE = 64  # items dealt to a thread of a CPU


def scores(network: PairNetwork, found: Tensor) -> Tensor:
    """What the regressor says of comparisons, (m, width) -> (m,)."""
    result = found.new_zeros(len(found))

    def run(rows: IntArray) -> None:
        places = torch.from_numpy(rows).to(found.device)
        result[places] = network.regressor(found[places])

    _run_all(network, run, np.ones(len(found), dtype=np.int64))
    return result


def representations(network: PairNetwork, chunk: Chunk) -> Tensor:
    """What each comparison of a chunk looks like to the regressor, (m, width)."""
    device = network.mix.gamma.device
    states = read_texts(network, chunk)
    lengths = chunk.texts.lengths
    longest = np.maximum(lengths[chunk.left], lengths[chunk.right])
    result = torch.zeros(len(chunk), network.width, device=device)

    def run(rows: IntArray) -> None:
        left, right = (
            gather(states, chunk.texts.offsets, texts[rows]) for texts in (chunk.left, chunk.right)
        )
        result[torch.from_numpy(rows).to(device)] = network.represent(left, right)

    _run_all(network, run, longest)
    return result


def read_texts(network: PairNetwork, chunk: Chunk) -> Tensor:
    """What the network reads in all texts of a chunk, flat, (total tokens, width)."""
    texts, device = chunk.texts, network.mix.gamma.device
    vectors = torch.from_numpy(texts.vectors).to(device)
    mixed = network.mix(split_layers(vectors, network.shape.layers))  # (total tokens, d)
    states = torch.zeros(len(mixed), network.reading_width, device=device)

    def run(rows: IntArray) -> None:
        read = network.read_mixed(gather(mixed, texts.offsets, rows))
        starts, tokens = texts.offsets[rows], np.arange(read.values.shape[1])
        places = (starts[:, None] + tokens)[tokens < texts.lengths[rows][:, None]]
        states[torch.from_numpy(places).to(device)] = read.values[read.mask]

    _run_all(network, run, texts.lengths)
    return states


def _run_all(network: PairNetwork, run: Callable[[IntArray], None], lengths: IntArray) -> None:
    """Run batches of items of these lengths: one by one on a CPU, as many as fit on a GPU."""
    if network.mix.gamma.device.type != "cpu":
        for rows in plan_batches(lengths, budget=BUDGET, overhead=OVERHEAD):
            run(rows)
        return

    def run_share(share: IntArray) -> None:
        with torch.inference_mode():
            for row in share:
                run(row[None])

    shares = np.array_split(np.arange(len(lengths)), max(1, len(lengths) // SHARE))
    for _ in each_on_one_thread(run_share, shares):
        pass


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
