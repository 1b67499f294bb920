"""One life of a trained model: learned, held, kept in a folder, found again, equal by its weights.

    esim = ESIM.train(judgments, dev=others)      # an object that can score
    esim.save("models/esim")
    load_metric("models/esim") == esim

`model` is where weights come from: empty for those that ship, the name of another that ships, a
folder, or a mark for a model of this process that was not saved yet. What is learned is a
`Checkpoint`; metrics and rankers mix `Trained` in, and implement how it is learned (`fit`) and how
it judges. A saved folder has a `card`. Nothing here knows a metric.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from tertium.encoders import Encoder, load_encoder
from tertium.errors import DataError, ModelError, UnknownNameError, UsageError
from tertium.models.card import write_card
from tertium.models.checkpoint import (
    CONFIG,
    Checkpoint,
    check_encoder,
    find_shipped,
    read_checkpoint,
    read_config,
    read_declared,
    shipped_models,
    write_checkpoint,
)
from tertium.models.judged import JudgedSets, TrainingData, judged_sets
from tertium.models.options import Epoch, Recipe
from tertium.registry import resolve
from tertium.schema import SHOWN, construct, read_fields
from tertium.specs import non_default_fields, print_value

UNSAVED = "unsaved-"
SNAPSHOT, LOG = "training.safetensors", "log.tsv"  # of a training that can go on
PLACES = ("model", "folder")  # fields that say where weights lie, and nothing about them
SETTINGS = "settings"  # where a configuration keeps the fields of what was trained
FIELDS = "fields"  # where a folder keeps those that were chosen since

_unsaved: dict[str, Checkpoint] = {}


class EqualByWeights(ABC):
    """A frozen dataclass with weights: two are equal if they would give equal scores.

    That is, with the same settings and the same weights, wherever these lie. A subclass is declared
    with `eq=False`, which leaves this equality in place.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def weights_hash(self) -> str:
        """What stands for all that was learned."""

    @property
    def own_settings(self) -> dict[str, Any]:
        """The fields that change a score."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {f.name: getattr(self, f.name) for f in fields if f.name not in PLACES}

    @property
    def _places(self) -> list[str]:
        return [getattr(self, name, "") for name in PLACES]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EqualByWeights) or type(other) is not type(self):
            return NotImplemented
        if self.own_settings != other.own_settings:
            return False
        # the same place holds the same weights: nothing is read, and nothing need be installed
        return self._places == other._places or self.weights_hash == other.weights_hash

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.own_settings.items())))


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """All that `fit` is given.

    `settings` decide what is learned and `options` how; `dev` chooses, and is never trained on;
    `folder` is where it will be kept, `note` what to remember of the data, `on_epoch` hears of each
    epoch.
    """

    settings: Any
    options: Any
    data: JudgedSets
    dev: JudgedSets = field(default_factory=JudgedSets)
    folder: Path | None = None
    note: str = ""
    on_epoch: Callable[[Epoch], None] | None = None


class Trained(EqualByWeights):
    """What learned from people: a frozen dataclass with a field `model`.

    `settings` declares what may be chosen before training (nothing: the fields of the class itself,
    which are then kept in its folder), `stored` what a folder holds of it where that is more;
    `options` is the dataclass of how to train, `recipes` are presets of both. `teachers` says what
    it can learn from, `goes_on` whether from where an interrupted training stopped.
    """

    kind: ClassVar[Literal["metric", "ranker"]] = "metric"
    title: ClassVar[str]
    settings: ClassVar[type[Any] | None] = None
    stored: ClassVar[type[Any] | None] = None
    options: ClassVar[type[Any]]
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    teachers: ClassVar[tuple[str, ...]] = ("scores", "comparisons")
    goes_on: ClassVar[bool] = False

    model: str

    @classmethod
    @abstractmethod
    def fit(cls, lesson: Lesson) -> Checkpoint:
        """Learn: the settings and arrays that this class can judge with."""

    @classmethod
    def train(
        cls,
        data: TrainingData,
        *,
        dev: TrainingData = (),
        options: Any = None,
        folder: str | Path | None = None,
        note: str = "",
        on_epoch: Callable[[Epoch], None] | None = None,
        **settings: Any,
    ) -> Self:
        """Learn from judgments and comparisons; `dev` chooses, and is never trained on.

        What shares a reference with `dev` is left out. With `folder` it is saved there.
        """
        kind: Any = cls.settings or cls
        chosen = kind(**settings)
        sets, held = judged_sets(cls.name, data, dev, chosen.needs)
        cls._check_teachers(sets, held)
        place = Path(folder) if folder is not None else None
        trained = cls.from_checkpoint(
            cls.fit(
                Lesson(
                    settings=chosen,
                    options=options if options is not None else cls.options(),
                    data=sets,
                    dev=held,
                    folder=place,
                    note=note,
                    on_epoch=on_epoch,
                )
            )
        )
        return trained if place is None else trained.save(place)

    @classmethod
    def _check_teachers(cls, sets: JudgedSets, held: JudgedSets) -> None:
        """Refuse what it cannot learn from, and nothing at all."""
        words = {
            "scores": "human scores (--train, a JudgmentSet)",
            "comparisons": "comparisons (--preferences, a RankingSet)",
        }
        for kind, name in words.items():
            if kind not in cls.teachers and (getattr(sets, kind) or getattr(held, kind)):
                known = " and ".join(words[teacher] for teacher in cls.teachers)
                raise UsageError(f"{cls.name} learns from {known}; it cannot use {name}")
        if not sets.all:
            raise DataError(f"{cls.name}: there is nothing to learn from (no judgments)")

    @classmethod
    def unread(cls, settings: Any, options: Any, data: JudgedSets) -> frozenset[str]:
        """The options that training under these settings, from such data, does not look at."""
        return frozenset()

    @property
    def where(self) -> str:
        """The folder of its weights, or the mark of some that were not saved."""
        return find_model(self.model, self.shipped)

    @property
    def shipped(self) -> str:
        """The folder of these settings among those that ship."""
        return self.name

    @property
    def checkpoint(self) -> Checkpoint:
        """What was learned, read when it is first asked for, under these settings."""
        found = load_checkpoint(self.where)
        if found.name != self.name:
            raise ModelError(f"{self.where} holds a model of {found.name}, not of {self.name}")
        kept = found.config.get(SETTINGS, {}) if self.settings is None else {}
        for name, value in self.own_settings.items():
            own, its = _print_setting(value), _print_setting(kept.get(name, value))
            if own != its:
                raise ModelError(
                    f"{self.where} was trained with {name}={its}, not with {name}={own}: leave "
                    f"{name} out, or train a model with it"
                )
        return found

    @property
    def weights_hash(self) -> str:
        return self.checkpoint.hash

    @property
    def origin(self) -> str:
        """Where weights came from as a signature says it."""
        name = Path(self.model).name if self.model else "default"
        return name.replace(":", "-").replace("|", "-")

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        """What a checkpoint makes that lies nowhere but in memory."""
        mark = UNSAVED + checkpoint.hash[:16]
        _unsaved[mark] = checkpoint
        load_checkpoint.cache_clear()
        return cls.load(mark)

    def save(self, folder: str | Path) -> Self:
        """Write the model with its card to a folder; what reads it from there."""
        kept = dataclasses.replace(self.checkpoint, fields=self._chosen_fields)
        write_checkpoint(Path(folder), kept)
        write_card(Path(folder), self.title, kept)
        load_checkpoint.cache_clear()
        return dataclasses.replace(self, model=str(folder or "."))  # type: ignore[type-var]

    @property
    def _chosen_fields(self) -> dict[str, Any]:
        """Its fields that are not default, where its configuration does not hold them."""
        if self.settings is None:
            return {}
        own = self.own_settings
        return {name: value for name, value in non_default_fields(self) if name in own}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """What was saved to a folder; what is wrong with it shows here."""
        where = find_model(str(folder), cls.name)
        checkpoint = load_checkpoint(where)
        if checkpoint.name != cls.name:
            raise ModelError(f"{where} holds a model of {checkpoint.name}, not of {cls.name}")
        file = Path(where) / CONFIG
        if cls.settings is None:
            key, kept = f"config.{SETTINGS}", checkpoint.config.get(SETTINGS, {})
        else:
            key, kept = FIELDS, checkpoint.fields
            read_declared(cls.stored or cls.settings, checkpoint, where)
        fields = read_fields(cls, kept, file, key, without="model")
        return construct(cls, {**fields, "model": str(folder)}, file, key)

    def load_frozen(self, name: str, **how: Any) -> Encoder:
        """The encoder of a name; refused where its weights are not those of training."""
        encoder = load_encoder(name, **how)
        check_encoder(name, self.checkpoint.encoders.get(name, ""), encoder.weights_hash)
        return encoder


def find_model(model: str, shipped: str) -> str:
    """Where a model lies: a mark, a folder, or one that ships, by its name or as the default."""
    if not model:
        return str(shipped_models() / shipped)
    named = shipped_models() / model
    is_name = not model.startswith(UNSAVED) and Path(model).name == model
    try:
        there = is_name and not (Path(model) / CONFIG).is_file() and named.is_dir()
    except OSError:  # a name that no file can have, refused where it is read
        there = False
    return str(named) if there else model


@lru_cache(maxsize=16)
def load_checkpoint(where: str) -> Checkpoint:
    """The checkpoint in a folder, or one of this process that was not saved."""
    if where in _unsaved:
        return _unsaved[where]
    if where.startswith(UNSAVED):
        raise UsageError(f"the model {where} was never saved, and is gone with its process")
    folder = Path(where)
    if folder.parent == shipped_models():
        find_shipped(folder.name)
    return read_checkpoint(folder)


def load_folder(folder: Path, table: Mapping[str, str], kind: str) -> Any:
    """What was saved to a folder: its configuration names a class of a table."""
    file, config = folder / CONFIG, read_config(folder)
    name = config.get(kind)
    if name is None and "ranker" in config:
        raise UsageError(
            f"{folder} holds a ranker: use it with `tertium rank -m {folder}`, whose -sl -f json "
            "`tertium meta --scores` reads"
        )
    if not isinstance(name, str):
        raise ModelError(f"{file} names no {kind}: not a trained {kind}")
    if name not in table:
        raise ModelError(f"{file}: {UnknownNameError(kind, name[:SHOWN], table)}")
    cls = resolve(table, name, kind)
    if not issubclass(cls, Trained):
        raise ModelError(f"{file}: {kind} is {name!r}, which is not a {kind} that is trained")
    return cls.load(folder)


def _print_setting(value: Any) -> str:
    """A setting of an object or of its file, where a tuple is a list."""
    return print_value(tuple(value) if isinstance(value, list) else value)
