"""WMDO: Word Mover's Distance with a word order penalty (Chow et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.fields import Range
from tertium.core.segment import Segment
from tertium.metrics.embedding.optimal_transport import solve_exact
from tertium.metrics.embedding.wmd import WMD


@dataclass(frozen=True, kw_only=True)
class WMDO(WMD):
    """Word Mover's Distance with a penalty for fragmented alignments; lower is better.

        WMDO = WMD - gamma (1/2 - chunks / pieces)

    Each hypothesis piece is aligned with the piece that receives most of its mass. A chunk is a run
    of adjacent pieces aligned with adjacent pieces in the same order, as in METEOR. A copy of n
    pieces is one chunk and scores gamma/n - gamma/2. If no two neighbors stay adjacent, the score
    is WMD + gamma/2. `gamma` is the weight of word order.

    >>> metric = WMDO(encoder="toy")
    >>> round(metric.sentence_score("a cat sat down", ["a cat sat down"]), 3)
    -0.05
    >>> round(metric.sentence_score("down", ["down"]), 3)
    0.1
    >>> round(metric.sentence_score("down sat cat a", ["a cat sat down"]), 3)
    0.1
    """

    name: ClassVar[str] = "wmdo"
    title: ClassVar[str] = "WMDO"
    citation: ClassVar[str] = """\
@inproceedings{chow-etal-2019-wmdo,
    title = "{WMDO}: Fluency-based Word Mover's Distance for Machine Translation Evaluation",
    author = "Chow, Julian and Specia, Lucia and Madhyastha, Pranava",
    booktitle = "Proceedings of WMT", year = "2019", pages = "494--500"
}"""

    gamma: Annotated[float, Range(0)] = 0.2

    def distance(self, costs: FloatArray) -> float:
        if not costs.size:
            return float("nan")
        transport = solve_exact(costs)
        return transport.cost - self.gamma * (0.5 - fragmentation(transport.plan))

    def boundary_values(self, is_equal: bool) -> Sequence[float]:
        return [self.identical if is_equal else self.unrelated + self.gamma / 2]

    def own_signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {**super().own_signature_fields(segments), "gamma": str(self.gamma)}


def fragmentation(plan: FloatArray) -> float:
    """Return the number of chunks of a plan (left, right) per left piece, in (0, 1].

    >>> fragmentation(np.eye(4)), fragmentation(np.eye(4)[[2, 3, 0, 1]])
    (0.25, 0.5)
    """
    partners = plan.argmax(axis=1)
    breaks = np.count_nonzero(np.diff(partners) != 1)
    return float((breaks + 1) / len(partners))
