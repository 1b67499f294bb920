"""Base class of metrics that are linear regressions on features, trained on human scores.

It combines feature extractors with a `LinearModel`: training, checkpoints and scoring. Rows of
features are computed in chunks and cached.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import ModelError
from tertium.core.resampling import FOLDS
from tertium.core.runtime import progress_task
from tertium.core.segment import Judgment, Segment
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.lexical_features import (
    FeatureExtractor,
    NgramInformation,
    split_references,
    tokenize_13a,
)
from tertium.metrics.base.trainable import Trainable, collect_judgments
from tertium.models.checkpoint import (
    WEIGHTS,
    ArraySpec,
    Checkpoint,
    cache_by_checkpoint,
    check_arrays,
    parse_config,
)
from tertium.models.ridge import (
    NO_PRIOR,
    STRENGTHS,
    LinearModel,
    Prior,
    fit_ridge,
)
from tertium.models.trained_model import SETTINGS
from tertium.models.training_data import TrainingJob, check_targets
from tertium.models.training_options import Options, Rates, Recipe, warn_at_grid_edge

logger = logging.getLogger(__name__)

SCORING_BLOCK = 4096  # segments whose features are in memory at once
ARRAY_SPECS = {
    **dict.fromkeys(("mean", "scale", "weights"), ArraySpec("f", ("features",))),
    "numbers": ArraySpec("f", (3,)),
    **dict.fromkeys(("information_keys", "information_counts"), ArraySpec("u", ("n-grams",))),
    "information_total": ArraySpec("i", (1,)),
}
CHECKED_JUDGMENTS = 200  # judgments used to check a fitted model
MAX_SHARE_ABOVE_REFERENCE = 0.1  # more translations than this above their references: a warning


@dataclass(frozen=True, kw_only=True)
class RegressionConfig:
    """Stored configuration: the settings of the metric and the names of its features."""

    settings: Mapping[str, Any]
    features: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RegressionOptions(Options):
    """Training options of a regression."""

    strengths: Annotated[
        Rates, "ridge strengths to try, chosen on held-out pairs or segments, or on --dev"
    ] = STRENGTHS
    prior: Annotated[
        bool,
        "constrain signs of weights, penalize rare features and give feature families equal "
        "influence; otherwise plain ridge regression",
    ] = True


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedRegression:
    """A fitted linear model, and the n-gram information for the NIST features."""

    linear: LinearModel
    information: NgramInformation


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression(Trainable):
    """A linear regression on features of a hypothesis and its reference.

        score = bias + sum_i weight_i z_i

    with the standardized features z. The score is on the scale of the human scores used in
    training. For the bundled models this is standardized direct assessment: 0 is an average
    translation of WMT15 and WMT16, higher is better. With several references the best score counts.

    Scores are bounded. The upper bound is the score of the reference as its own translation. The
    lower bound is the lowest human score in training, which is also the score of a blank hypothesis
    (unless the reference is blank too).

    `model` is the folder of a saved model; empty for the bundled one.
    """

    citation: ClassVar[str] = """\
@inproceedings{pado-etal-2009-robust,
    title = "Robust Machine Translation Evaluation with Entailment Features",
    author = "Pad{\\'o}, Sebastian and Galley, Michel and Jurafsky, Dan and Manning, Chris",
    booktitle = "Proceedings of ACL-IJCNLP 2009", year = "2009", pages = "297--305"
}"""
    options: ClassVar[type[Any]] = RegressionOptions
    recipes: ClassVar[Mapping[str, Recipe]] = {
        "published": Recipe(
            description="Pado et al. (2009): plain ridge on standardized features",
            options=RegressionOptions(prior=False),
        ),
        "ours": Recipe(
            description="same as the bundled models: sign constraints, rare features penalized, "
            "equal feature families",
            options=RegressionOptions(),
        ),
    }
    accepted_data: ClassVar[tuple[str, ...]] = ("scores",)

    @abstractmethod
    def feature_extractors(self, information: NgramInformation) -> tuple[FeatureExtractor, ...]:
        """Return the extractors of its columns, in order."""

    @property
    def encoders(self) -> tuple[str, ...]:
        """Names of the encoders used by its features."""
        return ()

    def weight_sign(self, column: str) -> int:
        """Return the required sign of a weight, 1 or -1, or 0 for any."""
        return 0

    def feature_family(self, column: str) -> str:
        """Return the metric or feature group that a column is a component of."""
        return column.removeprefix("log ").partition(".")[0]

    @property
    def fitted(self) -> FittedRegression:
        """The fitted model, loaded on first use and checked against the features."""
        fitted = _load_fitted(self.checkpoint, self.location)
        names = self.feature_names
        if fitted.linear.names != names:
            raise ModelError(
                f"{self.location} was trained on {len(fitted.linear.names)} features that differ "
                f"from the {len(names)} features of {self.spec}: train it again"
            )
        for encoder in self.checkpoint.encoders:
            self.load_training_encoder(encoder)
        return fitted

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        extractors = self.feature_extractors(NgramInformation.empty())
        return tuple(name for e in extractors for name in e.names)

    @property
    def coefficients(self) -> dict[str, float]:
        """Weight of each standardized feature, largest magnitude first."""
        return self.fitted.linear.coefficients

    @property
    def worst_score(self) -> float:
        return self.fitted.linear.min_target

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        fitted = self.fitted
        parts, owner = split_references(segments)
        # Sort by reference, so that each is parsed once. Process blocks, so that memory does not
        # grow with the number of segments.
        order = sorted(range(len(parts)), key=lambda n: parts[n].references)
        best = np.full(len(segments), -np.inf)
        for start in range(0, len(parts), SCORING_BLOCK):
            block = order[start : start + SCORING_BLOCK]
            scores, _ = self.predict_scores([parts[n] for n in block], fitted)
            np.maximum.at(best, owner[block], scores)
        return best

    def predict_scores(
        self, segments: Sequence[Segment], fitted: FittedRegression
    ) -> tuple[FloatArray, FloatArray]:
        """Score segments with one reference each; also score each reference as a translation.

        Both arrays are (n,).
        """
        perfect_segments = [Segment(s.references[0], None, s.references) for s in segments]
        rows = self.compute_features([*segments, *perfect_segments], fitted.information)
        values = np.maximum(fitted.linear.predict(rows), fitted.linear.min_target)
        scores, perfect = np.split(values, 2)
        return np.minimum(scores, perfect), perfect

    def compute_features(
        self, segments: Sequence[Segment], information: NgramInformation | None = None
    ) -> FloatArray:
        """Compute the features of segments with one reference each, (n, features)."""
        if information is None:
            information = self.fitted.information
        extractors = self.feature_extractors(information)
        return np.hstack([extract_features(e, segments, self.title) for e in extractors])

    @property
    def digest(self) -> str:
        return self.fitted.linear.digest

    @property
    def model_ids(self) -> tuple[str, ...]:
        encoders = [load_encoder(name).signature_fields()["model"] for name in self.encoders]
        return (*super().model_ids, *encoders)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        count = str(len(self.fitted.linear.names))
        return {**super().signature_fields(segments), "features": count}

    @classmethod
    def fit(cls, job: TrainingJob) -> Checkpoint:
        """Fit the weights to human scores.

        The ridge strength is chosen on `dev`, if given. Otherwise it is chosen by cross-validation
        over language pairs, or over five folds of segments if there are fewer than three pairs.
        """
        metric = job.settings
        options = job.options
        data = collect_judgments(job.data.scores)
        dev = collect_judgments(job.dev.scores)
        check_targets(np.array([judgment.score for judgment in data]))
        names = metric.feature_names
        information = NgramInformation.empty()
        if "nist.nist-1" in names:
            references = dict.fromkeys(r for one in data for r in one.segment.references)
            information = NgramInformation.from_texts(map(tokenize_13a, references))
        features, targets, groups = _build_examples(metric, data, information)
        dev_examples = None
        if dev and len(options.strengths) > 1:
            check_targets(np.array([judgment.score for judgment in dev]), "chosen by")
            dev_examples = _build_examples(metric, dev, information)[:2]
        prior = metric.prior if options.prior else NO_PRIOR
        linear = fit_ridge(names, features, targets, groups, options.strengths, prior, dev_examples)
        if linear.strength == max(options.strengths):  # below the weakest, little changes
            warn_at_grid_edge(cls.name, "strengths", linear.strength, options.strengths)
        _warn_if_above_references(metric, linear, data, information)
        return Checkpoint(
            name=metric.name,
            config={SETTINGS: metric.scoring_fields, "features": list(names)},
            encoders={name: load_encoder(name).weights_hash for name in metric.encoders},
            arrays={  # in double precision
                **linear.arrays,
                "information_keys": information.keys,
                "information_counts": information.counts,
                "information_total": np.array([information.total], dtype=np.int64),
            },
            training={
                "judgments": len(data),
                "dev": len(dev),
                "strength": linear.strength,
                "data": job.note or job.data.sizes,
                "coefficients": {n: round(value, 6) for n, value in linear.coefficients.items()},
            },
        )

    @property
    def prior(self) -> Prior:
        """Sign constraints, families and the penalty of rare features."""
        names = self.feature_names
        return Prior(
            signs=tuple(self.weight_sign(name) for name in names),
            families=tuple(self.feature_family(name) for name in names),
            penalize_rare=True,
        )


def _build_examples(
    metric: Regression, data: Sequence[Judgment], information: NgramInformation
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Compute features (n, k), human scores (n,) and group names, one row per reference.

    Groups are held out together: language pairs or, if there are fewer than three, folds of
    references, so that translations of one segment are in one fold.
    """
    parts, owner = split_references([judgment.segment for judgment in data])
    scores = np.array([data[i].score for i in owner], dtype=np.float64)
    groups = [data[i].lp for i in owner]
    if len(set(groups)) < 3:
        index = np.unique([data[i].segment.references[0] for i in owner], return_inverse=True)[1]
        groups = [str(n % FOLDS) for n in index.tolist()]
    return metric.compute_features(parts, information), scores, groups


def _warn_if_above_references(
    metric: Regression, linear: LinearModel, data: Sequence[Judgment], information: NgramInformation
) -> None:
    """Warn if many translations are predicted above their references, which bound their scores."""
    parts, _ = split_references([judgment.segment for judgment in data[:CHECKED_JUDGMENTS]])
    perfect = [Segment(part.references[0], None, part.references) for part in parts]
    rows = metric.compute_features([*parts, *perfect], information)
    predicted, bounds = np.split(linear.predict(rows), 2)
    share = float(np.mean(predicted > bounds))
    if share > MAX_SHARE_ABOVE_REFERENCE:
        logger.warning(
            "%s scores %.0f %% of translations above their references and truncates these scores: "
            "%d judgments are too few to train on; use more, or another metric",
            metric.title,
            100 * share,
            len(data),
        )


@cache_by_checkpoint
def _load_fitted(checkpoint: Checkpoint, location: str) -> FittedRegression:
    """Load and check the regression of a checkpoint."""
    features = parse_config(RegressionConfig, checkpoint, location).features
    file = Path(location) / WEIGHTS
    arrays = checkpoint.arrays
    check_arrays(arrays, ARRAY_SPECS, file, features=len(features))
    if not (arrays["scale"] > 0).all():
        raise ModelError(f"{file}: scale must contain only positive numbers")
    keys, counts, total = (arrays[f"information_{key}"] for key in ("keys", "counts", "total"))
    return FittedRegression(
        linear=LinearModel.from_arrays(features, arrays),
        information=NgramInformation(keys, counts, int(total[0])),
    )


CHUNK = 1024  # segments per call of an extractor
MAX_CACHED_ROWS = 20_000  # per extractor


def extract_features(
    extractor: FeatureExtractor, segments: Sequence[Segment], label: str = ""
) -> FloatArray:
    """Compute the rows of all segments in order, each distinct segment once, (n, k).

    Rows are cached between calls, so that several metrics and training runs share them. Segments
    with the same reference stay together, so that it is parsed once.
    """
    rows = _row_cache(extractor)
    missing = sorted(set(segments) - rows.keys(), key=lambda s: (s.references, s.hypothesis))
    with progress_task(label or "features", total=len(missing)) as advance:
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            rows.update(zip(chunk, extractor(chunk), strict=True))
            advance(len(chunk))
    values = np.array([rows[segment] for segment in segments], dtype=np.float64)
    if len(rows) > MAX_CACHED_ROWS:
        rows.clear()
    return values.reshape(len(segments), len(extractor.names))


@lru_cache(maxsize=16)
def _row_cache(extractor: FeatureExtractor) -> dict[Segment, FloatArray]:
    return {}
