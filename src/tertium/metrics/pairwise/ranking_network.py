"""The network that predicts which of two translations is better (Guzmán et al. 2015).

    h_12 = tanh(W_12 [x_1, x_2] + b_12),  h_1r = tanh(W_1r [x_1, x_r] + b_1r),  h_2r likewise
    f(t_1, t_2, r) = sig(w [h_12, h_1r, h_2r, psi_1, psi_2] + b)                  (equation 3)

The three groups are columns of one matrix over [x_1, x_2, x_r, 1] with zero blocks outside the
groups. Rows of this product split by text, so scoring all pairs of many systems takes one product
per text and a few additions per pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import IntArray, exact_dot_products

Array = NDArray[np.float32]

Scaling = Literal["minmax", "standard"]
MAX_STANDARD_DEVIATIONS = 4.0  # standardized inputs are clipped here
MIN_SPREAD = 1e-8  # inputs with a smaller spread are constant


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaler:
    """Scale each input to about [-1, 1]: (x - centre) / spread, clipped at `farthest`.

    `minmax` maps the smallest and largest training value to -1 and 1 without clipping, as
    published. `standard` uses mean and standard deviation, which are robust to outliers.
    """

    centre: Mapping[str, Array]
    spread: Mapping[str, Array]
    farthest: float

    @classmethod
    def fit(cls, rows: Rows, scaling: Scaling) -> Scaler:
        """Fit the scales to training rows; texts and their anchors share scales."""
        both = np.vstack([rows.vectors, rows.anchors])
        scales = {"vectors": _scale(both, scaling), "features": _scale(rows.features, scaling)}
        return cls(
            centre={name: centre for name, (centre, _) in scales.items()},
            spread={name: spread for name, (_, spread) in scales.items()},
            farthest=MAX_STANDARD_DEVIATIONS if scaling == "standard" else float("inf"),
        )

    def __call__(self, rows: Rows) -> Rows:
        return Rows(
            vectors=self._apply(rows.vectors, "vectors"),
            anchors=self._apply(rows.anchors, "vectors"),
            features=self._apply(rows.features, "features"),
        )

    def _apply(self, values: Array, kind: str) -> Array:
        scaled = (values - self.centre[kind]) / self.spread[kind]
        limited: Array = np.clip(scaled, -self.farthest, self.farthest).astype(np.float32)
        return limited


def _scale(values: Array, scaling: Scaling) -> tuple[Array, Array]:
    if scaling == "standard":
        centre, spread = values.mean(axis=0), values.std(axis=0)
    else:
        low, high = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
        centre, spread = (high + low) / 2, (high - low) / 2
    spread = np.where(spread > MIN_SPREAD, spread, 1.0)
    return centre.astype(np.float32), spread.astype(np.float32)


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

    def probabilities(self, rows: Rows, left: IntArray, right: IntArray) -> Array:
        """Return f(t_1, t_2, r) of pairs of rows in the given order, (pairs,)."""
        return self._combine(self._halves(rows), left, right, left)

    def prefer(self, rows: Rows, left: IntArray, right: IntArray) -> Array:
        """Return the probability that left is better, (f(l, r) + 1 - f(r, l)) / 2, (pairs,)."""
        halves = self._halves(rows)
        forward_order = self._combine(halves, left, right, left)
        reverse_order = self._combine(halves, right, left, left)
        # In this form, swapping the order gives exactly the complement.
        chances: Array = np.float32(0.5) + (forward_order - reverse_order) / np.float32(2)
        return chances

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


def _sigmoid(x: Array) -> Array:
    # The minimum avoids overflow of exp; beyond it the result is 0 anyway.
    result = 1 / (1 + np.exp(np.minimum(-x, np.float32(80))))
    return np.asarray(result, dtype=x.dtype)
