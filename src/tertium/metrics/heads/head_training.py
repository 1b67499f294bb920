"""Train a head over frozen states on human scores, on comparisons, or on both.

Connects the training loop, the networks and the data: numbers the texts, runs the stages over
their states, and keeps the best epoch.

States of a frozen encoder for training heads, by text index.

`DiskStates` computes every text once and maps a file of half-precision states, so training is
limited by the head and memory is bounded. `LiveStates` runs the encoder for every batch, which on
a GPU is faster than reading a disk.
"""

from __future__ import annotations

import hashlib
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

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.atomic import open_atomic
from tertium.core.errors import UsageError, WriteError
from tertium.core.runtime import Precision, current_runtime, progress_task, resolve_device
from tertium.encoders.cached_encoding import stream_embeddings
from tertium.encoders.encoder import Encoder, load_encoder, offsets_from_lengths
from tertium.encoders.transformer_encoder import TransformerEncoder
from tertium.metrics.heads.config import HeadConfig, HeadOptions
from tertium.metrics.heads.networks import PaddedSequences, PairNetwork, make_network, split_layers
from tertium.models.checkpoint import Checkpoint, round_to_half, write_checkpoint
from tertium.models.trained_model import SNAPSHOT
from tertium.models.training_data import LOG, TrainingJob, TrainingSets
from tertium.models.training_examples import (
    ComparedPairs,
    Comparisons,
    ScoredPairs,
    TextIds,
    average_pearson,
    has_decided_comparisons,
    longest_per_item,
    longest_per_pair,
    number_compared_pairs,
    number_scored_pairs,
    select_comparisons,
    shuffle_into_batches,
    strict_tau,
)
from tertium.models.training_loop import Run, fit, pairwise_loss, read_log, read_stage, write_log
from tertium.models.training_options import Epoch, PairLoss, TrainingOptions

EVALUATION_BATCH = 256  # pairs


class Steps(NamedTuple):
    """The loss of a batch and the batches of an epoch."""

    compute_loss: Callable[[Any], Tensor]
    make_batches: Callable[[np.random.Generator], Iterator[Any]]


@dataclass(frozen=True, kw_only=True)
class HeadTraining:
    """A network with the states it reads, and what the training loop needs."""

    network: PairNetwork
    states: States
    evaluate: Callable[[], float] | None = None
    snapshot: Path | None = None
    identity: str = ""
    on_epoch: Callable[[Epoch], None] | None = None

    def run(self, stage: str, steps: Steps, options: TrainingOptions) -> Run:
        return fit(
            self.network,
            steps.make_batches,
            steps.compute_loss,
            options=options,
            evaluate=self.evaluate,
            stage=stage,
            snapshot=self.snapshot,
            identity=self.identity,
            on_epoch=self.on_epoch,
        )

    def by_scores(self, data: ScoredPairs, options: TrainingOptions) -> Steps:
        """Least squares on human scores, in units of their variance."""
        sizes = longest_per_pair(data.pairs, self.states.lengths)
        regressor, spread = self.network.regressor, float(data.targets.std())
        regressor.centre.fill_(float(data.targets.mean()))
        regressor.spread.fill_(spread)
        targets = torch.from_numpy(data.targets).float().to(regressor.centre.device)

        def compute_loss(rows: IntArray) -> Tensor:
            scores = pair_scores(self.network, self.states, data.pairs[rows])
            return ((scores - targets[torch.from_numpy(rows)]) ** 2).mean() / spread**2

        return Steps(compute_loss, lambda rng: shuffle_into_batches(sizes, options.batch_size, rng))

    def by_comparisons(
        self, data: ComparedPairs, options: TrainingOptions, loss: PairLoss = "logistic"
    ) -> Steps:
        """Pairwise loss on human preferences, item by item."""
        usable = np.flatnonzero(has_decided_comparisons(data))
        sizes = longest_per_item(data, self.states.lengths)[usable]

        def compute_loss(batch: Comparisons) -> Tensor:
            scores = pair_scores(self.network, self.states, batch.pairs)
            better, worse, weights = (
                torch.from_numpy(part).to(scores.device)
                for part in (batch.better, batch.worse, batch.weights.astype(np.float32))
            )
            return pairwise_loss(scores, better, worse, weights, loss)

        def batches(rng: np.random.Generator) -> Iterator[Comparisons]:
            for items in shuffle_into_batches(sizes, options.batch_size, rng):
                yield select_comparisons(data, usable[items])

        return Steps(compute_loss, batches)


def pair_scores(network: PairNetwork, states: States, pairs: IntArray) -> Tensor:
    """Score numbered pairs, (pairs,); each text is encoded once."""
    used, inverse = np.unique(pairs, return_inverse=True)
    rows = torch.from_numpy(inverse.reshape(len(pairs), -1))  # (pairs, 1 + sides)
    texts = network.encode(states(used))
    compared = [texts.take(rows[:, side]) for side in range(1, rows.shape[1])]
    return network.score(texts.take(rows[:, 0]), compared)


def all_scores(network: PairNetwork, states: States, pairs: IntArray) -> FloatArray:
    """Score any number of pairs without gradients, in batches of similar length, (pairs,)."""
    result = np.zeros(len(pairs))
    order = np.argsort(longest_per_pair(pairs, states.lengths), kind="stable")
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(order), EVALUATION_BATCH):
            rows = order[start : start + EVALUATION_BATCH]
            result[rows] = pair_scores(network, states, pairs[rows]).float().cpu().numpy()
    return result


def agreement_on_scores(
    network: PairNetwork, states: States, held_out: ScoredPairs, groups: Sequence[str]
) -> float:
    """Return the average Pearson's r with held-out human scores."""
    return average_pearson(all_scores(network, states, held_out.pairs), held_out.targets, groups)


def agreement_on_comparisons(network: PairNetwork, states: States, dev: ComparedPairs) -> float:
    """Return strict tau on held-out comparisons."""
    scores = all_scores(network, states, dev.pairs)
    return strict_tau(scores, dev.better, dev.worse, dev.weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberedSets:
    """Training sets with numbered texts; `groups` are the language pairs of the scored pairs."""

    scored: ScoredPairs | None
    compared: ComparedPairs | None
    groups: tuple[str, ...]

    @classmethod
    def from_sets(cls, sets: TrainingSets, against: str, table: TextIds) -> NumberedSets:
        scored = compared = None
        if sets.scores:
            scored = number_scored_pairs(sets.scores, against, table)
        if sets.comparisons:
            compared = number_compared_pairs(sets.comparisons, against, table)
        groups: list[str] = []
        for judgment_set in sets.scores:
            for judgment in judgment_set.judgments:
                pairs = judgment.segment.comparison_texts(against)
                groups += [judgment.lp or judgment_set.lp] * len(pairs)
        return cls(scored=scored, compared=compared, groups=tuple(groups))


def train_head(name: str, job: TrainingJob) -> Checkpoint:
    """Train the network with this name; with a folder, the result is stored there as well."""
    config: HeadConfig = job.settings
    table: TextIds = {}
    train = NumberedSets.from_sets(job.data, config.against, table)
    held_out = NumberedSets.from_sets(job.dev, config.against, table)
    encoder = load_encoder(config.encoder_name)
    device = resolve_device(current_runtime().device)
    torch.manual_seed(job.options.seed)
    network = make_network(name, config, encoder).to(device)
    writer = _CheckpointWriter(name, job, encoder, network)
    with tempfile.TemporaryDirectory(prefix="tertium-") as workspace:
        states = make_states(encoder, list(table), device, Path(workspace))
        training = HeadTraining(
            network=network,
            states=states,
            evaluate=_make_evaluation(network, states, held_out),
            snapshot=job.folder / SNAPSHOT if job.folder is not None else None,
            identity=_identity(name, job, writer.encoders, list(table), (train, held_out)),
            on_epoch=writer.record_epoch,
        )
        _run_stages(training, job.options, train)
    return writer.finish()


class _CheckpointWriter:
    """Writes the log and each best epoch so far."""

    def __init__(self, name: str, job: TrainingJob, encoder: Encoder, network: PairNetwork) -> None:
        self.name, self.job, self.network = name, job, network
        self.folder = job.folder
        self.encoders = {job.settings.encoder_name: encoder.weights_hash}
        self.log: list[Epoch] = []
        if self.folder is not None and (self.folder / SNAPSHOT).is_file():
            self.log = read_log(self.folder / LOG)

    def record_epoch(self, epoch: Epoch) -> None:
        self.log.append(epoch)
        if self.folder is not None:
            write_log(self.folder / LOG, self.log)
            if epoch.best:
                write_checkpoint(self.folder, self.checkpoint())
        if self.job.on_epoch is not None:
            self.job.on_epoch(epoch)

    def checkpoint(self) -> Checkpoint:
        weights = self.network.state_dict()
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in weights.items()}
        return Checkpoint(
            name=self.name,
            config=asdict(self.job.settings),
            encoders=self.encoders,
            arrays=round_to_half(arrays),
            training={
                "data": self.job.data.sizes,
                "chosen on": self.job.dev.sizes,
                "options": asdict(self.job.options),
                "epochs": [asdict(epoch) for epoch in self.log],
            },
        )

    def finish(self) -> Checkpoint:
        checkpoint = self.checkpoint()
        if self.folder is not None:
            write_checkpoint(self.folder, checkpoint)
            (self.folder / SNAPSHOT).unlink(missing_ok=True)
        return checkpoint


def _run_stages(training: HeadTraining, options: HeadOptions, data: NumberedSets) -> None:
    """Train on comparisons, then on scores; finished stages are skipped."""
    first, second = options.on_comparisons, options.on_scores(after=data.compared is not None)
    stage = read_stage(training.snapshot, training.identity) if training.snapshot else None
    if data.compared is not None and stage != "scores":
        steps = training.by_comparisons(data.compared, first, options.loss)
        training.run("comparisons", steps, first)
    if data.scored is not None:
        training.run("scores", training.by_scores(data.scored, second), second)


def _make_evaluation(
    network: PairNetwork, states: States, held_out: NumberedSets
) -> Callable[[], float] | None:
    """Return the function that evaluates an epoch; None without held-out data."""
    if held_out.scored is not None:
        scored, groups = held_out.scored, held_out.groups
        return lambda: agreement_on_scores(network, states, scored, groups)
    if held_out.compared is not None:
        compared = held_out.compared
        return lambda: agreement_on_comparisons(network, states, compared)
    return None


def _identity(
    name: str,
    job: TrainingJob,
    encoders: Mapping[str, str],
    texts: Sequence[str],
    comparison_texts: Sequence[NumberedSets],
) -> str:
    """Hash data, settings and options: a resumed run must share them."""
    choices = [name, asdict(job.settings), asdict(job.options), encoders, texts]
    digest = hashlib.sha256(json.dumps(choices).encode())
    for side in comparison_texts:
        digest.update(json.dumps(side.groups).encode())
        for data in (side.scored, side.compared):
            digest.update(b"without" if data is None else b"with")
            for array in vars(data).values() if data is not None else ():
                digest.update(array.tobytes())
    return digest.hexdigest()


class DiskStates:
    """States of all texts in a half-precision file, (total tokens, layers x d).

    160,000 texts of 28 tokens take 24 GB for the seven layers of minilm; the operating system
    caches what fits in memory.
    """

    def __init__(
        self, encoder: Encoder, texts: Sequence[str], file: Path, *, device: str = "cpu"
    ) -> None:
        self.device, self.layers = device, encoder.layers
        lengths: list[int] = []
        try:
            with (
                open_atomic(file, durable=False) as out,
                progress_task("encoding", total=len(texts)) as advance,
            ):
                for part in stream_embeddings(encoder, texts, sentences=False):
                    out.write(part.vectors.astype(np.float16).tobytes())
                    lengths += part.lengths.tolist()
                    advance(len(part))
        except WriteError as error:
            size = _estimate_bytes(encoder, texts) / 1e9
            raise WriteError(
                f"{error}: the states of the encoder need about {size:.1f} GB; set TMPDIR to a "
                "folder with enough space"
            ) from None
        self._offsets = offsets_from_lengths(lengths)
        shape = (int(self._offsets[-1]), encoder.dim)
        self._flat = (
            np.memmap(file, dtype=np.float16, mode="r", shape=shape)
            if shape[0]
            else np.zeros(shape, np.float16)
        )

    @property
    def lengths(self) -> IntArray:
        return np.diff(self._offsets)

    def __call__(self, texts: IntArray) -> PaddedSequences:
        lengths = self.lengths[texts]
        width = max(1, int(lengths.max(initial=0)))
        padded = np.zeros((len(texts), width, self._flat.shape[1]), dtype=np.float16)
        for row, text in enumerate(texts):
            padded[row, : lengths[row]] = self._flat[self._offsets[text] : self._offsets[text + 1]]
        values = torch.from_numpy(padded).to(self.device).float()
        return PaddedSequences(split_layers(values, self.layers), torch.from_numpy(lengths))


class LiveStates:
    """States computed by a forward pass per batch; each forked process uses its own GPU."""

    def __init__(
        self,
        encoder: TransformerEncoder,
        texts: Sequence[str],
        *,
        device: str = "auto",
        precision: Precision = "fp32",
    ) -> None:
        if encoder.layer != "all":
            raise UsageError(f"encoder {encoder.name}: mixing layers needs all of them (@all)")
        self._encoder = replace(encoder, device=device, precision=precision)
        self._ids = self._encoder.encode_ids(texts)
        self.lengths = np.array([len(ids) for ids in self._ids], dtype=np.int64)

    @cached_property
    def device(self) -> str:
        return resolve_device(self._encoder.device)

    def __call__(self, texts: IntArray) -> PaddedSequences:
        states, _ = self._encoder.hidden_states([self._ids[text] for text in texts], "all")
        lengths = torch.from_numpy(self.lengths[texts])
        shift, width = len(self._encoder.tokenizer.prefix_ids), max(1, int(lengths.max()))
        return PaddedSequences(states[:, :, shift : shift + width].permute(1, 2, 0, 3), lengths)


States = DiskStates | LiveStates


def _estimate_bytes(encoder: Encoder, texts: Sequence[str]) -> int:
    return 2 * encoder.dim * sum(len(text) // 4 + 2 for text in texts)


def make_states(encoder: Encoder, texts: Sequence[str], device: str, workspace: Path) -> States:
    """Run transformers per batch on a GPU; otherwise compute the states once, on disk."""
    if (
        device.startswith("cuda")
        and isinstance(encoder, TransformerEncoder)
        and encoder.layer == "all"
    ):
        return LiveStates(encoder, texts, device=device, precision="fp16")
    return DiskStates(encoder, texts, workspace / "states", device=device)
