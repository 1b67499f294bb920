"""The training loop: best epoch, early stopping, determinism, resuming after a kill."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tertium.core.errors import DataError, ModelError
from tertium.models.training_loop import fit
from tertium.models.training_options import Epoch, TrainingOptions

X = torch.linspace(-1, 1, 24)[:, None]
Y = 3 * X + 1
OPTIONS = TrainingOptions(epochs=6, patience=6, batch_size=4, rate=0.05)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.3), nn.Linear(8, 1))


def batches(rng: np.random.Generator):
    return np.array_split(rng.permutation(len(X)), 6)


def loss_on(net: nn.Module):
    return lambda rows: ((net(X[rows]) - Y[rows]) ** 2).mean()


def weights(net: nn.Module) -> list[float]:
    return torch.cat([p.detach().flatten() for p in net.parameters()]).tolist()


def test_the_best_epoch_is_kept_and_stopping_waits_for_patience() -> None:
    net, values = network(), iter([0.1, 0.5, 0.4, 0.3, 0.9])
    records = []
    run = fit(
        net,
        batches,
        loss_on(net),
        options=TrainingOptions(epochs=9, patience=2, rate=0.05),
        evaluate=lambda: next(values),
        on_epoch=lambda epoch: records.append((epoch.best, weights(net))),
    )
    assert [e.dev for e in run.epochs] == [0.1, 0.5, 0.4, 0.3]
    assert [best for best, _ in records] == [True, True, False, False]
    assert run.best == 0.5
    assert weights(net) == records[1][1]
    assert not net.training


def test_patience_zero_never_stops_early() -> None:
    net, values = network(), iter([0.9, 0.5, 0.4, 0.3])
    options = TrainingOptions(epochs=4, patience=0, rate=0.05)
    run = fit(net, batches, loss_on(net), options=options, evaluate=lambda: next(values))
    assert len(run.epochs) == 4
    assert run.best == 0.9
    assert weights(net) != weights(network())


def test_without_dev_the_last_epoch_is_kept() -> None:
    net, last = network(), []

    def record(_: Epoch) -> None:
        last.append(weights(net))

    run = fit(net, batches, loss_on(net), options=OPTIONS, on_epoch=record)
    assert len(run.epochs) == 6
    assert all(math.isnan(e.dev) and e.best for e in run.epochs)
    assert weights(net) == last[-1]


def test_an_interrupted_run_holds_its_best_epoch() -> None:
    net, values = network(), iter([0.9, 0.1])
    epoch_weights = []

    def record(epoch: Epoch) -> None:
        epoch_weights.append(weights(net))
        if epoch.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(
            net,
            batches,
            loss_on(net),
            options=OPTIONS,
            evaluate=lambda: next(values),
            on_epoch=record,
        )
    assert weights(net) == epoch_weights[0] != epoch_weights[1]


def test_truncated_snapshot_is_refused(tmp_path: Path) -> None:
    net, file = network(), tmp_path / "snapshot"
    fit(net, batches, loss_on(net), options=OPTIONS, snapshot=file)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ModelError, match="damaged or incomplete"):
        fit(net, batches, loss_on(net), options=OPTIONS, snapshot=file)


def test_diverging_loss_is_an_error() -> None:
    net = network()
    with pytest.raises(DataError, match="lower the learning rate"):
        fit(net, batches, lambda rows: net(X[rows]).sum() * math.inf, options=OPTIONS)


def test_no_batches_are_an_error() -> None:
    net = network()
    with pytest.raises(DataError, match="no training batches"):
        fit(net, lambda rng: [], loss_on(net), options=OPTIONS)


def test_a_linear_schedule_ends_near_zero() -> None:
    net, rates = network(), []
    options = TrainingOptions(epochs=2, rate=1.0, schedule="linear")

    class Watched(torch.optim.AdamW):
        def step(self, *args, **kwargs):
            rates.append(self.param_groups[0]["lr"])

    original, torch.optim.AdamW = torch.optim.AdamW, Watched
    try:
        fit(net, batches, loss_on(net), options=options)
    finally:
        torch.optim.AdamW = original
    assert rates == pytest.approx([1 - n / 12 for n in range(12)])
