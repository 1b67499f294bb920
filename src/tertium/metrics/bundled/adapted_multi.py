"""tertium-multi adapted to own human scores: its last layer is fitted again, by ridge regression.

Adapt the last layer of tertium-multi to own human scores: ridge regression and its guard.

The score of tertium-multi is y = w . x + b with the values x of its head. An adapted score is

    mean + deviation (a y + c + d . (x - mean of x))

a and c are fitted by least squares to standardized human scores, d by ridge regression to what they
leave over. The strength of the penalty of d is chosen by cross-validation over sources.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.errors import DataError, ModelError, UsageError
from tertium.core.fields import Rule, Sha256
from tertium.core.resampling import FOLDS, number_folds
from tertium.core.runtime import Precision
from tertium.core.segment import REQUIRED_INPUTS, Segment
from tertium.core.spans import Span
from tertium.data.ratings import number_shared_texts
from tertium.metrics.base.explanation import Explanation
from tertium.metrics.base.metric import NOTHING, ReferenceReduction, reduce_references
from tertium.metrics.base.text_warnings import Flags
from tertium.metrics.base.trainable import Trainable
from tertium.metrics.bundled.calibrated_metric import load_or_compute
from tertium.metrics.bundled.input_rows import INPUT_MODES, Row, build_rows, row_key
from tertium.metrics.bundled.tertium_multi import TertiumMulti
from tertium.models.checkpoint import ArraySpec, Checkpoint, check_arrays, parse_config
from tertium.models.ridge import fit_ridge_weights
from tertium.models.training_data import TrainingJob, TrainingSets, check_targets
from tertium.models.training_examples import pearson
from tertium.models.training_options import Options, Rates, Recipe

logger = logging.getLogger(__name__)

CACHE_VERSION = 1
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
NO_LAYERS = Rule(
    lambda n: n == 0, "0: trained layers are no longer supported; train again with --adapt head"
)


@dataclass(frozen=True, kw_only=True)
class AdaptedSettings:
    """The texts to compare the translation with; `auto` uses all that the judgments have."""

    against: Literal["auto", "source", "reference", "both"] = "auto"

    @property
    def required_inputs(self) -> frozenset[str]:
        return NOTHING if self.against == "auto" else REQUIRED_INPUTS[self.against]


@dataclass(frozen=True, kw_only=True)
class AdaptedConfig(AdaptedSettings):
    """Stored configuration: the adapted model, the worst score, and the spread of human scores.

    `layers` is the number of trained top layers of older models.
    """

    model_sha256: Sha256
    worst: float
    deviation: float
    layers: Annotated[int, NO_LAYERS] = 0


@dataclass(frozen=True, kw_only=True)
class AdaptedOptions(Options):
    """Training options."""

    adapt: Annotated[Literal["head", "scale"], "what to fit: the last layer, or the scale only"] = (
        "head"
    )
    strengths: Annotated[Rates, "ridge strengths to try, chosen on held-out sources"] = STRENGTHS


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptedMulti(Trainable):
    """tertium-multi with its last layer fitted to own human scores, on their scale.

        score = w . x + b

    x are the values that the head of tertium-multi computes from its network and from surface
    features. w and b start from those of tertium-multi and are fitted by ridge regression to human
    scores (`tertium train tertium-multi`). Training is refused if the result agrees less with
    held-out human scores than tertium-multi.

    Inputs: those it was trained with: the source, references, or both.

    Settings:

    - `model`: folder of the trained metric.
    - `references`: `best` or `mean` score over several references.
    - `precision`: of the network, as in tertium-multi.
    """

    name: ClassVar[str] = "tertium-multi-adapted"
    title: ClassVar[str] = "tertium-multi-adapted"
    citation: ClassVar[str] = TertiumMulti.citation
    settings: ClassVar[type[Any] | None] = AdaptedSettings
    stored: ClassVar[type[Any] | None] = AdaptedConfig
    options: ClassVar[type[Any]] = AdaptedOptions
    recipes: ClassVar[Mapping[str, Recipe]] = {
        name: Recipe(
            description="ridge regression on the values of the head", options=AdaptedOptions()
        )
        for name in ("published", "ours")
    }
    accepted_data: ClassVar[tuple[str, ...]] = ("scores",)
    train_examples: ClassVar[str] = """\
  tertium train tertium-multi --human mine.jsonl -o models/mine
  tertium train tertium-multi:against=source --human mine.jsonl -o models/mine
  tertium train tertium-multi --adapt scale --human mine.jsonl -o models/mine
"""

    references: ReferenceReduction = "best"
    precision: Precision = "int8"

    @property
    def config(self) -> AdaptedConfig:
        """Settings the model was trained with."""
        return parse_config(AdaptedConfig, self.checkpoint, self.location)

    @property
    def base(self) -> TertiumMulti:
        """tertium-multi with the input mode of training, checked to be the adapted version."""
        config = self.config
        base = TertiumMulti(
            against=config.against, references=self.references, precision=self.precision
        )
        if base.model.hash != config.model_sha256:
            raise ModelError(
                f"{self.location} adapts tertium-multi@{config.model_sha256[:8]}, but "
                f"tertium-multi@{base.model.hash[:8]} is installed: install that version, or train "
                "again"
            )
        return base

    @property
    def required_inputs(self) -> frozenset[str]:
        return self.config.required_inputs

    @property
    def worst_score(self) -> float:
        return self.config.worst

    @property
    def model_ids(self) -> tuple[str, ...]:
        return (*super().model_ids, *self.base.model_ids)

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Return the error spans of tertium-multi; adapting does not change them."""
        return self.base.spans(segments)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = {"against": self.config.against, **super().signature_fields(segments)}
        return {**fields, **self.base.signature_fields(segments)}

    def flags(self, segments: Sequence[Segment]) -> Flags:
        return {**super().flags(segments), **self.base.flags(segments)}

    def uncertainty(self, scores: FloatArray, segments: Sequence[Segment] = ()) -> FloatArray:
        return np.full(len(scores), self.config.deviation)

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        owners, rows = build_rows(segments, self.base.input_mode(segments))
        return reduce_references(self.row_scores(rows), owners, self.references)

    def row_scores(self, rows: Sequence[Row]) -> FloatArray:
        """Return the score of each row, (rows,), from the cache or the network."""
        reader = self.base.reader
        arrays = self.checkpoint.arrays
        specs = {"weights": ArraySpec("f", ("values",)), "bias": ArraySpec("f", ())}
        check_arrays(arrays, specs, self.location)
        weights = arrays["weights"].astype(np.float64)
        bias = float(arrays["bias"])

        def compute(numbers: list[int]) -> list[FloatArray]:
            values = reader.head_values([rows[n] for n in numbers])
            return [np.array([(own * weights).sum() + bias]) for own in values]

        fingerprint = f"{self.name}-{CACHE_VERSION}:{self.digest}:{self.precision}"
        outputs = load_or_compute(fingerprint, list(map(row_key, rows)), compute)
        scores = np.array([output[0] for output in outputs], dtype=np.float64)
        return np.maximum(scores, self.worst_score)

    def explain_segment(self, segment: Segment) -> Explanation:
        """Return the score, with the predictions of tertium-multi for each reference."""
        explanation = self.base.explain_segment(segment)
        score = float(self.score([segment]).segments[0])
        return Explanation(metric=self.spec, score=score, comparisons=explanation.comparisons)

    @classmethod
    def flag_languages(cls, settings: Any, segments: Sequence[Segment]) -> Flags:
        base = TertiumMulti(against=settings.against)
        mask = base.flag_unsupported(segments, base.input_mode(segments))
        return {"language unknown to tertium-multi": mask}

    @classmethod
    def unused_options(cls, settings: Any, options: Any, data: TrainingSets) -> frozenset[str]:
        return frozenset({"strengths"}) if options.adapt == "scale" else frozenset()

    @classmethod
    def fit(cls, job: TrainingJob) -> Checkpoint:
        """Fit what the options say, if cross-validation over sources shows that it helps."""
        settings = job.settings
        options = job.options
        if job.dev.all:
            logger.warning("%s uses cross-validation: dev data are not used", cls.name)
        judgments = [judgment for one in job.data.scores for judgment in one.judgments]
        segments = [judgment.segment for judgment in judgments]
        base = TertiumMulti(against=settings.against)
        base.check(segments)
        mode = base.input_mode(segments)
        owners, rows = build_rows(segments, mode)
        targets = check_targets(np.array([j.score for j in judgments], dtype=np.float64))
        weights, bias = base.reader.last_layer(INPUT_MODES.index(mode))
        data = JudgedValues(
            values=np.array(base.reader.head_values(rows), dtype=np.float64),
            targets=targets[owners],
            sources=number_shared_texts(segments)[owners],
            shipped=(weights.astype(np.float64), bias),
        )
        training: dict[str, Any] = {"data": job.data.sizes, "options": asdict(options)}
        if options.adapt == "scale":
            result = scale_only(data)
            residuals = data.targets - result.predict(data.values)
        else:
            study = cross_validate(data, options.strengths)
            [result], residuals = adapt_head(data, [study.best]), study.residuals
            training["cross-validation"] = {
                "tertium-multi": round(float(study.shipped.mean()), 4),
                "adapted": round(float(study.unbiased.mean()), 4),
                "strength": study.best,
            }
            check_gain(study, len(judgments))
        return Checkpoint(
            name=cls.name,
            config={
                "against": mode,
                "model_sha256": base.model.hash,
                "worst": float(data.targets.min()),
                "deviation": float(residuals.std()),
            },
            encoders={},
            arrays={
                "weights": result.weights.astype(np.float32),
                "bias": np.array(result.bias, dtype=np.float32),
            },
            training=training,
        )


MIN_ROWS, MIN_SOURCES = 30, 10  # to adapt the head


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """Weights of the head values, (values,), and bias, on the scale of human scores."""

    weights: FloatArray
    bias: float

    def predict(self, values: FloatArray) -> FloatArray:
        return values @ self.weights + self.bias


@dataclass(frozen=True, eq=False)
class JudgedValues:
    """Head values of rows, (rows, values), with human scores and numbers of sources, (rows,) each.

    `shipped` are weights and bias of the last layer of tertium-multi.
    """

    values: FloatArray
    targets: FloatArray
    sources: IntArray
    shipped: tuple[FloatArray, float]

    def take(self, rows: BoolArray | IntArray) -> JudgedValues:
        """Return the values of these rows."""
        columns = self.values[rows], self.targets[rows], self.sources[rows]
        return JudgedValues(*columns, self.shipped)


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """Pearson's r on held-out folds, (folds,), as shipped and adapted, and the best strength.

    `unbiased` is the r of each fold with the strength that is best on the other folds, `residuals`
    human scores minus held-out predictions of the best strength, (rows,).
    """

    shipped: FloatArray
    unbiased: FloatArray
    residuals: FloatArray
    best: float


def fit_scale(raw: FloatArray, targets: FloatArray) -> tuple[float, float]:
    """Return factor and offset that map raw scores to human scores by least squares."""
    factor, offset = np.polyfit(raw, targets, 1)
    return float(factor), float(offset)


def adapt_head(data: JudgedValues, strengths: Sequence[float]) -> list[Adaptation]:
    """Return the adapted head for each strength, relative to the mean squared length of a row."""
    (weights, bias), targets = data.shipped, data.targets
    raw = data.values @ weights + bias
    mean = float(targets.mean())
    deviation = float(targets.std())
    z = (targets - mean) / deviation
    factor, offset = fit_scale(raw, z)
    center = data.values.mean(0)
    values = data.values - center
    rest = z - factor * raw - offset
    unit = float((values**2).sum()) / len(values) ** 2
    adaptations = []
    for difference in fit_ridge_weights(values, rest, [unit * strength for strength in strengths]):
        shift = factor * bias + offset - float(difference @ center)
        adaptation = Adaptation(
            weights=deviation * (factor * weights + difference), bias=mean + deviation * shift
        )
        adaptations.append(adaptation)
    return adaptations


def scale_only(data: JudgedValues) -> Adaptation:
    """Map shipped scores to the human scale without changing their order."""
    weights, bias = data.shipped
    factor, offset = fit_scale(data.values @ weights + bias, data.targets)
    if factor <= 0:
        raise UsageError(
            "these human scores fall where those of tertium-multi rise: check that higher human "
            "scores are better, and that texts and scores belong together"
        )
    return Adaptation(weights=factor * weights, bias=factor * bias + offset)


def cross_validate(data: JudgedValues, strengths: Sequence[float]) -> CrossValidation:
    """Measure adapted heads on held-out sources; translations of one source are in one fold."""
    sources = len(np.unique(data.sources))
    if len(data.sources) < MIN_ROWS or sources < MIN_SOURCES:
        raise DataError(
            f"{len(data.sources)} translations of {sources} sources are too few to adapt the head: "
            f"give at least {MIN_ROWS} of {MIN_SOURCES}, or adapt only the scale (--adapt scale)"
        )
    folds, (weights, bias) = number_folds(data.sources, FOLDS), data.shipped
    shipped_r = np.zeros(FOLDS)
    adapted_r = np.zeros((FOLDS, len(strengths)))
    predictions = np.zeros((len(folds), len(strengths)))
    for fold in range(FOLDS):
        held_out = folds == fold
        values = data.values[held_out]
        targets = data.targets[held_out]
        shipped_r[fold] = pearson(values @ weights + bias, targets)
        for n, adaptation in enumerate(adapt_head(data.take(~held_out), strengths)):
            predictions[held_out, n] = predicted = adaptation.predict(values)
            adapted_r[fold, n] = pearson(predicted, targets)
    best = int(adapted_r.mean(0).argmax())
    best_on_others = (adapted_r.sum(0) - adapted_r).argmax(1)
    return CrossValidation(
        shipped=shipped_r,
        unbiased=adapted_r[np.arange(FOLDS), best_on_others],
        residuals=data.targets - predictions[:, best],
        best=strengths[best],
    )


def check_gain(study: CrossValidation, rows: int) -> None:
    """Raise an error if adapted scores do not clearly agree better with held-out human scores.

    The gain in r must exceed its standard error over the folds.
    """
    gains = study.unbiased - study.shipped
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    if gains.mean() <= error:
        before = study.shipped.mean()
        after = study.unbiased.mean()
        raise DataError(
            f"an adapted head does not clearly agree better with these {rows} human scores than "
            f"tertium-multi (r {after:.3f} against {before:.3f} on held-out sources, standard "
            f"error of the gain {error:.3f}): use tertium-multi, give more judgments, or adapt "
            "only the scale (--adapt scale)"
        )
