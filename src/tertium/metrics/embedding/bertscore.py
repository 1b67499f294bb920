"""BERTScore and BERTR: greedy matching of contextual pieces by cosine.

Stored calibration values of encoders: baselines for BERTScore, bounds and weights for SentSim.

Encoders spread cosines over different ranges. A baseline is the mean BERTScore of unrelated
sentences, used for rescaling. A bound is the value that one translation in 200 does not reach.
Both were measured on da/wmt15 and da/wmt16 only; `python -m recipes.calibrate_encoder` repeats the
measurement. Changing a value changes scores.
"""

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
from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.data.text_files import read_lines
from tertium.encoders import Chunk, Encoder
from tertium.encoders.encoder import Embeddings
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.greedy_matching import link_best_matches, match_greedily
from tertium.metrics.base.metric import Side, pair_texts
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
            return DocumentFrequencies.count(encoder, read_lines(Path(self.idf_texts)))
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


BOUND_KINDS = ("precision", "recall", "f1", "wmd", "smd", "sss")

# Cosines of unrelated texts are about 0, distances of orthogonal unit vectors sqrt(2).
GENERIC = (0.0, 0.0, 0.0, 1.4142, 1.4142, 0.0)

# Encoder, calibration key, bounds in the order of BOUND_KINDS, then the baseline: precision, recall
# and F1 of unrelated sentences. Hypotheses were paired with the reference of another segment: the
# first 100 of each language pair (minilm) or all (mpnet, use). e5@8 was measured on every second
# segment of da/wmt16; the part after the slash is the centering:
# python -m recipes.calibrate_encoder e5@8 --side source --sets da/wmt16 --every 2
MEASURED = """
minilm@0 reference       0.3273 0.3662 0.3523 1.1501 0.4584 0.1777  0.3252 0.3203 0.3163
minilm@1 reference       0.3981 0.4351 0.4216 1.0966 0.4668 0.1777  0.3825 0.3777 0.3756
minilm@2 reference       0.4116 0.4514 0.4333 1.0971 0.5058 0.1777  0.3773 0.3741 0.3721
minilm@3 reference       0.4179 0.4628 0.4452 1.0904 0.5350 0.1777  0.3697 0.3680 0.3661
minilm@4 reference       0.4358 0.4830 0.4582 1.0755 0.5742 0.1777  0.3967 0.3954 0.3940
minilm@5 reference       0.4622 0.4920 0.4845 1.0595 0.5622 0.1777  0.4899 0.4878 0.4871
minilm@6 reference       0.2515 0.2824 0.2692 1.2475 0.8018 0.1777  0.1600 0.1604 0.1575
mpnet@0  reference       0.2730 0.3047 0.2967 1.1507 0.4714 0.1810  0.2746 0.2682 0.2595
mpnet@1  reference       0.2881 0.3279 0.3015 1.1833 0.5049 0.1810  0.2607 0.2562 0.2489
mpnet@2  reference       0.2937 0.3368 0.3262 1.1814 0.5259 0.1810  0.2430 0.2393 0.2330
mpnet@3  reference       0.2971 0.3422 0.3372 1.1748 0.5509 0.1810  0.2387 0.2363 0.2301
mpnet@4  reference       0.3068 0.3442 0.3460 1.1653 0.5766 0.1810  0.2514 0.2496 0.2437
mpnet@5  reference       0.3171 0.3515 0.3482 1.1597 0.5868 0.1810  0.2617 0.2607 0.2554
mpnet@6  reference       0.3339 0.3782 0.3679 1.1523 0.6030 0.1810  0.2798 0.2797 0.2750
mpnet@7  reference       0.3473 0.3875 0.3741 1.1379 0.6104 0.1810  0.2980 0.2982 0.2937
mpnet@8  reference       0.3503 0.3942 0.3798 1.1327 0.6239 0.1810  0.3075 0.3067 0.3027
mpnet@9  reference       0.3507 0.3929 0.3781 1.1317 0.6494 0.1810  0.3082 0.3068 0.3032
mpnet@10 reference       0.3913 0.4138 0.4142 1.0937 0.6506 0.1810  0.3333 0.3310 0.3282
mpnet@11 reference       0.4340 0.4651 0.4583 1.0630 0.6829 0.1810  0.3877 0.3846 0.3828
mpnet@12 reference       0.1962 0.2177 0.2085 1.2817 1.0789 0.1810  0.1081 0.1080 0.1088
use@3    reference       0.3138 0.3266 0.3273 1.1574 0.4895 0.3335  0.2668 0.2624 0.2546
e5@8     source/aligned  0.5947 0.5907 0.6004 0.9280 0.4680 0.4915  0.3695 0.3623 0.3563
e5@8     source          0.5768 0.5615 0.5717 0.9571 0.5079 0.8313  0.4639 0.4614 0.4613
use@3    source          0.2901 0.2750 0.2872 1.1994 0.4972 0.4813  0.2240 0.2169 0.2125
"""
NUMBERS: Mapping[tuple[str, str], tuple[float, ...]] = {
    (encoder, scale): tuple(map(float, numbers))
    for encoder, scale, *numbers in map(str.split, MEASURED.strip().splitlines())
}
# Sentence and token weights of SentSim by encoder and side, chosen on da/wmt15, da/wmt16 and the
# development part of qe/wmt20
WEIGHTS: Mapping[tuple[str, str], tuple[float, float]] = {("e5@8", "source"): (0.2, 0.8)}
EQUAL_WEIGHTS = (0.5, 0.5)


def baseline(encoder: str, scale: str) -> tuple[float, float, float]:
    """Return BERTScore of unrelated sentences; `scale` is an `EmbeddingMetric.calibration_key`."""
    if (encoder, scale) not in NUMBERS:
        names = ", ".join(name for name, own_scale in NUMBERS if own_scale == scale)
        raise UsageError(
            f"no baseline of {encoder} against {scale} is stored: expected one of {names}; "
            "use one of them, or rescale=false"
        )
    precision, recall, f1 = NUMBERS[encoder, scale][len(BOUND_KINDS) :]
    return precision, recall, f1


@dataclass(frozen=True, kw_only=True)
class BERTR(EmbeddingMetric):
    """Recall of reference pieces by cosine, about 0 to 1.

        BERTR = 1/|r| sum_j max_i cos(t_i, r_j)

    Special tokens are excluded. The paper uses the top layer of BERT base; here the layer is part
    of the `encoder` name. Additional content in the hypothesis is not penalized.

    See also: BERTScore's F1 adds precision.

    >>> round(BERTR(encoder="toy").sentence_score("the cat sat down", ["the cat sat"]), 3)
    1.0
    """

    name: ClassVar[str] = "bertr"
    title: ClassVar[str] = "BERTR"
    citation: ClassVar[str] = """\
@inproceedings{mathur-etal-2019-putting,
    title = "Putting Evaluation in Context: Contextual Embeddings Improve Machine Translation
        Evaluation",
    author = "Mathur, Nitika and Baldwin, Timothy and Cohn, Trevor",
    booktitle = "Proceedings of ACL", year = "2019", pages = "2799--2808"
}"""

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        return recall

    def links(self, left: Float32Array, right: Float32Array) -> Sequence[Link]:
        return link_best_matches(exact_dot_products(left, right), ("recall",))


def recall(chunk: Chunk) -> FloatArray:
    """Return the recall of each pair, (m,)."""
    return match_greedily(chunk, special=False)[:, 1]
