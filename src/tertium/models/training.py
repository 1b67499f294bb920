"""One training loop that knows neither network, data nor loss: it calls what it is given.

    loss_of(batch) -> scalar tensor        batches(rng) -> the batches of one epoch
    dev() -> float, higher is better       (absent: the last epoch is kept)

Adam, gradient clipping, an epoch's table row, early stopping, seeds, mixed precision, and a
snapshot after every epoch from which an interrupted run goes on as if nothing had happened. The
losses of comparisons (logistic, hinge) and the log of epochs are here, too.
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

from tertium.atomic import write_text
from tertium.errors import DataError, UsageError
from tertium.models.checkpoint import read_arrays, write_arrays
from tertium.models.options import Epoch, PairLoss, TrainingOptions
from tertium.runtime import task

logger = logging.getLogger(__name__)
Batch = TypeVar("Batch")
COLUMNS = tuple(field.name for field in dataclasses.fields(Epoch))


@dataclass(kw_only=True)
class Run:
    """What a stage of training has come to: its log, the best weights and their statistic."""

    stage: str
    epochs: list[Epoch] = field(default_factory=list)
    best: float = -math.inf
    since_best: int = 0


def fit(
    network: nn.Module,
    batches: Callable[[np.random.Generator], Iterable[Batch]],
    loss_of: Callable[[Batch], Tensor],
    *,
    options: TrainingOptions,
    dev: Callable[[], float] | None = None,
    stage: str = "training",
    snapshot: Path | None = None,
    identity: str = "",
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Run:
    """Train until nothing improves; leaves the best epoch's weights in the network.

    With `snapshot`, a file written after every epoch, a run that was interrupted in this stage
    goes on from there; `identity` stands for its data and settings. However training ends, the best
    epoch is what the network holds; `on_epoch` finds it there too.
    """
    torch.manual_seed(options.seed)
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=options.rate, weight_decay=options.weight_decay
    )
    rng = np.random.default_rng(options.seed)
    run = Run(stage=stage)
    best = _copy(network)
    found = read_snapshot(snapshot, identity) if snapshot is not None else None
    if found is not None and found.stage == stage:
        run, best = _restore(found, network, optimiser, rng)
    try:
        while len(run.epochs) < options.epochs and not 0 < options.patience <= run.since_best:
            started = time.perf_counter()
            loss = _one_epoch(network, batches(rng), loss_of, optimiser, options, run)
            value = math.nan if dev is None else _evaluate(network, dev)
            best = _note(run, network, best, loss, value, time.perf_counter() - started)
            if snapshot is not None:
                write_snapshot(snapshot, identity, _capture(run, network, best, optimiser, rng))
            if on_epoch is not None:
                on_epoch(run.epochs[-1])
    finally:
        network.load_state_dict(best)
        network.eval()
    return run


def _one_epoch(
    network: nn.Module,
    batches: Iterable[Batch],
    loss_of: Callable[[Batch], Tensor],
    optimiser: torch.optim.Optimizer,
    options: TrainingOptions,
    run: Run,
) -> float:
    """One pass over the batches; the mean loss."""
    network.train()
    losses: list[Tensor] = []
    number = len(run.epochs) + 1
    known = list(batches)
    with task(f"{run.stage}, epoch {number}", total=len(known)) as advance:
        for step, batch in enumerate(known):
            done = (number - 1 + step / len(known)) / options.epochs
            for group in optimiser.param_groups:
                group["lr"] = options.rate * (1 - done if options.schedule == "linear" else 1)
            with half_precision(network, options.mixed):
                loss = loss_of(batch)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), options.clip)
            optimiser.step()
            losses.append(loss.detach())
            advance(1)
    if not losses:
        raise DataError(f"{run.stage}: there is nothing to train on")
    mean = float(torch.stack(losses).mean())
    if not math.isfinite(mean):
        raise DataError(
            f"{run.stage}, epoch {number}: the loss is {mean}; lower the rate ({options.rate:g})"
        )
    return mean


def half_precision(network: nn.Module, wanted: bool) -> AbstractContextManager[Any]:
    """Matrix products in bf16 where that is wanted and the network lies on a GPU."""
    device = next(network.parameters()).device.type
    if wanted and device == "cuda":
        return torch.autocast(device, dtype=torch.bfloat16)
    return nullcontext()


def _evaluate(network: nn.Module, dev: Callable[[], float]) -> float:
    network.eval()
    with torch.inference_mode():
        return dev()


def _note(
    run: Run, network: nn.Module, best: dict[str, Tensor], loss: float, value: float, seconds: float
) -> dict[str, Tensor]:
    """Add a row to the log; the weights that are the best from now on."""
    better = math.isnan(value) or value > run.best
    if better:
        best, run.since_best = _copy(network), 0
        run.best = run.best if math.isnan(value) else value
    else:
        run.since_best += 1
    number = len(run.epochs) + 1
    run.epochs.append(
        Epoch(stage=run.stage, number=number, loss=loss, dev=value, seconds=seconds, best=better)
    )
    logger.info("%s, epoch %d: loss %.4f, dev %.4f", run.stage, number, loss, value)
    return best


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return copy.deepcopy({name: t.detach() for name, t in network.state_dict().items()})


class Snapshot(NamedTuple):
    """A run after an epoch: all that is needed to go on from there.

    A safetensors file: `tensors` by kind (network, best, optimiser, random) and name, everything
    else as JSON in its header, replaced in one step.
    """

    stage: str
    progress: dict[str, Any]
    tensors: Mapping[str, Mapping[str, Tensor]]


def _capture(
    run: Run,
    network: nn.Module,
    best: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    rng: np.random.Generator,
) -> Snapshot:
    device = next(network.parameters()).device
    randomness = {"torch": torch.get_rng_state()}
    if device.type == "cuda":
        randomness["cuda"] = torch.cuda.get_rng_state(device)
    moments = {
        f"{number}.{name}": torch.as_tensor(value)
        for number, values in optimiser.state_dict()["state"].items()
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
    found: Snapshot, network: nn.Module, optimiser: torch.optim.Optimizer, rng: np.random.Generator
) -> tuple[Run, dict[str, Tensor]]:
    """Put everything back as it was after the snapshot's last epoch."""
    device, tensors = next(network.parameters()).device, found.tensors
    network.load_state_dict(tensors["network"])
    moments: dict[int, dict[str, Tensor]] = {}
    for place, tensor in tensors["optimiser"].items():
        number, _, name = place.partition(".")
        moments.setdefault(int(number), {})[name] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
    rng.bit_generator.state = found.progress["order"]
    torch.set_rng_state(tensors["random"]["torch"])
    if device.type == "cuda" and "cuda" in tensors["random"]:
        torch.cuda.set_rng_state(tensors["random"]["cuda"], device)
    run = Run(
        stage=found.stage,
        epochs=[Epoch(**row) for row in found.progress["epochs"]],
        best=float(found.progress["best"]),
        since_best=int(found.progress["since_best"]),
    )
    logger.info("%s: going on after epoch %d", run.stage, len(run.epochs))
    return run, {name: tensor.to(device) for name, tensor in tensors["best"].items()}


def write_snapshot(file: Path, identity: str, snapshot: Snapshot) -> None:
    """Replace the file; a run with other data and settings than `identity` does not go on."""
    arrays = {
        f"{kind}.{name}": tensor.detach().cpu().numpy()
        for kind, part in snapshot.tensors.items()
        for name, tensor in part.items()
    }
    progress = json.dumps(snapshot.progress)
    header = {"identity": identity, "stage": snapshot.stage, "progress": progress}
    write_arrays(file, arrays, header)


def read_snapshot(file: Path, identity: str) -> Snapshot | None:
    """The snapshot in a file; None where there is none. One of another run is refused."""
    if not file.is_file():
        return None
    arrays, header = read_arrays(file)
    if header.get("identity") != identity:
        raise UsageError(
            f"{file} is of a training run with other data or settings: give another folder, or "
            "remove the file to begin anew"
        )
    tensors: dict[str, dict[str, Tensor]] = {}
    for name, array in arrays.items():
        kind, _, rest = name.partition(".")
        tensors.setdefault(kind, {})[rest] = torch.from_numpy(array)
    return Snapshot(header["stage"], json.loads(header["progress"]), tensors)


# Margins (comparisons,) to losses (comparisons,): log(1 + e^-m), the surprise of a model in which
# the better of two wins with sigmoid(m), or max(0, 1 - m): nothing to gain past a margin of 1.
PAIR_LOSSES: Mapping[PairLoss, Callable[[Tensor], Tensor]] = {
    "logistic": lambda margins: nn.functional.softplus(-margins),
    "hinge": lambda margins: (1.0 - margins).clamp(min=0),
}


def pairwise_loss(
    scores: Tensor, better: Tensor, worse: Tensor, weights: Tensor, kind: PairLoss = "logistic"
) -> Tensor:
    """The weighted mean loss of the margins y_better - y_worse.

    `better` and `worse` are rows of `scores`, `weights` how many people said so, all
    (comparisons,).

    >>> scores = torch.tensor([0.0, 2.0])
    >>> pairwise_loss(scores, torch.tensor([1]), torch.tensor([0]), torch.tensor([3.0]), "hinge")
    tensor(0.)
    """
    losses = PAIR_LOSSES[kind](scores[better] - scores[worse])
    return (losses * weights).sum() / weights.sum().clamp(min=1)


def write_log(file: Path, epochs: Sequence[Epoch]) -> None:
    """Replace the log."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(vars, epochs))
    write_text(file, text.getvalue(), make_folder=True)


def read_log(file: Path) -> list[Epoch]:
    """The epochs of a log; none where there is no file."""
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
