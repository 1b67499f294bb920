"""The pairwise network against hand-computed values, finite differences and its own laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tertium.core.errors import UsageError
from tertium.metrics.pairwise.neural_ranker import PairwiseOptions
from tertium.metrics.pairwise.ranker_training import (
    BETA,
    GAMMA,
    ComparedRows,
    _cost_function,
    train_network,
)
from tertium.metrics.pairwise.ranking_network import (
    PairwiseNetwork,
    Rows,
    Scaler,
)


def tiny() -> tuple[PairwiseNetwork, Rows]:
    """One dimension, one node a group, one feature: every number below can be followed by hand."""
    inner = np.array(
        [[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.0, 0.5, 0.6], [0.05, 0.06, 0.07]], np.float32
    )
    outer = np.array([0.7, -0.8, 0.9, 1.0, -1.1, 0.2], np.float32)
    rows = Rows(
        vectors=np.array([[0.5], [-0.4]], np.float32),
        anchors=np.array([[0.3], [0.3]], np.float32),
        features=np.array([[0.25], [-0.5]], np.float32),
    )
    return PairwiseNetwork(inner, outer), rows


def by_hand(x1: float, x2: float, psi1: float, psi2: float) -> tuple[list[float], float]:
    h12 = math.tanh(0.1 * x1 + 0.3 * x2 + 0.05)
    h1r = math.tanh(0.2 * x1 + 0.5 * 0.3 + 0.06)
    h2r = math.tanh(0.4 * x2 + 0.6 * 0.3 + 0.07)
    logit = 0.7 * h12 - 0.8 * h1r + 0.9 * h2r + 1.0 * psi1 - 1.1 * psi2 + 0.2
    return [h12, h1r, h2r], 1 / (1 + math.exp(-logit))


def cost_of_first(verdict: float, cost: str, decay: float = 0.0) -> tuple[float, list[np.ndarray]]:
    """Return the cost of the pair (row 0, row 1), and its gradient."""
    network, rows = tiny()
    weights = [torch.tensor(array, requires_grad=True) for array in network]
    left, right, verdicts = torch.tensor([0]), torch.tensor([1]), torch.tensor([verdict])
    value = _cost_function(cost, rows, weights, decay)(left, right, verdicts)
    value.backward()
    return float(value.detach()), [tensor.grad.numpy() for tensor in weights]


def test_output_equals_the_equations_by_hand() -> None:
    network, rows = tiny()
    _, s = by_hand(0.5, -0.4, 0.25, -0.5)
    [result] = network.probabilities(rows, np.array([0]), np.array([1]))
    assert result == pytest.approx(s, rel=1e-6)


def test_logistic_cost_and_gradient_by_hand() -> None:
    (h12, h1r, h2r), s = by_hand(0.5, -0.4, 0.25, -0.5)
    value, (inner, outer) = cost_of_first(1.0, "logistic")
    assert value == pytest.approx(-math.log(s), rel=1e-5)
    d = s - 1.0  # of the cost by the logit
    np.testing.assert_allclose(outer, [d * h12, d * h1r, d * h2r, d * 0.25, d * -0.5, d], rtol=1e-5)
    back = [d * 0.7 * (1 - h12**2), d * -0.8 * (1 - h1r**2), d * 0.9 * (1 - h2r**2)]
    expected = [
        [0.5 * back[0], 0.5 * back[1], 0.0],
        [-0.4 * back[0], 0.0, -0.4 * back[2]],
        [0.0, 0.3 * back[1], 0.3 * back[2]],
        back,
    ]
    np.testing.assert_allclose(inner, expected, rtol=1e-5, atol=1e-9)


def test_biases_are_not_penalized() -> None:
    network, _ = tiny()
    plain, _ = cost_of_first(1.0, "logistic")
    decayed, _ = cost_of_first(1.0, "logistic", decay=0.5)
    inner, outer = network
    expected = 0.5 * ((inner[:-1] ** 2).sum() + (outer[:-1] ** 2).sum())
    assert decayed - plain == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("verdict", [0.0, 1.0])
def test_kendall_cost_by_hand(verdict: float) -> None:
    _, s = by_hand(0.5, -0.4, 0.25, -0.5)
    _, other = by_hand(-0.4, 0.5, -0.5, 0.25)
    margin = s - other
    wrong = 1 / (1 + math.exp(-GAMMA * margin * (1 - 2 * verdict)))
    expected = wrong + math.exp(-BETA * margin**2 / 2)
    assert cost_of_first(verdict, "kendall")[0] == pytest.approx(expected, rel=1e-4)


def random_rows(count: int, width: int = 3, features: int = 2, seed: int = 0) -> Rows:
    generator = np.random.default_rng(seed)
    anchors = np.repeat(generator.normal(size=(count // 2, width)), 2, axis=0)
    return Rows(
        vectors=generator.normal(size=(count, width)).astype(np.float32),
        anchors=anchors.astype(np.float32),
        features=generator.normal(size=(count, features)).astype(np.float32),
    )


@pytest.mark.parametrize("hidden", [0, 4])
def test_the_split_product_equals_the_network_in_both_orders(hidden: int) -> None:
    rows = random_rows(10)
    left, right = np.arange(0, 10, 2), np.arange(1, 10, 2)
    generator = np.random.default_rng(1)
    network = PairwiseNetwork.start(hidden=hidden, width=3, features=2, generator=generator)
    forth = network.probabilities(rows, left, right)
    back = network.probabilities(rows, right, left)
    expected = (forth + 1 - back) / 2
    np.testing.assert_allclose(network.prefer(rows, left, right), expected, atol=1e-6)
    both = network.prefer(rows, left, right) + network.prefer(rows, right, left)
    np.testing.assert_allclose(both, 1.0, atol=1e-6)


def learnable(seed: int, count: int = 400) -> ComparedRows:
    """Pairs whose better side is nearer to what both are compared to, in one direction."""
    rows = random_rows(count, seed=seed)
    left, right = np.arange(0, count, 2), np.arange(1, count, 2)
    gap = np.abs(rows.vectors - rows.anchors)[:, 0]
    return ComparedRows(
        rows=rows, left=left, right=right, verdicts=(gap[left] < gap[right]).astype(np.float32)
    )


OPTIONS = PairwiseOptions(rate=0.1, epochs=40, patience=0)


def test_the_network_learns_what_a_flat_one_cannot() -> None:
    data, held_out = learnable(1, 3000), learnable(2, 1000)
    flat = train_network(data, held_out, hidden=0, costs=("logistic",), options=OPTIONS)
    deep = train_network(data, held_out, hidden=4, costs=("logistic",), options=OPTIONS)
    assert flat.tau < 0.2
    assert deep.tau > 0.5


def test_kendall_after_logistic_is_never_worse_on_the_held_out_data() -> None:
    data, held_out = learnable(1), learnable(2)
    one = train_network(data, held_out, hidden=4, costs=("logistic",), options=OPTIONS)
    two = train_network(data, held_out, hidden=4, costs=("logistic", "kendall"), options=OPTIONS)
    assert two.tau >= one.tau
    assert two.history[:40] == one.history


def test_the_latest_of_the_best_epochs_is_kept() -> None:
    data = learnable(1, 60)
    learned = train_network(data, data, hidden=2, costs=("logistic",), options=OPTIONS)
    best = max(learned.history)
    assert learned.tau == best
    assert learned.epoch == max(n + 1 for n, tau in enumerate(learned.history) if tau == best)
    assert data.tau(learned.network) == best


def test_patience_ends_training() -> None:
    rows = random_rows(4)
    constant = ComparedRows(
        rows=rows, left=np.array([0]), right=np.array([0]), verdicts=np.ones(1, np.float32)
    )
    options = PairwiseOptions(epochs=50, patience=3)
    learned = train_network(
        learnable(1, 60), constant, hidden=1, costs=("logistic",), options=options
    )
    assert learned.history == (-1.0,) * 4  # one better than nothing, three that are not better


def test_minmax_scaling_reaches_one_at_both_ends() -> None:
    rows = random_rows(20)
    scaled = Scaler.fit(rows, "minmax")(rows)
    both = np.vstack([scaled.vectors, scaled.anchors])
    np.testing.assert_allclose([both.min(axis=0), both.max(axis=0)], [[-1] * 3, [1] * 3], atol=1e-6)
    np.testing.assert_allclose(scaled.features.max(axis=0), 1, atol=1e-6)


def test_standard_scaling_is_not_squeezed_by_an_outlier() -> None:
    rows = random_rows(200)
    rows.features[0] = 1e4
    scaled = Scaler.fit(rows, "standard")(rows)
    assert scaled.features.max() == 4.0


def test_rate_must_be_positive() -> None:
    with pytest.raises(UsageError, match="above 0"):
        PairwiseOptions(rate=0)
