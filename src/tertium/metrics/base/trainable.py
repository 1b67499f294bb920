"""Metrics that learn: a trained model (`models.trained`) that scores segments.

A new one implements `fit`, which learns a `Checkpoint` from judged sets, and `segment_scores`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tertium.encoders import Encoder
from tertium.encoders.encoder import count_unread
from tertium.metrics.base.metric import Over, SegmentMetric, distinct_texts
from tertium.metrics.base.odd_texts import ENGLISH, count_not_english
from tertium.models.trained import Trained
from tertium.runtime import Long, Precision
from tertium.segment import Segment


@dataclass(frozen=True, kw_only=True, eq=False)
class Trainable(Trained, SegmentMetric):
    """A metric with weights that were learned from people."""

    model: str = ""

    @property
    def digest(self) -> str:
        """What stands for the weights in signatures and caches."""
        return self.weights_hash

    @property
    def learned(self) -> tuple[str, ...]:
        return (f"{self.name}@{self.digest[:8]}",)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {"weights": f"{self.origin}@{self.digest[:8]}"}


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparingMetric(Trainable):
    """What compares a hypothesis with its references, its source or both over frozen encoders.

    `references` takes the best or the mean over several; `precision` and `long` are the encoders'.
    """

    references: Over = "best"
    precision: Precision = "fp32"
    long: Long = "truncate"

    @property
    @abstractmethod
    def config(self) -> Any:
        """What was trained: the `settings` of its checkpoint."""

    @property
    @abstractmethod
    def encoders(self) -> tuple[Encoder, ...]:
        """The frozen encoders, of the weights it was trained with."""

    @property
    def needs(self) -> frozenset[str]:
        needed: frozenset[str] = self.config.needs
        return needed

    def load_frozen(self, name: str, **how: Any) -> Encoder:
        return super().load_frozen(name, precision=self.precision, long=self.long, **how)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        texts = distinct_texts(segments, self.config.against)
        counts = {**super().warnings(segments), **count_unread(self.encoders, texts)}
        for encoder in self.encoders:
            if encoder.languages == ENGLISH and (foreign := count_not_english(segments)):
                counts[f"language unknown to {encoder.name.partition('@')[0]}"] = foreign
        return counts

    @property
    def learned(self) -> tuple[str, ...]:
        return (*super().learned, *(e.signature_fields()["model"] for e in self.encoders))

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        fields = {"against": self.config.against, **super().signature_fields(segments)}
        if any(len(s.references) > 1 for s in segments):
            fields["refs"] = self.references
        texts = distinct_texts(segments, self.config.against)
        cut = max(encoder.count_truncated(texts) for encoder in self.encoders)
        return {**fields, **_side_by_side(self.encoders), "trunc": str(cut)}


def _side_by_side(encoders: Sequence[Encoder]) -> dict[str, str]:
    """What a signature says of encoders, different values of a field joined by a plus."""
    values: dict[str, dict[str, None]] = {}
    for encoder in encoders:
        for field, value in encoder.signature_fields().items():
            values.setdefault(field, {})[value] = None
    return {field: "+".join(found) for field, found in values.items()}
