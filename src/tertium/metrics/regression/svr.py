"""SVR: support vector regression on sentence vectors (Shimanaka, Kajiwara and Komachi 2018).

    K_ij = exp(-gamma |x_i - x_j|^2)        y(x) = sum_i a_i K(x_i, x) + b

A trained model consists of arrays and needs only numpy to predict. Predictions use exact distances
(`tertium.core.arrays`), so that none depends on the other rows. The search of settings is that of
scikit-learn; all settings share the squared distances, which cost O(n^2 d), and the kernel of each
gamma. Folds hold out whole segments, because translations of one source have similar vectors and
similar human scores.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray, IntArray, round_to_grid
from tertium.core.errors import UsageError
from tertium.core.extras import explain_missing
from tertium.core.fields import NON_NEGATIVE, POSITIVE, Range
from tertium.core.resampling import make_folds
from tertium.core.runtime import progress_task, usable_cores
from tertium.core.segment import REQUIRED_INPUTS, Against, Segment, check_against
from tertium.data.judgments import JudgmentSet
from tertium.data.ratings import number_shared_texts
from tertium.encoders import Encoder, embed_texts, load_encoder
from tertium.metrics.base.metric import reduce_references, text_columns
from tertium.metrics.base.trainable import FrozenEncoderMetric, worst_score_of
from tertium.models.checkpoint import (
    ArraySpec,
    Checkpoint,
    cache_by_checkpoint,
    check_arrays,
    parse_config,
    round_to_half,
)
from tertium.models.training_data import TrainingJob, check_targets
from tertium.models.training_options import Options, Rates, Recipe, warn_at_grid_edge

logger = logging.getLogger(__name__)

PREDICTION_ROWS = 512  # rows of the distance matrix computed at once
DEFAULT_VALUES = (0.01, 0.1, 1.0, 10.0)  # Shimanaka et al. (2018)
TARGETS = "targets"  # key of the mean and the deviation of human scores in training


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
    c: Annotated[Rates, "penalties C to search"] = DEFAULT_VALUES
    epsilon: Annotated[tuple[float, ...], Range(0), "tube widths epsilon to search"] = (
        DEFAULT_VALUES
    )
    gamma: Annotated[Rates, "kernel parameters gamma to search"] = DEFAULT_VALUES
    seed: Annotated[int, Range(0), "seed of the folds"] = 1


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
        arrays = self.arrays
        config = self.config
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
        settings = job.settings
        options = job.options
        encoders = {name: load_encoder(name) for name in settings.encoders}
        sets = job.data.scores
        vectors, targets, groups = _build_examples(
            sets, settings.against, [*encoders.values()], options.seed
        )
        distances = squared_distances(*[build_features(vectors)] * 2)
        grid = {"c": options.c, "epsilon": options.epsilon, "gamma": options.gamma}
        results = search_grid(distances, targets, groups, grid, options.folds)
        best, _ = results[0]
        for name, value in best.items():
            warn_at_grid_edge(cls.name, name, value, grid[name])
        machine = make_machine(len(targets), C=best["c"], epsilon=best["epsilon"])
        machine.fit(rbf_kernel(distances, best["gamma"]), targets)
        return Checkpoint(
            name=cls.name,
            config={**asdict(settings), "encoders": list(settings.encoders), **best},
            encoders={name: encoder.weights_hash for name, encoder in encoders.items()},
            arrays=round_to_half(
                {
                    "vectors": vectors.reshape(len(vectors), -1)[machine.support_],
                    "coefficients": machine.dual_coef_[0],
                    "intercept": np.array(machine.intercept_[0]),
                }
            ),
            training={
                "data": job.data.sizes,
                TARGETS: {"mean": float(targets.mean()), "deviation": float(targets.std())},
                "left out for": job.dev.sizes,
                "options": asdict(options),
                "search": results,
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


@cache_by_checkpoint
def _support_vectors(checkpoint: Checkpoint, sides: int) -> tuple[FloatArray, FloatArray]:
    """Return rounded features of the support vectors, (s, 4 sides d), and their squared norms."""
    vectors = checkpoint.arrays["vectors"]
    rows = round_to_grid(build_features(vectors.reshape(-1, sides, vectors.shape[1] // sides)))
    return rows, squared_lengths(rows)


def build_features(vectors: Any) -> FloatArray:
    """Compute the features of a hypothesis and each side, (m, 1 + sides, d) -> (m, 4 sides d)."""
    left, *sides = vectors.swapaxes(0, 1)
    parts = [[left, right, left * right, np.abs(left - right)] for right in sides]
    return np.hstack([part for group in parts for part in group])


def squared_lengths(rows: FloatArray) -> FloatArray:
    """Compute |r_i|^2, (n, d) -> (n,)."""
    lengths: FloatArray = (np.asarray(rows, np.float64) ** 2).sum(axis=1)
    return lengths


def squared_distances(
    left: FloatArray, right: FloatArray, lengths: FloatArray | None = None
) -> FloatArray:
    """Compute |l_i - r_j|^2, (n, d), (m, d) -> (n, m); `lengths` are the squared norms of r."""
    left = np.asarray(left, np.float64)
    right = np.asarray(right, np.float64)
    result: FloatArray = left @ right.T
    result *= -2.0
    result += squared_lengths(left)[:, None]
    result += squared_lengths(right) if lengths is None else lengths
    return np.maximum(result, 0.0, out=result)


def make_machine(rows: int, **settings: float) -> Any:
    """Return an untrained regression of scikit-learn on a kernel of so many rows."""
    purpose = "training a support vector regression"
    with explain_missing(purpose, hint="scoring with a trained one does not"):
        from sklearn.svm import SVR
    size = 4 * rows**2 / 1e6 + 50  # megabytes: the kernel in single precision
    return SVR(kernel="precomputed", cache_size=size, **settings)


def search_grid(
    distances: FloatArray,
    targets: FloatArray,
    groups: IntArray,
    grid: Mapping[str, Sequence[float]],
    folds: int,
) -> list[tuple[dict[str, float], float]]:
    """Cross-validate all settings of `c`, `epsilon` and `gamma`, best first.

    `distances` (n, n) are squared. Rows with the same number in `groups` (n,) are in the same fold.
    The score is the mean R^2 over folds; of equal scores the earlier setting wins. The score of a
    grid with one setting is NaN.
    """
    if all(len(values) == 1 for values in grid.values()):
        return [({name: values[0] for name, values in grid.items()}, math.nan)]
    machine = make_machine(len(targets))
    from joblib import parallel_config
    from sklearn.model_selection import GridSearchCV

    rows = np.arange(len(targets))
    splits = [(np.setdiff1d(rows, fold), fold) for fold in make_folds(groups, folds)]
    values = {"C": grid["c"], "epsilon": grid["epsilon"]}
    search = GridSearchCV(machine, values, cv=splits, refit=False)
    results: list[tuple[dict[str, float], float]] = []
    with (
        progress_task("searching", total=len(grid["gamma"])) as advance,
        parallel_config("threading", n_jobs=usable_cores()),
    ):
        for gamma in grid["gamma"]:
            table = search.fit(rbf_kernel(distances, gamma), targets).cv_results_
            for setting, score in zip(table["params"], table["mean_test_score"], strict=True):
                chosen = {"c": setting["C"], "epsilon": setting["epsilon"], "gamma": gamma}
                results.append((chosen, float(score)))
            advance(1)
    return sorted(results, key=lambda result: -result[1])


def rbf_kernel(distances: FloatArray, gamma: float) -> FloatArray:
    """Compute exp(-gamma D) of squared distances D."""
    return np.exp(-gamma * distances)


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
