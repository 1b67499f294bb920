"""BiLSTM, BiLSTM + attention and ESIM (Mathur et al. 2019): a network over a frozen encoder.

A hypothesis is compared with its reference, its source or both, as the network was trained; over
several references the best counts, or the mean. Training goes from comparisons to scores where
both are given (what helped every head), or mixes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray
from tertium.encoders import Chunk, Encoder, pairwise
from tertium.metrics.base.metric import compared_columns, over_references
from tertium.metrics.base.trainable import ComparingMetric
from tertium.metrics.heads.settings import RECIPES, SMALLER, HeadConfig, HeadOptions
from tertium.models.checkpoint import Checkpoint, read_declared
from tertium.models.judged import JudgedSets
from tertium.models.options import Recipe
from tertium.models.trained import Lesson
from tertium.runtime import choose_device, current_runtime
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.metrics.heads.scoring import HeadScorer


BLOCK = 2048  # segments compared with two sides at once
# options of one stage
ON_SCORES = frozenset({"epochs", "patience", "batch_size", "rate", "schedule"})
ON_COMPARISONS = frozenset({"comparison_epochs", "comparison_rate", "items", "loss"})

CITATION = """\
@inproceedings{mathur-etal-2019-putting,
    title = "Putting Evaluation in Context: Contextual Embeddings Improve Machine Translation
        Evaluation",
    author = "Mathur, Nitika and Baldwin, Timothy and Cohn, Trevor",
    booktitle = "Proceedings of ACL", year = "2019", pages = "2799--2808"
}"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairHead(ComparingMetric):
    """A trained head; the score is on the scale of the human scores it learned from.

    `model` names the folder it was saved to (empty: the one that ships); `references` takes the
    best or the mean over several; `precision` and `long` are the encoder's.
    """

    citation: ClassVar[str] = CITATION
    settings: ClassVar[type[Any] | None] = HeadConfig
    options: ClassVar[type[Any]] = HeadOptions
    recipes: ClassVar[Mapping[str, Recipe]] = RECIPES
    goes_on: ClassVar[bool] = True

    @property
    def config(self) -> HeadConfig:
        """What was trained."""
        return read_declared(HeadConfig, self.checkpoint, self.where)

    @property
    def encoder(self) -> Encoder:
        """The frozen encoder, of the weights it was trained with."""
        return self.load_frozen(self.config.encoder_name)

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return (self.encoder,)

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        owners, (left, *columns) = compared_columns(segments, self.config.against)
        return over_references(self._compare(left, columns), owners, self.references)

    def _compare(self, left: list[str], columns: list[list[str]]) -> FloatArray:
        """Scores of hypotheses against one column of texts for each side."""
        import torch

        scorer, encoder = loaded_scorer(self), self.encoder

        def represent(chunk: Chunk) -> FloatArray:
            with torch.inference_mode():
                found: FloatArray = scorer.representations(chunk).cpu().numpy()
            return found

        def score(chunk: Chunk) -> FloatArray:
            with torch.inference_mode():
                found: FloatArray = scorer.scores(scorer.representations(chunk)).cpu().numpy()
            return found

        if len(columns) == 1:
            return pairwise(encoder, left, columns[0], score)
        result = np.zeros(len(left))
        for start in range(0, len(left), BLOCK):
            stop = start + BLOCK
            parts = [pairwise(encoder, left[start:stop], c[start:stop], represent) for c in columns]
            with torch.inference_mode():
                joined = torch.from_numpy(np.hstack(parts)).float().to(scorer.device)
                result[start:stop] = scorer.scores(joined).cpu().numpy()
        return result

    @classmethod
    def unread(cls, settings: Any, options: Any, data: JudgedSets) -> frozenset[str]:
        if data.scores and data.comparisons:
            return ON_SCORES | {"after"} if options.mixed else frozenset()
        of_both = {"after", "mixed"} if options.mixed else {"after"}
        return (ON_COMPARISONS if data.scores else ON_SCORES) | of_both

    @classmethod
    def fit(cls, lesson: Lesson) -> Checkpoint:
        """Learn from judgments, from comparisons, or from comparisons and then judgments.

        The epoch that agrees best with `dev` is kept (average Pearson over language pairs of
        judgments, else strict tau of comparisons); without `dev`, the last. In a folder the best
        epoch so far always lies there, and the same call goes on after an interruption.
        """
        from tertium.metrics.heads.training import train_head

        return train_head(cls.name, lesson)


def loaded_scorer(metric: PairHead) -> HeadScorer:
    """The network of a metric on the device of the current runtime; kept between calls."""
    device = choose_device(current_runtime().device)
    return _scorer(metric.checkpoint.hash, device, metric)


@lru_cache(maxsize=4)
def _scorer(digest: str, device: str, metric: PairHead) -> HeadScorer:
    from tertium.metrics.heads.networks import restore_network
    from tertium.metrics.heads.scoring import HeadScorer

    return HeadScorer(restore_network(metric.checkpoint, metric.encoder, metric.where).to(device))


@dataclass(frozen=True, kw_only=True, eq=False)
class BiLSTM(PairHead):
    """A BiLSTM over each side, max and mean pooled; the two vectors matched and regressed on.

        v = [mean h; max h]    y = w' ReLU(W' [t; r; t*r; t-r] + b) + b'

    The sides meet only as pooled vectors: the quickest of the three, and with absolute differences
    (as shipped) close to `esim`, which lets tokens meet and reads the meeting again.
    """

    name: ClassVar[str] = "bilstm"
    title: ClassVar[str] = "BiLSTM"


@dataclass(frozen=True, kw_only=True, eq=False)
class BiLSTMAttention(PairHead):
    """Each side re-expressed by softmax attention over the other, pooled, matched, regressed on.

        h~_t = softmax(h_t h_r') h_r    v = [mean h~; max h~]    y as in `bilstm`

    Tokens of the two sides meet, as they do not in `bilstm`; `esim` reads their meeting again.
    """

    name: ClassVar[str] = "bilstm-attention"
    title: ClassVar[str] = "BiLSTM+attention"


@dataclass(frozen=True, kw_only=True, eq=False)
class ESIM(PairHead):
    """Enhanced sequential inference: attention, then a second BiLSTM over what was attended.

        m = ReLU(F [h; h~; h*h~; h-h~])    p = [mean, max of BiLSTM(m) for r and t]
        y = w' ReLU(W' p + b) + b'

    The strongest of the three where there is much to learn from.
    """

    name: ClassVar[str] = "esim"
    title: ClassVar[str] = "ESIM"
    recipes: ClassVar[Mapping[str, Recipe]] = {**RECIPES, "ours": SMALLER}
