"""Trains a pair network over frozen states, from human scores, from comparisons, or from both.

Stands between the loop, which knows no data, and the networks, which know no numbers of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tertium.encoders.embeddings import IntArray
from tertium.learning.choice import average_pearson, strict_tau
from tertium.learning.examples import (
    Compared,
    ComparedBatch,
    Pairs,
    Scored,
    comparisons_of,
    has_comparisons,
    item_sizes,
    pair_sizes,
    plan,
)
from tertium.learning.losses import PairLoss, pairwise_loss, squared_error
from tertium.learning.networks import PairNetwork
from tertium.learning.states import States
from tertium.learning.training import Epoch, Run, TrainingOptions, fit
from tertium.scores import FloatArray

EVALUATED = 256  # pairs of one batch when nothing is learned


@dataclass(frozen=True, kw_only=True)
class HeadTraining:
    """A network with the states it reads.

    `choose` is called with nothing and gives the statistic of the network as it stands; `snapshot`
    and `on_epoch` go to the loop.
    """

    network: PairNetwork
    states: States
    choose: Callable[[], float] | None = None
    snapshot: Path | None = None
    on_epoch: Callable[[Epoch], None] | None = field(default=None)

    def on_scores(self, data: Scored, options: TrainingOptions, stage: str = "scores") -> Run:
        """Least squares on human scores, on the scale they have."""
        sizes = pair_sizes(data.pairs, self.states.lengths)
        regressor = self.network.regressor
        spread = float(data.targets.std())
        regressor.centre.fill_(float(data.targets.mean()))
        regressor.spread.fill_(spread)
        targets = torch.from_numpy(data.targets).float().to(regressor.centre.device)

        def loss_of(rows: IntArray) -> Tensor:
            scores = pair_scores(self.network, self.states, data.pairs.take(rows))
            return squared_error(scores, targets[torch.from_numpy(rows)]) / spread**2

        def batches(rng: np.random.Generator) -> Iterator[IntArray]:
            return plan(sizes, options.batch_size, rng)

        return self._fit(batches, loss_of, options, stage)

    def on_comparisons(
        self,
        data: Compared,
        options: TrainingOptions,
        stage: str = "comparisons",
        loss: PairLoss = "logistic",
    ) -> Run:
        """Pairwise loss on what people preferred, item by item."""
        usable = np.flatnonzero(has_comparisons(data))
        sizes = item_sizes(data, self.states.lengths)[usable]

        def loss_of(batch: ComparedBatch) -> Tensor:
            scores = pair_scores(self.network, self.states, batch.pairs)
            better, worse, weights = (
                torch.from_numpy(part).to(scores.device)
                for part in (batch.better, batch.worse, batch.weights.astype(np.float32))
            )
            return pairwise_loss(scores, better, worse, weights, loss)

        def batches(rng: np.random.Generator) -> Iterator[ComparedBatch]:
            for items in plan(sizes, options.batch_size, rng):
                yield comparisons_of(data, usable[items])

        return self._fit(batches, loss_of, options, stage)

    def _fit(
        self,
        batches: Callable[[np.random.Generator], Iterator[object]],
        loss_of: Callable[..., Tensor],
        options: TrainingOptions,
        stage: str,
    ) -> Run:
        return fit(
            self.network,
            batches,
            loss_of,
            options=options,
            dev=self.choose,
            stage=stage,
            snapshot=self.snapshot,
            on_epoch=self.on_epoch,
        )


def pair_scores(network: PairNetwork, states: States, pairs: Pairs) -> Tensor:
    """Scores (pairs,) of numbered pairs; each of their texts is read once."""
    used, where = np.unique(
        np.concatenate([pairs.hypotheses[:, None], pairs.others], axis=1), return_inverse=True
    )
    rows = torch.from_numpy(where.reshape(len(pairs), -1))  # (pairs, 1 + sides)
    texts = network.read(states(used))
    others = [texts.take(rows[:, side]) for side in range(1, rows.shape[1])]
    return network.score(texts.take(rows[:, 0]), others)


def all_scores(network: PairNetwork, states: States, pairs: Pairs) -> FloatArray:
    """Scores (pairs,) of any number of pairs, in batches of similar length, learning nothing."""
    result = np.zeros(len(pairs))
    order = np.argsort(pair_sizes(pairs, states.lengths), kind="stable")
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(order), EVALUATED):
            rows = order[start : start + EVALUATED]
            result[rows] = pair_scores(network, states, pairs.take(rows)).float().cpu().numpy()
    return result


def agreement_on_scores(
    network: PairNetwork, states: States, held_out: Scored, groups: Sequence[str]
) -> float:
    """Average Pearson's r with held-out human scores."""
    return average_pearson(all_scores(network, states, held_out.pairs), held_out.targets, groups)


def agreement_on_comparisons(network: PairNetwork, states: States, held_out: Compared) -> float:
    """Strict tau on held-out comparisons."""
    scores = all_scores(network, states, held_out.pairs)
    return strict_tau(scores, held_out.better, held_out.worse, held_out.weights)
