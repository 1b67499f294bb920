"""A training loop that is independent of network, data and loss.

    compute_loss(batch) -> scalar tensor   make_batches(rng) -> batches of one epoch
    evaluate() -> float, higher is better  (None: the last epoch is kept)

AdamW, gradient clipping, early stopping, seeding, mixed precision, a log row per epoch, and a
snapshot after every epoch from which an interrupted run resumes exactly. Also contains the losses
of comparisons (logistic, hinge).
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from tertium.core.errors import DataError, UsageError
from tertium.core.runtime import progress_task
from tertium.data.record_files import write_jsonl
from tertium.models.checkpoint import read_arrays, write_arrays
from tertium.models.training_options import Epoch, PairLoss, TrainingOptions

logger = logging.getLogger(__name__)
Batch = TypeVar("Batch")


class Run:
    """A training stage: its network and optimizer, the log of epochs, and the best weights so far.

    It is stored as safetensors with a JSON header.
    """

    def __init__(self, stage: str, network: nn.Module, options: TrainingOptions) -> None:
        self.stage = stage
        self.network = network
        self.options = options
        self.optimizer = torch.optim.AdamW(
            network.parameters(), lr=options.rate, weight_decay=options.weight_decay
        )
        self.rng = np.random.default_rng(options.seed)
        self.epochs: list[Epoch] = []
        self.best_weights = _copy_weights(network)

    @property
    def best(self) -> float:
        """The best dev statistic so far."""
        values = [epoch.dev for epoch in self.epochs if not math.isnan(epoch.dev)]
        return max(values, default=-math.inf)

    @property
    def is_over(self) -> bool:
        """Whether there were enough epochs, or enough without a better dev statistic."""
        patience = self.options.patience
        recent = [epoch.best for epoch in self.epochs[-patience:]]
        return len(self.epochs) >= self.options.epochs or (
            0 < patience <= len(recent) and not any(recent)
        )

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def record_epoch(self, loss: float, value: float, seconds: float) -> None:
        """Append a row to the log, and copy the weights if they are the best."""
        number = len(self.epochs) + 1
        is_best = math.isnan(value) or value > self.best
        if is_best:
            self.best_weights = _copy_weights(self.network)
        self.epochs.append(
            Epoch(
                stage=self.stage, number=number, loss=loss, dev=value, seconds=seconds, best=is_best
            )
        )
        logger.info("%s, epoch %d: loss %.4f, dev %.4f", self.stage, number, loss, value)

    def save(self, file: Path, identity: str) -> None:
        """Write the state; only a run with the same `identity` can resume from it."""
        random_state = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            random_state["cuda"] = torch.cuda.get_rng_state(self.device)
        groups = {
            "network": self.network.state_dict(),
            "best": self.best_weights,
            "random": random_state,
        }
        for number, moments in self.optimizer.state_dict()["state"].items():
            groups[f"optimizer{number}"] = moments
        arrays = {}
        for group, tensors in groups.items():
            for name, tensor in tensors.items():
                arrays[f"{group}.{name}"] = tensor.detach().cpu().numpy()
        progress = {
            "stage": self.stage,
            "epochs": [vars(epoch) for epoch in self.epochs],
            "order": self.rng.bit_generator.state,
        }
        write_arrays(file, arrays, {"identity": identity, "progress": json.dumps(progress)})

    def load(self, file: Path) -> None:
        """Continue from a file of the same network and optimizer."""
        arrays, header = read_arrays(file)
        groups: dict[str, dict[str, Tensor]] = {}
        for full_name, array in arrays.items():
            group, _, name = full_name.partition(".")
            groups.setdefault(group, {})[name] = torch.from_numpy(array)
        self.network.load_state_dict(groups.pop("network"))
        best = groups.pop("best")
        self.best_weights = {name: tensor.to(self.device) for name, tensor in best.items()}
        random_state = groups.pop("random")
        moments = {int(group.removeprefix("optimizer")): m for group, m in groups.items()}
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        torch.set_rng_state(random_state["cpu"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(random_state["cuda"], self.device)
        progress = json.loads(header["progress"])
        self.rng.bit_generator.state = progress["order"]
        self.epochs = [Epoch(**row) for row in progress["epochs"]]
        logger.info("%s: resuming after epoch %d", self.stage, len(self.epochs))


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
    run = Run(stage, network, options)
    if snapshot is not None and read_stage(snapshot, identity) == stage:
        run.load(snapshot)
    try:
        while not run.is_over:
            started = time.perf_counter()
            loss = _train_epoch(run, make_batches(run.rng), compute_loss)
            network.eval()
            with torch.inference_mode():
                value = math.nan if evaluate is None else evaluate()
            run.record_epoch(loss, value, time.perf_counter() - started)
            if snapshot is not None:
                run.save(snapshot, identity)
            if on_epoch is not None:
                on_epoch(run.epochs[-1])
    finally:
        network.load_state_dict(run.best_weights)
        network.eval()
    return run


def _train_epoch(
    run: Run, batches: Iterable[Batch], compute_loss: Callable[[Batch], Tensor]
) -> float:
    """Train for an epoch and return the mean loss."""
    network = run.network
    optimizer = run.optimizer
    options = run.options
    network.train()
    losses: list[Tensor] = []
    number = len(run.epochs) + 1
    epoch_batches = list(batches)
    uses_bf16 = options.mixed and run.device.type == "cuda"
    with progress_task(f"{run.stage}, epoch {number}", total=len(epoch_batches)) as advance:
        for step, batch in enumerate(epoch_batches):
            progress = (number - 1 + step / len(epoch_batches)) / options.epochs
            for group in optimizer.param_groups:
                group["lr"] = options.rate * (1 - progress if options.schedule == "linear" else 1)
            with torch.autocast("cuda", torch.bfloat16, enabled=uses_bf16):
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


def _copy_weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


def read_stage(file: Path, identity: str) -> str | None:
    """Return the stage of a snapshot; None without a file. Raise if it is of another run."""
    if not file.is_file():
        return None
    _, header = read_arrays(file)
    if header.get("identity") != identity:
        raise UsageError(
            f"{file} belongs to a training run with other data or settings: choose another "
            "folder, or delete the file to start again"
        )
    stage: str = json.loads(header["progress"])["stage"]
    return stage


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
    write_jsonl(file, map(vars, epochs))


def read_log(file: Path) -> list[Epoch]:
    """Read the log of epochs; empty if there is no file."""
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Epoch(**json.loads(line)) for line in lines]
