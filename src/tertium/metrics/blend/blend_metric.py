"""Blend: a weighted sum of the scores of other metrics, trained on human scores or given weights.

`models.blend_model` has the formula.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray, divide
from tertium.core.errors import ModelError, UsageError
from tertium.core.fields import Range
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.encoders import Encoder
from tertium.metrics.base.capabilities import Explains, ReadsEmbeddings, reads_context, scale_spec
from tertium.metrics.base.explanation import (
    Contribution,
    Explanation,
    FeatureAttribution,
    add_bounds,
)
from tertium.metrics.base.loading import load_metric, load_metrics
from tertium.metrics.base.metric import NO_SCORE, NOTHING, Metric
from tertium.metrics.base.scorer import flag_empty
from tertium.metrics.base.text_warnings import Flags, merge_flags
from tertium.metrics.base.trainable import (
    HOW_TO_CHOOSE,
    Trainable,
    collect_judgments,
    known_scores,
    number_documents,
    orientation,
    score_parts,
)
from tertium.models.blend_model import QUANTILES, STRENGTHS, BlendModel, Normalization, fit_blend
from tertium.models.checkpoint import (
    WEIGHTS,
    ArraySpec,
    Checkpoint,
    cache_by_checkpoint,
    check_arrays,
    parse_config,
)
from tertium.models.ridge import MAX_Z_SCORE
from tertium.models.training_data import TrainingJob, check_targets
from tertium.models.training_options import Options, Rates, Recipe

CONSTANTS = "blend_constants.json"  # mean and deviation of scores, for blends without training


def check_metrics(metrics: Sequence[str]) -> None:
    """Raise for one metric; none at all is left to the caller."""
    if len(metrics) == 1:
        raise UsageError("a blend has at least 2 metrics, not 1")


@dataclass(frozen=True, kw_only=True)
class BlendSettings:
    """What is chosen before training: the metrics, and how their scores are normalized."""

    metrics: tuple[str, ...] = ()
    normalization: Normalization = "z"

    def __post_init__(self) -> None:
        check_metrics(self.metrics)

    @property
    def required_inputs(self) -> frozenset[str]:
        return NOTHING.union(*(load_metric(spec).required_inputs for spec in self.metrics))


@dataclass(frozen=True, kw_only=True)
class BlendConfig(BlendSettings):
    """Stored configuration; `model_ids` are the models behind each metric in training."""

    model_ids: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class BlendOptions(Options):
    """Training options of a blend."""

    strengths: Annotated[
        Rates, "ridge strengths to try, chosen on held-out documents, or on --dev"
    ] = STRENGTHS


@dataclass(frozen=True, kw_only=True, eq=False)
class Blend(Trainable):
    """A weighted sum of normalized scores of other metrics; higher is better.

        score = bias + sum_i weight_i (x_i - mean_i) / deviation_i,        weight_i >= 0

    A trained blend (`tertium train blend`) is on the scale of the human scores in training: `bias`
    is their mean. Scores below the lowest human score in training are raised to it, and empty
    translations get it. If a metric has no score for a segment, such as a judge without a valid
    answer, its bias is added, which is the mean error of the other metrics for such segments in
    training, and the other metrics are scaled.

    `metrics` makes a blend without training: `weights` (default: equal) are divided by their sum,
    and 0 is the mean of translations of WMT21 to WMT24 by the systems of that time. The means and
    deviations of common metrics are stored with tertium; train a blend for other metrics.

    Ma et al. (2017) combined metrics in this way, with support vector regression.

    Inputs: those of its metrics.

    Settings:

    - `metrics`: specs of the metrics of an untrained blend.
    - `weights`: their weights.
    - `model`: folder of a trained blend (default: the bundled one, if there is one).

    >>> blend = Blend(metrics=("chrf", "bleu"), weights=(2, 1))
    >>> reference = ["The cat sat."]
    >>> blend.sentence_score("A cat sat.", reference) > blend.sentence_score("No.", reference)
    True
    """

    name: ClassVar[str] = "blend"
    title: ClassVar[str] = "Blend"
    settings: ClassVar[type[Any] | None] = BlendSettings
    stored: ClassVar[type[Any] | None] = BlendConfig
    options: ClassVar[type[Any]] = BlendOptions
    recipes: ClassVar[Mapping[str, Recipe]] = {
        name: Recipe(description="non-negative ridge on normalized scores", options=BlendOptions())
        for name in ("published", "ours")
    }
    accepted_data: ClassVar[tuple[str, ...]] = ("scores",)
    citation: ClassVar[str] = """\
@inproceedings{ma-etal-2017-blend,
    title = "Blend: a Novel Combined {MT} Metric Based on Direct Assessment",
    author = "Ma, Qingsong and Graham, Yvette and Wang, Shugen and Liu, Qun",
    booktitle = "Proceedings of the Second Conference on Machine Translation", year = "2017",
    pages = "598--603"
}"""
    train_examples: ClassVar[str] = """\
  tertium train blend -m chrf tertium-multi --train mine.jsonl -o models/blend
"""

    metrics: tuple[str, ...] = ()
    weights: Annotated[tuple[float, ...], Range(0)] = ()

    def __post_init__(self) -> None:
        check_metrics(self.metrics)
        if self.metrics and self.model:
            raise UsageError(
                f"blend:model={self.model} has metrics of its own: omit metrics, or omit model"
            )
        if self.weights and len(self.weights) != len(self.metrics):
            raise UsageError(
                f"{len(self.weights)} weights for {len(self.metrics)} metrics: give one for each"
            )
        if self.weights and not (min(self.weights) >= 0 < sum(self.weights) < np.inf):
            raise UsageError("weights must be at least 0, and one of them above 0")

    @property
    def config(self) -> BlendConfig:
        """Settings the blend was trained with."""
        return parse_config(BlendConfig, self.checkpoint, self.location)

    @property
    def checkpoint(self) -> Checkpoint:
        if self.metrics:
            raise UsageError(f"{self.spec} was not trained: there is nothing to save or load")
        return super().checkpoint

    @cached_property
    def parts(self) -> tuple[Metric, ...]:
        """The metrics of the blend, checked to be those used in training."""
        if self.metrics:
            return tuple(load_metrics(self.metrics))
        config = self.config
        parts = tuple(load_metrics(config.metrics))
        for spec, part in zip(config.metrics, parts, strict=True):
            trained = config.model_ids.get(spec, "")
            installed = "+".join(part.model_ids)
            if trained != installed:
                raise ModelError(
                    f"{self.location} was trained with {trained or spec}, but {spec} is now "
                    f"{installed}: install that version, or train the blend again"
                )
        return parts

    @property
    def fitted(self) -> BlendModel:
        """Normalization, weights and biases."""
        if not self.metrics:
            return _load_blend(self.checkpoint, self.location)
        count = len(self.metrics)
        mean, deviation = np.array([find_constants(part) for part in self.parts]).T
        weights = np.array(self.weights or [1.0] * count)
        weights = weights / weights.sum()
        return BlendModel(
            names=tuple(part.spec for part in self.parts),
            mean=mean,
            scale=deviation,
            weights=weights,
            bias=0.0,
            strength=0.0,
            min_target=-MAX_Z_SCORE,
            missing_biases=np.zeros(count),
            covariances=np.outer(weights, weights),  # the weights of other metrics sum to 1
        )

    @property
    def coefficients(self) -> dict[str, float]:
        """Weight of each normalized metric, largest first."""
        return self.fitted.coefficients

    @property
    def weights_hash(self) -> str:
        if not self.metrics:
            return super().weights_hash
        return hashlib.sha256(self.spec.encode()).hexdigest()

    @property
    def required_inputs(self) -> frozenset[str]:
        return NOTHING.union(*(part.required_inputs for part in self.parts))

    @property
    def reads_corpus(self) -> bool:
        return any(part.reads_corpus for part in self.parts)

    @property
    def reads_context(self) -> bool:
        return any(map(reads_context, self.parts))

    @property
    def columns(self) -> tuple[str, ...]:
        return ("score", "segments", *(f"without {part.spec}" for part in self.parts))

    @property
    def model_ids(self) -> tuple[str, ...]:
        own = () if self.metrics else super().model_ids
        return (*own, *(model for part in self.parts for model in part.model_ids))

    def required_embeddings(self, segments: Sequence[Segment]) -> list[tuple[Encoder, str]]:
        return [
            need
            for part in self.parts
            if isinstance(part, ReadsEmbeddings)
            for need in part.required_embeddings(segments)
        ]

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        for part in self.parts:
            part.check(segments)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        models = [model for part in self.parts for model in part.model_ids]
        fields = {"parts": "+".join(part.label for part in self.parts)}
        if models:
            fields["models"] = "+".join(models)
        if self.metrics:
            fields["weights"] = "+".join(f"{weight:.3g}" for weight in self.fitted.weights)
        else:
            fields.update(super().signature_fields(()))
        return {key: value.replace(":", "-").replace("|", "-") for key, value in fields.items()}

    def part_scores(self, segments: Sequence[Segment]) -> FloatArray:
        """Return the oriented scores of each metric, (n, metrics); NaN if it has none."""
        return score_parts(self.parts, segments)

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return self.fitted.predict(self.part_scores(segments))

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        values = self.part_scores(segments)
        scores = self.fitted.predict(values)
        has_score = ~np.isnan(scores)  # without a score, a segment has no weight in sums
        worst = self.fitted.min_target
        scores = np.where(flag_empty(self, segments), worst, np.maximum(scores, worst))
        return np.column_stack([np.where(has_score, scores, 0.0), has_score, np.isnan(values)])

    def reduce(self, totals: FloatArray) -> FloatArray:
        return divide(totals[..., 0], totals[..., 1])

    def adjust_scores(self, scores: Scores, segments: Sequence[Segment]) -> Scores:
        """Flag segments without a score, and those scored without a metric."""
        statistics = scores.statistics
        has_score = statistics[:, 1] > 0
        added = {NO_SCORE: ~has_score}
        for part, is_missing in zip(self.parts, statistics[:, 2:].T, strict=True):
            added[f"scored without {part.spec}"] = has_score & (is_missing > 0)
        added = {kind: mask for kind, mask in added.items() if mask.any()}
        return replace(scores, flags={**scores.flags, **added})

    def flags(self, segments: Sequence[Segment]) -> Flags:
        own_flags = super().flags(segments)
        flags = merge_flags([own_flags, *(part.flags(segments) for part in self.parts)])
        flags.pop(NO_SCORE, None)  # of a part: the blend uses the others
        return flags

    def explain_segment(self, segment: Segment) -> Explanation:
        """Return the contribution of each metric, and the reasons of judges among them."""
        blend = self.fitted
        values = self.part_scores([segment])
        score = float(self.score([segment]).segments[0])
        own_parts = blend.contributions(values)[0].tolist()
        raw_scores = (values * orientation(self.parts))[0].tolist()
        contributions = []
        reasons: dict[str, None] = {}
        for part, value, own in zip(self.parts, raw_scores, own_parts, strict=True):
            has_score = not math.isnan(value)
            contributions.append(
                Contribution(
                    feature=part.spec if has_score else f"no score of {part.spec}",
                    group=part.label,
                    value=value if has_score else own,
                    contribution=own,
                )
            )
            if has_score and isinstance(part, Explains):
                reasons |= dict.fromkeys(part.explain(segment).reasons)
        beyond = score - (blend.bias + math.fsum(own_parts))
        attribution = FeatureAttribution(
            hypothesis=segment.hypothesis,
            reference="",
            perfect=blend.bias,
            groups={},
            contributions=add_bounds(contributions, beyond),
        )
        return Explanation(
            metric=self.spec, score=score, attribution=attribution, reasons=tuple(reasons)
        )

    @classmethod
    def fit(cls, job: TrainingJob) -> Checkpoint:
        """Fit weights to human scores; scores of metrics that the judgments contain are not redone.

        The ridge strength is chosen on `dev`, if given, or on held-out documents.
        """
        metrics = tuple(job.settings.metrics)
        if not metrics:
            raise UsageError(f"blend needs the metrics to combine: {HOW_TO_CHOOSE}")
        parts = load_metrics(metrics)
        data = collect_judgments(job.data.scores)
        dev = collect_judgments(job.dev.scores)
        targets = check_targets(np.array([judgment.score for judgment in data]))
        dev_examples = None
        if dev and len(job.options.strengths) > 1:
            dev_targets = check_targets(np.array([one.score for one in dev]), "chosen by")
            dev_examples = known_scores(parts, job.dev.scores), dev_targets
        blend = fit_blend(
            [part.spec for part in parts],
            known_scores(parts, job.data.scores),
            targets,
            number_documents(data),
            normalization=job.settings.normalization,
            strengths=job.options.strengths,
            dev=dev_examples,
        )
        rounded = {name: round(value, 6) for name, value in blend.coefficients.items()}
        return Checkpoint(
            name=cls.name,
            config={
                "metrics": [part.spec for part in parts],
                "normalization": job.settings.normalization,
                "model_ids": {p.spec: "+".join(p.model_ids) for p in parts if p.model_ids},
            },
            encoders={},
            arrays=blend.arrays,
            training={
                "judgments": len(data),
                "dev": len(dev),
                "strength": blend.strength,
                "data": job.note or job.data.sizes,
                "weights": rounded,
            },
        )


@cache_by_checkpoint
def _load_blend(checkpoint: Checkpoint, location: str) -> BlendModel:
    """Load and check the weights of a checkpoint."""
    config = parse_config(BlendConfig, checkpoint, location)
    count = len(config.metrics)
    file = Path(location) / WEIGHTS
    specs = {
        **dict.fromkeys(("mean", "scale", "weights", "missing_biases"), ArraySpec("f", (count,))),
        "numbers": ArraySpec("f", (3,)),
        "covariances": ArraySpec("f", (count, count)),
    }
    if config.normalization == "rank":
        specs["quantiles"] = ArraySpec("f", (count, QUANTILES))
    check_arrays(checkpoint.arrays, specs, file)
    if not (checkpoint.arrays["scale"] > 0).all():
        raise ModelError(f"{file}: scale must contain only positive numbers")
    return BlendModel.from_arrays(config.metrics, checkpoint.arrays)


@lru_cache(maxsize=1)
def read_constants() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Return mean and deviation of oriented scores by spec, and of judges by label."""
    content = files("tertium.metrics.blend").joinpath(CONSTANTS).read_text(encoding="utf-8")
    constants: Mapping[str, Mapping[str, Mapping[str, float]]] = json.loads(content)
    return constants


def find_constants(part: Metric) -> tuple[float, float]:
    constants = read_constants()
    own = constants["specs"].get(scale_spec(part)) or constants["labels"].get(part.label)
    if own is None:
        supported = ", ".join([*constants["specs"], *map(str.lower, constants["labels"])])
        raise UsageError(
            f"the scores of {part.spec} have no known mean and deviation: train a blend with it "
            f"(tertium train blend), or use some of {supported}"
        )
    return own["mean"], own["deviation"]
