"""BERTScore: greedy matching of contextual pieces by cosine (Zhang et al. 2020)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from tertium.arrays import Float32Array, FloatArray, products
from tertium.data.formats import read_lines
from tertium.encoders import Chunk, Encoder
from tertium.encoders.encoder import Embeddings
from tertium.errors import MissingResourceError, UsageError
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.matching import best_partners, greedy
from tertium.metrics.base.metric import Side, comparisons
from tertium.metrics.embedding.calibration import baseline
from tertium.metrics.embedding.metric import EmbeddingMetric, Formula
from tertium.segment import Segment


@dataclass(frozen=True, kw_only=True)
class BERTScore(EmbeddingMetric):
    """How well the pieces of hypothesis x and reference y find each other, about 0 to 1.

        P = sum_i w(x_i) max_j cos(x_i, y_j) / sum_i w(x_i)
        R = sum_j w(y_j) max_i cos(x_i, y_j) / sum_j w(y_j)
        F1 = 2 P R / (P + R), 0 where only one of both is above zero

    `measure` is the score; all three are statistics. `idf` weighs a piece by its inverse document
    frequency w = log((N + 1) / (df + 1)), counted over the references or sources that are scored
    (so that a segment's score depends on the others'), or over the lines of the file `idf_texts`.
    `special` lets a piece match [CLS] or [SEP], which never count themselves, as the bert-score
    package does; with it the values equal that package's (but for the zero of F1). `rescale` maps
    (x - b) / (1 - b) with b the value of unrelated sentences under the encoder: the same order on a
    wider scale.

    Relatives: BERTR is its recall without special tokens; WMD matches all pieces at once.

    >>> metric = BERTScore(encoder="toy")
    >>> round(metric.sentence_score("the cat sat", ["the cat sat down"]), 3)
    0.897
    """

    name: ClassVar[str] = "bertscore"
    title: ClassVar[str] = "BERTScore"
    parts: ClassVar[tuple[str, ...]] = ("precision", "recall", "f1")
    citation: ClassVar[str] = """\
@inproceedings{zhang-etal-2020-bertscore,
    title = "{BERTScore}: Evaluating Text Generation with {BERT}",
    author = "Zhang, Tianyi and Kishore, Varsha and Wu, Felix and Weinberger, Kilian Q. and
        Artzi, Yoav",
    booktitle = "Proceedings of ICLR", year = "2020"
}"""

    measure: Literal["f1", "precision", "recall"] = "f1"
    idf: bool = False
    idf_texts: str = ""
    special: bool = True
    rescale: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.idf_texts and not self.idf:
            raise UsageError("idf_texts is given but idf is off: set idf=true")

    @property
    def main_part(self) -> str:
        return self.measure

    @property
    def reads_corpus(self) -> bool:
        return self.idf and not self.idf_texts

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        frequencies = self._frequencies(encoder, segments)

        def compare(chunk: Chunk) -> FloatArray:
            weights = frequencies.weights(chunk.texts) if frequencies else None
            return with_f1(greedy(chunk, weights=weights, special=self.special))

        return compare

    def finish(self, values: FloatArray, encoder: Encoder, side: Side) -> FloatArray:
        if not self.rescale:
            return values
        level = np.array(baseline(encoder.name, self.scale_of(encoder, side)))
        rescaled: FloatArray = (values - level) / (1 - level)
        return rescaled

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        return best_partners(products(left, right), ("precision", "recall"))

    def _frequencies(self, encoder: Encoder, segments: Sequence[Segment]) -> Frequencies | None:
        if not self.idf:
            return None
        if self.idf_texts:
            return Frequencies.count(encoder, read_texts(Path(self.idf_texts)))
        (side, *_) = self.sides(segments)
        return Frequencies.count(encoder, comparisons(segments, side)[2])

    def settings(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        idf = "no"
        if self.idf_texts:
            idf = sha256(Path(self.idf_texts).read_bytes()).hexdigest()[:8]
        elif self.idf:
            idf = "refs"
        fields = {"measure": self.measure, "idf": idf, "special": "yes" if self.special else "no"}
        return {**fields, "rescale": "yes"} if self.rescale else fields


@dataclass(frozen=True, kw_only=True, eq=False)
class Frequencies:
    """In how many of some texts each piece occurs."""

    documents: int
    counts: Mapping[str, int]

    @classmethod
    def count(cls, encoder: Encoder, texts: Sequence[str]) -> Frequencies:
        """Document frequencies over texts; equal texts count as often as they occur."""
        times = Counter(texts)
        counts: Counter[str] = Counter()
        for text, pieces in zip(times, encoder.pieces(list(times)), strict=True):
            for piece in set(pieces):
                counts[piece] += times[text]
        return cls(documents=len(texts), counts=counts)

    def weight(self, piece: str) -> float:
        """log((N + 1) / (df + 1)); special tokens, which every text has, weigh nothing."""
        return math.log((self.documents + 1) / (self.counts.get(piece, 0) + 1)) if piece else 0.0

    def weights(self, texts: Embeddings) -> Float32Array:
        """The weight of each row of some texts' vectors, (rows,)."""
        distinct = {piece for pieces in texts.pieces for piece in pieces}
        known = {piece: self.weight(piece) for piece in distinct}
        return np.array([known[p] for pieces in texts.pieces for p in pieces], dtype=np.float32)


def with_f1(values: FloatArray) -> FloatArray:
    """Precision and recall (m, 2) with their harmonic mean, (m, 3).

    It is 0 where one is above zero and the other is not: there the formula has a pole, and gave
    unrelated texts any number at all.

    >>> with_f1(np.array([[0.5, 1.0], [0.0, 0.0], [0.1, -0.0999]])).round(3)[:, 2].tolist()
    [0.667, 0.0, 0.0]
    """
    p, r = values.T
    f1 = np.divide(2 * p * r, p + r, out=np.zeros(len(values)), where=p * r > 0)
    return np.column_stack([values, f1])


def read_texts(path: Path) -> list[str]:
    """The lines of a text file, of which there must be some."""
    if not path.is_file():
        raise MissingResourceError(f"idf_texts: there is no file {path}")
    return read_lines(path)
