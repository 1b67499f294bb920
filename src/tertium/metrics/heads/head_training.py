"""Train a head over frozen states on human scores, on comparisons, or on both.

Connects the training loop, the networks and the data: numbers the texts, runs the stages over
their states, and keeps the best epoch.

The states of the frozen encoder are computed once, and read from a file of half-precision values:
training is limited by the head, and memory is bounded.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tertium.core.arrays import IntArray
from tertium.core.atomic import open_atomic
from tertium.core.errors import WriteError
from tertium.core.runtime import current_runtime, progress_task, resolve_device
from tertium.encoders.cached_encoding import stream_embeddings
from tertium.encoders.encoder import Encoder, load_encoder, offsets_from_lengths
from tertium.metrics.heads.config import HeadOptions
from tertium.metrics.heads.networks import (
    PairNetwork,
    TextStates,
    make_network,
    score_in_batches,
    score_pairs,
)
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
from tertium.models.training_loop import fit, pairwise_loss, read_log, read_stage, write_log
from tertium.models.training_options import Epoch

Evaluation = Callable[[], float]


def score_steps(
    network: PairNetwork, states: TextStates, data: ScoredPairs, batch_size: int
) -> tuple[Callable[..., Iterator[IntArray]], Callable[[IntArray], Tensor]]:
    """Return batches and loss: least squares on human scores, in units of their variance."""
    sizes = longest_per_pair(data.pairs, states.lengths)
    regressor = network.regressor
    spread = float(data.targets.std())
    regressor.centre.fill_(float(data.targets.mean()))
    regressor.spread.fill_(spread)
    targets = torch.from_numpy(data.targets).float().to(regressor.centre.device)

    def compute_loss(rows: IntArray) -> Tensor:
        scores = score_pairs(network, states, data.pairs[rows])
        return ((scores - targets[torch.from_numpy(rows)]) ** 2).mean() / spread**2

    return partial(shuffle_into_batches, sizes, batch_size), compute_loss


def comparison_steps(
    network: PairNetwork, states: TextStates, data: ComparedPairs, options: HeadOptions
) -> tuple[Callable[..., Iterator[Comparisons]], Callable[[Comparisons], Tensor]]:
    """Return batches and loss: a pairwise loss on human preferences, item by item."""
    usable = np.flatnonzero(has_decided_comparisons(data))
    sizes = longest_per_item(data, states.lengths)[usable]

    def compute_loss(batch: Comparisons) -> Tensor:
        scores = score_pairs(network, states, batch.pairs)
        columns = batch.better, batch.worse, batch.weights.astype(np.float32)
        better, worse, weights = (torch.from_numpy(part).to(scores.device) for part in columns)
        return pairwise_loss(scores, better, worse, weights, options.loss)

    def make_batches(rng: np.random.Generator) -> Iterator[Comparisons]:
        for items in shuffle_into_batches(sizes, options.items, rng):
            yield select_comparisons(data, usable[items])

    return make_batches, compute_loss


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
    """Train the network with this name; with a folder, the result is stored there as well.

    Comparisons come first, then scores; a resumed run skips finished stages.
    """
    config = job.settings
    options = job.options
    table: TextIds = {}
    train = NumberedSets.from_sets(job.data, config.against, table)
    held_out = NumberedSets.from_sets(job.dev, config.against, table)
    encoder = load_encoder(config.encoder_name)
    device = resolve_device(current_runtime().device)
    torch.manual_seed(options.seed)
    network = make_network(name, config, encoder).to(device)
    writer = CheckpointWriter(name, job, network, {config.encoder_name: encoder.weights_hash})
    identity = _identity(name, job, writer.encoders, list(table), (train, held_out))
    with tempfile.TemporaryDirectory(prefix="tertium-") as workspace:
        states = store_states(encoder, list(table), Path(workspace) / "states", device)
        run = partial(
            fit,
            network,
            evaluate=_make_evaluation(network, states, held_out),
            snapshot=writer.snapshot,
            identity=identity,
            on_epoch=writer.record_epoch,
        )
        stage = read_stage(writer.snapshot, identity) if writer.snapshot else None
        if train.compared is not None and stage != "scores":
            steps = comparison_steps(network, states, train.compared, options)
            run(*steps, options=options.on_comparisons, stage="comparisons")
        if train.scored is not None:
            stage_options = options.on_scores(after=train.compared is not None)
            run(
                *score_steps(network, states, train.scored, options.batch_size),
                options=stage_options,
                stage="scores",
            )
    return writer.finish()


class CheckpointWriter:
    """Writes the log and each best epoch so far, if the job has a folder."""

    def __init__(
        self, name: str, job: TrainingJob, network: PairNetwork, encoders: Mapping[str, str]
    ) -> None:
        self.name = name
        self.job = job
        self.network = network
        self.encoders = encoders
        self.folder = job.folder
        self.log = list[Epoch]()
        self.snapshot = job.folder / SNAPSHOT if job.folder is not None else None
        if self.folder is not None and self.snapshot is not None and self.snapshot.is_file():
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
        if self.folder is not None and self.snapshot is not None:
            write_checkpoint(self.folder, checkpoint)
            self.snapshot.unlink(missing_ok=True)
        return checkpoint


def _make_evaluation(
    network: PairNetwork, states: TextStates, held_out: NumberedSets
) -> Evaluation | None:
    """Return the function that evaluates an epoch; None without held-out data.

    It is the average Pearson's r with human scores over language pairs, or else strict tau.
    """
    scored = held_out.scored
    compared = held_out.compared
    if scored is not None:
        pairs = scored.pairs
        targets = scored.targets
        groups = held_out.groups
        return lambda: average_pearson(score_in_batches(network, states, pairs), targets, groups)
    if compared is None:
        return None
    comparisons = compared.better, compared.worse, compared.weights
    return lambda: strict_tau(score_in_batches(network, states, compared.pairs), *comparisons)


def _identity(
    name: str,
    job: TrainingJob,
    encoders: Mapping[str, str],
    texts: Sequence[str],
    sides: Sequence[NumberedSets],
) -> str:
    """Hash data, settings and options: a resumed run must share them."""
    choices = [name, asdict(job.settings), asdict(job.options), encoders, texts]
    digest = hashlib.sha256(json.dumps([*choices, [side.groups for side in sides]]).encode())
    for side in sides:
        for data in (side.scored, side.compared):
            digest.update(b"without" if data is None else b"with")
            for array in vars(data).values() if data is not None else ():
                digest.update(array.tobytes())
    return digest.hexdigest()


def store_states(encoder: Encoder, texts: Sequence[str], file: Path, device: str) -> TextStates:
    """Compute the states of all texts once, in a half-precision file, (total tokens, layers x d).

    160,000 texts of 28 tokens take 24 GB for the seven layers of minilm; the operating system
    caches what fits in memory.
    """
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
        size = 2 * encoder.dim * sum(len(text) // 4 + 2 for text in texts) / 1e9
        raise WriteError(
            f"{error}: the states of the encoder need about {size:.1f} GB; set TMPDIR to a "
            "folder with enough space"
        ) from None
    offsets = offsets_from_lengths(lengths)
    shape = (int(offsets[-1]), encoder.dim)
    flat = np.memmap(file, np.float16, "r", shape=shape) if shape[0] else np.zeros(shape, "f2")
    return TextStates(flat, offsets, encoder.layers, device)
