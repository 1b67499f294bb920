"""WMD, WMDO and SMD: distances between the token vectors of two texts.

WMD is exact optimal transport between two small sets of vectors:

    W(C) = min_T sum_ij T_ij C_ij,   T >= 0,  T 1 = 1/rows,  T' 1 = 1/columns

All points of a side have the same weight. Sides of equal size make an assignment problem, which has
a faster exact solver; all other problems go to the network simplex of POT. Both release the GIL, so
problems are solved on several cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, IntArray, round_to_grid
from tertium.core.arrays import exact_squared_norms as exact_squares
from tertium.core.errors import TertiumError
from tertium.core.extras import explain_missing
from tertium.core.fields import Range
from tertium.core.runtime import usable_cores
from tertium.core.segment import Segment
from tertium.encoders import Chunk, Encoder
from tertium.encoders.encoder import offsets_from_lengths
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.greedy_matching import normalize_rows, piece_ranges
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric, Formula

T = TypeVar("T")

MAX_SIMPLEX_ITERATIONS = 1_000_000  # far more than any two texts need; reaching it is an error
OPTIMAL = 1  # solver status
PAIRS_PER_BATCH = 64  # whose distances are computed together
MIN_PRODUCT_SQUARE = 0.02  # smaller squared distances lose too many digits in a float32 product
TINY = np.float32(1e-30)  # avoids division by zero for zero vectors


@dataclass(frozen=True, kw_only=True, eq=False)
class Transport:
    """A transport plan (left, right) and its cost."""

    cost: float
    plan: FloatArray


def unit_distances(left: Float32Array, right: Float32Array) -> FloatArray:
    """Return the Euclidean distances (l, r) of vectors (l, d) and (r, d) scaled to length 1.

    >>> unit_distances(np.eye(2, dtype=np.float32), 3 * np.eye(2, dtype=np.float32)).round(3)
    array([[0.   , 1.414],
           [1.414, 0.   ]])
    """
    both = np.concatenate([left, right])
    edges = offsets_from_lengths([len(left), len(right)])
    sides = (edges[:1], edges[1:2]), (edges[1:2], edges[2:])
    [distances] = _batch_distances(both, round_to_grid(both), _inverse_lengths(both), *sides)
    return distances


def _inverse_lengths(vectors: Float32Array) -> Float32Array:
    lengths = np.sqrt(exact_squares(vectors))
    return (1 / np.maximum(lengths, TINY)).astype(np.float32)


def solve_exact(costs: FloatArray) -> Transport:
    """Return the plan of minimum cost.

    >>> round(solve_exact(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).cost, 6)
    0.333333
    """
    rows, columns = costs.shape
    if rows == columns:
        return _solve_assignment(costs)
    a = np.full(rows, 1 / rows)
    b = np.full(columns, 1 / columns)
    plan, cost, _, _, status = _load_simplex()(a, b, costs, MAX_SIMPLEX_ITERATIONS, 1)
    if status != OPTIMAL:
        raise TertiumError(
            f"optimal transport of {rows} x {columns} points failed (status {status}): costs must "
            "be finite"
        )
    return Transport(cost=float(cost), plan=plan)


def map_distances(chunk: Chunk, solve: Callable[[FloatArray], T]) -> list[T]:
    """Apply `solve` to the token distances (left, right) of each pair, in parallel threads."""
    starts, stops = piece_ranges(chunk.embeddings)
    scales = _inverse_lengths(chunk.embeddings.vectors)
    exact_vectors = round_to_grid(chunk.embeddings.vectors)

    def work(first: int) -> list[T]:
        left = chunk.left[first : first + PAIRS_PER_BATCH]
        right = chunk.right[first : first + PAIRS_PER_BATCH]
        sides = (starts[left], stops[left]), (starts[right], stops[right])
        distances = _batch_distances(chunk.embeddings.vectors, exact_vectors, scales, *sides)
        return [solve(costs) for costs in distances]

    return list(chain.from_iterable(_in_threads(work, range(0, len(chunk), PAIRS_PER_BATCH))))


def _batch_distances(
    vectors: Float32Array,
    wide: FloatArray,
    scales: Float32Array,
    left: tuple[IntArray, IntArray],
    right: tuple[IntArray, IntArray],
) -> list[FloatArray]:
    """Return `unit_distances` of many pairs, given the rows start:stop of their texts.

    `wide` are the vectors rounded for exact products, `scales` their inverse lengths. Each pair
    gets its own product; all further steps run on all pairs at once, to save numpy calls. Nearly
    equal vectors would lose digits in a product, so their difference is computed directly.
    """
    rows = left[1] - left[0]
    columns = right[1] - right[0]
    edges = offsets_from_lengths(rows * columns)
    squares = np.empty(int(edges[-1]), dtype=np.float32)
    blocks = []
    for begin, end, i, j, k, m in zip(
        *(numbers.tolist() for numbers in (edges[:-1], edges[1:], *left, *right)), strict=True
    ):
        block = squares[begin:end].reshape(j - i, m - k)
        block[:] = wide[i:j] @ wide[k:m].T
        block *= scales[i:j, None]
        block *= scales[k:m]
        blocks.append((begin, end, j - i, m - k))
    squares *= -2
    squares += 2
    result: FloatArray = squares.astype(np.float64)
    near = np.flatnonzero(squares < MIN_PRODUCT_SQUARE)
    if len(near):
        owners = np.searchsorted(edges, near, side="right") - 1
        place = near - edges[owners]
        width = columns[owners]
        here = left[0][owners] + place // width
        there = right[0][owners] + place % width
        gaps = vectors[here] * scales[here, None] - vectors[there] * scales[there, None]
        result[near] = np.einsum("ij,ij->i", gaps, gaps)
    np.sqrt(result, out=result)
    return [result[begin:end].reshape(r, c) for begin, end, r, c in blocks]


def _in_threads(work: Callable[[int], T], jobs: Iterable[int]) -> Iterator[T]:
    """Yield the results of jobs in order, using as many threads as the runtime allows."""
    workers = usable_cores()
    with _blas_controller().limit(limits=1, user_api="blas"):  # products are too small for more
        if workers == 1:
            yield from map(work, jobs)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(work, jobs)


@cache
def _blas_controller() -> Any:
    """Return the handles of the BLAS libraries; looking them up is slow."""
    with explain_missing("optimal transport"):
        from threadpoolctl import ThreadpoolController
    return ThreadpoolController()


def _solve_assignment(costs: FloatArray) -> Transport:
    """Solve a square problem: each point is moved to exactly one point."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    plan = np.zeros_like(costs)
    plan[rows, columns] = 1 / len(costs)
    return Transport(cost=float(costs[rows, columns].mean()), plan=plan)


@cache
def _load_simplex() -> Callable[..., tuple[FloatArray, float, FloatArray, FloatArray, int]]:
    """Return POT's network simplex without the checks and conversions of its public API."""
    with explain_missing("optimal transport"):
        from ot.lp.emd_wrap import emd_c
    solver: Callable[..., tuple[FloatArray, float, FloatArray, FloatArray, int]] = emd_c
    return solver


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
        return lambda chunk: np.array(map_distances(chunk, self.distance))

    def distance(self, costs: FloatArray) -> float:
        """Return the score of two texts from token distances (left, right); NaN if one is empty."""
        return solve_exact(costs).cost if costs.size else float("nan")

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        costs = unit_distances(left, right)
        plan = solve_exact(costs).plan
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


@dataclass(frozen=True, kw_only=True)
class SMD(EmbeddingMetric):
    """Sentence Mover's Distance, 0 to 2: lower is better.

        SMD = |mean_i x_i - mean_j y_j|

    x_i and y_j are token vectors scaled to length 1. SMD needs no sentence encoder and ignores word
    order.

    See also: SSS agrees better with human scores if the encoder was trained on sentences.

    >>> round(SMD(encoder="toy").sentence_score("the cat sat", ["sat the cat"]), 6)
    0.0
    """

    name: ClassVar[str] = "smd"
    title: ClassVar[str] = "SMD"
    higher_is_better: ClassVar[bool] = False
    reference_encoder: ClassVar[str] = "minilm@6"
    identical: ClassVar[float] = 0.0
    unrelated: ClassVar[float] = 2.0
    citation: ClassVar[str] = """\
@inproceedings{zhao-etal-2019-moverscore,
    title = "{M}over{S}core: Text Generation Evaluating with Contextualized Embeddings and Earth
        Mover Distance",
    author = "Zhao, Wei and Peyrard, Maxime and Liu, Fei and Gao, Yang and Meyer, Christian M. and
        Eger, Steffen",
    booktitle = "Proceedings of EMNLP-IJCNLP", year = "2019", pages = "563--578"
}"""

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        return mean_distances


def mean_distances(chunk: Chunk) -> FloatArray:
    """Return the distance of the mean vectors of each pair, (m,); NaN if a text is empty."""
    means = mean_vectors(chunk)
    gaps = means[chunk.left].astype(np.float64) - means[chunk.right]
    result: FloatArray = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
    return result


def mean_vectors(chunk: Chunk) -> Float32Array:
    """Return the mean unit vector of each text, (texts, dim); NaN if it is empty."""
    vectors = normalize_rows(chunk.embeddings.vectors)
    starts, stops = piece_ranges(chunk.embeddings)
    result = np.full((len(starts), vectors.shape[1]), np.nan, dtype=np.float32)
    for i in np.flatnonzero(stops > starts):
        result[i] = vectors[starts[i] : stops[i]].mean(axis=0)
    return result
