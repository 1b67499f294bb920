"""Trains a pair network over frozen states, from human scores, from comparisons, or from both.

Stands between the loop, which knows no data, and the networks, which know no numbers of texts:
numbers texts, runs stages over their states (`states`), keeps the best.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertium.arrays import FloatArray, IntArray
from tertium.encoders.encoder import Encoder, load_encoder
from tertium.metrics.heads.networks import PairNetwork, make_network
from tertium.metrics.heads.settings import HeadConfig, HeadOptions
from tertium.metrics.heads.states import States, make_states
from tertium.models.checkpoint import Checkpoint, halve, write_checkpoint
from tertium.models.examples import (
    Compared,
    ComparedBatch,
    Pairs,
    Scored,
    TextNumbers,
    average_pearson,
    compared_pairs,
    comparisons_of,
    has_comparisons,
    item_sizes,
    pair_sizes,
    plan,
    scored_pairs,
    strict_tau,
)
from tertium.models.judged import JudgedSets
from tertium.models.options import Epoch, PairLoss, TrainingOptions
from tertium.models.trained import LOG, SNAPSHOT, Lesson
from tertium.models.training import Run, fit, pairwise_loss, read_log, read_snapshot, write_log
from tertium.runtime import choose_device, current_runtime

EVALUATED = 256  # pairs of one batch when nothing is learned


class Steps(NamedTuple):
    """What a stage learns by: the loss of a batch, and the batches of an epoch."""

    loss_of: Callable[[Any], Tensor]
    batches: Callable[[np.random.Generator], Iterator[Any]]


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
    on_epoch: Callable[[Epoch], None] | None = None

    def run(self, stage: str, steps: Steps, options: TrainingOptions) -> Run:
        """Go through a stage by its name."""
        return fit(
            self.network,
            steps.batches,
            steps.loss_of,
            options=options,
            dev=self.choose,
            stage=stage,
            snapshot=self.snapshot,
            identity=self.identity,
            on_epoch=self.on_epoch,
        )

    def by_scores(self, data: Scored, options: TrainingOptions) -> Steps:
        """Least squares on human scores, on the scale they have, in units of their variance."""
        sizes = pair_sizes(data.pairs, self.states.lengths)
        regressor, spread = self.network.regressor, float(data.targets.std())
        regressor.centre.fill_(float(data.targets.mean()))
        regressor.spread.fill_(spread)
        targets = torch.from_numpy(data.targets).float().to(regressor.centre.device)

        def loss_of(rows: IntArray) -> Tensor:
            scores = pair_scores(self.network, self.states, data.pairs.take(rows))
            return ((scores - targets[torch.from_numpy(rows)]) ** 2).mean() / spread**2

        return Steps(loss_of, lambda rng: plan(sizes, options.batch_size, rng))

    def by_comparisons(
        self, data: Compared, options: TrainingOptions, loss: PairLoss = "logistic"
    ) -> Steps:
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

        return Steps(loss_of, batches)


def join_steps(scores: Steps, comparisons: Steps) -> Steps:
    """Each step the sum of both losses, on a batch of scores and a batch of comparisons.

    An epoch goes over the comparisons once, and over the scores as often as that takes.
    """

    def batches(rng: np.random.Generator) -> Iterator[tuple[IntArray, ComparedBatch]]:
        rounds = itertools.chain.from_iterable(scores.batches(rng) for _ in itertools.count())
        return zip(rounds, comparisons.batches(rng), strict=False)

    return Steps(lambda batch: scores.loss_of(batch[0]) + comparisons.loss_of(batch[1]), batches)


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbered:
    """Judged sets over one table of texts; `groups` are the language pairs of the scored pairs."""

    scored: Scored | None
    compared: Compared | None
    groups: tuple[str, ...]

    @classmethod
    def of(cls, sets: JudgedSets, against: str, table: TextNumbers) -> Numbered:
        scored = scored_pairs(sets.scores, against, table) if sets.scores else None
        return cls(
            scored=scored,
            compared=compared_pairs(sets.comparisons, against, table) if sets.comparisons else None,
            groups=tuple(
                j.lp or one.lp
                for one in sets.scores
                for j in one.judgments
                for _ in j.segment.sides(against)
            ),
        )


def train_head(name: str, lesson: Lesson) -> Checkpoint:
    """Train the network of a name; with a folder, what is returned lies there as well."""
    config: HeadConfig = lesson.settings
    table: TextNumbers = {}
    train = Numbered.of(lesson.data, config.against, table)
    held_out = Numbered.of(lesson.dev, config.against, table)
    encoder = load_encoder(config.encoder_name)
    device = choose_device(current_runtime().device)
    torch.manual_seed(lesson.options.seed)
    network = make_network(name, config, encoder).to(device)
    keeper = _Keeper(name, lesson, encoder, network)
    with tempfile.TemporaryDirectory(prefix="tertium-") as workspace:
        states = make_states(encoder, list(table), device, Path(workspace))
        training = HeadTraining(
            network=network,
            states=states,
            choose=_choice(network, states, held_out),
            snapshot=lesson.folder / SNAPSHOT if lesson.folder is not None else None,
            identity=_identity(name, lesson, keeper.encoders, list(table), (train, held_out)),
            on_epoch=keeper.hear,
        )
        _run_stages(training, lesson.options, train)
    return keeper.finish()


class _Keeper:
    """Writes the log and, where there is a folder, each epoch that is the best so far."""

    def __init__(self, name: str, lesson: Lesson, encoder: Encoder, network: PairNetwork) -> None:
        self.name, self.lesson, self.network = name, lesson, network
        self.folder = lesson.folder
        self.encoders = {lesson.settings.encoder_name: encoder.weights_hash}
        self.log: list[Epoch] = []
        if self.folder is not None and (self.folder / SNAPSHOT).is_file():
            self.log = read_log(self.folder / LOG)

    def hear(self, epoch: Epoch) -> None:
        self.log.append(epoch)
        if self.folder is not None:
            write_log(self.folder / LOG, self.log)
            if epoch.best:
                write_checkpoint(self.folder, self.checkpoint())
        if self.lesson.on_epoch is not None:
            self.lesson.on_epoch(epoch)

    def checkpoint(self) -> Checkpoint:
        """The network as it stands."""
        weights = self.network.state_dict()
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in weights.items()}
        return Checkpoint(
            name=self.name,
            config=asdict(self.lesson.settings),
            encoders=self.encoders,
            arrays=halve(arrays),
            training={
                "data": self.lesson.data.sizes,
                "chosen on": self.lesson.dev.sizes,
                "options": asdict(self.lesson.options),
                "epochs": [asdict(epoch) for epoch in self.log],
            },
        )

    def finish(self) -> Checkpoint:
        checkpoint = self.checkpoint()
        if self.folder is not None:
            write_checkpoint(self.folder, checkpoint)
            (self.folder / SNAPSHOT).unlink(missing_ok=True)
        return checkpoint


def _run_stages(training: HeadTraining, options: HeadOptions, data: Numbered) -> None:
    """Comparisons, then scores; or both at once. A stage that was finished is not run again."""
    first, second = options.on_comparisons, options.on_scores(after=data.compared is not None)
    if data.scored is not None and data.compared is not None and options.mixed:
        by_scores = training.by_scores(data.scored, first)
        by_comparisons = training.by_comparisons(data.compared, first, options.loss)
        training.run("both", join_steps(by_scores, by_comparisons), first)
        return
    found = read_snapshot(training.snapshot, training.identity) if training.snapshot else None
    past_comparisons = found is not None and found.stage == "scores"
    if data.compared is not None and not past_comparisons:
        steps = training.by_comparisons(data.compared, first, options.loss)
        training.run("comparisons", steps, first)
    if data.scored is not None:
        training.run("scores", training.by_scores(data.scored, second), second)


def _choice(network: PairNetwork, states: States, held_out: Numbered) -> Callable[[], float] | None:
    """The statistic an epoch is chosen by; None where nothing is held out."""
    if held_out.scored is not None:
        scored, groups = held_out.scored, held_out.groups
        return lambda: agreement_on_scores(network, states, scored, groups)
    if held_out.compared is not None:
        compared = held_out.compared
        return lambda: agreement_on_comparisons(network, states, compared)
    return None


def _identity(
    name: str,
    lesson: Lesson,
    encoders: Mapping[str, str],
    texts: Sequence[str],
    sides: Sequence[Numbered],
) -> str:
    """What a run must share with an interrupted one to go on from it.

    That is all of what is learned from and of what an epoch is chosen by.
    """
    choices = [name, asdict(lesson.settings), asdict(lesson.options), encoders, texts]
    digest = hashlib.sha256(json.dumps(choices).encode())
    for side in sides:
        digest.update(json.dumps(side.groups).encode())
        for data in (side.scored, side.compared):
            digest.update(b"without" if data is None else b"with")
            for array in data.arrays if data is not None else ():
                digest.update(array.tobytes())
    return digest.hexdigest()
