"""The network that predicts which of two translations is better (Guzmán et al. 2015).

    h_12 = tanh(W_12 [x_1, x_2] + b_12),  h_1r = tanh(W_1r [x_1, x_r] + b_1r),  h_2r likewise
    f(t_1, t_2, r) = sig(w [h_12, h_1r, h_2r, psi_1, psi_2] + b)                  (equation 3)

The three groups are columns of one matrix over [x_1, x_2, x_r, 1] with zero blocks outside the
groups. Rows of this product split by text, so scoring all pairs of many systems takes one product
per text and a few additions per pair. Gradients are computed by hand, because the network is so
small that an autograd library would spend its time on bookkeeping. `forward` and `gradient_of`
accept leading axes to train several networks in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import IntArray, exact_dot_products
from tertium.core.errors import LengthError

Array = NDArray[np.float32]
Cost = Literal["logistic", "kendall"]

GAMMA = BETA = 100.0  # steepness of the step and of the tie penalty; any large value works


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Inputs per translation: vectors (n, d), compared vectors (n, d), features (n, k)."""

    vectors: Array
    anchors: Array
    features: Array

    def __len__(self) -> int:
        return len(self.features)

    @property
    def widths(self) -> tuple[int, int]:
        """The widths d and k."""
        return self.vectors.shape[1], self.features.shape[1]

    def take(self, index: IntArray) -> Rows:
        """Select rows."""
        return Rows(
            vectors=self.vectors[index], anchors=self.anchors[index], features=self.features[index]
        )


class PairInputs(NamedTuple):
    """A batch of network inputs: z = [x_1, x_2, x_r, 1] (n, 3d + 1), psi (n, 2k)."""

    z: Array
    psi: Array

    def swap(self) -> PairInputs:
        """Return the same pairs in the opposite order."""
        d, k = self.z.shape[-1] // 3, self.psi.shape[-1] // 2
        z = [self.z[..., d : 2 * d], self.z[..., :d], self.z[..., 2 * d :]]
        psi = [self.psi[..., k:], self.psi[..., :k]]
        return PairInputs(np.concatenate(z, axis=-1), np.concatenate(psi, axis=-1))


def inputs_of(rows: Rows, left: IntArray, right: IntArray) -> PairInputs:
    """Build the inputs of pairs of rows that share the compared text."""
    ones = np.ones((len(left), 1), dtype=np.float32)
    z = np.hstack([rows.vectors[left], rows.vectors[right], rows.anchors[left], ones])
    return PairInputs(z, np.hstack([rows.features[left], rows.features[right]]))


class Weights(NamedTuple):
    """Weights `inner` (3d + 1, 3h) and `outer` (3h + 2k + 1,), or (3d + 2k + 1,) if h = 0."""

    inner: Array
    outer: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseNetwork:
    """`hidden` nodes in each of the three groups; 0 means logistic regression."""

    hidden: int
    width: int
    features: int
    weights: Weights

    @classmethod
    def start(
        cls, *, hidden: int, width: int, features: int, generator: np.random.Generator
    ) -> PairwiseNetwork:
        """Initialize weights uniformly (Glorot and Bengio) and biases with zero."""
        hidden = hidden if width else 0
        inner = np.zeros((3 * width + 1, 3 * hidden), dtype=np.float32)
        if hidden:
            bound = np.sqrt(6 / (2 * width + hidden))
            inner[:-1] = generator.uniform(-bound, bound, (3 * width, 3 * hidden))
            inner *= groups(width, hidden)
        size = (3 * hidden if hidden else 3 * width) + 2 * features
        bound = np.sqrt(6 / (size + 1))
        outer = np.append(generator.uniform(-bound, bound, size), 0.0).astype(np.float32)
        return cls(hidden=hidden, width=width, features=features, weights=Weights(inner, outer))

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Weights by name, for storage."""
        return {"inner": self.weights.inner, "outer": self.weights.outer}

    def probabilities(self, inputs: PairInputs) -> Array:
        """Return f(t_1, t_2, r) of each pair in the given order, (n,)."""
        return forward(self.weights, inputs, self.hidden)[1]

    def prefer(self, rows: Rows, left: IntArray, right: IntArray) -> Array:
        """Return the probability that left is better, (f(l, r) + 1 - f(r, l)) / 2, (pairs,)."""
        if rows.widths != (self.width, self.features):
            raise LengthError(
                f"rows have {rows.widths} vector and feature columns: expected "
                f"{(self.width, self.features)}"
            )
        halves = self._halves(rows)
        forward_order = self._combine(halves, left, right, left)
        reverse_order = self._combine(halves, right, left, left)
        # In this form, swapping the order gives exactly the complement.
        return (np.float32(0.5) + (forward_order - reverse_order) / np.float32(2)).astype(
            np.float32
        )

    def _halves(self, rows: Rows) -> tuple[Array, Array, Array]:
        """Return the contribution of each row as first, second and anchor, (n, 3h + 1)."""
        d, k, (inner, outer) = self.width, self.features, self.weights
        if not self.hidden:
            inner = outer[: 3 * d, None]
            inner = np.vstack([inner, np.zeros((1, 1), dtype=np.float32)])
        own = outer[-1 - 2 * k : -1]
        nothing = np.zeros((len(rows), 1), dtype=np.float32)
        first, second = _exact(rows.features, own[:k, None]), _exact(rows.features, own[k:, None])
        return (
            np.hstack([_exact(rows.vectors, inner[:d]), first]),
            np.hstack([_exact(rows.vectors, inner[d : 2 * d]), second]),
            np.hstack([_exact(rows.anchors, inner[2 * d : 3 * d]) + inner[-1], nothing]),
        )

    def _combine(
        self, halves: tuple[Array, Array, Array], first: IntArray, second: IntArray, owner: IntArray
    ) -> Array:
        a, b, c = halves
        total = a[first] + b[second] + c[owner]  # (pairs, 3h + 1)
        bias = self.weights.outer[-1]
        if not self.hidden:
            return _sigmoid(total.sum(axis=1) + bias)
        nodes = np.tanh(total[:, :-1])
        output = _exact(nodes, self.weights.outer[: 3 * self.hidden, None])[:, 0]
        return _sigmoid(output + total[:, -1] + bias)


def _exact(rows: Array, weights: Array) -> Array:
    """Return rows (n, d) @ weights (d, m), independent of the other rows."""
    return exact_dot_products(rows, weights.T).astype(np.float32)


@cache  # used in every training step
def groups(width: int, hidden: int) -> Array:
    """Return the mask of `inner`: 1 inside the groups 12, 1r, 2r, and 0 outside.

    >>> groups(1, 1)
    array([[1., 1., 0.],
           [1., 0., 1.],
           [0., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    blocks = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=np.float32)
    body = np.kron(blocks, np.ones((width, hidden), dtype=np.float32))
    return np.vstack([body, np.ones((1, 3 * hidden), dtype=np.float32)])


def forward(weights: Weights, inputs: PairInputs, hidden: int) -> tuple[Array, Array]:
    """Return the inputs of the output node, (..., n, m), and the output, (..., n)."""
    nodes = np.tanh(inputs.z @ weights.inner) if hidden else inputs.z[..., :-1]
    output_inputs = np.concatenate([nodes, inputs.psi, inputs.z[..., -1:]], axis=-1)
    return output_inputs, _sigmoid((output_inputs @ weights.outer[..., None])[..., 0])


def gradient_of(
    weights: Weights, inputs: PairInputs, verdicts: Array, hidden: int, cost: Cost, decay: float
) -> Weights:
    """Return the gradient of the mean cost of a batch with L2 penalty; verdicts (..., n).

    With s = f(t_1, t_2, r) and D = s - f(t_2, t_1, r) the costs are

    Logistic: -(y log s + (1 - y) log(1 - s))                                      (equation 4)
    Kendall:  y sig(-g D) + (1 - y) sig(g D) + exp(-b D^2 / 2)                     (equation 6)

    Equation 6 is printed with a leading minus sign, which would reward discordance. The text of the
    paper says that discordance is penalized, as it is here. Biases are not decayed.
    """
    if cost == "logistic":
        output_inputs, s = forward(weights, inputs, hidden)
        slopes = (s - verdicts) / np.float32(s.shape[-1])
        gradient = _backward(weights, inputs, output_inputs, slopes, hidden)
    else:
        gradient = _kendall_gradient(weights, inputs, verdicts, hidden)
    gradient.inner[..., :-1, :] += np.float32(2 * decay) * weights.inner[..., :-1, :]
    gradient.outer[..., :-1] += np.float32(2 * decay) * weights.outer[..., :-1]
    return gradient


def _kendall_gradient(
    weights: Weights, inputs: PairInputs, verdicts: Array, hidden: int
) -> Weights:
    """Compute the gradient of Kendall's cost from forward passes in both orders."""
    other = inputs.swap()
    output_inputs, s = forward(weights, inputs, hidden)
    swapped_inputs, s_other = forward(weights, other, hidden)
    margin = s - s_other
    step = _sigmoid(np.float32(GAMMA) * margin)
    slope = GAMMA * step * (1 - step) * (1 - 2 * verdicts)
    slope = slope - BETA * margin * np.exp(-BETA / 2 * margin**2)
    slope = (slope / s.shape[-1]).astype(s.dtype)
    gradient = _backward(weights, inputs, output_inputs, slope * s * (1 - s), hidden)
    swapped = _backward(weights, other, swapped_inputs, -slope * s_other * (1 - s_other), hidden)
    return Weights(gradient.inner + swapped.inner, gradient.outer + swapped.outer)


def _backward(
    weights: Weights, inputs: PairInputs, output_inputs: Array, slopes: Array, hidden: int
) -> Weights:
    """Return the gradient of the weights, given the gradient of each pair's logit, (..., n)."""
    outer = (slopes[..., None, :] @ output_inputs)[..., 0, :]
    if not hidden:
        return Weights(np.zeros_like(weights.inner), outer)
    nodes = output_inputs[..., : 3 * hidden]
    back = slopes[..., None] * weights.outer[..., None, : 3 * hidden] * (1 - nodes * nodes)
    inner = np.swapaxes(inputs.z, -1, -2) @ back
    return Weights(inner * groups(inputs.z.shape[-1] // 3, hidden), outer)


def _sigmoid(x: Array) -> Array:
    # The minimum avoids overflow of exp; beyond it the result is 0 anyway.
    result = 1 / (1 + np.exp(np.minimum(-x, np.float32(80))))
    return np.asarray(result, dtype=x.dtype)
