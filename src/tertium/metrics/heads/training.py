"""Trains a pair network over frozen states, from human scores, from comparisons, or from both.

Stands between the loop, which knows no data, and the networks, which know no numbers of texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tertium.arrays import FloatArray, IntArray
from tertium.metrics.heads.networks import PairNetwork
from tertium.metrics.heads.states import States
from tertium.models.choice import average_pearson, strict_tau
from tertium.models.examples import (
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
from tertium.models.losses import pairwise_loss, squared_error
from tertium.models.options import Epoch, PairLoss, TrainingOptions
from tertium.models.training import Run, fit

EVALUATED = 256  # pairs of one batch when nothing is learned


@dataclass(frozen=True, kw_only=True)
class HeadTraining:
    """A network with the states it reads.

    `choose` is called with nothing and gives the statistic of the network as it stands;
    `snapshot`, `identity` and `on_epoch` go to the loop.
    """

    network: PairNetwork
    states: States
    choose: Callable[[], float] | None = None
    snapshot: Path | None = None
    identity: str = ""
    on_epoch: Callable[[Epoch], None] | None = field(default=None)

    def on_scores(self, data: Scored, options: TrainingOptions, stage: str = "scores") -> Run:
        """Least squares on human scores, on the scale they have."""
        loss_of, batches = self._score_steps(data, options)
        return self._fit(batches, loss_of, options, stage)

    def on_comparisons(
        self,
        data: Compared,
        options: TrainingOptions,
        stage: str = "comparisons",
        loss: PairLoss = "logistic",
    ) -> Run:
        """Pairwise loss on what people preferred, item by item."""
        loss_of, batches = self._comparison_steps(data, options, loss)
        return self._fit(batches, loss_of, options, stage)

    def on_both(
        self,
        scored: Scored,
        compared: Compared,
        options: TrainingOptions,
        stage: str = "both",
        loss: PairLoss = "logistic",
    ) -> Run:
        """Each step the sum of both losses, on a batch of scores and a batch of comparisons.

        An epoch goes over the comparisons once, and over the scores as often as that takes.
        """
        of_scores, score_batches = self._score_steps(scored, options)
        of_comparisons, comparison_batches = self._comparison_steps(compared, options, loss)

        def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray, ComparedBatch]]:
            rounds = itertools.chain.from_iterable(score_batches(rng) for _ in itertools.count())
            return zip(rounds, comparison_batches(rng), strict=False)

        def loss_of(batch: tuple[IntArray, ComparedBatch]) -> Tensor:
            return of_scores(batch[0]) + of_comparisons(batch[1])

        return self._fit(batches, loss_of, options, stage)

    def _score_steps(
        self, data: Scored, options: TrainingOptions
    ) -> tuple[Callable[[IntArray], Tensor], Callable[[np.random.Generator], Iterator[IntArray]]]:
        """The loss of a batch of scores, in units of their variance, and an epoch's batches."""
        sizes = pair_sizes(data.pairs, self.states.lengths)
        regressor, spread = self.network.regressor, float(data.targets.std())
        regressor.centre.fill_(float(data.targets.mean()))
        regressor.spread.fill_(spread)
        targets = torch.from_numpy(data.targets).float().to(regressor.centre.device)

        def loss_of(rows: IntArray) -> Tensor:
            scores = pair_scores(self.network, self.states, data.pairs.take(rows))
            return squared_error(scores, targets[torch.from_numpy(rows)]) / spread**2

        return loss_of, lambda rng: plan(sizes, options.batch_size, rng)

    def _comparison_steps(
        self, data: Compared, options: TrainingOptions, loss: PairLoss
    ) -> tuple[
        Callable[[ComparedBatch], Tensor],
        Callable[[np.random.Generator], Iterator[ComparedBatch]],
    ]:
        """The loss of a batch of items and an epoch's batches."""
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

        return loss_of, batches

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
            identity=self.identity,
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
