"""One stage of training under a clock: batches from worker processes, bfloat16, linear decay."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from recipes.multi.examples import Source, stream
from recipes.multi.losses import Weights, total_loss
from recipes.multi.network import SCALES, Multi, send_batch
from tertium.metrics.flagship.compact import restore as restore_rows

WARM_UP = 0.06  # of the time
FROZEN = "words.weight"


class Optimiser:
    """AdamW on single-precision copies of the weights; those of the head learn faster."""

    def __init__(self, network: Multi, rate: float, head_factor: float = 4.0) -> None:
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
        for master, live in zip(self.masters, self.live, strict=True):
            master.grad = None if live.grad is None else live.grad.float()
            live.grad = None
        norm = nn.utils.clip_grad_norm_([m for m in self.masters if m.grad is not None], 1.0)
        if self.masters[0].is_cuda:  # the fused step leaves out a batch that overflowed
            self.inner.found_inf = (~norm.isfinite()).float()  # type: ignore[attr-defined]
        self.inner.step()
        with torch.no_grad():
            torch._foreach_copy_(tuple(self.live), tuple(self.masters))


def _work(sources: Sequence[tuple[float, Source]], budget: int, seed: int, queue: Any) -> None:
    torch.set_num_threads(1)
    for batch in stream(sources, budget, np.random.default_rng(seed)):
        queue.put(batch)


def batches(
    sources: Sequence[tuple[float, Source]], budget: int, seed: int, workers: int
) -> Iterator[dict[str, Any]]:
    """The stream of batches, made by other processes."""
    if workers == 0:
        yield from stream(sources, budget, np.random.default_rng(seed))
    context = multiprocessing.get_context("fork")
    queue = context.Queue(maxsize=4 * workers)
    started = [
        context.Process(target=_work, args=(sources, budget, 1000 * seed + n, queue), daemon=True)
        for n in range(workers)
    ]
    for process in started:
        process.start()
    try:
        while True:
            yield queue.get()
    finally:
        for process in started:
            process.terminate()


def fit(
    network: Multi,
    sources: Sequence[tuple[float, Source]],
    *,
    seconds: float,
    rate: float,
    weights: Weights,
    device: str,
    seed: int,
    budget: int,
    workers: int,
    log: Path,
    steps: int | None = None,
) -> None:
    """Trains for `seconds` of the clock (or `steps`), the rate falling to nothing at the end."""
    network.train()
    optimiser = Optimiser(network, rate)
    supply = batches(sources, budget, seed, workers)
    batch, begin, pieces = next(supply), time.monotonic(), 0
    sums: dict[str, Tensor] = {}
    number = 0
    while True:
        share = (time.monotonic() - begin) / seconds if steps is None else number / steps
        if share >= 1:
            break
        said = network(send_batch(batch["layout"], device))
        told = {
            key: torch.from_numpy(value).to(device, non_blocking=True)
            for key, value in batch.items()
            if key != "layout"
        }
        parts = total_loss(said, told, weights)
        parts["all"].backward()
        optimiser.step(min(share / WARM_UP, 1) * (1 - share))
        for name, value in parts.items():
            sums[name] = sums.get(name, torch.zeros((), device=device)) + value.detach()
        pieces += len(batch["layout"]["ids"])
        number += 1
        if number % 100 == 0 or number == 10:
            _tell(log, number, share, pieces / (time.monotonic() - begin), sums)
            sums = {}
        batch = next(supply)
    _tell(log, number, 1.0, pieces / (time.monotonic() - begin), sums)
    supply.close()  # type: ignore[attr-defined]


def _tell(log: Path, step: int, share: float, speed: float, sums: dict[str, Tensor]) -> None:
    means = {name: round(float(value) / 100, 4) for name, value in sums.items()}
    note(log, {"step": step, "share": round(share, 3), "pieces/s": round(speed), **means})


def note(log: Path, entry: dict[str, Any]) -> None:
    with log.open("a") as stream_:
        stream_.write(json.dumps(entry) + "\n")
    print(log.stem, json.dumps(entry), flush=True)


def save(network: Multi, path: Path) -> None:
    """All weights but the frozen word vectors, in half precision."""
    state = {
        n: v.detach().half().cpu().contiguous()
        for n, v in network.state_dict().items()
        if n != FROZEN
    }
    partial = path.with_suffix(".part")
    save_file(state, partial)
    partial.rename(path)


def restore(network: Multi, path: Path) -> None:
    """Puts saved weights into a network, or those of a model that ships.

    The latter has int8 rows, one scale, and the tags it may have left behind start anew.
    """
    state = restore_rows(load_file(path))
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


def average(paths: Sequence[Path], path: Path, shares: Sequence[float] | None = None) -> None:
    """Writes the mean of several weights of one make."""
    states = [load_file(p) for p in paths]
    portions = shares or [1 / len(states)] * len(states)
    mean = {
        name: torch.stack(
            [state[name].float() * part for state, part in zip(states, portions, strict=True)]
        )
        .sum(0)
        .half()
        for name in states[0]
    }
    save_file(mean, path)
