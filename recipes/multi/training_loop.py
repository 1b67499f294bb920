"""Train for a fixed time: bfloat16 weights with single-precision masters and linear decay."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from recipes.multi.batching import (
    TableSampler,
    TextPool,
    build_batch,
    build_targets,
    iter_batch_tables,
)
from recipes.multi.fine_tune import MasterWeightAdamW
from recipes.multi.losses import LossWeights, total_loss
from recipes.multi.network import SCALES, Batch, MultiNetwork
from tertium.metrics.flagship.bundled_model import dequantize

WARMUP_SHARE = 0.06
FROZEN_WEIGHT = "words.weight"


def iter_batches(
    sources: Sequence[TableSampler], pool: TextPool, budget: int, seed: int
) -> Iterator[tuple[Batch, dict[str, Tensor]]]:
    """Yield batches with their loss targets."""
    for table in iter_batch_tables(sources, pool.lengths, budget, np.random.default_rng(seed)):
        batch = build_batch(table, pool)
        yield batch, build_targets(table, batch.widest[0], pool.device)


def fit(
    network: MultiNetwork,
    sources: Sequence[TableSampler],
    pool: TextPool,
    *,
    seconds: float,
    rate: float,
    weights: LossWeights,
    seed: int,
    budget: int,
    log: Path,
    steps: int | None = None,
) -> None:
    """Train for `seconds` (or `steps`); the learning rate decays linearly to zero."""
    network.train()
    optimizer = MasterWeightAdamW(network, rate)
    batches = iter_batches(sources, pool, budget, seed)
    batch, targets = next(batches)
    begin, pieces, number = time.monotonic(), 0, 0
    sums: dict[str, Tensor] = {}
    while True:
        progress = (time.monotonic() - begin) / seconds if steps is None else number / steps
        if progress >= 1:
            break
        parts = total_loss(network(batch), targets, weights)
        parts["all"].backward()
        optimizer.step(min(progress / WARMUP_SHARE, 1) * (1 - progress))
        for name, value in parts.items():
            sums[name] = sums.get(name, torch.zeros((), device=pool.device)) + value.detach()
        pieces += batch.size
        number += 1
        if number % 100 == 0 or number == 10:
            _log_progress(log, number, progress, pieces / (time.monotonic() - begin), sums)
            sums = {}
        batch, targets = next(batches)
    _log_progress(log, number, 1.0, pieces / (time.monotonic() - begin), sums)


def _log_progress(
    log: Path, step: int, progress: float, speed: float, sums: dict[str, Tensor]
) -> None:
    means = {name: round(float(value) / 100, 4) for name, value in sums.items()}
    log_entry(log, {"step": step, "share": round(progress, 3), "pieces/s": round(speed), **means})


def log_entry(log: Path, entry: dict[str, Any]) -> None:
    """Append a JSON line to a log and print it."""
    with log.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    print(log.stem, json.dumps(entry), flush=True)


def save(network: MultiNetwork, path: Path) -> None:
    """Save all weights except the frozen word embeddings, in half precision."""
    state = {
        n: v.detach().half().cpu().contiguous()
        for n, v in network.state_dict().items()
        if n != FROZEN_WEIGHT
    }
    partial = path.with_suffix(".part")
    save_file(state, partial)
    partial.rename(path)


def load_weights_into(network: MultiNetwork, path: Path) -> None:
    """Load saved weights, or those of the bundled model, into a network.

    The bundled model has int8 rows and a single scale. A missing tagger keeps its initial weights.
    """
    state = dequantize(load_file(path))
    last = state["head.last.weight"].shape[0]
    expected_missing = [FROZEN_WEIGHT]
    if last != network.head.last.weight.shape[0]:
        for kind in ("weight", "bias"):
            combined = getattr(network.head.last, kind).detach().clone()
            score, clean = state[f"head.last.{kind}"]
            combined[: len(SCALES)], combined[-1] = score, clean
            state[f"head.last.{kind}"] = combined
        expected_missing += [
            n for n in network.state_dict() if n.startswith("tagger.") and n not in state
        ]
    missing, unknown = network.load_state_dict(state, strict=False)
    if sorted(missing) != sorted(expected_missing) or unknown:
        raise ValueError(
            f"{path} does not fit the network: missing weights {missing}, unknown weights {unknown}"
        )


def average_networks(networks: Sequence[MultiNetwork], shares: Sequence[float]) -> None:
    """Replace the first of several networks with the same origin by their weighted mean."""
    states = [network.state_dict() for network in networks]
    with torch.no_grad():
        for name, value in states[0].items():
            parts = zip(shares, states, strict=True)
            value.copy_(torch.stack([share * state[name] for share, state in parts]).sum(0))
