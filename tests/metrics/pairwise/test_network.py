"""The pairwise network against hand-computed values, finite differences and its own laws."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import expit

from tertium.core.errors import DataError, LengthError, UsageError
from tertium.metrics.pairwise.ranker_options import PairwiseOptions
from tertium.metrics.pairwise.ranker_training import Comparisons, train_networks
from tertium.metrics.pairwise.ranking_network import (
    BETA,
    GAMMA,
    Array,
    Cost,
    PairInputs,
    PairwiseNetwork,
    Rows,
    Weights,
    forward,
    gradient_of,
    groups,
    inputs_of,
)
from tertium.metrics.pairwise.scaling import Scaler


def cost_of(
    weights: Weights, inputs: PairInputs, verdicts: Array, hidden: int, cost: Cost, decay: float
) -> float:
    """The mean cost of a batch with its L2 penalty, s = f(t_1, t_2, r), D = s - f(t_2, t_1, r).

    As the docstring of `gradient_of` has it, which is the one that training needs.
    """
    inner, outer = weights
    penalty = decay * float((inner[:-1] ** 2).sum() + (outer[:-1] ** 2).sum())
    s = forward(weights, inputs, hidden)[1]
    if cost == "logistic":
        # a sigmoid in float32 reaches 0 and 1, whose logarithm would make the cost infinite
        likely = np.clip(np.where(verdicts > 0.5, s, 1 - s), 1e-12, None)
        return float(-np.log(likely).mean()) + penalty
    margin = s - forward(weights, inputs.swap(), hidden)[1]
    step = expit(GAMMA * margin)
    costs = verdicts * (1 - step) + (1 - verdicts) * step + np.exp(-BETA / 2 * margin**2)
    return float(costs.mean()) + penalty


def tiny() -> tuple[Weights, PairInputs]:
    """One dimension, one node a group, one feature: every number below can be followed by hand."""
    inner = np.array(
        [[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.0, 0.5, 0.6], [0.05, 0.06, 0.07]], np.float32
    )
    outer = np.array([0.7, -0.8, 0.9, 1.0, -1.1, 0.2], np.float32)
    z = np.array([[0.5, -0.4, 0.3, 1.0]], np.float32)
    psi = np.array([[0.25, -0.5]], np.float32)
    return Weights(inner, outer), PairInputs(z, psi)


def by_hand(x1: float, x2: float, psi1: float, psi2: float) -> tuple[list[float], float]:
    h12 = math.tanh(0.1 * x1 + 0.3 * x2 + 0.05)
    h1r = math.tanh(0.2 * x1 + 0.5 * 0.3 + 0.06)
    h2r = math.tanh(0.4 * x2 + 0.6 * 0.3 + 0.07)
    logit = 0.7 * h12 - 0.8 * h1r + 0.9 * h2r + 1.0 * psi1 - 1.1 * psi2 + 0.2
    return [h12, h1r, h2r], 1 / (1 + math.exp(-logit))


def test_output_equals_the_equations_by_hand() -> None:
    weights, inputs = tiny()
    nodes, s = by_hand(0.5, -0.4, 0.25, -0.5)
    output_inputs, result = forward(weights, inputs, 1)
    np.testing.assert_allclose(output_inputs[0], [*nodes, 0.25, -0.5, 1.0], rtol=1e-6)
    assert result[0] == pytest.approx(s, rel=1e-6)


def test_logistic_gradient_by_hand() -> None:
    weights, inputs = tiny()
    (h12, h1r, h2r), s = by_hand(0.5, -0.4, 0.25, -0.5)
    better = np.array([1.0], np.float32)
    value = cost_of(weights, inputs, better, 1, "logistic", 0.0)
    assert value == pytest.approx(-math.log(s), rel=1e-5)
    gradient = gradient_of(weights, inputs, better, 1, "logistic", 0.0)
    d = s - 1.0  # of the cost by the logit
    np.testing.assert_allclose(
        gradient.outer, [d * h12, d * h1r, d * h2r, d * 0.25, d * -0.5, d], rtol=1e-5
    )
    back = [d * 0.7 * (1 - h12**2), d * -0.8 * (1 - h1r**2), d * 0.9 * (1 - h2r**2)]
    expected = [
        [0.5 * back[0], 0.5 * back[1], 0.0],
        [-0.4 * back[0], 0.0, -0.4 * back[2]],
        [0.0, 0.3 * back[1], 0.3 * back[2]],
        back,
    ]
    np.testing.assert_allclose(gradient.inner, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("verdict", [0.0, 1.0])
def test_kendall_cost_by_hand(verdict: float) -> None:
    weights, inputs = tiny()
    _, s = by_hand(0.5, -0.4, 0.25, -0.5)
    _, other = by_hand(-0.4, 0.5, -0.5, 0.25)
    margin = s - other
    wrong = 1 / (1 + math.exp(-GAMMA * margin * (1 - 2 * verdict)))
    expected = wrong + math.exp(-BETA * margin**2 / 2)
    value = cost_of(weights, inputs, np.array([verdict], np.float32), 1, "kendall", 0.0)
    assert value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("cost", ["logistic", "kendall"])
@pytest.mark.parametrize("hidden", [0, 2])
def test_gradients_equal_finite_differences(cost: Cost, hidden: int) -> None:
    generator = np.random.default_rng(3)
    network = PairwiseNetwork.start(hidden=hidden, width=2, features=2, generator=generator)
    # Doubles, and weights small enough that the steep Kendall cost is not flat everywhere.
    weights = Weights(*(0.05 * a.astype(np.float64) for a in network.weights))
    z = np.hstack([generator.normal(size=(4, 6)), np.ones((4, 1))])
    inputs = PairInputs(z, generator.normal(size=(4, 4)))
    verdicts = np.array([1.0, 0.0, 1.0, 1.0])
    gradient = gradient_of(weights, inputs, verdicts, hidden, cost, 0.01)
    mask = [groups(2, hidden), np.ones_like(weights.outer)]
    for array, slope, exists in zip(weights, gradient, mask, strict=True):
        for index in np.argwhere(exists > 0)[: array.size]:
            place = tuple(index)
            values = []
            for change in (1e-5, -1e-5):
                array[place] += change
                values.append(cost_of(weights, inputs, verdicts, hidden, cost, 0.01))
                array[place] -= change
            expected = (values[0] - values[1]) / 2e-5
            assert slope[place] == pytest.approx(expected, rel=2e-3, abs=2e-5)


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
    forth = network.probabilities(inputs_of(rows, left, right))
    back = network.probabilities(inputs_of(rows, right, left))
    expected = (forth + 1 - back) / 2
    np.testing.assert_allclose(network.prefer(rows, left, right), expected, atol=1e-6)
    both = network.prefer(rows, left, right) + network.prefer(rows, right, left)
    np.testing.assert_allclose(both, 1.0, atol=1e-6)


def test_the_start_is_glorots_and_stays_inside_the_groups() -> None:
    network = PairwiseNetwork.start(
        hidden=4, width=5, features=0, generator=np.random.default_rng(0)
    )
    inner = network.weights.inner
    assert np.abs(inner).max() <= math.sqrt(6 / (10 + 4))
    assert (inner[groups(5, 4) == 0] == 0).all()
    assert (inner[-1] == 0).all()


def learnable(seed: int, count: int = 400) -> Comparisons:
    """Pairs whose better side is nearer to what both are compared to, in one direction."""
    rows = random_rows(count, seed=seed)
    left, right = np.arange(0, count, 2), np.arange(1, count, 2)
    gap = np.abs(rows.vectors - rows.anchors)[:, 0]
    return Comparisons(
        rows=rows, left=left, right=right, verdicts=(gap[left] < gap[right]).astype(np.float32)
    )


OPTIONS = PairwiseOptions(rate=0.1, epochs=40, patience=0)


def train_network(data: Comparisons, held_out: Comparisons, *, options: PairwiseOptions, **shape):
    """One network, from the seed of its options."""
    seeds = (options.seed,)
    (learned,) = train_networks(data, held_out, options=options, seeds=seeds, **shape)
    return learned


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


def test_training_is_decided_by_its_seed() -> None:
    data, held_out = learnable(1, 200), learnable(2, 200)
    options = PairwiseOptions(epochs=3, seed=5)
    runs = [
        train_network(data, held_out, hidden=2, costs=("logistic",), options=o)
        for o in (options, options, PairwiseOptions(epochs=3, seed=6))
    ]
    assert (runs[0].network.weights.inner == runs[1].network.weights.inner).all()
    assert (runs[0].network.weights.inner != runs[2].network.weights.inner).any()


@pytest.mark.parametrize(("hidden", "cost"), [(0, "logistic"), (3, "logistic"), (3, "kendall")])
def test_networks_trained_side_by_side_are_what_each_is_alone(hidden: int, cost: Cost) -> None:
    data, held_out = learnable(1, 100), learnable(2, 50)
    options = dataclasses.replace(OPTIONS, epochs=12, patience=4, order="random")
    together = train_networks(
        data, held_out, hidden=hidden, costs=(cost,), options=options, seeds=(5, 6, 7)
    )
    for seed, learned in zip((5, 6, 7), together, strict=True):
        one = dataclasses.replace(options, seed=seed)
        alone = train_network(data, held_out, hidden=hidden, costs=(cost,), options=one)
        assert (learned.history, learned.epoch) == (alone.history, alone.epoch)
        np.testing.assert_allclose(learned.network.weights.outer, alone.network.weights.outer)


def test_the_latest_of_the_best_epochs_is_kept() -> None:
    data = learnable(1, 60)
    learned = train_network(data, data, hidden=2, costs=("logistic",), options=OPTIONS)
    best = max(learned.history)
    assert learned.tau == best
    assert learned.epoch == max(n + 1 for n, tau in enumerate(learned.history) if tau == best)
    assert data.tau(learned.network) == best


def test_patience_ends_training() -> None:
    rows = random_rows(4)
    constant = Comparisons(
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


def test_faults_are_named() -> None:
    rows = random_rows(4)
    none = np.zeros(0, np.int64)
    with pytest.raises(DataError, match="no comparison"):
        Comparisons(rows=rows, left=none, right=none, verdicts=np.zeros(0, np.float32))
    with pytest.raises(UsageError, match="above 0"):
        PairwiseOptions(rate=0)
    network = PairwiseNetwork.start(
        hidden=1, width=9, features=2, generator=np.random.default_rng(0)
    )
    with pytest.raises(LengthError, match="vector and feature columns: expected"):
        network.prefer(rows, none, none)
