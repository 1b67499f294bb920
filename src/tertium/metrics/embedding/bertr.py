"""BERTR: greedy recall of reference pieces by cosine (Mathur, Baldwin, Cohn 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tertium.core.arrays import Float32Array, FloatArray, exact_dot_products
from tertium.core.segment import Segment
from tertium.encoders import Chunk, Encoder
from tertium.metrics.base.explanation import Link
from tertium.metrics.base.greedy_matching import link_best_matches, match_greedily
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric, Formula


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
