"""What BiLSTM, BiLSTM + attention and ESIM share: a trained network over a frozen encoder.

A hypothesis is compared with its reference, its source or both, as the network was trained; over
several references the best counts, or the mean. Training goes from comparisons to scores where
both are given (what helped every head), or mixes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tertium.arrays import FloatArray
from tertium.encoders import Chunk, Encoder, pairwise
from tertium.metrics.base.trainable import (
    ComparingMetric,
    TrainingData,
    judged_sets,
    load_checkpoint,
)
from tertium.models.checkpoint import read_declared
from tertium.models.examples import sides_of
from tertium.models.options import (
    COMPARISONS,
    SCORES,
    Epoch,
    HeadConfig,
    HeadPlan,
    Order,
    PairLoss,
    TrainingOptions,
)
from tertium.runtime import current_runtime
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.metrics.heads.networks import PairNetwork

__all__ = ["COMPARISONS", "SCORES", "HeadConfig", "PairHead", "TrainingOptions", "loaded_network"]

BLOCK = 2048  # segments compared with two sides at once

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
    settings: ClassVar[type] = HeadConfig

    @property
    def config(self) -> HeadConfig:
        """What was trained."""
        return read_declared(HeadConfig, self.checkpoint, self.where)

    @property
    def encoder(self) -> Encoder:
        """The frozen encoder, of the weights it was trained with."""
        return self.frozen(self.config.encoder_name)

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return (self.encoder,)

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        sides = sides_of(self.config.against)
        rows = [
            (number, segment.hypothesis, texts)
            for number, segment in enumerate(segments)
            for texts in sides(segment)
        ]
        owners = np.array([row[0] for row in rows])
        left = [row[1] for row in rows]
        columns = [list(column) for column in zip(*(row[2] for row in rows), strict=True)]
        return self.reduced(self._compare(left, columns), owners, len(segments))

    def _compare(self, left: list[str], columns: list[list[str]]) -> FloatArray:
        """Scores of hypotheses against one column of texts for each side."""
        import torch

        from tertium.metrics.heads.inference import representations, scores

        network, encoder = loaded_network(self), self.encoder

        def represent(chunk: Chunk) -> FloatArray:
            with torch.inference_mode():
                found: FloatArray = representations(network, chunk).cpu().numpy()
            return found

        def score(chunk: Chunk) -> FloatArray:
            with torch.inference_mode():
                found: FloatArray = scores(network, representations(network, chunk)).cpu().numpy()
            return found

        if len(columns) == 1:
            return pairwise(encoder, left, columns[0], score)
        result = np.zeros(len(left))
        for start in range(0, len(left), BLOCK):
            stop = start + BLOCK
            parts = [pairwise(encoder, left[start:stop], c[start:stop], represent) for c in columns]
            with torch.inference_mode():
                joined = torch.from_numpy(np.hstack(parts)).float().to(network.mix.gamma.device)
                result[start:stop] = scores(network, joined).cpu().numpy()
        return result

    @classmethod
    def train(
        cls,
        data: TrainingData,
        *,
        dev: TrainingData = (),
        options: TrainingOptions = SCORES,
        comparison_options: TrainingOptions = COMPARISONS,
        order: Order = "comparisons first",
        loss: PairLoss = "logistic",
        folder: str | Path | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        **config: Any,
    ) -> Self:
        """Learn from judgements, from comparisons, or from comparisons and then judgements.

        The epoch that agrees best with `dev` is kept (average Pearson over language pairs of
        judgements, else strict tau of comparisons); without `dev`, the last. What shares a
        reference with `dev` is left out of training. With `folder` the best epoch so far always
        lies there, and the same call goes on after an interruption. `config` is that of
        `HeadConfig`: encoder, against, hidden, dropout.
        """
        from tertium.metrics.heads.stages import train_head

        chosen = HeadConfig(**config)
        plan = HeadPlan(
            options=options,
            comparison_options=comparison_options,
            order=order,
            loss=loss,
            folder=Path(folder) if folder is not None else None,
            on_epoch=on_epoch,
        )
        sets, held_out = judged_sets(cls.name, data, dev, chosen.needs)
        checkpoint = train_head(cls.name, chosen, plan, sets, held_out)
        if folder is None:
            return cls.from_checkpoint(checkpoint)
        load_checkpoint.cache_clear()  # what lay in the folder before may be remembered
        return cls(model=str(folder))


def loaded_network(metric: PairHead) -> PairNetwork:
    """The network of a metric on the device of the current runtime; kept between calls."""
    from tertium.encoders.network import choose_device

    device = choose_device(current_runtime().device)
    return _network(metric.checkpoint.hash, device, metric)


@lru_cache(maxsize=4)
def _network(digest: str, device: str, metric: PairHead) -> PairNetwork:
    from tertium.metrics.heads.stages import restore_network

    return restore_network(metric.checkpoint, metric.encoder, metric.where).to(device)
