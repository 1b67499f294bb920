"""Word Mover's Distance: optimal transport between token vectors (Kusner et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.segment import Segment
from tertium.encoders import Encoder
from tertium.metrics.base.explanation import Link
from tertium.metrics.embedding import optimal_transport
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric, Formula


@dataclass(frozen=True, kw_only=True)
class WMD(EmbeddingMetric):
    """Optimal transport between the pieces of two texts, a distance from 0 to 2: lower is better.

        WMD = min_T sum_ij T_ij |x_i - y_j|,   sum_j T_ij = 1/|x|,  sum_i T_ij = 1/|y|

    Vectors are scaled to length 1. All tokens have the same weight; special tokens are excluded.

    See also: BERTScore lets several pieces match the same one; WMDO adds a word order penalty.

    >>> round(WMD(encoder="toy").sentence_score("the cat sat", ["sat the cat"]), 6)
    0.0
    """

    name: ClassVar[str] = "wmd"
    title: ClassVar[str] = "WMD"
    higher_is_better: ClassVar[bool] = False
    identical: ClassVar[float] = 0.0
    unrelated: ClassVar[float] = 2.0
    citation: ClassVar[str] = """\
@inproceedings{kusner-etal-2015-word,
    title = "From Word Embeddings To Document Distances",
    author = "Kusner, Matt and Sun, Yu and Kolkin, Nicholas and Weinberger, Kilian",
    booktitle = "Proceedings of ICML", year = "2015", pages = "957--966"
}"""

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        return lambda chunk: np.array(optimal_transport.map_distances(chunk, self.distance))

    def distance(self, costs: FloatArray) -> float:
        """Return the score of two texts from token distances (left, right); NaN if one is empty."""
        return optimal_transport.solve_exact(costs).cost if costs.size else float("nan")

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        costs = optimal_transport.unit_distances(left, right)
        plan = optimal_transport.solve_exact(costs).plan
        return [
            Link(
                hypothesis=int(i),
                other=int(j),
                similarity=float(costs[i, j]),
                weight=float(plan[i, j]),
                direction="transport",
            )
            for i, j in zip(*np.nonzero(plan > 1e-9), strict=True)  # not rounding errors
        ]

    def own_signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {"solver": "exact"}
