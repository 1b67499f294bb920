"""From judged sets to a trained head: number texts, prepare states, run stages, keep the best."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from tertium.encoders.encoder import Encoder, load_encoder
from tertium.encoders.network import choose_device
from tertium.encoders.transformer import Transformer
from tertium.metrics.heads.networks import NETWORKS, NetworkShape, PairNetwork
from tertium.metrics.heads.options import HeadConfig, HeadOptions
from tertium.metrics.heads.states import DiskStates, LiveStates, States
from tertium.metrics.heads.training import (
    HeadTraining,
    agreement_on_comparisons,
    agreement_on_scores,
)
from tertium.models.checkpoint import Checkpoint, halve, read_declared, write_checkpoint
from tertium.models.examples import (
    Compared,
    JudgedSets,
    Scored,
    TextTable,
    compared_pairs,
    scored_pairs,
    sides_of,
)
from tertium.models.loading import load_into
from tertium.models.log import read_log, write_log
from tertium.models.options import Epoch
from tertium.models.snapshot import read_snapshot
from tertium.models.trained import Lesson
from tertium.runtime import current_runtime

SNAPSHOT, LOG = "training.safetensors", "log.tsv"


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbered:
    """The same over one table of texts; `groups` are the language pairs of the scored pairs."""

    scored: Scored | None
    compared: Compared | None
    groups: tuple[str, ...]

    @classmethod
    def of(cls, sets: JudgedSets, against: str, table: TextTable) -> Numbered:
        sides = sides_of(against)
        return cls(
            scored=scored_pairs(sets.scores, sides, table) if sets.scores else None,
            compared=compared_pairs(sets.comparisons, sides, table) if sets.comparisons else None,
            groups=tuple(
                j.lp or one.lp
                for one in sets.scores
                for j in one.judgements
                for _ in sides(j.segment)
            ),
        )


def train_head(name: str, lesson: Lesson) -> Checkpoint:
    """Train the network of a name; with a folder, what is returned lies there as well."""
    config: HeadConfig = lesson.settings
    table = TextTable()
    train = Numbered.of(lesson.data, config.against, table)
    held_out = Numbered.of(lesson.dev, config.against, table)
    encoder = load_encoder(config.encoder_name)
    device = choose_device(current_runtime().device)
    torch.manual_seed(lesson.options.seed)
    network = make_network(name, config, encoder).to(device)
    keeper = _Keeper(name, lesson, encoder, network)
    with tempfile.TemporaryDirectory(prefix="tertium-") as workspace:
        states = make_states(encoder, table.texts, device, Path(workspace))
        training = HeadTraining(
            network=network,
            states=states,
            choose=_choice(network, states, held_out),
            snapshot=lesson.folder / SNAPSHOT if lesson.folder is not None else None,
            identity=_identity(name, lesson, table.texts, train),
            on_epoch=keeper.hear,
        )
        _run_stages(training, lesson.options, train)
    return keeper.finish()


def make_network(name: str, config: HeadConfig, encoder: Encoder) -> PairNetwork:
    """A fresh network for an encoder."""
    shape = NetworkShape(
        layers=encoder.layers,
        dim=encoder.dim // encoder.layers,
        hidden=config.hidden,
        dropout=config.dropout,
        input_dropout=config.input_dropout,
        absolute=config.difference == "absolute",
        sides=config.sides,
    )
    return NETWORKS[name](shape)


def restore_network(checkpoint: Checkpoint, encoder: Encoder, where: str) -> PairNetwork:
    """The network of a checkpoint, ready to score."""
    config = read_declared(HeadConfig, checkpoint, where)
    tensors = {name: torch.from_numpy(array) for name, array in checkpoint.arrays.items()}
    return load_into(lambda: make_network(checkpoint.name, config, encoder), tensors, where)


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
    if data.scored is not None and data.compared is not None and options.mixed:
        training.on_both(data.scored, data.compared, options.on_comparisons, loss=options.loss)
        return
    found = read_snapshot(training.snapshot, training.identity) if training.snapshot else None
    past_comparisons = found is not None and found.stage == "scores"
    if data.compared is not None and not past_comparisons:
        training.on_comparisons(data.compared, options.on_comparisons, loss=options.loss)
    if data.scored is not None:
        training.on_scores(data.scored, options.on_scores(after=data.compared is not None))


def _choice(network: PairNetwork, states: States, held_out: Numbered) -> Any:
    """The statistic an epoch is chosen by; None where nothing is held out."""
    if held_out.scored is not None:
        scored, groups = held_out.scored, held_out.groups
        return lambda: agreement_on_scores(network, states, scored, groups)
    if held_out.compared is not None:
        compared = held_out.compared
        return lambda: agreement_on_comparisons(network, states, compared)
    return None


def _identity(name: str, lesson: Lesson, texts: Sequence[str], data: Numbered) -> str:
    """What a run must share with an interrupted one to go on from it."""
    choices = [name, asdict(lesson.settings), asdict(lesson.options)]
    digest = hashlib.sha256(json.dumps(choices).encode())
    digest.update("\n".join(texts).encode(errors="replace"))
    if data.scored is not None:
        digest.update(data.scored.targets.tobytes())
    if data.compared is not None:
        digest.update(data.compared.better.tobytes() + data.compared.worse.tobytes())
    return digest.hexdigest()
