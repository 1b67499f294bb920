"""SVR: regression on matched sentence vectors (Shimanaka, Kajiwara, Komachi 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray, on_grid
from tertium.data.judgements import JudgementSet
from tertium.encoders import Encoder, embed, load_encoder
from tertium.errors import UsageError
from tertium.metrics.base.metric import compared_columns, over_references
from tertium.metrics.base.trainable import ComparingMetric
from tertium.metrics.regression import kernel as svr
from tertium.models.checkpoint import Checkpoint, Like, check_arrays, halve, read_declared
from tertium.models.examples import check_targets
from tertium.models.trained import NEEDS, Against, Lesson, Options, Recipe, check_against
from tertium.registry import Range
from tertium.runtime import cores
from tertium.schema import NOT_NEGATIVE, POSITIVE
from tertium.segment import Segment

Grid = svr.Grid


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
    c: Annotated[tuple[float, ...], "costs of an error to try"] = Grid().c
    epsilon: Annotated[tuple[float, ...], "errors that cost nothing to try"] = Grid().epsilon
    gamma: Annotated[tuple[float, ...], "widths of the kernel to try"] = Grid().gamma
    seed: Annotated[int, "of the folds"] = 1

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
        values = svr.predict(
            features(sentence_vectors(self.encoders, columns)),
            *_support(self.checkpoint, len(columns)),
            arrays["coefficients"],
            float(arrays["intercept"]),
            config.gamma,
        )
        return over_references(values, owners, self.references)

    @classmethod
    def fit(cls, lesson: Lesson) -> Checkpoint:
        """Search the grid by cross validation on judgements, then fit the best setting to all.

        `dev` chooses nothing here; what shares a reference with it is left out.
        """
        settings, options = lesson.settings, lesson.options
        encoders = {name: load_encoder(name) for name in settings.encoders}
        sets = lesson.data.scores
        vectors, targets = _examples(sets, settings.against, [*encoders.values()], options.seed)
        distances = svr.squared_distances(*[features(vectors)] * 2)
        found = svr.search(
            distances, targets, grid=options.grid, folds=options.folds, threads=cores()
        )
        best = found[0][0]
        solution = svr.solve(svr.rbf(distances, best.gamma), targets, best)
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
    sets: Sequence[JudgementSet], against: str, encoders: Sequence[Encoder], seed: int
) -> tuple[Any, FloatArray]:
    """Vectors (n, 1 + sides, d), rounded as they are stored, and targets (n,), shuffled."""
    segments = [j.segment for one in sets for j in one.judgements]
    scores = np.array([j.score for one in sets for j in one.judgements], dtype=np.float64)
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
    return rows, svr.squared_lengths(rows)


def features(vectors: Any) -> FloatArray:
    """The four matchings of a hypothesis with each side, (m, 1 + sides, d) -> (m, 4 sides d)."""
    hypothesis = vectors[:, 0]
    others = [vectors[:, side] for side in range(1, vectors.shape[1])]
    return np.hstack([svr.match_vectors(hypothesis, other) for other in others])
