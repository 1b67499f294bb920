"""The network that predicts which of two translations is better (Guzmán et al. 2015).

    h_12 = tanh(W_12 [x_1, x_2] + b_12),  h_1r = tanh(W_1r [x_1, x_r] + b_1r),  h_2r likewise
    f(t_1, t_2, r) = sig(w [h_12, h_1r, h_2r, psi_1, psi_2] + b)                  (equation 3)

The three groups are columns of one matrix over [x_1, x_2, x_r, 1] with zero blocks outside the
groups. Rows of this product split by text, so scoring all pairs of many systems takes one product
per text and a few additions per pair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.core.arrays import IntArray, exact_dot_products
from tertium.core.errors import ModelError
from tertium.core.fields import NON_NEGATIVE, POSITIVE, construct
from tertium.metrics.base.lexical_features import NgramInformation
from tertium.metrics.pairwise.features import Projection, VectorName
from tertium.models.checkpoint import (
    CONFIG,
    WEIGHTS,
    ArraySpec,
    Checkpoint,
    cache_by_checkpoint,
    check_arrays,
    parse_config,
)

Array = NDArray[np.float32]

Scaling = Literal["minmax", "standard"]
KINDS = ("vectors", "features")  # inputs with scales of their own
MAX_STANDARD_DEVIATIONS = 4.0  # standardized inputs are clipped here
MIN_SPREAD = 1e-8  # inputs with a smaller spread are constant


class Rows(NamedTuple):
    """Inputs per translation: vectors (n, d), compared vectors (n, d), features (n, k)."""

    vectors: Array
    anchors: Array
    features: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaler:
    """Scale each input to about [-1, 1]: (x - centre) / spread, clipped at `farthest`.

    `minmax` maps the smallest and largest training value to -1 and 1 without clipping, as
    published. `standard` uses mean and standard deviation, which are robust to outliers.
    """

    scales: Mapping[str, tuple[Array, Array]]  # centre and spread of vectors and of features
    farthest: float

    @classmethod
    def fit(cls, rows: Rows, scaling: Scaling) -> Scaler:
        """Fit the scales to training rows; texts and their anchors share scales."""
        vectors = np.vstack([rows.vectors, rows.anchors])
        return cls(
            scales={
                "vectors": _scale(vectors, scaling),
                "features": _scale(rows.features, scaling),
            },
            farthest=MAX_STANDARD_DEVIATIONS if scaling == "standard" else float("inf"),
        )

    def __call__(self, rows: Rows) -> Rows:
        return Rows(*map(self._apply, rows, ("vectors", "vectors", "features")))

    def _apply(self, values: Array, kind: str) -> Array:
        centre, spread = self.scales[kind]
        scaled = (values - centre) / spread
        limited: Array = np.clip(scaled, -self.farthest, self.farthest).astype(np.float32)
        return limited


def _scale(values: Array, scaling: Scaling) -> tuple[Array, Array]:
    if scaling == "standard":
        centre = values.mean(axis=0)
        spread = values.std(axis=0)
    else:
        low = values.min(axis=0, initial=np.inf)
        high = values.max(axis=0, initial=-np.inf)
        centre = (high + low) / 2
        spread = (high - low) / 2
    spread = np.where(spread > MIN_SPREAD, spread, 1.0)
    return centre.astype(np.float32), spread.astype(np.float32)


class PairwiseNetwork(NamedTuple):
    """A network with 3 groups of h nodes over vectors of width d and k features.

    `inner` has shape (3d + 1, 3h); `outer` (3h + 2k + 1,), or (3d + 2k + 1,) if h = 0, which means
    logistic regression.
    """

    inner: Array
    outer: Array

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
        return cls(inner, outer)

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
        width = rows.vectors.shape[1]
        count = rows.features.shape[1]
        inner = self.inner
        if not inner.size:
            inner = np.append(self.outer[: 3 * width], np.float32(0))[:, None]
        skipping = self.outer[-1 - 2 * count : -1, None]
        nothing = np.zeros((len(rows.features), 1), dtype=np.float32)
        first = _exact(rows.vectors, inner[:width]), _exact(rows.features, skipping[:count])
        second = (
            _exact(rows.vectors, inner[width : 2 * width]),
            _exact(rows.features, skipping[count:]),
        )
        anchor = _exact(rows.anchors, inner[2 * width : -1]) + inner[-1], nothing
        return np.hstack(first), np.hstack(second), np.hstack(anchor)

    def _combine(
        self, halves: tuple[Array, Array, Array], first: IntArray, second: IntArray, owner: IntArray
    ) -> Array:
        a, b, c = halves
        total = a[first] + b[second] + c[owner]  # (pairs, 3h + 1)
        bias = self.outer[-1]
        if not self.inner.size:
            return _sigmoid(total.sum(axis=1) + bias)
        nodes = np.tanh(total[:, :-1])
        output = _exact(nodes, self.outer[: nodes.shape[1], None])[:, 0]
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


@dataclass(frozen=True, kw_only=True)
class PairwiseConfig:
    """Stored settings of a pairwise ranker.

    `settings` are its fields, `columns` the features it was trained on, `metrics` the trained
    metrics among them with their model identifiers, `farthest` the clipping of inputs (null: none).
    """

    settings: Mapping[str, Any]
    columns: tuple[str, ...]
    information_total: Annotated[int, NON_NEGATIVE]
    farthest: Annotated[float, POSITIVE] | None
    metrics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class InputNumbers:
    """Learned parts of the inputs, fitted to references before the network is trained."""

    projections: Mapping[VectorName, Projection] = field(default_factory=dict)
    information: NgramInformation = field(default_factory=NgramInformation.empty)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseModel(InputNumbers):
    """The learned state of a ranker: its network and the parts of its inputs."""

    network: PairwiseNetwork
    scaler: Scaler
    columns: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify the model."""
        summary = hashlib.sha256()
        for name, array in sorted(self.arrays().items()):
            summary.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return summary.hexdigest()[:12]

    def arrays(self, vectors: Sequence[VectorName] = ()) -> dict[str, Any]:
        """Return all arrays by name; projections are numbered by their position in `vectors`."""
        arrays: dict[str, Any] = self.network._asdict()
        for kind, (centre, spread) in self.scaler.scales.items():
            arrays |= {f"{kind}.centre": centre, f"{kind}.spread": spread}
        for n, (name, projection) in enumerate(self.projections.items()):
            place = vectors.index(name) if vectors else f"unnamed-{n}"
            arrays |= {f"projection.{place}.mean": projection.mean}
            arrays |= {f"projection.{place}.axes": projection.axes}
        arrays["information.keys"] = self.information.keys
        arrays["information.counts"] = self.information.counts
        return arrays


@cache_by_checkpoint
def restore_model(checkpoint: Checkpoint, vectors: Sequence[str], where: str) -> PairwiseModel:
    """Restore a model from a checkpoint; raise `ModelError` if parts do not fit."""
    folder = Path(where)
    arrays = checkpoint.arrays
    stored = parse_config(PairwiseConfig, checkpoint, where)
    names = [construct(VectorName.parse, {"text": v}, folder / CONFIG) for v in vectors]
    _check(stored, arrays, names, folder / WEIGHTS)
    return PairwiseModel(
        network=PairwiseNetwork(arrays["inner"], arrays["outer"]),
        scaler=Scaler(
            scales={k: (arrays[f"{k}.centre"], arrays[f"{k}.spread"]) for k in KINDS},
            farthest=np.inf if stored.farthest is None else stored.farthest,
        ),
        columns=stored.columns,
        projections={
            name: Projection(arrays[f"projection.{n}.mean"], arrays[f"projection.{n}.axes"])
            for n, name in enumerate(names)
            if name.width
        },
        information=NgramInformation(
            arrays["information.keys"], arrays["information.counts"], stored.information_total
        ),
    )


def _check(
    stored: PairwiseConfig, arrays: Mapping[str, Any], names: Sequence[VectorName], file: Path
) -> None:
    columns = len(stored.columns)
    wanted = {
        "inner": ArraySpec("f", ("rows", "nodes")),
        "outer": ArraySpec("f", ("weights",)),
        "information.keys": ArraySpec("u", ("n-grams",)),
        "information.counts": ArraySpec("u", ("n-grams",)),
    }
    for part in ("centre", "spread"):
        wanted[f"vectors.{part}"] = ArraySpec("f", ("width",))
        wanted[f"features.{part}"] = ArraySpec("f", (columns,))
    for n, name in enumerate(names):
        if name.width:
            wanted[f"projection.{n}.mean"] = ArraySpec("f", (f"dimensions {n}",))
            wanted[f"projection.{n}.axes"] = ArraySpec("f", (f"dimensions {n}", name.width))
    sizes = check_arrays(arrays, wanted, file)
    width = sizes["width"]
    nodes = sizes["nodes"]
    shapes = {
        "inner": ArraySpec("f", (3 * width + 1, nodes - nodes % 3)),
        "outer": ArraySpec("f", ((nodes or 3 * width) + 2 * columns + 1,)),
    }
    check_arrays({name: arrays[name] for name in shapes}, shapes, file)
    for kind in KINDS:
        if not (arrays[f"{kind}.spread"] > 0).all():
            raise ModelError(f"{file}: {kind}.spread holds a number that is not above 0")
