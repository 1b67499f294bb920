"""BERTR: how much of the reference finds a counterpart (Mathur, Baldwin, Cohn 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tertium.arrays import Float32Array, FloatArray, products
from tertium.encoders import Chunk, Encoder
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.matching import best_partners, greedy
from tertium.metrics.embedding.metric import EmbeddingMetric, Formula
from tertium.segment import Segment


@dataclass(frozen=True, kw_only=True)
class BERTR(EmbeddingMetric):
    """Recall of reference pieces by cosine, about 0 to 1.

        BERTR = 1/|r| sum_j max_i cos(t_i, r_j)

    Special tokens are left out altogether. The paper takes the top layer of BERT base; here the
    layer belongs to the encoder's name. A hypothesis that says everything and more is not punished:
    BERTScore's F1 adds precision.

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
        return best_partners(products(left, right), ("recall",))


def recall(chunk: Chunk) -> FloatArray:
    """The recall of each comparison, (m,)."""
    return greedy(chunk, special=False)[:, 1]
