"""Scale the inputs of the pairwise network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tertium.metrics.pairwise.ranking_network import Array, Rows

Scaling = Literal["minmax", "standard"]
MAX_STANDARD_DEVIATIONS = 4.0  # standardized inputs are clipped here
MIN_SPREAD = 1e-8  # inputs with a smaller spread are constant


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
