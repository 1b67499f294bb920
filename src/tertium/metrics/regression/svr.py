"""SVR: support vector regression on sentence vectors (Shimanaka, Kajiwara and Komachi 2018).

    K_ij = exp(-gamma |x_i - x_j|^2)        y(x) = sum_i a_i K(x_i, x) + b

The settings and folds of a grid search share the squared distances, which cost O(n^2 d) and are
computed once. A kernel is computed once for each gamma and fold. The solver is libsvm through
scikit-learn; a trained model consists of arrays and needs only numpy to predict. Predictions use
exact distances (`tertium.arrays`), so that none depends on the other rows. Folds hold out whole
segments, because translations of one source have similar vectors and similar human scores.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Event
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray, IntArray, round_to_grid
from tertium.data.judgments import JudgmentSet
from tertium.data.train_test_overlap import number_shared_texts
from tertium.encoders import Encoder, embed_texts, load_encoder
from tertium.errors import DataError, UsageError
from tertium.execution import progress_task, usable_cores
from tertium.extras import explain_missing
from tertium.metrics.base.metric import reduce_references, text_columns
from tertium.metrics.base.trainable import FrozenEncoderMetric, worst_score_of
from tertium.metrics.regression.folds import make_folds
from tertium.models.checkpoint import (
    ArraySpec,
    Checkpoint,
    cache_by_checkpoint,
    check_arrays,
    parse_config,
    round_to_half,
)
from tertium.models.inputs import REQUIRED_INPUTS, Against, check_against
from tertium.models.training_data import check_targets
from tertium.models.training_job import TrainingJob
from tertium.models.training_options import Options, Rates, Recipe, warn_at_grid_edge
from tertium.schema import NON_NEGATIVE, POSITIVE
from tertium.segment import Segment
from tertium.specs import Range

logger = logging.getLogger(__name__)

DEFAULT_VALUES = (0.01, 0.1, 1.0, 10.0)
TARGETS = "targets"  # key of the mean and the deviation of human scores in training
PREDICTION_ROWS = 512  # rows of the distance matrix computed at once


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """Values chosen by the search: penalty `c`, tube width `epsilon`, kernel parameter `gamma`."""

    c: float
    epsilon: float
    gamma: float


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Values to search; the defaults are the 64 settings of Shimanaka et al. (2018)."""

    c: tuple[float, ...] = DEFAULT_VALUES
    epsilon: tuple[float, ...] = DEFAULT_VALUES
    gamma: tuple[float, ...] = DEFAULT_VALUES

    def __len__(self) -> int:
        return len(self.c) * len(self.epsilon) * len(self.gamma)

    def __iter__(self) -> Iterator[Hyperparameters]:
        for gamma, c, epsilon in itertools.product(self.gamma, self.c, self.epsilon):
            yield Hyperparameters(c=c, epsilon=epsilon, gamma=gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class SVRSolution:
    """A libsvm solution: indices of the support vectors, their coefficients, the intercept."""

    rows: IntArray
    coefficients: FloatArray
    intercept: float

    def predict(self, kernel: FloatArray) -> FloatArray:
        """Predict from kernel values with all training rows, (n, training rows) -> (n,)."""
        values: FloatArray = kernel[:, self.rows] @ self.coefficients + self.intercept
        return values


@dataclass(frozen=True, kw_only=True)
class SVRSettings:
    """Sentence encoders, and the texts to compare the hypothesis with."""

    encoders: tuple[str, ...] = ("minilm",)
    against: Against = "reference"

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoders", tuple(self.encoders))
        if not self.encoders:
            raise UsageError("svr needs at least one sentence encoder: give encoders=minilm")
        check_against(self.against)

    @property
    def encoder_names(self) -> tuple[str, ...]:
        """Names of all encoders."""
        return self.encoders

    @property
    def required_inputs(self) -> frozenset[str]:
        """Inputs a segment must have."""
        return REQUIRED_INPUTS[self.against]


@dataclass(frozen=True, kw_only=True)
class SVRConfig(SVRSettings):
    """Settings and chosen hyperparameters of a trained model."""

    c: Annotated[float, POSITIVE] = 1.0
    epsilon: Annotated[float, NON_NEGATIVE] = 0.1
    gamma: Annotated[float, POSITIVE] = 0.1


@dataclass(frozen=True, kw_only=True)
class SVROptions(Options):
    """Options of the grid search; the defaults are the published grid and folds."""

    folds: Annotated[int, Range(2), "number of cross-validation folds"] = 10
    c: Annotated[Rates, "penalties C to search"] = Grid().c
    epsilon: Annotated[tuple[float, ...], Range(0), "tube widths epsilon to search"] = (
        Grid().epsilon
    )
    gamma: Annotated[Rates, "kernel parameters gamma to search"] = Grid().gamma
    seed: Annotated[int, Range(0), "seed of the folds"] = 1

    @property
    def grid(self) -> Grid:
        return Grid(c=self.c, epsilon=self.epsilon, gamma=self.gamma)


@dataclass(frozen=True, kw_only=True, eq=False)
class SVR(FrozenEncoderMetric):
    """Support vector regression on [t; r; t*r; |t-r|] of sentence vectors t and r.

    score = sum_i a_i exp(-gamma |x_i - x|^2) + b with the features x of the segment and support
    vectors x_i. t and r are the vectors of hypothesis and reference; those of several encoders are
    concatenated. With `against="both"` the features are computed for the reference and the source.
    C, epsilon and gamma are chosen by cross-validation on human scores.

    It compares whole sentences: it recognizes paraphrases, but misses single wrong words that a
    token-level metric such as `esim` finds. `model` is the folder of a saved model (default: the
    bundled one). `references` takes the best score or the mean over several references. `precision`
    and `long` are options of the encoders.

    Reference: Shimanaka, Kajiwara and Komachi 2018, Metric for Automatic Machine Translation
    Evaluation based on Universal Sentence Representations.

    >>> metric, reference = SVR(), ["The cat sat."]
    >>> metric.sentence_score("A cat sat.", reference) > metric.sentence_score("No.", reference)
    True
    """

    name: ClassVar[str] = "svr"
    title: ClassVar[str] = "SVR"
    settings: ClassVar[type[Any] | None] = SVRSettings
    stored: ClassVar[type[Any] | None] = SVRConfig
    options: ClassVar[type[Any]] = SVROptions
    recipes: ClassVar[Mapping[str, Recipe]] = {
        "published": Recipe(
            description="Shimanaka et al. (2018): ten folds, published grid", options=SVROptions()
        ),
        "ours": Recipe(
            description="same as the bundled model: the published search", options=SVROptions()
        ),
    }
    accepted_data: ClassVar[tuple[str, ...]] = ("scores",)
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
        """Settings the model was trained with."""
        return parse_config(SVRConfig, self.checkpoint, self.location)

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return tuple(self.load_training_encoder(name) for name in self.config.encoders)

    @property
    def arrays(self) -> Mapping[str, Any]:
        """Support vectors and coefficients, checked against the width of the encoders."""
        config = self.config
        sides = 3 if config.against == "both" else 2
        width = sides * sum(encoder.sentence_dim for encoder in self.encoders)
        specs = {
            "vectors": ArraySpec("f", ("rows", width)),
            "coefficients": ArraySpec("f", ("rows",)),
            "intercept": ArraySpec("f", ()),
        }
        check_arrays(self.checkpoint.arrays, specs, self.location)
        return self.checkpoint.arrays

    @property
    def worst_score(self) -> float | None:
        targets = self.checkpoint.training.get(TARGETS)  # not stored by earlier versions
        return worst_score_of(targets["mean"], targets["deviation"]) if targets else None

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        arrays, config = self.arrays, self.config
        owners, columns = text_columns(segments, config.against)
        values = predict(
            build_features(sentence_vectors(self.encoders, columns)),
            *_support_vectors(self.checkpoint, len(columns)),
            arrays["coefficients"],
            float(arrays["intercept"]),
            config.gamma,
        )
        return reduce_references(values, owners, self.references)

    @classmethod
    def fit(cls, job: TrainingJob) -> Checkpoint:
        """Search the grid by cross-validation over segments, then fit the best setting to all data.

        All rows that share a source or a reference are in the same fold. `dev` data are not used
        for the search; training rows that share a reference with them are left out.
        """
        if job.dev.all:
            logger.warning("%s uses cross-validation: dev data are not used", cls.name)
        settings, options = job.settings, job.options
        encoders = {name: load_encoder(name) for name in settings.encoders}
        sets = job.data.scores
        vectors, targets, groups = _build_examples(
            sets, settings.against, [*encoders.values()], options.seed
        )
        distances = squared_distances(*[build_features(vectors)] * 2)
        results = search_grid(
            distances,
            targets,
            groups=groups,
            grid=options.grid,
            folds=options.folds,
            threads=usable_cores(),
        )
        best = results[0][0]
        for name, value in asdict(best).items():
            warn_at_grid_edge(cls.name, name, value, getattr(options, name))
        solution = fit_svr(rbf_kernel(distances, best.gamma), targets, best)
        return Checkpoint(
            name=cls.name,
            config={**asdict(settings), "encoders": list(settings.encoders), **asdict(best)},
            encoders={name: encoder.weights_hash for name, encoder in encoders.items()},
            arrays=round_to_half(
                {
                    "vectors": vectors.reshape(len(vectors), -1)[solution.rows],
                    "coefficients": solution.coefficients,
                    "intercept": np.array(solution.intercept),
                }
            ),
            training={
                "data": job.data.sizes,
                TARGETS: {"mean": float(targets.mean()), "deviation": float(targets.std())},
                "left out for": job.dev.sizes,
                "options": asdict(options),
                "search": [[asdict(s), value] for s, value in results],
            },
        )


def _build_examples(
    sets: Sequence[JudgmentSet], against: str, encoders: Sequence[Encoder], seed: int
) -> tuple[Any, FloatArray, IntArray]:
    """Compute vectors (n, 1 + sides, d), rounded as in storage, and targets (n,), shuffled.

    Also return the numbers (n,) of the segments that the rows belong to.
    """
    segments = [j.segment for one in sets for j in one.judgments]
    scores = np.array([j.score for one in sets for j in one.judgments], dtype=np.float64)
    owners, columns = text_columns(segments, against)
    order = np.random.default_rng(seed).permutation(len(owners))
    vectors = sentence_vectors(encoders, columns)[order].astype(np.float16).astype(np.float32)
    rows = owners[order]
    return vectors, check_targets(scores[rows]), number_shared_texts(segments)[rows]


def sentence_vectors(encoders: Sequence[Encoder], columns: Sequence[Sequence[str]]) -> Any:
    """Encode k columns of m texts and concatenate the vectors of all encoders, (m, k, d)."""
    rows: dict[str, int] = {}
    index = np.array([[rows.setdefault(t, len(rows)) for t in column] for column in columns]).T
    vectors = [embed_texts(encoder, list(rows), tokens=False).sentences for encoder in encoders]
    return np.hstack(vectors)[index]


@cache_by_checkpoint(maxsize=2)  # tens of megabytes each; takes most of the time of a short call
def _support_vectors(checkpoint: Checkpoint, sides: int) -> tuple[FloatArray, FloatArray]:
    """Return rounded features of the support vectors, (s, 4 sides d), and their squared norms."""
    vectors = checkpoint.arrays["vectors"]
    rows = round_to_grid(build_features(vectors.reshape(-1, sides, vectors.shape[1] // sides)))
    return rows, squared_lengths(rows)


def build_features(vectors: Any) -> FloatArray:
    """Compute the features of a hypothesis and each side, (m, 1 + sides, d) -> (m, 4 sides d)."""
    hypothesis = vectors[:, 0]
    other_vectors = [vectors[:, side] for side in range(1, vectors.shape[1])]
    return np.hstack([match_vectors(hypothesis, other) for other in other_vectors])


def squared_lengths(rows: FloatArray) -> FloatArray:
    """Compute |r_i|^2, (n, d) -> (n,)."""
    lengths: FloatArray = (np.asarray(rows, np.float64) ** 2).sum(axis=1)
    return lengths


def squared_distances(
    left: FloatArray, right: FloatArray, lengths: FloatArray | None = None
) -> FloatArray:
    """Compute |l_i - r_j|^2, (n, d), (m, d) -> (n, m); `lengths` are the squared norms of r."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    result: FloatArray = left @ right.T
    result *= -2.0
    result += squared_lengths(left)[:, None]
    result += squared_lengths(right) if lengths is None else lengths
    return np.maximum(result, 0.0, out=result)


def search_grid(
    distances: FloatArray,
    targets: FloatArray,
    *,
    groups: IntArray | None = None,
    grid: Grid = Grid(),  # noqa: B008
    folds: int = 10,
    threads: int = 2,
) -> list[tuple[Hyperparameters, float]]:
    """Cross-validate every setting, best first; `distances` (n, n) are squared, `targets` (n,).

    Rows with the same number in `groups` (n,) are in the same fold; without groups, folds are
    consecutive rows, as in scikit-learn, so shuffle the rows first. The score of a setting is the
    mean R^2 over folds whose targets differ; of equal scores the earlier setting wins. The score of
    a grid with one setting is NaN.
    """
    if len(grid) == 1:
        return [(next(iter(grid)), math.nan)]
    fold_rows = make_folds(np.arange(len(targets)) if groups is None else groups, folds)
    tasks = list(itertools.product(grid.gamma, range(folds)))
    scores: dict[Hyperparameters, list[float]] = {setting: [] for setting in grid}
    stopped = Event()
    with (
        ThreadPoolExecutor(threads) as pool,
        progress_task("searching", total=len(tasks)) as advance,
    ):
        results = pool.map(
            lambda t: _score_fold(distances, targets, grid, t[0], fold_rows[t[1]], stopped), tasks
        )
        try:
            for values in results:
                for setting, value in values:
                    scores[setting].append(value)
                advance(1)
        finally:  # after Ctrl-C, leaving the pool would wait for all settings
            stopped.set()
    if np.isnan(list(scores.values())).all():
        raise DataError("the human scores in every fold are all equal: use fewer folds")
    means = [(setting, float(np.nanmean(values))) for setting, values in scores.items()]
    return sorted(means, key=lambda item: -item[1])


def _score_fold(
    distances: FloatArray,
    targets: FloatArray,
    grid: Grid,
    gamma: float,
    held_out: IntArray,
    stopped: Event,
) -> list[tuple[Hyperparameters, float]]:
    """Compute R^2 on one fold for all settings with the same gamma, until it is stopped."""
    if stopped.is_set():
        return []
    train = np.setdiff1d(np.arange(len(targets)), held_out)
    kernel = rbf_kernel(distances[np.ix_(train, train)], gamma)
    held_out_kernel = rbf_kernel(distances[np.ix_(held_out, train)], gamma)
    result: list[tuple[Hyperparameters, float]] = []
    for c, epsilon in itertools.product(grid.c, grid.epsilon):
        if stopped.is_set():
            return result
        setting = Hyperparameters(c=c, epsilon=epsilon, gamma=gamma)
        predicted = fit_svr(kernel, targets[train], setting).predict(held_out_kernel)
        result.append((setting, r_squared(predicted, targets[held_out])))
    return result


def fit_svr(kernel: FloatArray, targets: FloatArray, setting: Hyperparameters) -> SVRSolution:
    """Fit one setting to a kernel matrix (n, n) and targets (n,)."""
    purpose = "training a support vector regression"
    with explain_missing(purpose, hint="scoring with a trained one does not"):
        from sklearn.svm import SVR
    size = 4 * len(targets) ** 2 / 1e6 + 50  # megabytes: the kernel in single precision
    machine = SVR(kernel="precomputed", C=setting.c, epsilon=setting.epsilon, cache_size=size)
    machine.fit(kernel, targets)
    return SVRSolution(
        rows=machine.support_.astype(np.int64),
        coefficients=machine.dual_coef_[0].astype(np.float64),
        intercept=float(machine.intercept_[0]),
    )


def rbf_kernel(distances: FloatArray, gamma: float) -> FloatArray:
    """Compute exp(-gamma D) of squared distances D."""
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
    """Predict scores of rows (n, d) from support vectors (s, d), norms and coefficients (s,)."""
    result = np.full(len(features), intercept, dtype=np.float64)
    for start in range(0, len(features), PREDICTION_ROWS):
        block = slice(start, start + PREDICTION_ROWS)
        distances = squared_distances(round_to_grid(features[block]), vectors, lengths)
        result[block] += (rbf_kernel(distances, gamma) * coefficients).sum(axis=1)
    return result


def r_squared(predicted: FloatArray, targets: FloatArray) -> float:
    """Compute 1 - sum (y - y^)^2 / sum (y - mean y)^2; NaN if all targets are equal."""
    spread = float(((targets - targets.mean()) ** 2).sum())
    return math.nan if spread == 0 else 1.0 - float(((targets - predicted) ** 2).sum()) / spread


def match_vectors(left: FloatArray, right: FloatArray) -> FloatArray:
    """Compute [l; r; l*r; |l-r|] of sentence vectors, (n, d) each -> (n, 4d)."""
    return np.hstack([left, right, left * right, np.abs(left - right)])
