"""Trainable metrics: trained models (`models.trained_model`) that score segments.

A new one implements `fit`, which learns a `Checkpoint` from a `TrainingJob`, and `segment_scores`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.runtime import Precision
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.ratings import number_shared_texts
from tertium.encoders import Encoder
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.metric import (
    Metric,
    ReferenceReduction,
    SegmentMetric,
    distinct_texts,
    score_segments,
    share_encoding,
)
from tertium.metrics.base.text_warnings import Flags, flag_inputs, flag_language_unknown
from tertium.models.trained_model import TrainedModel

WORST_DEVIATIONS = 6  # of human scores below their mean; no text that is a translation is so bad


@dataclass(frozen=True, kw_only=True, eq=False)
class Trainable(TrainedModel, SegmentMetric):
    """A metric with weights learned from human judgments."""

    model: str = ""

    @property
    def digest(self) -> str:
        """Hash that identifies the weights in signatures and caches."""
        return self.weights_hash

    @property
    def model_ids(self) -> tuple[str, ...]:
        return (f"{self.name}@{self.digest[:8]}",)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {"weights": f"{self.weights_label}@{self.digest[:8]}"}


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenEncoderMetric(Trainable):
    """A trained metric over frozen encoders that reads the reference, the source or both.

    `references` takes the best score or the mean over several references. `precision` is that of
    the encoders.
    """

    references: ReferenceReduction = "best"
    precision: Precision = "fp32"

    @property
    @abstractmethod
    def config(self) -> Any:
        """Settings the model was trained with, from its checkpoint."""

    @property
    @abstractmethod
    def encoders(self) -> tuple[Encoder, ...]:
        """Frozen encoders, checked to have the weights used in training."""

    @property
    def required_inputs(self) -> frozenset[str]:
        required: frozenset[str] = self.config.required_inputs
        return required

    def load_training_encoder(self, name: str, **options: Any) -> Encoder:
        return super().load_training_encoder(name, precision=self.precision, **options)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        unknown = flag_language_unknown(self.encoders, segments, self.config.against)
        truncated = flag_inputs(self.encoders, segments, self.config.against)
        return {**super().flags(segments), **truncated, **unknown}

    @classmethod
    def flag_languages(cls, settings: Any, segments: Sequence[Segment]) -> Flags:
        encoders = map(load_encoder, settings.encoder_names)
        return flag_language_unknown(encoders, segments, settings.against)

    @property
    def model_ids(self) -> tuple[str, ...]:
        return (*super().model_ids, *(e.signature_fields()["model"] for e in self.encoders))

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = {"against": self.config.against, **super().signature_fields(segments)}
        if any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        texts = distinct_texts(segments, self.config.against)
        cut = max(len(encoder.find_truncated(texts)) for encoder in self.encoders)
        return {**fields, **_merge_signature_fields(self.encoders), "trunc": str(cut)}


def worst_score_of(mean: Any, deviation: Any) -> float:
    """Return the worst score of a model without bounds, given the human scores of its training.

    >>> worst_score_of(0.5, 0.25)
    -1.0
    """
    return float(mean) - WORST_DEVIATIONS * float(deviation)


def _merge_signature_fields(encoders: Sequence[Encoder]) -> dict[str, str]:
    """Merge the signature fields of encoders; different values are joined by a plus sign."""
    values: dict[str, dict[str, None]] = {}
    for encoder in encoders:
        for field, value in encoder.signature_fields().items():
            values.setdefault(field, {})[value] = None
    return {field: "+".join(distinct) for field, distinct in values.items()}


HOW_TO_CHOOSE = (
    "give them with -m (tertium train blend -m chrf tertium-multi ...), or in the spec, "
    "blend:metrics=[chrf]+[tertium-multi]"
)


def orientation(parts: Sequence[Metric]) -> FloatArray:
    """Return 1 for metrics whose higher scores are better, and -1 for the others, (metrics,)."""
    return np.array([1.0 if part.higher_is_better else -1.0 for part in parts])


def score_parts(parts: Sequence[Metric], segments: Sequence[Segment]) -> FloatArray:
    """Return the oriented scores of metrics, (n, metrics); NaN for a missing score."""
    with share_encoding(parts, segments):
        columns = [score_segments(part, segments) for part in parts]
    return np.column_stack(columns) * orientation(parts)


def collect_judgments(sets: Sequence[JudgmentSet]) -> list[Judgment]:
    """List the judgments of all sets, each with its language pair."""
    return [j if j.lp else replace(j, lp=one.lp) for one in sets for j in one.judgments]


def known_scores(parts: Sequence[Metric], sets: Sequence[JudgmentSet]) -> FloatArray:
    """Return the oriented scores of metrics for all judgments, (n, metrics).

    Scores that the judgments of a set contain are used; the others are computed.
    """
    rows = []
    for judgment_set in sets:
        scores = judgment_set.metric_scores()
        for part in parts:
            if part.spec not in scores:
                part.check(judgment_set.segments)
                scores[part.spec] = score_segments(part, judgment_set.segments)
        rows.append(np.column_stack([scores[part.spec] for part in parts]))
    return np.concatenate(rows) * orientation(parts)


def number_documents(data: Sequence[Judgment]) -> IntArray:
    """Number the document of each judgment, (n,); without one, segments that share a text."""
    shared = number_shared_texts([judgment.segment for judgment in data]).tolist()
    names = [one.document or f"#{number}" for one, number in zip(data, shared, strict=True)]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
