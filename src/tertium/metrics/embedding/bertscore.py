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

from tertium.core.arrays import Float32Array, FloatArray, exact_dot_products
from tertium.core.errors import MissingResourceError, UsageError
from tertium.core.segment import Segment
from tertium.data.text_files import read_lines
from tertium.encoders import Chunk, Encoder
from tertium.encoders.encoder import Embeddings
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.greedy_matching import link_best_matches, match_greedily
from tertium.metrics.base.metric import Side, pair_texts
from tertium.metrics.embedding.baseline_calibration import baseline
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric, Formula


@dataclass(frozen=True, kw_only=True)
class BERTScore(EmbeddingMetric):
    """Greedy matching of the pieces of hypothesis x and reference y by cosine, about 0 to 1.

        P = sum_i w(x_i) max_j cos(x_i, y_j) / sum_i w(x_i)
        R = sum_j w(y_j) max_i cos(x_i, y_j) / sum_j w(y_j)
        F1 = 2 P R / (P + R), or 0 if only one of P and R is positive

    Settings, besides those of `EmbeddingMetric`:

    - `measure`: `f1`, `precision` or `recall`. The statistics hold all three.
    - `idf`: weight pieces by w = log((N + 1) / (df + 1)). Document frequencies come from the scored
      references or sources, so a score depends on the other segments, or from the lines of the file
      `idf_texts`.
    - `special`: pieces may match [CLS] or [SEP], which have no weight themselves, as in the
      bert-score package. Values then equal that package's, except for an F1 of 0.
    - `rescale`: map x to (x - b) / (1 - b), where b is the value of unrelated sentences. This keeps
      the order and widens the scale.

    See also: BERTR is the recall without special tokens; WMD matches all pieces jointly.

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
            raise UsageError("idf_texts has no effect without idf: set idf=true")

    @property
    def main_part(self) -> str:
        return self.measure

    @property
    def reads_corpus(self) -> bool:
        return self.idf and not self.idf_texts

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        frequencies = self.document_frequencies(encoder, segments)

        def compare(chunk: Chunk) -> FloatArray:
            weights = frequencies.weights(chunk.embeddings) if frequencies else None
            return with_f1(match_greedily(chunk, weights=weights, special=self.special))

        return compare

    def postprocess(self, values: FloatArray, encoder: Encoder, side: Side) -> FloatArray:
        if not self.rescale:
            return values
        level = np.array(baseline(encoder.name, self.calibration_key(encoder, side)))
        rescaled: FloatArray = (values - level) / (1 - level)
        return rescaled

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        return link_best_matches(exact_dot_products(left, right), ("precision", "recall"))

    def document_frequencies(
        self, encoder: Encoder, segments: Sequence[Segment]
    ) -> DocumentFrequencies | None:
        """Count the documents of each piece for the IDF weights; None without `idf`."""
        if not self.idf:
            return None
        if self.idf_texts:
            return DocumentFrequencies.count(encoder, read_idf_texts(Path(self.idf_texts)))
        (side, *_) = self.sides(segments)
        return DocumentFrequencies.count(encoder, pair_texts(segments, side)[2])

    def own_signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        idf = "no"
        if self.idf_texts:
            idf = sha256(Path(self.idf_texts).read_bytes()).hexdigest()[:8]
        elif self.idf:
            idf = "refs"
        fields = {"measure": self.measure, "idf": idf, "special": "yes" if self.special else "no"}
        return {**fields, "rescale": "yes"} if self.rescale else fields


@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentFrequencies:
    """Number of documents that contain each piece."""

    documents: int
    counts: Mapping[str, int]

    @classmethod
    def count(cls, encoder: Encoder, texts: Sequence[str]) -> DocumentFrequencies:
        """Count document frequencies over texts; repeated texts count repeatedly."""
        text_counts = Counter(texts)
        counts: Counter[str] = Counter()
        for text, pieces in zip(text_counts, encoder.tokenize(list(text_counts)), strict=True):
            for piece in set(pieces):
                counts[piece] += text_counts[text]
        return cls(documents=len(texts), counts=counts)

    def weight(self, piece: str) -> float:
        """Return log((N + 1) / (df + 1)), or 0 for special tokens."""
        return math.log((self.documents + 1) / (self.counts.get(piece, 0) + 1)) if piece else 0.0

    def weights(self, texts: Embeddings) -> Float32Array:
        """Return the weight of each token vector, (rows,)."""
        distinct = {piece for pieces in texts.tokens for piece in pieces}
        weight_by_piece = {piece: self.weight(piece) for piece in distinct}
        return np.array(
            [weight_by_piece[p] for pieces in texts.tokens for p in pieces], dtype=np.float32
        )


def with_f1(values: FloatArray) -> FloatArray:
    """Append the harmonic mean to precision and recall, (m, 2) -> (m, 3).

    F1 is 0 if only one of them is positive, since the formula has a pole there.

    >>> with_f1(np.array([[0.5, 1.0], [0.0, 0.0], [0.1, -0.0999]])).round(3)[:, 2].tolist()
    [0.667, 0.0, 0.0]
    """
    p, r = values.T
    f1 = np.divide(2 * p * r, p + r, out=np.zeros(len(values)), where=p * r > 0)
    return np.column_stack([values, f1])


def read_idf_texts(path: Path) -> list[str]:
    """Read the lines of a text file."""
    if not path.is_file():
        raise MissingResourceError(f"idf_texts: file not found: {path}")
    return read_lines(path)
