"""One stage of training under a clock: bfloat16 on single-precision masters, linear decay."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from recipes.multi.batching import (
    TableSampler,
    TextPool,
    build_batch,
    build_targets,
    iter_batch_tables,
)
from recipes.multi.losses import LossWeights, total_loss
from recipes.multi.network import SCALES, Batch, MultiNetwork
from tertium.metrics.flagship.bundled_model import dequantize

WARM_UP = 0.06  # of the time
FROZEN = "words.weight"


class MasterWeightAdamW:
    """AdamW on single-precision copies of the weights; those of the head learn faster."""

    def __init__(self, network: MultiNetwork, rate: float, head_factor: float = 4.0) -> None:
        named = [(n, p) for n, p in network.named_parameters() if p.requires_grad]
        self.live = [p for _, p in named]
        self.masters = [p.detach().float().clone() for p in self.live]
        body = [n.startswith(("layers", "positions", "norm")) for n, _ in named]
        groups = []
        for inside, factor in ((True, 1.0), (False, head_factor)):
            for matrix in (True, False):
                chosen = [
                    m
                    for m, b in zip(self.masters, body, strict=True)
                    if b == inside and (m.ndim > 1) == matrix
                ]
                decay = 0.01 if matrix else 0.0
                groups.append({"params": chosen, "weight_decay": decay, "factor": factor})
        self.rate = rate
        fused = self.masters[0].is_cuda
        self.inner = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-8, fused=fused)

    def step(self, share: float) -> None:
        for group in self.inner.param_groups:
            group["lr"] = self.rate * share * group["factor"]
        reached, wide, grads = [], [], []
        for master, live in zip(self.masters, self.live, strict=True):
            if live.grad is None:  # what a batch does not reach stays as it is
                master.grad = None
                continue
            if master.grad is None:
                master.grad = torch.empty_like(master)
            reached.append(master)
            wide.append(master.grad)
            grads.append(live.grad)
            live.grad = None
        torch._foreach_copy_(wide, grads)
        norm = nn.utils.clip_grad_norm_(reached, 1.0)
        if self.masters[0].is_cuda:  # the fused step leaves out a batch that overflowed
            self.inner.found_inf = (~norm.isfinite()).float()  # type: ignore[attr-defined]
        self.inner.step()
        with torch.no_grad():
            torch._foreach_copy_(tuple(self.live), tuple(self.masters))


def iter_batches(
    sources: Sequence[TableSampler], pool: TextPool, budget: int, seed: int
) -> Iterator[tuple[Batch, dict[str, Tensor]]]:
    """The stream of batches with what the losses want."""
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
    """Trains for `seconds` of the clock (or `steps`), the rate falling to nothing at the end."""
    network.train()
    optimizer = MasterWeightAdamW(network, rate)
    supply = iter_batches(sources, pool, budget, seed)
    batch, told = next(supply)
    begin, pieces, number = time.monotonic(), 0, 0
    sums: dict[str, Tensor] = {}
    while True:
        share = (time.monotonic() - begin) / seconds if steps is None else number / steps
        if share >= 1:
            break
        parts = total_loss(network(batch), told, weights)
        parts["all"].backward()
        optimizer.step(min(share / WARM_UP, 1) * (1 - share))
        for name, value in parts.items():
            sums[name] = sums.get(name, torch.zeros((), device=pool.device)) + value.detach()
        pieces += batch.size
        number += 1
        if number % 100 == 0 or number == 10:
            _log_progress(log, number, share, pieces / (time.monotonic() - begin), sums)
            sums = {}
        batch, told = next(supply)
    _log_progress(log, number, 1.0, pieces / (time.monotonic() - begin), sums)


def _log_progress(
    log: Path, step: int, share: float, speed: float, sums: dict[str, Tensor]
) -> None:
    means = {name: round(float(value) / 100, 4) for name, value in sums.items()}
    log_entry(log, {"step": step, "share": round(share, 3), "pieces/s": round(speed), **means})


def log_entry(log: Path, entry: dict[str, Any]) -> None:
    with log.open("a") as stream_:
        stream_.write(json.dumps(entry) + "\n")
    print(log.stem, json.dumps(entry), flush=True)


def save(network: MultiNetwork, path: Path) -> None:
    """All weights but the frozen word vectors, in half precision."""
    state = {
        n: v.detach().half().cpu().contiguous()
        for n, v in network.state_dict().items()
        if n != FROZEN
    }
    partial = path.with_suffix(".part")
    save_file(state, partial)
    partial.rename(path)


def load_weights_into(network: MultiNetwork, path: Path) -> None:
    """Puts saved weights into a network, or those of a model that ships.

    The latter has int8 rows, one scale, and the tags it may have left behind start anew.
    """
    state = dequantize(load_file(path))
    last = state["head.last.weight"].shape[0]
    absent = [FROZEN]
    if last != network.head.last.weight.shape[0]:
        for kind in ("weight", "bias"):
            whole = getattr(network.head.last, kind).detach().clone()
            score, clean = state[f"head.last.{kind}"]
            whole[: len(SCALES)], whole[-1] = score, clean
            state[f"head.last.{kind}"] = whole
        absent += [n for n in network.state_dict() if n.startswith("tagger.") and n not in state]
    missing, unknown = network.load_state_dict(state, strict=False)
    if sorted(missing) != sorted(absent) or unknown:
        raise ValueError(f"{path} does not fit: missing {missing}, unknown {unknown}")


def mix(networks: Sequence[MultiNetwork], shares: Sequence[float]) -> None:
    """Makes the first of several networks that began as one their mean, by shares."""
    states = [network.state_dict() for network in networks]
    with torch.no_grad():
        for name, value in states[0].items():
            parts = zip(shares, states, strict=True)
            value.copy_(torch.stack([share * state[name] for share, state in parts]).sum(0))
