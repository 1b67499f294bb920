"""Word Mover's Distance: the least work that moves one text's vectors to the other's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders import Encoder
from tertium.metrics.base.explanation import Link
from tertium.metrics.embedding.metric import EmbeddingMetric, Formula
from tertium.metrics.embedding.transport import (
    Transport,
    exact,
    sinkhorn,
    solve_chunk,
    unit_distances,
)
from tertium.segment import Segment
from tertium.specs import Range


@dataclass(frozen=True, kw_only=True)
class WMD(EmbeddingMetric):
    """Optimal transport between the pieces of two texts, a distance from 0 to 2: lower is better.

        WMD = min_T sum_ij T_ij |x_i - y_j|,   sum_j T_ij = 1/|x|,  sum_i T_ij = 1/|y|

    Vectors are scaled to length 1, as contextual vectors have no length worth comparing; pieces
    weigh alike, which for static vectors is the same as frequencies over types. Special tokens are
    left out. `solver` is exact, or sinkhorn with its entropic `regularisation`, whose distances
    are a little too high and which is faster on texts of some 200 pieces or more.

    Relatives: BERTScore lets several pieces match the same one; WMDO adds a price for word order.

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

    solver: Literal["exact", "sinkhorn"] = "exact"
    regularisation: Annotated[float, Range(0, above=True)] = 0.05

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        return lambda chunk: np.array(solve_chunk(chunk, self.distance))

    def distance(self, costs: FloatArray) -> float:
        """The score of two texts whose pieces are this far apart; NaN where one has none."""
        return self.solve(costs).cost if costs.size else float("nan")

    def solve(self, costs: FloatArray) -> Transport:
        """The transport between two texts whose pieces are this far apart."""
        if self.solver == "exact":
            return exact(costs)
        return sinkhorn(costs, regularisation=self.regularisation)

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        costs = unit_distances(left, right)
        plan = self.solve(costs).plan
        return [
            Link(
                hypothesis=int(i),
                other=int(j),
                similarity=float(costs[i, j]),
                weight=float(plan[i, j]),
                direction="transport",
            )
            # entropy leaves a trace of weight on every pair of pieces: too little to show
            for i, j in zip(*np.nonzero(plan > 1e-9), strict=True)
        ]

    def settings(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        if self.solver == "exact":
            return {"solver": "exact"}
        return {"solver": "sinkhorn", "reg": str(self.regularisation)}
