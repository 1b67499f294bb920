"""The network that says which of two translations is better (Guzmán et al. 2015), and its costs.

    h_12 = tanh(W_12 [x_1, x_2] + b_12),  h_1r = tanh(W_1r [x_1, x_r] + b_1r),  h_2r likewise
    f(t_1, t_2, r) = sig(w [h_12, h_1r, h_2r, psi_1, psi_2] + b)                  (equation 3)

The three groups are columns of one matrix over [x_1, x_2, x_r, 1] whose blocks outside a group are
zero. A row of that product splits by text, so that scoring all pairs of many systems costs one
product for each text and twelve additions for each pair. Gradients are written out by hand: the
network is so small that a tensor library spends its time on bookkeeping. For the same reason
`forward` and `gradient_of` take any leading axes: several networks go through them side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.arrays import IntArray, products
from tertium.errors import LengthError

Array = NDArray[np.float32]
Cost = Literal["logistic", "kendall"]

GAMMA = BETA = 100.0  # steepness of the step and of the penalty on ties; any large value will do


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Translations as numbers, one row each: vectors (n, d), those of what each is compared to
    (n, d), and features (n, k).
    """

    vectors: Array
    anchors: Array
    features: Array

    def __len__(self) -> int:
        return len(self.features)

    @property
    def widths(self) -> tuple[int, int]:
        """d and k."""
        return self.vectors.shape[1], self.features.shape[1]

    def take(self, index: IntArray) -> Rows:
        """Some rows."""
        return Rows(
            vectors=self.vectors[index], anchors=self.anchors[index], features=self.features[index]
        )


class Inputs(NamedTuple):
    """A batch as the network reads it: z = [x_1, x_2, x_r, 1] (n, 3d + 1), psi (n, 2k)."""

    z: Array
    psi: Array

    def swap(self) -> Inputs:
        """The same pairs, each in the other order."""
        d, k = self.z.shape[-1] // 3, self.psi.shape[-1] // 2
        z = [self.z[..., d : 2 * d], self.z[..., :d], self.z[..., 2 * d :]]
        psi = [self.psi[..., k:], self.psi[..., :k]]
        return Inputs(np.concatenate(z, axis=-1), np.concatenate(psi, axis=-1))


def inputs_of(rows: Rows, left: IntArray, right: IntArray) -> Inputs:
    """The inputs for pairs of rows; both of a pair share what they are compared to."""
    ones = np.ones((len(left), 1), dtype=np.float32)
    z = np.hstack([rows.vectors[left], rows.vectors[right], rows.anchors[left], ones])
    return Inputs(z, np.hstack([rows.features[left], rows.features[right]]))


class Weights(NamedTuple):
    """What is learned: `inner` (3d + 1, 3h), `outer` (3h + 2k + 1,); flat: h = 0, 3d + 2k + 1."""

    inner: Array
    outer: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseNetwork:
    """`hidden` nodes in each of the three groups; 0 is the flat network, a logistic regression."""

    hidden: int
    width: int
    features: int
    weights: Weights

    @classmethod
    def start(
        cls, *, hidden: int, width: int, features: int, generator: np.random.Generator
    ) -> PairwiseNetwork:
        """Weights uniform within sqrt(6 / (fan in + fan out)) (Glorot and Bengio), biases zero."""
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
        """The weights by name, for storage."""
        return {"inner": self.weights.inner, "outer": self.weights.outer}

    def probabilities(self, inputs: Inputs) -> Array:
        """f(t_1, t_2, r) of each pair, in the order given, (n,)."""
        return forward(self.weights, inputs, self.hidden)[1]

    def prefer(self, rows: Rows, left: IntArray, right: IntArray) -> Array:
        """The chance that left is better, the mean over both orders of each pair, (pairs,).

        Equals ((f(l, r) + 1 - f(r, l)) / 2), and a + b = 1 for prefer(l, r) = a, prefer(r, l) = b.
        """
        if rows.widths != (self.width, self.features):
            raise LengthError(
                f"rows of {rows.widths} vectors and features for a network of "
                f"{(self.width, self.features)}"
            )
        halves = self._halves(rows)
        forth = self._combine(halves, left, right, left)
        back = self._combine(halves, right, left, left)
        # Written so that exchanging forth and back gives exactly the complement.
        return (np.float32(0.5) + (forth - back) / np.float32(2)).astype(np.float32)

    def _halves(self, rows: Rows) -> tuple[Array, Array, Array]:
        """What each row adds to a pair as first, as second and as anchor; the last column is psi's
        share of the output, each (n, 3h + 1).
        """
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
    """rows (n, d) @ weights (d, m), a row's result the same whatever rows stand beside it."""
    return products(rows, weights.T).astype(np.float32)


@cache  # it is wanted in every step of training
def groups(width: int, hidden: int) -> Array:
    """Which weights of `inner` exist: 1 inside the groups 12, 1r, 2r, and 0 outside them.

    >>> groups(1, 1)
    array([[1., 1., 0.],
           [1., 0., 1.],
           [0., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    blocks = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=np.float32)
    body = np.kron(blocks, np.ones((width, hidden), dtype=np.float32))
    return np.vstack([body, np.ones((1, 3 * hidden), dtype=np.float32)])


def forward(weights: Weights, inputs: Inputs, hidden: int) -> tuple[Array, Array]:
    """What the output node reads, (..., n, m), and the output, (..., n)."""
    nodes = np.tanh(inputs.z @ weights.inner) if hidden else inputs.z[..., :-1]
    seen = np.concatenate([nodes, inputs.psi, inputs.z[..., -1:]], axis=-1)
    return seen, _sigmoid((seen @ weights.outer[..., None])[..., 0])


def gradient_of(
    weights: Weights, inputs: Inputs, verdicts: Array, hidden: int, cost: Cost, decay: float
) -> Weights:
    """The gradient, by the weights, of a batch's mean cost with its L2 penalty; verdicts (..., n).

    With s = f(t_1, t_2, r) and D = s - f(t_2, t_1, r) the costs are

    Logistic: -(y log s + (1 - y) log(1 - s))                                      (equation 4)
    Kendall:  y sig(-g D) + (1 - y) sig(g D) + exp(-b D^2 / 2)                     (equation 6)

    Equation 6 is printed with a minus sign in front, which would reward discordance; the text
    around it says it penalises discordance, and so does this. Biases are not decayed.
    """
    if cost == "logistic":
        seen, s = forward(weights, inputs, hidden)
        slopes = (s - verdicts) / np.float32(s.shape[-1])
        gradient = _backward(weights, inputs, seen, slopes, hidden)
    else:
        gradient = _kendall_gradient(weights, inputs, verdicts, hidden)
    gradient.inner[..., :-1, :] += np.float32(2 * decay) * weights.inner[..., :-1, :]
    gradient.outer[..., :-1] += np.float32(2 * decay) * weights.outer[..., :-1]
    return gradient


def _kendall_gradient(weights: Weights, inputs: Inputs, verdicts: Array, hidden: int) -> Weights:
    """Both orders of each pair go through the network, and back."""
    other = inputs.swap()
    seen, s = forward(weights, inputs, hidden)
    seen_other, s_other = forward(weights, other, hidden)
    margin = s - s_other
    step = _sigmoid(np.float32(GAMMA) * margin)
    slope = GAMMA * step * (1 - step) * (1 - 2 * verdicts)
    slope = slope - BETA * margin * np.exp(-BETA / 2 * margin**2)
    slope = (slope / s.shape[-1]).astype(s.dtype)
    here = _backward(weights, inputs, seen, slope * s * (1 - s), hidden)
    there = _backward(weights, other, seen_other, -slope * s_other * (1 - s_other), hidden)
    return Weights(here.inner + there.inner, here.outer + there.outer)


def _backward(weights: Weights, inputs: Inputs, seen: Array, slopes: Array, hidden: int) -> Weights:
    """The gradient, given that of the cost by each pair's logit, (..., n)."""
    outer = (slopes[..., None, :] @ seen)[..., 0, :]
    if not hidden:
        return Weights(np.zeros_like(weights.inner), outer)
    nodes = seen[..., : 3 * hidden]
    back = slopes[..., None] * weights.outer[..., None, : 3 * hidden] * (1 - nodes * nodes)
    inner = np.swapaxes(inputs.z, -1, -2) @ back
    return Weights(inner * groups(inputs.z.shape[-1] // 3, hidden), outer)


def _sigmoid(x: Array) -> Array:
    # The minimum keeps exp within single precision; beyond it the result is 0 to the last bit.
    result = 1 / (1 + np.exp(np.minimum(-x, np.float32(80))))
    return np.asarray(result, dtype=x.dtype)
