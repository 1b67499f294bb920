"""Trains a pair network over frozen states, from human scores, from comparisons, or from both.

Stands between the loop, which knows no data, and the networks, which know no numbers of texts:
numbers texts, prepares states, runs stages, keeps the best. `DiskStates` computes every text once,
keeps half-precision numbers in a file and maps it, so that epochs run at the speed of the head in
bounded memory; `LiveStates` runs the encoder for every batch, which a GPU does faster than a disk
can read.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertium.arrays import FloatArray, IntArray
from tertium.atomic import replace_content
from tertium.encoders.encoder import Encoder, load_encoder, offsets_of
from tertium.encoders.stream import stream
from tertium.encoders.transformer import Transformer
from tertium.errors import UsageError, WriteError
from tertium.metrics.heads.metric import HeadConfig, HeadOptions
from tertium.metrics.heads.networks import PairNetwork, make_network, split_layers
from tertium.metrics.heads.recurrence import Sequences
from tertium.models.checkpoint import Checkpoint, halve, write_checkpoint
from tertium.models.examples import (
    Compared,
    ComparedBatch,
    JudgedSets,
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
from tertium.models.options import Epoch, PairLoss, TrainingOptions
from tertium.models.trained import LOG, SNAPSHOT, Lesson
from tertium.models.training import (
    Run,
    fit,
    pairwise_loss,
    read_log,
    read_snapshot,
    write_log,
)
from tertium.runtime import Precision, choose_device, current_runtime, task


class DiskStates:
    """States of all texts in one file of half-precision numbers, (total tokens, layers x d).

    `file` is made anew; 160,000 texts of 28 tokens are 24 GB for minilm's seven layers, of which
    the operating system keeps in memory what fits.
    """

    def __init__(
        self, encoder: Encoder, texts: Sequence[str], file: Path, *, device: str = "cpu"
    ) -> None:
        self.device, self.layers = device, encoder.layers
        lengths: list[int] = []
        try:
            with (
                replace_content(file, durable=False) as out,
                task("encoding", total=len(texts)) as advance,
            ):
                for part in stream(encoder, texts, sentences=False):
                    out.write(part.vectors.astype(np.float16).tobytes())
                    lengths += part.lengths.tolist()
                    advance(len(part))
        except WriteError as error:
            size = _estimate(encoder, texts) / 1e9
            raise WriteError(
                f"{error}: about {size:.1f} GB are needed there for the encoder's states; set "
                "TMPDIR to a folder with room"
            ) from None
        self._offsets = offsets_of(lengths)
        shape = (int(self._offsets[-1]), encoder.dim)
        self._flat = (
            np.memmap(file, dtype=np.float16, mode="r", shape=shape)
            if shape[0]
            else np.zeros(shape, np.float16)
        )

    @property
    def lengths(self) -> IntArray:
        return np.diff(self._offsets)

    def __call__(self, texts: IntArray) -> Sequences:
        lengths = self.lengths[texts]
        width = max(1, int(lengths.max(initial=0)))
        padded = np.zeros((len(texts), width, self._flat.shape[1]), dtype=np.float16)
        for row, text in enumerate(texts):
            padded[row, : lengths[row]] = self._flat[self._offsets[text] : self._offsets[text + 1]]
        values = torch.from_numpy(padded).to(self.device).float()
        return Sequences(split_layers(values, self.layers), torch.from_numpy(lengths))


class LiveStates:
    """States computed by a forward pass of the encoder for each batch.

    Texts are tokenised at once; the network is loaded with the first batch, so that processes
    forked in between share the tokens and have a GPU of their own.
    """

    def __init__(
        self,
        encoder: Transformer,
        texts: Sequence[str],
        *,
        device: str = "auto",
        precision: Precision = "fp32",
    ) -> None:
        if encoder.layer != "all":
            raise UsageError(f"encoder {encoder.name}: a learned mix needs all layers (@all)")
        self._body = replace(encoder.body, device=device, precision=precision, long="truncate")
        self._ids = self._body.number(texts)
        self.lengths = np.array([len(ids) for ids in self._ids], dtype=np.int64)

    @cached_property
    def device(self) -> str:
        return choose_device(self._body.device)

    def __call__(self, texts: IntArray) -> Sequences:
        states, _ = self._body.states([self._ids[text] for text in texts], "all")
        lengths = torch.from_numpy(self.lengths[texts])
        shift, width = len(self._body.tokenizer.prefix), max(1, int(lengths.max()))
        return Sequences(states[:, :, shift : shift + width].permute(1, 2, 0, 3), lengths)


States = DiskStates | LiveStates  # of texts by their numbers


def _estimate(encoder: Encoder, texts: Sequence[str]) -> int:
    return 2 * encoder.dim * sum(len(text) // 4 + 2 for text in texts)


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
    """The same over one table of texts; `groups` are the language pairs of the scored pairs."""

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
                for j in one.judgements
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


def make_states(encoder: Encoder, texts: Sequence[str], device: str, workspace: Path) -> States:
    """On a GPU a transformer runs for each batch; otherwise states are computed once, to disk."""
    if device.startswith("cuda") and isinstance(encoder, Transformer) and encoder.layer == "all":
        return LiveStates(encoder, texts, device=device, precision="fp16")
    return DiskStates(encoder, texts, workspace / "states", device=device)


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


def _choice(network: PairNetwork, states: States, held_out: Numbered) -> Any:
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
