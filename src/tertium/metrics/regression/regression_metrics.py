"""Regressions on lexical and entailment features (Pado, Galley, Jurafsky and Manning 2009).

A translation is good if it follows from the reference and the reference follows from it. `bleu-r`,
`nist-r`, `ter-r` and `meteor-r` are regressions on the components of one metric, `mt-r` on all
four. `rte-r` uses entailment features, `mt-rte-r` everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import UnknownNameError
from tertium.core.segment import Segment
from tertium.encoders.cached_encoding import Chunk, compare_pairs
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.greedy_matching import cosine, match_greedily
from tertium.metrics.base.lexical_features import (
    SMALL,
    FeatureExtractor,
    LexicalFeatures,
    NgramInformation,
    Part,
    only_reference,
)
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.text_warnings import Flags, flag_inputs, flag_not_english, flag_texts
from tertium.metrics.linguistics.dependency_parser import is_too_long_to_parse, load_parser
from tertium.metrics.regression.entailment import FEATURES, GROUPS
from tertium.metrics.regression.entailment.feature_extraction import DIRECTIONS, EntailmentFeatures
from tertium.metrics.regression.linear_metric import Regression
from tertium.text.language_identification import is_clearly_not_english

if TYPE_CHECKING:
    from tertium.metrics.base.explanation import Explanation


NO_INFORMATION = NgramInformation.empty()


@dataclass(frozen=True, kw_only=True, eq=False)
class LexicalRegression(Regression):
    """A regression on component scores of lexical metrics, in linear and log space.

    Subclasses set the metrics (`parts`).
    """

    parts: ClassVar[tuple[Part | Literal["meteor"], ...]] = ()

    def feature_extractors(self, information: NgramInformation) -> tuple[FeatureExtractor, ...]:
        return tuple(
            MetricColumns(load_metric("meteor"))
            if part == "meteor"
            else LexicalFeatures((part,), information if part == "nist" else NO_INFORMATION)
            for part in self.parts
        )

    def flags(self, segments: Sequence[Segment]) -> Flags:
        if self.model:
            unsupported = self.flag_languages(self, segments)
        else:  # bundled models are for English
            unsupported = {"reference not English": flag_not_english(segments)}
        return {**super().flags(segments), **unsupported}

    @classmethod
    def flag_languages(cls, settings: Any, segments: Sequence[Segment]) -> Flags:
        return (
            {"reference not English": flag_not_english(segments)} if "meteor" in cls.parts else {}
        )

    def explain_segment(self, segment: Segment) -> Explanation:
        """Explain a score by the contribution of each feature.

        For entailment features, the explanation also has the alignment and a sentence for each
        match.
        """
        from tertium.metrics.regression.feature_attribution import explain_score

        return explain_score(self, segment)


@dataclass(frozen=True, kw_only=True, eq=False)
class BLEUR(LexicalRegression):
    """Ridge regression on the components of BLEU.

    score = bias + sum_i weight_i z_i over 18 standardized components and their logarithms: BLEU-n
    and n-gram precisions for n = 1 to 4, each plain and smoothed, the brevity penalty, and BLEU
    without it.

    Reference: Pado et al. 2009, section 4.3. `Regression` documents the scale of the score.

    >>> metric, reference = BLEUR(), ["The cat sat."]
    >>> metric.sentence_score("A cat sat.", reference) > metric.sentence_score("No.", reference)
    True
    """

    name: ClassVar[str] = "bleu-r"
    title: ClassVar[str] = "BLEUR"
    parts = ("bleu",)


@dataclass(frozen=True, kw_only=True, eq=False)
class NISTR(LexicalRegression):
    """Ridge regression on the components of NIST.

    score = bias + sum_i weight_i z_i over 16 standardized components and their logarithms: NIST-n
    for n = 1 to 10, information-weighted precisions for n = 1 to 4, the length penalty, and NIST
    without it. The information of n-grams comes from the references of the training data. Unlike
    NIST, the score of a segment does not depend on the other segments.

    Reference: Pado et al. 2009, section 4.3. `Regression` documents the scale of the score.

    >>> metric, reference = NISTR(), ["The cat sat."]
    >>> metric.sentence_score("A cat sat.", reference) > metric.sentence_score("No.", reference)
    True
    """

    name: ClassVar[str] = "nist-r"
    title: ClassVar[str] = "NISTR"
    parts = ("nist",)


@dataclass(frozen=True, kw_only=True, eq=False)
class TERR(LexicalRegression):
    """Ridge regression on the components of TER.

    score = bias + sum_i weight_i z_i over 50 standardized components and their logarithms: TER and
    the rates of insertions, deletions, substitutions and shifts, under ten settings of the edit
    costs.

    Reference: Pado et al. 2009, section 4.3. `Regression` documents the scale of the score.

    >>> metric, reference = TERR(), ["The cat sat."]
    >>> metric.sentence_score("A cat sat.", reference) > metric.sentence_score("No.", reference)
    True
    """

    name: ClassVar[str] = "ter-r"
    title: ClassVar[str] = "TERR"
    parts = ("ter",)


@dataclass(frozen=True, kw_only=True, eq=False)
class METEORR(LexicalRegression):
    """Ridge regression on METEOR and its logarithm.

    score = bias + weight_1 z(METEOR) + weight_2 z(log METEOR). It ranks segments like METEOR, on
    the scale of human scores.

    Reference: Pado et al. 2009, section 4.3. `Regression` documents the scale of the score.

    >>> metric, reference = METEORR(), ["The cat sat."]
    >>> metric.sentence_score("A cat sat.", reference) > metric.sentence_score("No.", reference)
    True
    """

    name: ClassVar[str] = "meteor-r"
    title: ClassVar[str] = "METEORR"
    parts = ("meteor",)


@dataclass(frozen=True, kw_only=True, eq=False)
class MTR(LexicalRegression):
    """Ridge regression on the components of BLEU, NIST, TER and METEOR.

    score = bias + sum_i weight_i z_i over the 85 components of `BLEUR`, `NISTR`, `TERR` and
    `METEORR` and their logarithms. The penalty gives each metric the same weight.

    Reference: Pado et al. 2009, section 4.3. `Regression` documents the scale of the score.

    >>> metric, reference = MTR(), ["The cat sat."]
    >>> metric.sentence_score("A cat sat.", reference) > metric.sentence_score("No.", reference)
    True
    """

    name: ClassVar[str] = "mt-r"
    title: ClassVar[str] = "MTR"
    parts = ("bleu", "nist", "ter", "meteor")


@dataclass(frozen=True, kw_only=True, eq=False)
class RTER(LexicalRegression):
    """Ridge regression on entailment features in both directions.

    score = bias + sum_i weight_i z_i over 106 features per direction. Hypothesis and reference are
    parsed and aligned. The features test whether one follows from the other: alignment quality,
    semantic compatibility, insertions, references to entities, and sentence structure. A feature
    that signals an error can only lower the score, one that signals agreement can only raise it.
    `explain` shows the features that fired. English only.

    - `groups`: feature groups to use (alignment, compatibility, insertions, reference, structure)
    - `vectors`: encoder for distributional similarity

    The bundled model is for the defaults of both. `mt-r` uses surface features only, `mt-rte-r`
    adds them to these.

    Reference: Pado et al. 2009, Robust Machine Translation Evaluation with Entailment Features.

    >>> good, bad = "The virus did not infect anybody.", "The virus infected nobody's pirates."
    >>> metric, reference = RTER(), ["No one was infected by the virus."]
    >>> metric.sentence_score(good, reference) > metric.sentence_score(bad, reference)
    True
    """

    name: ClassVar[str] = "rte-r"
    title: ClassVar[str] = "RTER"

    groups: tuple[str, ...] = GROUPS
    vectors: str = "glove"

    def __post_init__(self) -> None:
        for group in self.groups:
            if group not in GROUPS:
                raise UnknownNameError("group of entailment features", group, GROUPS)

    @property
    def entailment(self) -> EntailmentFeatures:
        """Extractor of the entailment features in `groups`."""
        return EntailmentFeatures(groups=self.groups, vectors=self.vectors)

    def feature_extractors(self, information: NgramInformation) -> tuple[FeatureExtractor, ...]:
        return (*super().feature_extractors(information), self.entailment)

    @property
    def encoders(self) -> tuple[str, ...]:
        return (self.vectors,)

    def weight_sign(self, column: str) -> int:
        direction, _, name = column.partition(".")
        if direction not in DIRECTIONS:
            return 0
        return 1 if FEATURES[name].is_positive else -1

    def feature_family(self, column: str) -> str:
        direction, _, name = column.partition(".")
        if direction not in DIRECTIONS:
            return super().feature_family(column)
        return FEATURES[name].group

    @property
    def model_ids(self) -> tuple[str, ...]:
        return (*super().model_ids, load_parser().name)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {
            **super().signature_fields(segments),
            "parser": load_parser().name,
            "vectors": self.vectors.replace(":", "-").replace("|", "-"),
        }

    def flags(self, segments: Sequence[Segment]) -> Flags:
        truncated = flag_texts(segments, is_too_long_to_parse)
        truncated |= flag_texts(segments, is_too_long_to_parse, "references")
        return {
            **super().flags(segments),
            **self.flag_languages(self, segments),
            "text truncated for parsing": truncated,
        }

    @classmethod
    def flag_languages(cls, settings: Any, segments: Sequence[Segment]) -> Flags:
        return {
            "hypothesis not English": flag_texts(segments, is_clearly_not_english),
            "reference not English": flag_not_english(segments),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class MTRTER(RTER):
    """Ridge regression on all features of `MTR` and `RTER`.

    score = bias + sum_i weight_i z_i over 382 features. With `embeddings=True` four more are
    computed with the sentence encoder `encoder`: recall, precision and F1 of BERTScore and the
    cosine of the sentence vectors.

    Reference: Pado et al. 2009, section 4.3. `Regression` documents the scale of the score.

    >>> metric, reference = MTRTER(), ["No one was infected by the virus."]
    >>> good = metric.sentence_score("The virus did not infect anybody.", reference)
    >>> good > metric.sentence_score("The virus infected everybody.", reference)
    True
    """

    name: ClassVar[str] = "mt-rte-r"
    title: ClassVar[str] = "MT+RTER"
    parts = ("bleu", "nist", "ter", "meteor")

    embeddings: bool = False
    encoder: str = "minilm"

    @property
    def label(self) -> str:
        return "MT+RTER+E" if self.embeddings else self.title

    def feature_extractors(self, information: NgramInformation) -> tuple[FeatureExtractor, ...]:
        extra = (EmbeddingFeatures(self.encoder),) if self.embeddings else ()
        return (*super().feature_extractors(information), *extra)

    def weight_sign(self, column: str) -> int:
        return 1 if column.startswith(f"{self.encoder}.") else super().weight_sign(column)

    @property
    def encoders(self) -> tuple[str, ...]:
        return (self.vectors, self.encoder) if self.embeddings else (self.vectors,)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        if not self.embeddings:
            return super().flags(segments)
        return {**super().flags(segments), **flag_inputs([load_encoder(self.encoder)], segments)}

    @property
    def bundled_name(self) -> str:
        return f"{self.name}-embeddings" if self.embeddings else self.name


EMBEDDING_COLUMNS = ("recall", "precision", "f1", "cosine")


@dataclass(frozen=True)
class EmbeddingFeatures:
    """Four columns for one encoder: recall, precision and F1 of BERTScore, and sentence similarity.

    >>> extractor = EmbeddingFeatures("toy")
    >>> extractor([Segment("a cat", references=("a cat",))]).round(3)
    array([[1., 1., 1., 1.]])
    """

    encoder: str = "minilm"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.encoder}.{column}" for column in EMBEDDING_COLUMNS)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        return compare_pairs(
            load_encoder(self.encoder),
            [segment.hypothesis for segment in segments],
            [only_reference(segment) for segment in segments],
            _compare_pairs,
            sentences=True,
        ).reshape(len(segments), len(EMBEDDING_COLUMNS))


def _compare_pairs(chunk: Chunk) -> FloatArray:
    precision, recall = np.nan_to_num(match_greedily(chunk)).T  # 0 if a text has no tokens
    is_positive = np.minimum(precision, recall) > 0
    total = np.where(is_positive, precision + recall, 1.0)
    f1 = np.where(is_positive, 2 * precision * recall / total, 0.0)
    sentences = chunk.embeddings.sentences
    pairs = zip(chunk.left, chunk.right, strict=True)
    cosines = [cosine(sentences[left], sentences[right]) for left, right in pairs]
    return np.column_stack([recall, precision, f1, cosines])


@dataclass(frozen=True)
class MetricColumns:
    """Segment scores of a metric as two columns: the score and its logarithm."""

    metric: Metric

    @property
    def names(self) -> tuple[str, ...]:
        return (self.metric.name, f"log {self.metric.name}")

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        scores = self.metric.score(segments).segments
        return np.column_stack([scores, np.log(scores + SMALL)])
