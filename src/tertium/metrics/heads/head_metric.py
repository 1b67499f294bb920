"""BiLSTM, BiLSTM + attention and ESIM (Mathur et al. 2019): networks over a frozen encoder.

A hypothesis is compared with its reference, its source or both, as in training. Several references
are reduced to the best or the mean score. Given comparisons and scores, training uses comparisons
first, which improved every head, or mixes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.runtime import current_runtime, progress_task, resolve_device, runtime
from tertium.core.segment import Segment
from tertium.encoders import Encoder
from tertium.encoders.cached_encoding import embed_texts
from tertium.metrics.base.metric import reduce_references, text_columns
from tertium.metrics.base.trainable import FrozenEncoderMetric, worst_score_of
from tertium.metrics.heads.config import HeadConfig
from tertium.models.checkpoint import Checkpoint, cache_by_checkpoint, parse_config
from tertium.models.trained_model import lazy_attribute

if TYPE_CHECKING:
    from tertium.metrics.heads.networks import PairNetwork
    from tertium.models.training_data import TrainingJob, TrainingSets

BLOCK = 128  # pairs whose vectors are in memory together
# options that only one training stage uses
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
class PairHead(FrozenEncoderMetric):
    """A trained head; scores are on the scale of the human scores it was trained on.

    `model` is the folder it was saved to (empty: the bundled model). `references` takes the best or
    the mean over several references. `precision` and `long` configure the encoder.
    """

    citation: ClassVar[str] = CITATION
    settings: ClassVar[type[Any] | None] = HeadConfig
    options = lazy_attribute("tertium.metrics.heads.config:HeadOptions")
    recipes = lazy_attribute("tertium.metrics.heads.config:RECIPES")
    resumable: ClassVar[bool] = True
    train_examples: ClassVar[str] = """\
  tertium train {name} --train da/wmt16/*-en.jsonl.gz --dev da/wmt15/*-en.jsonl.gz -o models/{name}
  tertium train {name} --recipe published --train mine.tsv --dev dev.tsv -o models/published
  tertium train {name}:encoder=mpnet --train rankings/wmt16/*-en.judgements.tsv.gz \\
      --train mine.tsv --dev da/wmt15/*-en.jsonl.gz -o models/mine
"""

    @property
    def config(self) -> HeadConfig:
        """Settings the head was trained with."""
        return parse_config(HeadConfig, self.checkpoint, self.location)

    @property
    def encoder(self) -> Encoder:
        """Frozen encoder, checked to have the weights used in training."""
        return self.load_training_encoder(self.config.encoder_name)

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return (self.encoder,)

    @property
    def worst_score(self) -> float:
        arrays = self.checkpoint.arrays
        return worst_score_of(arrays["regressor.centre"], arrays["regressor.spread"])

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        from tertium.metrics.heads.networks import TextStates, score_in_batches

        encoder = self.encoder
        device = resolve_device(current_runtime().device)
        network = load_network(self.checkpoint, device, encoder, self.location)
        owners, columns = text_columns(segments, self.config.against)
        texts = list(dict.fromkeys(chain(*columns)))
        numbers = dict(zip(texts, range(len(texts)), strict=True))
        pairs = np.array([[numbers[text] for text in column] for column in columns]).T
        scores = np.zeros(len(owners))
        order = np.argsort(pairs[:, 1], kind="stable")  # equal references together
        with progress_task(self.title, total=len(owners)) as advance, runtime(progress=None):
            for start in range(0, len(order), BLOCK):
                rows = order[start : start + BLOCK]
                used, block = np.unique(pairs[rows], return_inverse=True)
                vectors = embed_texts(encoder, [texts[n] for n in used], sentences=False)
                states = TextStates(vectors.vectors, vectors.offsets, encoder.layers, device)
                scores[rows] = score_in_batches(network, states, block.reshape(len(rows), -1))
                advance(len(rows))
        return reduce_references(scores, owners, self.references)

    @classmethod
    def unused_options(cls, settings: Any, options: Any, data: TrainingSets) -> frozenset[str]:
        if data.scores and data.comparisons:
            return frozenset()
        return (ON_COMPARISONS if data.scores else ON_SCORES) | {"after"}

    @classmethod
    def fit(cls, job: TrainingJob) -> Checkpoint:
        """Train on judgments, on comparisons, or on comparisons and then judgments.

        The best epoch on `dev` is kept (average Pearson over language pairs for judgments, strict
        tau for comparisons); without `dev`, the last. With a folder, the best epoch so far is
        always stored there, and the same call resumes after an interruption.
        """
        from tertium.metrics.heads.head_training import train_head

        return train_head(cls.name, job)


@cache_by_checkpoint
def load_network(
    checkpoint: Checkpoint, device: str, encoder: Encoder, location: str
) -> PairNetwork:
    """Return the network of a checkpoint for inference, cached."""
    from tertium.metrics.heads.networks import restore_network

    return restore_network(checkpoint, encoder, location).to(device).eval()


@dataclass(frozen=True, kw_only=True, eq=False)
class BiLSTM(PairHead):
    """A BiLSTM over each text, max- and mean-pooled; regression on the matched vectors.

        v = [mean h; max h]    y = w' ReLU(W' [t; r; t*r; t-r] + b) + b'

    The texts interact only as pooled vectors. It is the fastest of the three and, with absolute
    differences (as bundled), close to `esim`.
    """

    name: ClassVar[str] = "bilstm"
    title: ClassVar[str] = "BiLSTM"


@dataclass(frozen=True, kw_only=True, eq=False)
class BiLSTMAttention(PairHead):
    """Each text re-expressed by softmax attention over the other, pooled and matched.

        h~_t = softmax(h_t h_r') h_r    v = [mean h~; max h~]    y as in `bilstm`

    Tokens of the two texts interact, unlike in `bilstm`; `esim` adds a second BiLSTM.
    """

    name: ClassVar[str] = "bilstm-attention"
    title: ClassVar[str] = "BiLSTM+attention"


@dataclass(frozen=True, kw_only=True, eq=False)
class ESIM(PairHead):
    """Enhanced sequential inference: attention, then a second BiLSTM over the attended states.

        m = ReLU(F [h; h~; h*h~; h-h~])    p = [mean, max of BiLSTM(m) for r and t]
        y = w' ReLU(W' p + b) + b'

    The best of the three with much training data.
    """

    name: ClassVar[str] = "esim"
    title: ClassVar[str] = "ESIM"
    recipes = lazy_attribute("tertium.metrics.heads.config:ESIM_RECIPES")
