"""SentSim and SSS: sentence-level and token-level similarity (Song, Zhao, Specia 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.errors import UsageError
from tertium.core.fields import Range
from tertium.core.segment import Segment
from tertium.encoders import Chunk, Encoder
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.greedy_matching import normalize_rows
from tertium.metrics.base.metric import Side
from tertium.metrics.embedding.bertscore import (
    BOUND_KINDS,
    EQUAL_WEIGHTS,
    GENERIC,
    NUMBERS,
    WEIGHTS,
    BERTScore,
)
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric, Formula
from tertium.metrics.embedding.optimal_transport import SMD, WMD


@dataclass(frozen=True, kw_only=True)
class SSS(EmbeddingMetric):
    """Sentence semantic similarity, -1 to 1.

        SSS = cos(s(hypothesis), s(reference))

    s is the encoder's own sentence vector, pooled as in its training. SSS reacts to negations that
    token-level metrics miss, and misses details that they see.

    See also: SentSim adds a token-level similarity.

    >>> round(SSS(encoder="toy").sentence_score("the cat sat", ["sat the cat"]), 6)
    1.0
    """

    name: ClassVar[str] = "sss"
    title: ClassVar[str] = "SSS"
    citation: ClassVar[str] = """\
@inproceedings{song-etal-2021-sentsim,
    title = "{S}ent{S}im: Crosslingual Semantic Evaluation of Machine Translation",
    author = "Song, Yurun and Zhao, Junchen and Specia, Lucia",
    booktitle = "Proceedings of NAACL", year = "2021", pages = "3143--3156"
}"""

    @property
    def worst_score(self) -> float:
        return -1.0

    @property
    def vector_kinds(self) -> frozenset[str]:
        return frozenset({"sentences"})

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        return sentence_cosines


def sentence_cosines(chunk: Chunk) -> FloatArray:
    """Return the cosine of the sentence vectors of each pair, (m,); NaN if one is zero."""
    vectors = normalize_rows(chunk.embeddings.sentences)
    vectors[~vectors.any(axis=1)] = np.nan
    cosines = np.einsum("ij,ij->i", vectors[chunk.left], vectors[chunk.right])
    result: FloatArray = cosines.astype(np.float64)
    return result


@dataclass(frozen=True, kw_only=True)
class SentSim(EmbeddingMetric):
    """Weighted sum of a sentence-level and a token-level similarity, about 1 to e (2.718).

        SentSim = w_s e^A + w_t e^B          (combine=exponential)
        SentSim = w_s A + w_t B              (combine=plain, about 0 to 1)

    A and B are normalized to [0, 1], 1 being the best; a distance d becomes 1 - d. Without
    references it runs the paper's SRC-MT setting with a multilingual encoder.

    Settings, besides those of `EmbeddingMetric`:

    - `sentence`: A, `sss` or `smd`. `token`: B, `bertscore` (its `measure`) or `wmd`.
    - `normalise`: `fixed` uses bounds stored for the encoder and the centering, chosen once on
      da/wmt15 and da/wmt16, or else generic ones, which the signature shows:

          A = (a - far) / (near - far)         near: value of equal texts; far: the stored bound

      This is monotone and independent of the other segments; very bad translations get values
      below 0. `corpus` takes the minimum and maximum of the scored segments, as published; scores
      of different runs or systems are then not comparable.
    - `sentence_weight`, `token_weight`: 1/2 each, as published. With fixed bounds, `e5` against
      sources uses 0.2 and 0.8, chosen on judgments of WMT15, WMT16 and WMT20.

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
            raise UsageError("sentence_weight and token_weight are both 0: set one above 0")

    @property
    def worst_score(self) -> float | None:
        return 0.0 if self.combine == "exponential" else None

    @property
    def vector_kinds(self) -> frozenset[str]:
        return frozenset({"tokens", "sentences"} if self.sentence == "sss" else {"tokens"})

    @property
    def reads_corpus(self) -> bool:
        return self.normalise == "corpus"

    @property
    def components(self) -> tuple[EmbeddingMetric, EmbeddingMetric]:
        """The sentence-level and the token-level metric."""
        sentence = SSS() if self.sentence == "sss" else SMD()
        token = BERTScore(measure=self.measure) if self.token == "bertscore" else WMD()
        return sentence, token

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        formulas = [(part, part.formula(encoder, segments)) for part in self.components]

        def compare(chunk: Chunk) -> FloatArray:
            return np.column_stack([_main_column(part, run(chunk)) for part, run in formulas])

        return compare

    def boundary_values(self, is_equal: bool) -> Sequence[float]:
        return [part.identical if is_equal else part.unrelated for part in self.components]

    def postprocess(self, values: FloatArray, encoder: Encoder, side: Side) -> FloatArray:
        """Convert values of both components, (pairs, 2), to score and similarities, (pairs, 3)."""
        if self.normalise == "corpus":
            near, far = self._extremes(values)
        else:
            near = np.array(self.boundary_values(True))
            far = np.array(self._bounds(encoder, side))
        span = np.where(near == far, 1.0, near - far)
        similarities = np.where(near == far, 0.5, (values - far) / span)
        terms = np.exp(similarities) if self.combine == "exponential" else similarities
        weights = np.array(self.weights(encoder.name, side))
        return np.column_stack([(terms * weights).sum(axis=1), similarities])

    def weights(self, encoder: str, side: Side) -> tuple[float, float]:
        """Return the weights of the sentence-level and the token-level similarity."""
        is_fixed = self.normalise == "fixed"
        sentence, token = WEIGHTS.get((encoder, side), EQUAL_WEIGHTS) if is_fixed else EQUAL_WEIGHTS
        sentence = sentence if self.sentence_weight is None else self.sentence_weight
        return sentence, token if self.token_weight is None else self.token_weight

    def _bounds(self, encoder: Encoder, side: Side) -> tuple[float, float]:
        token = self.token if self.token == "wmd" else self.measure
        numbers = NUMBERS.get((encoder.name, self.calibration_key(encoder, side)), GENERIC)
        return numbers[BOUND_KINDS.index(self.sentence)], numbers[BOUND_KINDS.index(token)]

    def _norm(self, encoder: Encoder, side: Side) -> str:
        """Return the normalization for the signature."""
        is_stored = (encoder.name, self.calibration_key(encoder, side)) in NUMBERS
        return self.normalise if self.normalise == "corpus" or is_stored else "generic"

    def _extremes(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the best and the worst value of each component without blank texts, (2,) each."""
        not_blank = values[~(values == self.boundary_values(False)).all(axis=1)]
        values = not_blank if len(not_blank) else values
        low = values.min(axis=0)
        high = values.max(axis=0)
        higher_is_better = np.array([part.higher_is_better for part in self.components])
        return np.where(higher_is_better, high, low), np.where(higher_is_better, low, high)

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        return self.components[1].links(left, right)

    def own_signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        token = f"bertscore-{self.measure}" if self.token == "bertscore" else self.token
        sides = [(self.encoder_of(side), side) for side in self.sides(segments)]
        norms = dict.fromkeys(self._norm(encoder, side) for encoder, side in sides)
        fields = {"sent": self.sentence, "tok": token, "norm": "/".join(norms)}
        weights = [self.weights(encoder.name, side) for encoder, side in sides]
        if set(weights) != {EQUAL_WEIGHTS}:
            fields["weights"] = "/".join(f"{sentence}+{token}" for sentence, token in weights)
        return {**fields, "comb": "plain"} if self.combine == "plain" else fields


def _main_column(metric: EmbeddingMetric, values: FloatArray) -> FloatArray:
    return values if values.ndim == 1 else values[:, metric.parts.index(metric.main_part)]
