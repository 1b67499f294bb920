"""Training: the loop, its options, losses and the statistics that select epochs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tertium.core.errors import DataError, ModelError, UsageError
from tertium.meta import kendall_strict, pearson
from tertium.metrics.pairwise.neural_ranker import PairwiseOptions
from tertium.metrics.regression.linear_metric import RegressionOptions
from tertium.models.training_examples import average_pearson, strict_tau
from tertium.models.training_loop import fit, pairwise_loss
from tertium.models.training_options import Epoch, TrainingOptions, warn_at_grid_edge

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


def test_pairwise_losses_by_hand() -> None:
    scores = torch.tensor([2.0, 0.5, 1.0])
    better, worse = torch.tensor([0, 1]), torch.tensor([1, 2])  # margins 1.5 and -0.5
    weights = torch.tensor([1.0, 3.0])
    logistic = (math.log1p(math.exp(-1.5)) + 3 * math.log1p(math.exp(0.5))) / 4
    assert float(pairwise_loss(scores, better, worse, weights)) == pytest.approx(logistic)
    hinge = (0.0 + 3 * 1.5) / 4
    assert float(pairwise_loss(scores, better, worse, weights, "hinge")) == pytest.approx(hinge)


def test_average_pearson_equals_the_meta_evaluations() -> None:
    rng = np.random.default_rng(0)
    human, scores = rng.normal(size=(2, 30))
    groups = ["a"] * 12 + ["b"] * 18
    parts = slice(0, 12), slice(12, 30)
    expected = np.mean([float(pearson(human[part], scores[part])) for part in parts])
    assert average_pearson(scores, human, groups) == pytest.approx(expected)
    assert average_pearson(np.ones(30), human, groups) == 0.0


def test_strict_tau_equals_the_meta_evaluations() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, size=20).astype(float)  # with ties
    better, worse = rng.integers(0, 20, size=(2, 50))
    keep = better != worse
    better, worse = better[keep], worse[keep]
    expected = float(kendall_strict(np.ones(len(better)), scores[better], scores[worse]))
    assert strict_tau(scores, better, worse) == pytest.approx(expected)
    twice = strict_tau(scores, better, worse, np.full(len(better), 2.0))
    assert twice == pytest.approx(expected)


@pytest.mark.parametrize("field", ["epochs", "batch_size", "rate", "clip"])
def test_options_out_of_range_are_refused(field: str) -> None:
    with pytest.raises(UsageError, match=field):
        TrainingOptions(**{field: 0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "bogus"}, "order='bogus': expected 'given' or 'random'"),
        ({"epochs": 2.5}, "epochs=2.5: expected a whole number"),
        ({"epochs": True}, "epochs=True: expected a whole number"),
    ],
)
def test_option_types_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PairwiseOptions(**options)
    with pytest.raises(UsageError, match="prior='no': expected True or False"):
        RegressionOptions(prior="no")  # was yes
    with pytest.raises(UsageError, match="expected a list, each item a number"):
        RegressionOptions(strengths=0.1)


def test_best_value_at_the_edge_of_a_grid_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    warn_at_grid_edge("svr", "c", 1.0, (0.1, 1.0, 10.0))
    warn_at_grid_edge("svr", "c", 1.0, (1.0,))  # no search
    warn_at_grid_edge("svr", "epsilon", 0.0, (0.0, 1.0))  # there are no smaller ones
    assert not caplog.messages
    warn_at_grid_edge("svr", "c", 0.1, (1.0, 0.1, 10.0))
    assert "svr: the best --c of the search, 0.1, is the smallest" in caplog.text
