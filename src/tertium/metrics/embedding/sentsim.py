"""SentSim: the meaning of the whole beside the meaning of its parts (Song, Zhao, Specia 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders import Chunk, Encoder
from tertium.errors import UsageError
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.metric import Side
from tertium.metrics.embedding.bertscore import BERTScore
from tertium.metrics.embedding.calibration import EQUAL, WEIGHTS, is_measured, worst_value
from tertium.metrics.embedding.metric import EmbeddingMetric, Formula
from tertium.metrics.embedding.smd import SMD
from tertium.metrics.embedding.sss import SSS
from tertium.metrics.embedding.wmd import WMD
from tertium.segment import Segment
from tertium.specs import Range


@dataclass(frozen=True, kw_only=True)
class SentSim(EmbeddingMetric):
    """A sentence-level and a token-level similarity added up, about 1 to e (2.718).

        SentSim = w_s e^A + w_t e^B          (combine=exponential)
        SentSim = w_s A + w_t B              (combine=plain, about 0 to 1)

    A is SSS or SMD (`sentence`), B is BERTScore's `measure` or WMD (`token`), both brought to
    [0, 1] with 1 the best, a distance d to 1 - d. `normalise=fixed` does so by bounds stored for
    the encoder and how it is centred, chosen once on da/wmt15 and da/wmt16 (generic ones where none
    are, as signatures then say):

        A = (a - far) / (near - far)         near: what equal texts have; far: the stored bound

    which is monotone, leaves a text further off than any seen then below 0, and lets a score stand
    alone. `normalise=corpus` takes the least and the greatest value of the segments that are
    scored, as published: scores of different runs then cannot be compared, systems neither.

    `sentence_weight` and `token_weight` are 1/2 as published unless given; with fixed bounds `e5`
    against sources weighs 0.2 and 0.8, chosen on judgments of WMT15, WMT16 and WMT20.

    Without references (`-s` and `-t` only) it runs the paper's SRC-MT setting with a multilingual
    encoder.

    >>> metric = SentSim(encoder="toy")
    >>> round(metric.sentence_score("the cat sat", ["the cat sat"]), 3)
    2.718
    """

    name: ClassVar[str] = "sentsim"
    title: ClassVar[str] = "SentSim"
    parts: ClassVar[tuple[str, ...]] = ("score", "sentence", "token")
    reference_encoder: ClassVar[str] = "minilm@3"
    citation: ClassVar[str] = SSS.citation

    sentence: Literal["sss", "smd"] = "sss"
    token: Literal["bertscore", "wmd"] = "bertscore"
    measure: Literal["f1", "precision", "recall"] = "f1"
    sentence_weight: Annotated[float | None, Range(0)] = None
    token_weight: Annotated[float | None, Range(0)] = None
    combine: Literal["exponential", "plain"] = "exponential"
    normalise: Literal["fixed", "corpus"] = "fixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sentence_weight == self.token_weight == 0:
            raise UsageError("sentence_weight and token_weight are both 0: expected one above")

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({"tokens", "sentences"} if self.sentence == "sss" else {"tokens"})

    @property
    def reads_corpus(self) -> bool:
        return self.normalise == "corpus"

    @property
    def components(self) -> tuple[EmbeddingMetric, EmbeddingMetric]:
        """The sentence-level and the token-level metric."""
        whole = SSS() if self.sentence == "sss" else SMD()
        return whole, BERTScore(measure=self.measure) if self.token == "bertscore" else WMD()

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        formulas = [(part, part.formula(encoder, segments)) for part in self.components]

        def compare(chunk: Chunk) -> FloatArray:
            return np.column_stack([_main_column(part, run(chunk)) for part, run in formulas])

        return compare

    def edge(self, equal: bool) -> Sequence[float]:
        return [part.identical if equal else part.unrelated for part in self.components]

    def finish(self, values: FloatArray, encoder: Encoder, side: Side) -> FloatArray:
        """Raw values of both components (c, 2) to the score and both similarities, (c, 3)."""
        if self.normalise == "corpus":
            near, far = self._extremes(values)
        else:
            near, far = np.array(self.edge(True)), np.array(self._bounds(encoder, side))
        span = np.where(near == far, 1.0, near - far)
        similarities = np.where(near == far, 0.5, (values - far) / span)
        grown = np.exp(similarities) if self.combine == "exponential" else similarities
        weights = np.array(self.weights(encoder.name, side))
        return np.column_stack([(grown * weights).sum(axis=1), similarities])

    def weights(self, encoder: str, side: Side) -> tuple[float, float]:
        """The weight of the sentence-level and of the token-level similarity."""
        known = WEIGHTS.get((encoder, side), EQUAL) if self.normalise == "fixed" else EQUAL
        given = (self.sentence_weight, self.token_weight)
        whole, parts = (k if g is None else g for g, k in zip(given, known, strict=True))
        return whole, parts

    def _bounds(self, encoder: Encoder, side: Side) -> tuple[float, float]:
        token = self.token if self.token == "wmd" else self.measure
        name, scale = encoder.name, self.scale_of(encoder, side)
        return worst_value(name, scale, self.sentence), worst_value(name, scale, token)

    def _norm(self, encoder: Encoder, side: Side) -> str:
        """How values are brought to [0, 1], as signatures say it."""
        known = is_measured(encoder.name, self.scale_of(encoder, side))
        stored = self.normalise == "corpus" or known
        return self.normalise if stored else "generic"

    def _extremes(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The best and the worst value of each component, blank texts aside, (2,) each."""
        proper = values[~(values == self.edge(False)).all(axis=1)]
        proper = proper if len(proper) else values
        least, most = proper.min(axis=0), proper.max(axis=0)
        rising = np.array([part.higher_is_better for part in self.components])
        return np.where(rising, most, least), np.where(rising, least, most)

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        return self.components[1].links(left, right)

    def settings(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        token = f"bertscore-{self.measure}" if self.token == "bertscore" else self.token
        sides = [(self.encoder_of(side), side) for side in self.sides(segments)]
        norms = dict.fromkeys(self._norm(encoder, side) for encoder, side in sides)
        fields = {"sent": self.sentence, "tok": token, "norm": "/".join(norms)}
        weights = [self.weights(encoder.name, side) for encoder, side in sides]
        if set(weights) != {EQUAL}:
            fields["weights"] = "/".join(f"{whole}+{parts}" for whole, parts in weights)
        return {**fields, "comb": "plain"} if self.combine == "plain" else fields


def _main_column(metric: EmbeddingMetric, values: FloatArray) -> FloatArray:
    """The column of a component's result that is its score, (m,)."""
    return values if values.ndim == 1 else values[:, metric.parts.index(metric.main_part)]
