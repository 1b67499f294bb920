"""SVR: regression on matched sentence vectors (Shimanaka, Kajiwara, Komachi 2018).

    K_ij = exp(-gamma |x_i - x_j|^2)        y(x) = sum_i a_i K(x_i, x) + b

All settings and folds of a search differ in gamma, C, epsilon and rows only: the squared distances,
which cost (n^2 d), are computed once, a kernel once for each gamma and fold. The solver is libsvm
as scikit-learn brings it; what was learned is arrays, and predicting needs numpy alone. Predictions
are made of exact distances (`tertium.arrays`) and kernels added up row by row, so that none depends
on the rows beside it.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray, IntArray, on_grid
from tertium.data.judgments import JudgmentSet
from tertium.encoders import Encoder, embed, load_encoder
from tertium.errors import DataError, UsageError
from tertium.extras import explain_missing
from tertium.metrics.base.metric import compared_columns, over_references
from tertium.metrics.base.trainable import ComparingMetric
from tertium.models.checkpoint import Checkpoint, Like, check_arrays, halve, read_declared
from tertium.models.judged import check_targets
from tertium.models.options import NEEDS, Against, Options, Rates, Recipe, check_against
from tertium.models.trained import Lesson
from tertium.runtime import cores, task
from tertium.schema import NOT_NEGATIVE, POSITIVE
from tertium.segment import Segment
from tertium.specs import Range

logger = logging.getLogger(__name__)

VALUES = (0.01, 0.1, 1.0, 10.0)
ROWS = 512  # of a distance matrix that are predicted from at once


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a search chooses: the penalty `c`, the tube `epsilon`, the kernel's `gamma`."""

    c: float
    epsilon: float
    gamma: float


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The settings to try; the defaults are those of Shimanaka et al. (2018), 64 in all."""

    c: tuple[float, ...] = VALUES
    epsilon: tuple[float, ...] = VALUES
    gamma: tuple[float, ...] = VALUES

    def __len__(self) -> int:
        return len(self.c) * len(self.epsilon) * len(self.gamma)

    def __iter__(self) -> Iterator[Setting]:
        for gamma, c, epsilon in itertools.product(self.gamma, self.c, self.epsilon):
            yield Setting(c=c, epsilon=epsilon, gamma=gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What libsvm found: rows that are support vectors, their coefficients, the intercept."""

    rows: IntArray
    coefficients: FloatArray
    intercept: float

    def predict(self, kernel: FloatArray) -> FloatArray:
        """Values from kernels with all training rows, (n, training rows) -> (n,)."""
        values: FloatArray = kernel[:, self.rows] @ self.coefficients + self.intercept
        return values


@dataclass(frozen=True, kw_only=True)
class SVRSettings:
    """Which sentence vectors are matched, and with what."""

    encoders: tuple[str, ...] = ("minilm",)
    against: Against = "reference"

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoders", tuple(self.encoders))
        if not self.encoders:
            raise UsageError("svr needs at least one sentence encoder, such as encoders=minilm")
        check_against(self.against)

    @property
    def needs(self) -> frozenset[str]:
        """What a segment must have."""
        return NEEDS[self.against]


@dataclass(frozen=True, kw_only=True)
class SVRConfig(SVRSettings):
    """The same with the setting that a search chose."""

    c: Annotated[float, POSITIVE] = 1.0
    epsilon: Annotated[float, NOT_NEGATIVE] = 0.1
    gamma: Annotated[float, POSITIVE] = 0.1


@dataclass(frozen=True, kw_only=True)
class SVROptions(Options):
    """How the setting is searched; the defaults are the published grid and folds."""

    folds: Annotated[int, Range(2), "of cross validation"] = 10
    c: Annotated[Rates, "costs of an error to try"] = Grid().c
    epsilon: Annotated[tuple[float, ...], Range(0), "errors that cost nothing to try"] = (
        Grid().epsilon
    )
    gamma: Annotated[Rates, "widths of the kernel to try"] = Grid().gamma
    seed: Annotated[int, Range(0), "of the folds"] = 1

    @property
    def grid(self) -> Grid:
        return Grid(c=self.c, epsilon=self.epsilon, gamma=self.gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class SVR(ComparingMetric):
    """Support vector regression on [t; r; t*r; |t-r|] of universal sentence vectors.

    t and r are the vectors of hypothesis and reference from one sentence encoder or several side by
    side; against both reference and source the four matchings are made with each. RBF kernel; C,
    epsilon and gamma by cross validation. Reads whole sentences, so it sees meaning where words
    differ, and misses single words that `esim` would find.

    `model` names the folder it was saved to (empty: the one that ships); `references` takes the
    best or the mean over several; `precision` and `long` are the encoders'.
    """

    name: ClassVar[str] = "svr"
    title: ClassVar[str] = "SVR"
    settings: ClassVar[type[Any] | None] = SVRSettings
    stored: ClassVar[type[Any] | None] = SVRConfig
    options: ClassVar[type[Any]] = SVROptions
    recipes: ClassVar[Mapping[str, Recipe]] = {
        "published": Recipe(
            says="Shimanaka et al. (2018): ten folds, the published grid", options=SVROptions()
        ),
        "ours": Recipe(says="as the one that ships: the published search", options=SVROptions()),
    }
    teachers: ClassVar[tuple[str, ...]] = ("scores",)
    citation: ClassVar[str] = """\
@inproceedings{shimanaka-etal-2018-metric,
    title = "Metric for Automatic Machine Translation Evaluation based on Universal Sentence
        Representations",
    author = "Shimanaka, Hiroki and Kajiwara, Tomoyuki and Komachi, Mamoru",
    booktitle = "Proceedings of the NAACL Student Research Workshop", year = "2018",
    pages = "106--111"
}"""

    @property
    def config(self) -> SVRConfig:
        """What was trained."""
        return read_declared(SVRConfig, self.checkpoint, self.where)

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return tuple(self.load_frozen(name) for name in self.config.encoders)

    @property
    def arrays(self) -> Mapping[str, Any]:
        """Support vectors with their coefficients, of the width its encoders give."""
        config = self.config
        sides = 3 if config.against == "both" else 2
        width = sides * sum(encoder.sentence_dim for encoder in self.encoders)
        wanted = {
            "vectors": Like("f", ("rows", width)),
            "coefficients": Like("f", ("rows",)),
            "intercept": Like("f", ()),
        }
        check_arrays(self.checkpoint.arrays, wanted, self.where)
        return self.checkpoint.arrays

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        arrays, config = self.arrays, self.config
        owners, columns = compared_columns(segments, config.against)
        values = predict(
            features(sentence_vectors(self.encoders, columns)),
            *_support(self.checkpoint, len(columns)),
            arrays["coefficients"],
            float(arrays["intercept"]),
            config.gamma,
        )
        return over_references(values, owners, self.references)

    @classmethod
    def fit(cls, lesson: Lesson) -> Checkpoint:
        """Search the grid by cross validation on judgments, then fit the best setting to all.

        `dev` chooses nothing here, which is told; what shares a reference with it is left out.
        """
        if lesson.dev.all:
            logger.warning("%s searches by cross validation: dev chooses nothing", cls.name)
        settings, options = lesson.settings, lesson.options
        encoders = {name: load_encoder(name) for name in settings.encoders}
        sets = lesson.data.scores
        vectors, targets = _examples(sets, settings.against, [*encoders.values()], options.seed)
        distances = squared_distances(*[features(vectors)] * 2)
        found = search(distances, targets, grid=options.grid, folds=options.folds, threads=cores())
        best = found[0][0]
        solution = solve(rbf(distances, best.gamma), targets, best)
        return Checkpoint(
            name=cls.name,
            config={**asdict(settings), "encoders": list(settings.encoders), **asdict(best)},
            encoders={name: encoder.weights_hash for name, encoder in encoders.items()},
            arrays=halve(
                {
                    "vectors": vectors.reshape(len(vectors), -1)[solution.rows],
                    "coefficients": solution.coefficients,
                    "intercept": np.array(solution.intercept),
                }
            ),
            training={
                "data": lesson.data.sizes,
                "left out for": lesson.dev.sizes,
                "options": asdict(options),
                "search": [[asdict(s), value] for s, value in found],
            },
        )


def _examples(
    sets: Sequence[JudgmentSet], against: str, encoders: Sequence[Encoder], seed: int
) -> tuple[Any, FloatArray]:
    """Vectors (n, 1 + sides, d), rounded as they are stored, and targets (n,), shuffled."""
    segments = [j.segment for one in sets for j in one.judgments]
    scores = np.array([j.score for one in sets for j in one.judgments], dtype=np.float64)
    owners, columns = compared_columns(segments, against)
    order = np.random.default_rng(seed).permutation(len(owners))
    vectors = sentence_vectors(encoders, columns)[order].astype(np.float16).astype(np.float32)
    return vectors, check_targets(scores[owners][order])


def sentence_vectors(encoders: Sequence[Encoder], columns: Sequence[Sequence[str]]) -> Any:
    """Vectors of k columns of m texts from several encoders side by side, (m, k, d)."""
    places: dict[str, int] = {}
    index = np.array([[places.setdefault(t, len(places)) for t in column] for column in columns]).T
    parts = [embed(encoder, list(places), tokens=False).sentences for encoder in encoders]
    return np.hstack(parts)[index]


@lru_cache(maxsize=2)  # tens of megabytes each, and most of the time of a short call
def _support(checkpoint: Checkpoint, sides: int) -> tuple[FloatArray, FloatArray]:
    """The features of the support vectors on the grid, (s, 4 sides d), their squared lengths."""
    vectors = checkpoint.arrays["vectors"]
    rows = on_grid(features(vectors.reshape(-1, sides, vectors.shape[1] // sides)))
    return rows, squared_lengths(rows)


def features(vectors: Any) -> FloatArray:
    """The four matchings of a hypothesis with each side, (m, 1 + sides, d) -> (m, 4 sides d)."""
    hypothesis = vectors[:, 0]
    others = [vectors[:, side] for side in range(1, vectors.shape[1])]
    return np.hstack([match_vectors(hypothesis, other) for other in others])


def squared_lengths(rows: FloatArray) -> FloatArray:
    """|r_i|^2, (n, d) -> (n,)."""
    lengths: FloatArray = (np.asarray(rows, np.float64) ** 2).sum(axis=1)
    return lengths


def squared_distances(
    left: FloatArray, right: FloatArray, lengths: FloatArray | None = None
) -> FloatArray:
    """|l_i - r_j|^2, (n, d), (m, d) -> (n, m), given the squared lengths of r where known.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    array([[25.]])
    """
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    result: FloatArray = left @ right.T
    result *= -2.0
    result += squared_lengths(left)[:, None]
    result += squared_lengths(right) if lengths is None else lengths
    return np.maximum(result, 0.0, out=result)


def search(
    distances: FloatArray,
    targets: FloatArray,
    *,
    grid: Grid = Grid(),  # noqa: B008
    folds: int = 10,
    threads: int = 2,
) -> list[tuple[Setting, float]]:
    """Cross-validate every setting, the best first; `distances` (n, n) are squared, `targets` (n,).

    Folds are consecutive rows, as scikit-learn's are, so shuffle before; the score of a setting is
    the mean of R^2 over folds whose targets differ, and of equal ones the earlier wins. A grid of
    one setting has nothing to choose: its score is NaN.
    """
    if len(grid) == 1:
        return [(next(iter(grid)), math.nan)]
    if not 2 <= folds <= len(targets):
        raise UsageError(f"{folds} folds of {len(targets)} judgments: expected 2 to as many")
    parts = np.array_split(np.arange(len(targets)), folds)
    tasks = list(itertools.product(grid.gamma, range(folds)))
    scores: dict[Setting, list[float]] = {setting: [] for setting in grid}
    with ThreadPoolExecutor(threads) as pool, task("searching", total=len(tasks)) as advance:
        found = pool.map(lambda t: _fold(distances, targets, grid, t[0], parts[t[1]]), tasks)
        for values in found:
            for setting, value in values:
                scores[setting].append(value)
            advance(1)
    if np.isnan(list(scores.values())).all():
        raise DataError("the human scores of every fold are all equal: use fewer folds")
    means = [(setting, float(np.nanmean(values))) for setting, values in scores.items()]
    return sorted(means, key=lambda item: -item[1])


def _fold(
    distances: FloatArray, targets: FloatArray, grid: Grid, gamma: float, held: IntArray
) -> list[tuple[Setting, float]]:
    """R^2 on one fold of all settings that share a gamma."""
    train = np.setdiff1d(np.arange(len(targets)), held)
    kernel = rbf(distances[np.ix_(train, train)], gamma)
    against = rbf(distances[np.ix_(held, train)], gamma)
    result = []
    for c, epsilon in itertools.product(grid.c, grid.epsilon):
        setting = Setting(c=c, epsilon=epsilon, gamma=gamma)
        predicted = solve(kernel, targets[train], setting).predict(against)
        result.append((setting, r_squared(predicted, targets[held])))
    return result


def solve(kernel: FloatArray, targets: FloatArray, setting: Setting) -> Solution:
    """Fit one setting to a kernel matrix (n, n) and targets (n,)."""
    why = "training a support vector regression"
    with explain_missing(why, hint="scoring with a trained one does not"):
        from sklearn.svm import SVR
    size = 4 * len(targets) ** 2 / 1e6 + 50  # megabytes: the whole matrix in single precision
    machine = SVR(kernel="precomputed", C=setting.c, epsilon=setting.epsilon, cache_size=size)
    machine.fit(kernel, targets)
    return Solution(
        rows=machine.support_.astype(np.int64),
        coefficients=machine.dual_coef_[0].astype(np.float64),
        intercept=float(machine.intercept_[0]),
    )


def rbf(distances: FloatArray, gamma: float) -> FloatArray:
    """exp(-gamma D) of squared distances, in a new array.

    >>> rbf(np.array([[0.0, 1.0]]), 0.5).round(4)
    array([[1.    , 0.6065]])
    """
    kernel: FloatArray = np.exp(-gamma * distances)
    return kernel


def predict(
    features: FloatArray,
    vectors: FloatArray,
    lengths: FloatArray,
    coefficients: FloatArray,
    intercept: float,
    gamma: float,
) -> FloatArray:
    """Scores of new rows (n, d) by support vectors on the grid (s, d).

    Their squared lengths and coefficients are (s,).
    """
    result = np.full(len(features), intercept, dtype=np.float64)
    for start in range(0, len(features), ROWS):
        part = squared_distances(on_grid(features[start : start + ROWS]), vectors, lengths)
        result[start : start + ROWS] += (rbf(part, gamma) * coefficients).sum(axis=1)
    return result


def r_squared(predicted: FloatArray, targets: FloatArray) -> float:
    """1 - sum (y - y^)^2 / sum (y - mean y)^2; NaN where all targets are equal.

    >>> r_squared(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    1.0
    """
    spread = float(((targets - targets.mean()) ** 2).sum())
    return math.nan if spread == 0 else 1.0 - float(((targets - predicted) ** 2).sum()) / spread


def match_vectors(left: FloatArray, right: FloatArray) -> FloatArray:
    """[l; r; l*r; |l-r|] of sentence vectors, (n, d) each -> (n, 4d).

    >>> match_vectors(np.array([[1.0]]), np.array([[3.0]]))
    array([[1., 3., 3., 2.]])
    """
    return np.hstack([left, right, left * right, np.abs(left - right)])
