"""Entailment as a metric: regressions on lexical scores, on entailment features, and on both.

Pado, Galley, Jurafsky and Manning (2009): a translation is good if it follows from the reference
and the reference from it. `bleu-r`, `nist-r`, `ter-r` and `meteor-r` are the baselines, `mt-r` all
four together, `rte-r` the entailment features, `mt-rte-r` everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tertium.arrays import Float32Array, FloatArray, products
from tertium.encoders.encoder import count_unread, load_encoder
from tertium.encoders.stream import Chunk, pairwise
from tertium.errors import UnknownNameError
from tertium.linguistics.parse import is_cut, load_parser, may_be_english
from tertium.metrics.base.components import SMALL, Information, LexicalFeatures, Part
from tertium.metrics.base.featurizer import Featurizer, reference_of
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.matching import cosine, find_partners, unit
from tertium.metrics.base.metric import Metric, distinct_texts
from tertium.metrics.base.odd_texts import count_not_english
from tertium.metrics.regression.entailment import GROUPS
from tertium.metrics.regression.entailment.featurizer import DIRECTIONS, EntailmentFeatures
from tertium.metrics.regression.metric import Regression, RegressionOptions
from tertium.models.options import Recipe
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.metrics.base.explanation import Explanation

COLUMNS = ("recall", "precision", "f1", "cosine")
# the components of one metric are one family, and no sign of them is known: no prior, one recipe
OF_ONE_METRIC = {
    "published": Recipe(
        says="Pado et al. (2009): ridge on standardised features", options=RegressionOptions()
    ),
    "ours": Recipe(says="as those that ship: the published one", options=RegressionOptions()),
}


@dataclass(frozen=True)
class EmbeddingFeatures:
    """Four columns for one encoder: recall, precision and F1 of BERTScore, and SSS.

    >>> columns = EmbeddingFeatures("toy")
    >>> columns([Segment("a cat", references=("a cat",))]).round(3)
    array([[1., 1., 1., 1.]])
    """

    forks: ClassVar[bool] = False

    encoder: str = "minilm"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.encoder}.{column}" for column in COLUMNS)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        return pairwise(
            load_encoder(self.encoder),
            [segment.hypothesis for segment in segments],
            [reference_of(segment) for segment in segments],
            _compare,
            sentences=True,
        ).reshape(len(segments), len(COLUMNS))


def _compare(chunk: Chunk) -> FloatArray:
    rows = np.zeros((len(chunk), len(COLUMNS)))
    for row, (left, right) in enumerate(zip(chunk.left, chunk.right, strict=True)):
        rows[row, :3] = greedy_match(chunk.texts.tokens(left), chunk.texts.tokens(right))
        rows[row, 3] = cosine(chunk.texts.sentences[left], chunk.texts.sentences[right])
    return rows


def greedy_match(hypothesis: Float32Array, reference: Float32Array) -> tuple[float, float, float]:
    """Recall, precision and F1 of the best match of each token; 0 where a text has none.

    Of recall and precision that are not both above zero F1 is 0, too.

    >>> greedy_match(np.eye(2, dtype=np.float32), np.eye(3, 2, dtype=np.float32)[:2])
    (1.0, 1.0, 1.0)
    """
    if not len(hypothesis) or not len(reference):
        return 0.0, 0.0, 0.0
    found = find_partners(products(unit(hypothesis), unit(reference)))
    recall, precision = float(found.recall.mean()), float(found.precision.mean())
    if min(recall, precision) <= 0:
        return recall, precision, 0.0
    return recall, precision, 2 * recall * precision / (recall + precision)


@dataclass(frozen=True)
class MetricColumn:
    """A metric's segment scores as two columns, linear and in log space."""

    metric: Metric

    @property
    def forks(self) -> bool:
        """A metric with a model may run a network, which must not be forked."""
        return not self.metric.learned

    @property
    def names(self) -> tuple[str, ...]:
        return (self.metric.name, f"log {self.metric.name}")

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        scores = self.metric.score(segments).segments
        return np.column_stack([scores, np.log(scores + SMALL)])


@dataclass(frozen=True, kw_only=True, eq=False)
class LexicalRegression(Regression):
    """A regression on the component scores of lexical metrics, in linear and log space.

    The subclass says which (`parts`), and whether METEOR is among them.
    """

    parts: ClassVar[tuple[Part, ...]] = ()
    meteor: ClassVar[bool] = False

    def featurizers(self, information: Information) -> tuple[Featurizer, ...]:
        nothing = Information.nothing()
        lexical = (
            LexicalFeatures((part,), information if part == "nist" else nothing)
            for part in self.parts
        )
        return (*lexical, *((MetricColumn(load_metric("meteor")),) if self.meteor else ()))

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        counts = super().warnings(segments)
        english = self.meteor or not self.model  # METEOR's language, and that of what ships
        if english and (foreign := count_not_english(segments)):
            counts["reference not English"] = foreign
        return counts

    def explain(self, segment: Segment) -> Explanation:
        """Why a segment has its score: what each feature adds to or takes from it.

        For entailment features also the alignment, and sentences that say what fired.
        """
        from tertium.metrics.regression.reasons import explain

        return explain(self, segment)


@dataclass(frozen=True, kw_only=True, eq=False)
class BLEUR(LexicalRegression):
    """BLEU-n and n-gram precisions, plain and smoothed, and the brevity penalty, regressed."""

    name: ClassVar[str] = "bleu-r"
    title: ClassVar[str] = "BLEUR"
    recipes: ClassVar[Mapping[str, Recipe]] = OF_ONE_METRIC
    parts: ClassVar[tuple[Part, ...]] = ("bleu",)


@dataclass(frozen=True, kw_only=True, eq=False)
class NISTR(LexicalRegression):
    """NIST-n and information-weighted precisions, regressed.

    The information of n-grams is that of the references it was trained on, so that, unlike NIST's,
    a score does not depend on the other segments.
    """

    name: ClassVar[str] = "nist-r"
    title: ClassVar[str] = "NISTR"
    recipes: ClassVar[Mapping[str, Recipe]] = OF_ONE_METRIC
    parts: ClassVar[tuple[Part, ...]] = ("nist",)


@dataclass(frozen=True, kw_only=True, eq=False)
class TERR(LexicalRegression):
    """TER and its four kinds of edits under ten settings of their costs, regressed."""

    name: ClassVar[str] = "ter-r"
    title: ClassVar[str] = "TERR"
    recipes: ClassVar[Mapping[str, Recipe]] = OF_ONE_METRIC
    parts: ClassVar[tuple[Part, ...]] = ("ter",)


@dataclass(frozen=True, kw_only=True, eq=False)
class METEORR(LexicalRegression):
    """METEOR, regressed: the same order of segments on the scale of human scores."""

    name: ClassVar[str] = "meteor-r"
    title: ClassVar[str] = "METEORR"
    recipes: ClassVar[Mapping[str, Recipe]] = OF_ONE_METRIC
    meteor: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True, eq=False)
class MTR(LexicalRegression):
    """The components of BLEU, NIST, TER and METEOR in one regression: 85, each also as a log."""

    name: ClassVar[str] = "mt-r"
    title: ClassVar[str] = "MTR"
    parts: ClassVar[tuple[Part, ...]] = ("bleu", "nist", "ter")
    meteor: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True, eq=False)
class RTER(LexicalRegression):
    """Does it mean the same? A regression on entailment features in both directions.

    English only: hypothesis and reference are parsed, aligned with each other, and asked a hundred
    questions each way (alignment, compatibility, insertions, reference, structure). `explain` shows
    the answers.

    A feature that tells a fault can only take from the score, one that tells a merit only add.
    `groups` are the groups of features; `vectors` the encoder of distributional similarity. Only
    the default of both ships with weights.

    Relatives: `mt-r` sees the surface alone; `mt-rte-r` adds it to these. METEOR aligns words, too,
    but asks nothing of their relations.

    >>> good, bad = "The virus did not infect anybody.", "The virus infected nobody's pirates."
    >>> metric = RTER()
    >>> reference = ["No one was infected by the virus."]
    >>> metric.sentence_score(good, reference) > metric.sentence_score(bad, reference)
    True
    """

    name: ClassVar[str] = "rte-r"
    title: ClassVar[str] = "RTER"

    groups: tuple[str, ...] = tuple(GROUPS)
    vectors: str = "glove"

    def __post_init__(self) -> None:
        for group in self.groups:
            if group not in GROUPS:
                raise UnknownNameError("group of entailment features", group, GROUPS)

    @property
    def entailment(self) -> EntailmentFeatures:
        """The entailment features it regresses on."""
        return EntailmentFeatures(groups=self.groups, vectors=self.vectors)

    def featurizers(self, information: Information) -> tuple[Featurizer, ...]:
        return (*super().featurizers(information), EntailmentFeatures(vectors=self.vectors))

    @property
    def encoders(self) -> tuple[str, ...]:
        return (self.vectors,)

    def uses(self, column: str) -> bool:
        direction, _, _ = column.partition(".")
        return direction not in DIRECTIONS or column in self.entailment.names

    def sign(self, column: str) -> int:
        direction, _, name = column.partition(".")
        if direction not in DIRECTIONS:
            return 0
        return next(1 if f.good else -1 for f in self.entailment.features if f.name == name)

    def family(self, column: str) -> str:
        direction, _, name = column.partition(".")
        if direction not in DIRECTIONS:
            return super().family(column)
        return next(g for g in self.groups if any(f.name == name for f in GROUPS[g]))

    @property
    def learned(self) -> tuple[str, ...]:
        return (*super().learned, load_parser().name)

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        return {
            **super().signature_fields(segments),
            "parser": load_parser().name,
            "vectors": self.vectors.replace(":", "-").replace("|", "-"),
        }

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        counts = {
            "hypothesis not English": sum(not may_be_english(s.hypothesis) for s in segments),
            "reference not English": sum(
                any(not may_be_english(r) for r in s.references) for s in segments
            ),
            "text too long to parse whole, cut": sum(
                any(is_cut(text) for text in (s.hypothesis, *s.references)) for s in segments
            ),
        }
        return {**super().warnings(segments), **{k: count for k, count in counts.items() if count}}


@dataclass(frozen=True, kw_only=True, eq=False)
class MTRTER(RTER):
    """Surface and meaning: the lexical components and the entailment features in one regression.

    `embeddings` adds what an encoder says (recall, precision and F1 of BERTScore over the tokens of
    `encoder`, and the cosine of sentence vectors).
    """

    name: ClassVar[str] = "mt-rte-r"
    title: ClassVar[str] = "MT+RTER"
    parts: ClassVar[tuple[Part, ...]] = ("bleu", "nist", "ter")
    meteor: ClassVar[bool] = True

    embeddings: bool = False
    encoder: str = "minilm"

    @property
    def label(self) -> str:
        return "MT+RTER+E" if self.embeddings else self.title

    def featurizers(self, information: Information) -> tuple[Featurizer, ...]:
        neural = (EmbeddingFeatures(self.encoder),) if self.embeddings else ()
        return (*super().featurizers(information), *neural)

    def sign(self, column: str) -> int:
        return 1 if column.startswith(f"{self.encoder}.") else super().sign(column)

    @property
    def encoders(self) -> tuple[str, ...]:
        return (self.vectors, self.encoder) if self.embeddings else (self.vectors,)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        if not self.embeddings:
            return super().warnings(segments)
        unread = count_unread([load_encoder(self.encoder)], distinct_texts(segments, "reference"))
        return {**super().warnings(segments), **unread}

    @property
    def shipped(self) -> str:
        return f"{self.name}-embeddings" if self.embeddings else self.name
