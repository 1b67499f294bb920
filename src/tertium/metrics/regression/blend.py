"""Blend: a weighted sum of the scores of other metrics, trained on human scores or given weights.

`blend_weights` normalizes and weights the scores. This module computes them, and stores, loads and
explains the result.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray, divide
from tertium.encoders import Encoder
from tertium.errors import ModelError, UsageError
from tertium.metrics.base.explanation import (
    SCALE_BOUNDS,
    Contribution,
    Explanation,
    FeatureAttribution,
)
from tertium.metrics.base.loading import load_metric, load_metrics
from tertium.metrics.base.metric import NO_SCORE, NOTHING, Metric
from tertium.metrics.base.text_warnings import Flags, merge_flags
from tertium.metrics.base.trainable import Trainable
from tertium.metrics.regression.blend_inputs import (
    check_metrics,
    collect_judgments,
    find_constants,
    known_scores,
    number_documents,
    score_parts,
)
from tertium.metrics.regression.blend_weights import (
    QUANTILES,
    STRENGTHS,
    BlendWeights,
    Normalization,
    fit_blend,
)
from tertium.models.array_checks import ArraySpec, check_arrays
from tertium.models.checkpoint import WEIGHTS, Checkpoint, parse_config
from tertium.models.checkpoint_cache import cache_by_checkpoint
from tertium.models.training_data import check_targets
from tertium.models.training_job import TrainingJob
from tertium.models.training_options import Options, Rates, Recipe
from tertium.scores import Scores
from tertium.segment import Segment
from tertium.specs import Range

HOW_TO_CHOOSE = (
    "give them with -m (tertium train blend -m chrf tertium-multi ...), or in the spec, "
    "blend:metrics=[chrf]+[tertium-multi]"
)


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
    answer, the weights that were fitted without this metric are used.

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
            trained, installed = config.model_ids.get(spec, ""), "+".join(part.model_ids)
            if trained != installed:
                raise ModelError(
                    f"{self.location} was trained with {trained or spec}, but {spec} is now "
                    f"{installed}: install that version, or train the blend again"
                )
        return parts

    @property
    def fitted(self) -> BlendWeights:
        """Normalization and weights for every subset of the metrics."""
        if not self.metrics:
            return _load_weights(self.checkpoint, self.location)
        weights = np.array(self.weights or [1.0] * len(self.metrics))
        names = tuple(part.spec for part in self.parts)
        mean, deviation = np.array([find_constants(part) for part in self.parts]).T
        return BlendWeights.from_constants(names, mean, deviation, weights)

    @property
    def coefficients(self) -> dict[str, float]:
        """Weight of each normalized metric, largest first."""
        return self.fitted.full.coefficients

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
    def reads_context(self) -> bool:  # type: ignore[override]
        return any(part.reads_context for part in self.parts)

    @property
    def worst_score(self) -> float:
        return self.fitted.full.min_target

    @property
    def columns(self) -> tuple[str, ...]:
        return ("score", "segments", *(f"without {part.spec}" for part in self.parts))

    @property
    def model_ids(self) -> tuple[str, ...]:
        own = () if self.metrics else super().model_ids
        return (*own, *(model for part in self.parts for model in part.model_ids))

    def required_embeddings(self, segments: Sequence[Segment]) -> list[tuple[Encoder, str]]:
        return [need for part in self.parts for need in part.required_embeddings(segments)]

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        for part in self.parts:
            part.check(segments)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        models = [model for part in self.parts for model in part.model_ids]
        fields = {"parts": "+".join(part.label for part in self.parts)}
        fields |= {"models": "+".join(models)} if models else {}
        numbers = [f"{weight:.3g}" for weight in self.fitted.full.weights]
        fields |= {"weights": "+".join(numbers)} if self.metrics else super().signature_fields(())
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
        return np.column_stack([np.where(has_score, scores, 0.0), has_score, np.isnan(values)])

    def _apply_worst_score(self, rows: FloatArray, segments: Sequence[Segment]) -> FloatArray:
        bounded = super()._apply_worst_score(rows, segments)
        bounded[:, 0] *= bounded[:, 1]
        return bounded

    def reduce(self, totals: FloatArray) -> FloatArray:
        return divide(totals[..., 0], totals[..., 1])

    def make_scores(self, segments: Sequence[Segment], statistics: FloatArray) -> Scores:
        scores = super().make_scores(segments, statistics)
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
        values = self.part_scores([segment])[0]
        score = float(self.score([segment]).segments[0])
        model, contributions = self.fitted.contributions(values)
        present = ~np.isnan(values) & (model is not None)
        used = [*compress(self.parts, present)]
        rows = [
            Contribution(
                feature=part.spec,
                group=part.label,
                value=float(value if part.higher_is_better else -value),
                contribution=float(own),
            )
            for part, value, own in zip(used, values[present], contributions, strict=True)
        ]
        bias = model.bias if model else np.nan
        if beyond := score - (bias + math.fsum(contributions)):
            bound = Contribution(
                feature=SCALE_BOUNDS, group=SCALE_BOUNDS, value=beyond, contribution=beyond
            )
            rows += [bound] if rows else []
        attribution = FeatureAttribution(
            hypothesis=segment.hypothesis,
            reference="",
            perfect=bias,
            groups={},
            contributions=tuple(sorted(rows, key=lambda row: -abs(row.contribution))),
        )
        reasons = [part.explain(segment).reasons for part in used if part.can_explain]
        return Explanation(
            metric=self.spec,
            score=score,
            attribution=attribution,
            reasons=tuple(dict.fromkeys(chain.from_iterable(reasons))),
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
        data, dev = collect_judgments(job.data.scores), collect_judgments(job.dev.scores)
        targets = check_targets(np.array([judgment.score for judgment in data]))
        dev_examples = None
        if dev and len(job.options.strengths) > 1:
            dev_targets = check_targets(np.array([one.score for one in dev]), "chosen by")
            dev_examples = known_scores(parts, job.dev.scores), dev_targets
        weights = fit_blend(
            [part.spec for part in parts],
            known_scores(parts, job.data.scores),
            targets,
            number_documents(data),
            normalization=job.settings.normalization,
            strengths=job.options.strengths,
            dev=dev_examples,
        )
        rounded = {name: round(value, 6) for name, value in weights.full.coefficients.items()}
        return Checkpoint(
            name=cls.name,
            config={
                "metrics": [part.spec for part in parts],
                "normalization": job.settings.normalization,
                "model_ids": {p.spec: "+".join(p.model_ids) for p in parts if p.model_ids},
            },
            encoders={},
            arrays=weights.arrays,
            training={
                "judgments": len(data),
                "dev": len(dev),
                "strength": weights.full.strength,
                "data": job.note or job.data.sizes,
                "weights": rounded,
            },
        )


@cache_by_checkpoint(maxsize=16)
def _load_weights(checkpoint: Checkpoint, location: str) -> BlendWeights:
    """Load and check the weights of a checkpoint."""
    config = parse_config(BlendConfig, checkpoint, location)
    count, file = len(config.metrics), Path(location) / WEIGHTS
    if not count:
        raise ModelError(f"{location}: a blend without metrics")
    specs = {
        **dict.fromkeys(("mean", "scale", "weights"), ArraySpec("f", (2**count - 1, count))),
        "numbers": ArraySpec("f", (2**count - 1, 3)),
    }
    if config.normalization == "rank":
        specs["quantiles"] = ArraySpec("f", (count, QUANTILES))
    check_arrays(checkpoint.arrays, specs, file)
    if not (checkpoint.arrays["scale"] > 0).all():
        raise ModelError(f"{file}: scale must contain only positive numbers")
    return BlendWeights.from_arrays(config.metrics, checkpoint.arrays)
