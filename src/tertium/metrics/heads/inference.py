"""Scores of many comparisons by a trained network on the vectors a stream brings.

Layers are mixed while the vectors still lie flat; then texts, and later pairs, go through the
network in batches of equal length or nearly so. Nothing is learned here.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tertium.arrays import IntArray
from tertium.encoders.batching import plan_batches
from tertium.encoders.stream import Chunk
from tertium.metrics.heads.networks import PairNetwork
from tertium.metrics.heads.sequences import Sequences
from tertium.metrics.heads.states import split_layers

# Tokens that go through a network at once, and what starting a batch costs in tokens.
BUDGET, OVERHEAD = 4096, 256


def representations(network: PairNetwork, chunk: Chunk) -> Tensor:
    """What each comparison of a chunk looks like to the regressor, (m, width)."""
    device = network.mix.gamma.device
    states = read_texts(network, chunk)
    lengths = chunk.texts.lengths
    longest = np.maximum(lengths[chunk.left], lengths[chunk.right])
    result = torch.zeros(len(chunk), network.width, device=device)
    for rows in plan_batches(longest, budget=BUDGET, overhead=OVERHEAD):
        left, right = (
            gather(states, chunk.texts.offsets, texts[rows]) for texts in (chunk.left, chunk.right)
        )
        result[torch.from_numpy(rows).to(device)] = network.represent(left, right)
    return result


def read_texts(network: PairNetwork, chunk: Chunk) -> Tensor:
    """What the network reads in all texts of a chunk, flat, (total tokens, width)."""
    texts, device = chunk.texts, network.mix.gamma.device
    vectors = torch.from_numpy(texts.vectors).to(device)
    mixed = network.mix(split_layers(vectors, network.shape.layers))  # (total tokens, d)
    states: Tensor | None = None
    for rows in plan_batches(texts.lengths, budget=BUDGET, overhead=OVERHEAD):
        read = network.read_mixed(gather(mixed, texts.offsets, rows))
        if states is None:
            states = torch.zeros(len(mixed), read.values.shape[-1], device=device)
        starts, tokens = texts.offsets[rows], np.arange(read.values.shape[1])
        places = (starts[:, None] + tokens)[tokens < texts.lengths[rows][:, None]]
        states[torch.from_numpy(places).to(device)] = read.values[read.mask]
    return states if states is not None else mixed


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
