"""A training loop that is independent of network, data and loss.

    compute_loss(batch) -> scalar tensor   make_batches(rng) -> batches of one epoch
    evaluate() -> float, higher is better  (None: the last epoch is kept)

AdamW, gradient clipping, early stopping, seeding, mixed precision, a log row per epoch, and a
snapshot after every epoch from which an interrupted run resumes exactly. Also contains the losses
of comparisons (logistic, hinge).
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from tertium.core.atomic import write_text
from tertium.core.errors import DataError, UsageError
from tertium.core.runtime import progress_task
from tertium.models.checkpoint import read_arrays, write_arrays
from tertium.models.training_options import Epoch, PairLoss, TrainingOptions

logger = logging.getLogger(__name__)
Batch = TypeVar("Batch")
COLUMNS = tuple(field.name for field in dataclasses.fields(Epoch))


@dataclass(kw_only=True)
class Run:
    """State of a training stage: its log, the best dev statistic, and epochs since the best."""

    stage: str
    epochs: list[Epoch] = field(default_factory=list)
    best: float = -math.inf
    since_best: int = 0


def fit(
    network: nn.Module,
    make_batches: Callable[[np.random.Generator], Iterable[Batch]],
    compute_loss: Callable[[Batch], Tensor],
    *,
    options: TrainingOptions,
    evaluate: Callable[[], float] | None = None,
    stage: str = "training",
    snapshot: Path | None = None,
    identity: str = "",
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Run:
    """Train until `options` say stop; the network then has the weights of the best epoch.

    `snapshot` is a file written after every epoch, from which an interrupted run of the same stage
    resumes; `identity` identifies its data and settings. `on_epoch` is called after each epoch.
    """
    torch.manual_seed(options.seed)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.weight_decay
    )
    rng = np.random.default_rng(options.seed)
    run = Run(stage=stage)
    best = _copy(network)
    saved = read_snapshot(snapshot, identity) if snapshot is not None else None
    if saved is not None and saved.stage == stage:
        run, best = _restore(saved, network, optimizer, rng)
    try:
        while len(run.epochs) < options.epochs and not 0 < options.patience <= run.since_best:
            started = time.perf_counter()
            loss = _train_epoch(network, make_batches(rng), compute_loss, optimizer, options, run)
            network.eval()
            with torch.inference_mode():
                value = math.nan if evaluate is None else evaluate()
            best = _record_epoch(run, network, best, loss, value, time.perf_counter() - started)
            if snapshot is not None:
                write_snapshot(snapshot, identity, _capture(run, network, best, optimizer, rng))
            if on_epoch is not None:
                on_epoch(run.epochs[-1])
    finally:
        network.load_state_dict(best)
        network.eval()
    return run


def _train_epoch(
    network: nn.Module,
    batches: Iterable[Batch],
    compute_loss: Callable[[Batch], Tensor],
    optimizer: torch.optim.Optimizer,
    options: TrainingOptions,
    run: Run,
) -> float:
    network.train()
    losses: list[Tensor] = []
    number = len(run.epochs) + 1
    epoch_batches = list(batches)
    with progress_task(f"{run.stage}, epoch {number}", total=len(epoch_batches)) as advance:
        for step, batch in enumerate(epoch_batches):
            progress = (number - 1 + step / len(epoch_batches)) / options.epochs
            for group in optimizer.param_groups:
                group["lr"] = options.rate * (1 - progress if options.schedule == "linear" else 1)
            with half_precision(network, options.mixed):
                loss = compute_loss(batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), options.clip)
            optimizer.step()
            losses.append(loss.detach())
            advance(1)
    if not losses:
        raise DataError(f"{run.stage}: no training batches")
    mean = float(torch.stack(losses).mean())
    if not math.isfinite(mean):
        raise DataError(
            f"{run.stage}, epoch {number}: the loss is {mean}: lower the learning rate "
            f"({options.rate:g})"
        )
    return mean


def half_precision(network: nn.Module, enabled: bool) -> AbstractContextManager[Any]:
    """Return a context with bf16 matrix products, if enabled and the network is on a GPU."""
    device = next(network.parameters()).device.type
    if enabled and device == "cuda":
        return torch.autocast(device, dtype=torch.bfloat16)
    return nullcontext()


def _record_epoch(
    run: Run, network: nn.Module, best: dict[str, Tensor], loss: float, value: float, seconds: float
) -> dict[str, Tensor]:
    """Append a row to the log; return the best weights so far."""
    is_best = math.isnan(value) or value > run.best
    if is_best:
        best, run.since_best = _copy(network), 0
        run.best = run.best if math.isnan(value) else value
    else:
        run.since_best += 1
    number = len(run.epochs) + 1
    run.epochs.append(
        Epoch(stage=run.stage, number=number, loss=loss, dev=value, seconds=seconds, best=is_best)
    )
    logger.info("%s, epoch %d: loss %.4f, dev %.4f", run.stage, number, loss, value)
    return best


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return copy.deepcopy({name: t.detach() for name, t in network.state_dict().items()})


class Snapshot(NamedTuple):
    """Complete state of a run after an epoch, stored as safetensors with a JSON header."""

    stage: str
    progress: dict[str, Any]
    tensors: Mapping[str, Mapping[str, Tensor]]


def _capture(
    run: Run,
    network: nn.Module,
    best: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    rng: np.random.Generator,
) -> Snapshot:
    device = next(network.parameters()).device
    randomness = {"torch": torch.get_rng_state()}
    if device.type == "cuda":
        randomness["cuda"] = torch.cuda.get_rng_state(device)
    moments = {
        f"{number}.{name}": torch.as_tensor(value)
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }
    return Snapshot(
        stage=run.stage,
        progress={
            "epochs": [vars(epoch) for epoch in run.epochs],
            "best": run.best,
            "since_best": run.since_best,
            "order": rng.bit_generator.state,
        },
        tensors={
            "network": network.state_dict(),
            "best": best,
            "optimiser": moments,
            "random": randomness,
        },
    )


def _restore(
    saved: Snapshot, network: nn.Module, optimizer: torch.optim.Optimizer, rng: np.random.Generator
) -> tuple[Run, dict[str, Tensor]]:
    device, tensors = next(network.parameters()).device, saved.tensors
    network.load_state_dict(tensors["network"])
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors["optimiser"].items():
        number, _, name = key.partition(".")
        moments.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    rng.bit_generator.state = saved.progress["order"]
    torch.set_rng_state(tensors["random"]["torch"])
    if device.type == "cuda" and "cuda" in tensors["random"]:
        torch.cuda.set_rng_state(tensors["random"]["cuda"], device)
    run = Run(
        stage=saved.stage,
        epochs=[Epoch(**row) for row in saved.progress["epochs"]],
        best=float(saved.progress["best"]),
        since_best=int(saved.progress["since_best"]),
    )
    logger.info("%s: resuming after epoch %d", run.stage, len(run.epochs))
    return run, {name: tensor.to(device) for name, tensor in tensors["best"].items()}


def write_snapshot(file: Path, identity: str, snapshot: Snapshot) -> None:
    """Write a snapshot; only a run with the same `identity` can resume from it."""
    arrays = {
        f"{kind}.{name}": tensor.detach().cpu().numpy()
        for kind, part in snapshot.tensors.items()
        for name, tensor in part.items()
    }
    progress = json.dumps(snapshot.progress)
    header = {"identity": identity, "stage": snapshot.stage, "progress": progress}
    write_arrays(file, arrays, header)


def read_snapshot(file: Path, identity: str) -> Snapshot | None:
    """Read a snapshot; None if the file does not exist. Raise if it is of another run."""
    if not file.is_file():
        return None
    arrays, header = read_arrays(file)
    if header.get("identity") != identity:
        raise UsageError(
            f"{file} belongs to a training run with other data or settings: choose another "
            "folder, or delete the file to start again"
        )
    tensors: dict[str, dict[str, Tensor]] = {}
    for name, array in arrays.items():
        kind, _, key = name.partition(".")
        tensors.setdefault(kind, {})[key] = torch.from_numpy(array)
    return Snapshot(header["stage"], json.loads(header["progress"]), tensors)


# Losses of margins m, (comparisons,): log(1 + e^-m) and max(0, 1 - m).
PAIR_LOSSES: Mapping[PairLoss, Callable[[Tensor], Tensor]] = {
    "logistic": lambda margins: nn.functional.softplus(-margins),
    "hinge": lambda margins: (1.0 - margins).clamp(min=0),
}


def pairwise_loss(
    scores: Tensor, better: Tensor, worse: Tensor, weights: Tensor, kind: PairLoss = "logistic"
) -> Tensor:
    """Return the weighted mean loss of the margins y_better - y_worse.

    `better` and `worse` are rows of `scores`, `weights` the number of raters, all (comparisons,).

    >>> scores = torch.tensor([0.0, 2.0])
    >>> pairwise_loss(scores, torch.tensor([1]), torch.tensor([0]), torch.tensor([3.0]), "hinge")
    tensor(0.)
    """
    losses = PAIR_LOSSES[kind](scores[better] - scores[worse])
    return (losses * weights).sum() / weights.sum().clamp(min=1)


def write_log(file: Path, epochs: Sequence[Epoch]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(vars, epochs))
    write_text(file, text.getvalue(), make_folder=True)


def read_log(file: Path) -> list[Epoch]:
    """Read the log of epochs; empty if there is no file."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return [
            Epoch(
                stage=row["stage"],
                number=int(row["number"]),
                best=row["best"] == "True",
                **{name: float(row[name]) for name in ("loss", "dev", "seconds")},
            )
            for row in csv.DictReader(stream, delimiter="\t")
        ]
