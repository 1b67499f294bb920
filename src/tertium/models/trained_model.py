"""Trained metrics and rankers: train, save, load, and compare by weights.

    esim = ESIM.train(judgments, dev=others)      # ready to score
    esim.save("models/esim")
    load_metric("models/esim") == esim

The field `model` says where the weights come from: empty for the default bundled model, the name
of another bundled model, a folder, or the weights of a model that was not saved. Metrics and
rankers inherit from `TrainedModel` and implement `fit` (training) and scoring. This module imports
no training code until `train` is called.
"""

from __future__ import annotations

import dataclasses
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from tertium.core.arrays import BoolArray
from tertium.core.errors import ModelError, UnknownNameError, UsageError
from tertium.core.fields import (
    MAX_SHOWN_CHARACTERS,
    check_fields,
    construct,
    format_value,
    non_default_fields,
)
from tertium.core.registry import resolve
from tertium.core.segment import Segment
from tertium.encoders import Encoder, load_encoder
from tertium.models.checkpoint import (
    CONFIG,
    Checkpoint,
    bundled_models_folder,
    check_encoder,
    find_bundled_model,
    parse_config,
    read_checkpoint,
    read_config,
    write_card,
    write_checkpoint,
)

if TYPE_CHECKING:
    from tertium.models.training_data import TrainingData, TrainingJob, TrainingSets
    from tertium.models.training_options import Epoch

logger = logging.getLogger(__name__)

SNAPSHOT = "training.safetensors"  # state of a training that is not finished
UNSAVED = "unsaved-"  # prefix of the names of models that were not saved
LOCATION_FIELDS = ("model", "folder")  # fields that locate weights and do not affect scores
SETTINGS = "settings"  # key of the settings in config.json
FIELDS = "fields"  # key of the fields that were chosen after training


class WeightsInMemory(str):
    """The value of a field `model` of a model that was not saved: a name, and its checkpoint."""

    checkpoint: Checkpoint


class EqualByWeights(ABC):
    """Equality by settings and weights, for frozen dataclasses declared with `eq=False`."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def weights_hash(self) -> str:
        """Hash of everything that was learned."""

    @property
    def scoring_fields(self) -> dict[str, Any]:
        """Fields that affect scores: all except those that locate the weights."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {f.name: getattr(self, f.name) for f in fields if f.name not in LOCATION_FIELDS}

    @property
    def _locations(self) -> list[str]:
        return [getattr(self, name, "") for name in LOCATION_FIELDS]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EqualByWeights) or type(other) is not type(self):
            return NotImplemented
        if self.scoring_fields != other.scoring_fields:
            return False
        # equal locations need no reading, so the weights need not be installed
        return self._locations == other._locations or self.weights_hash == other.weights_hash

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.scoring_fields.items())))


class _LazyAttribute:
    def __init__(self, path: str) -> None:
        self.path = path

    def __get__(self, instance: object, owner: type) -> Any:
        return resolve_name(self.path)


def lazy_attribute(path: str) -> Any:
    """Class attribute "module:attribute" that is imported on first use.

    Scoring classes declare their training options this way without importing training code. Do not
    annotate the attribute: `dataclass` reads annotated attributes when the class is created.
    """
    return _LazyAttribute(path)


class TrainedModel(EqualByWeights):
    """A metric or ranker learned from human judgments: a frozen dataclass with a field `model`.

    Class attributes describe training:

    - `settings`: dataclass of choices made before training (None: the fields of the class itself,
      which are then stored with the model); `stored`: dataclass of the stored settings, if larger
    - `options`: dataclass of training options; `recipes`: named presets of settings and options
    - `accepted_data`: kinds of human data it can learn from, "scores" and "comparisons"
    - `resumable`: whether interrupted training continues from a snapshot
    - `train_examples`: example commands for `tertium train NAME --help`
    """

    kind: ClassVar[Literal["metric", "ranker"]] = "metric"
    title: ClassVar[str]
    settings: ClassVar[type[Any] | None] = None
    stored: ClassVar[type[Any] | None] = None
    options: ClassVar[type[Any]]
    recipes: ClassVar[Mapping[str, Any]] = {}
    accepted_data: ClassVar[tuple[str, ...]] = ("scores", "comparisons")
    resumable: ClassVar[bool] = False
    train_examples: ClassVar[str] = """\
  tertium train {name} --train da/wmt15/*-en.jsonl.gz da/wmt16/*-en.jsonl.gz -o models/{name}
"""

    model: str

    @classmethod
    @abstractmethod
    def fit(cls, job: TrainingJob) -> Checkpoint:
        """Train on a job and return the checkpoint that this class scores with."""

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
        """Train on judgments and comparisons; returns a model that is ready to score.

        `dev` selects the best epoch and is never trained on: training data that shares a reference
        with it is removed. With `folder`, the model is saved there. Keyword arguments are settings.
        """
        from tertium.models.training_data import TrainingJob, prepare_training_sets

        settings_class: Any = cls.settings or cls
        chosen = settings_class(**settings)
        sets, dev_sets = prepare_training_sets(
            cls.name, cls.accepted_data, data, dev, chosen.required_inputs
        )
        _warn_about_languages(cls, chosen, sets)
        job = TrainingJob(
            settings=chosen,
            options=options if options is not None else cls.options(),
            data=sets,
            dev=dev_sets,
            folder=Path(folder) if folder is not None else None,
            note=note,
            on_epoch=on_epoch,
        )
        trained = cls.from_checkpoint(cls.fit(job))
        return trained if folder is None else trained.save(folder)

    @classmethod
    def unused_options(cls, settings: Any, options: Any, data: TrainingSets) -> frozenset[str]:
        """Return the options that training with these settings and data ignores."""
        return frozenset()

    @classmethod
    def flag_languages(cls, settings: Any, segments: Sequence[Segment]) -> dict[str, BoolArray]:
        """Flag segments in languages that a model with these settings does not support, by kind.

        `train` logs a warning before it starts.
        """
        return {}

    @property
    def location(self) -> str:
        """Folder of the weights, or the name of a model that was not saved."""
        return str(resolve_model_path(self.model, self.bundled_name))

    @property
    def is_saved(self) -> bool:
        """Whether other processes can load the model by its spec."""
        return not isinstance(self.model, WeightsInMemory)

    @property
    def bundled_name(self) -> str:
        """Name of the bundled model for these settings."""
        return self.name

    @property
    def checkpoint(self) -> Checkpoint:
        """Checkpoint of the model, loaded on first use and checked against the fields."""
        checkpoint = self._find_checkpoint(resolve_model_path(self.model, self.bundled_name))
        stored = checkpoint.config.get(SETTINGS, {}) if self.settings is None else {}
        for name, value in self.scoring_fields.items():
            requested = _format_setting(value)
            trained = _format_setting(stored.get(name, value))
            if requested != trained:
                raise ModelError(
                    f"{self.location} was trained with {name}={trained}, not {name}={requested}: "
                    f"leave {name} out, or train a model with it"
                )
        return checkpoint

    @classmethod
    def _find_checkpoint(cls, where: str) -> Checkpoint:
        """Return the checkpoint of a folder, or of weights in memory."""
        checkpoint = (
            where.checkpoint if isinstance(where, WeightsInMemory) else load_checkpoint(where)
        )
        if checkpoint.name != cls.name:
            raise ModelError(f"{where}: expected a model of {cls.name}, got {checkpoint.name}")
        return checkpoint

    @property
    def weights_hash(self) -> str:
        return self.checkpoint.hash

    @property
    def weights_label(self) -> str:
        """Name of the model in signatures."""
        name = Path(self.model).name if self.model else "default"
        return name.replace(":", "-").replace("|", "-")

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        """Create a model from a checkpoint in memory."""
        model = WeightsInMemory(UNSAVED + checkpoint.hash[:16])
        model.checkpoint = checkpoint
        return cls.load(model)

    def save(self, folder: str | Path) -> Self:
        """Write the model and its card to a folder; return a model that reads from there."""
        checkpoint = dataclasses.replace(self.checkpoint, fields=self._chosen_fields)
        write_checkpoint(Path(folder), checkpoint)
        write_card(Path(folder), self.title, checkpoint)
        load_checkpoint.cache_clear()
        return dataclasses.replace(self, model=str(folder or "."))  # type: ignore[type-var]

    @property
    def _chosen_fields(self) -> dict[str, Any]:
        """Non-default fields that the stored configuration does not contain."""
        if self.settings is None:
            return {}
        names = self.scoring_fields
        return {name: value for name, value in non_default_fields(self) if name in names}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a model from a folder; raise `ModelError` if the folder is not valid."""
        model = folder if isinstance(folder, WeightsInMemory) else str(folder)
        where = resolve_model_path(model, cls.name)
        checkpoint = cls._find_checkpoint(where)
        file = Path(where) / CONFIG
        if cls.settings is None:
            key = f"config.{SETTINGS}"
            stored = checkpoint.config.get(SETTINGS, {})
        else:
            key = FIELDS
            stored = checkpoint.fields
            parse_config(cls.stored or cls.settings, checkpoint, where)
        fields = check_fields(cls, stored, file, key, without="model")
        return construct(cls, {**fields, "model": model}, file, key)

    def load_training_encoder(self, name: str, **options: Any) -> Encoder:
        """Load an encoder and check that its weights are those used in training."""
        encoder = load_encoder(name, **options)
        check_encoder(name, self.checkpoint.encoders.get(name, ""), encoder.weights_hash)
        return encoder


def _warn_about_languages(cls: type[TrainedModel], settings: Any, sets: TrainingSets) -> None:
    """Log a warning if a model is trained on texts in languages that it does not support."""
    by_texts = {(s.source, s.references): s for one in sets.all for s in one.segments}
    for kind, mask in cls.flag_languages(settings, [*by_texts.values()]).items():
        if not mask.any():
            continue
        logger.warning(
            "%s: %s in %d of %d training segments: the scores will be unreliable; choose an "
            "encoder for the language (use, e5), or train bleu-r, nist-r or ter-r",
            *(cls.name, kind, mask.sum(), len(by_texts)),
        )


def resolve_model_path(model: str, bundled: str) -> str:
    """Resolve the field `model` to a folder, also of a bundled model (by default `bundled`).

    Weights in memory are returned as they are.
    """
    if not model:
        return str(bundled_models_folder() / bundled)
    bundled_folder = bundled_models_folder() / model
    is_name = Path(model).name == model
    try:
        is_bundled = is_name and not (Path(model) / CONFIG).is_file() and bundled_folder.is_dir()
    except OSError:  # not a valid file name; reading it will raise
        is_bundled = False
    return str(bundled_folder) if is_bundled else model


@lru_cache(maxsize=16)
def load_checkpoint(where: str) -> Checkpoint:
    """Load a checkpoint from a folder; log a warning if its training is not finished."""
    if where.startswith(UNSAVED):
        raise UsageError(
            f"model {where} was not saved: save it with `metric.save(FOLDER)`, and use the folder"
        )
    folder = Path(where)
    if folder.parent == bundled_models_folder():
        find_bundled_model(folder.name)
    checkpoint = read_checkpoint(folder)
    if (folder / SNAPSHOT).is_file():
        logger.warning(
            "%s: its training was interrupted or is still running, and this is the best epoch so "
            "far: run the same training again to finish it",
            folder,
        )
    return checkpoint


def load_folder(folder: Path, table: Mapping[str, str], kind: str) -> Any:
    """Load the model saved in a folder; its configuration names a class in `table`."""
    file = folder / CONFIG
    config = read_config(folder)
    name = config.get(kind)
    if name is None and "ranker" in config:
        raise UsageError(
            f"{folder} is a ranker, not a metric: use it with `tertium rank -m {folder}`; "
            "`tertium meta --scores` reads the output of its -sl -f json"
        )
    if not isinstance(name, str):
        raise ModelError(f"{file} has no {kind!r} entry: not a trained {kind}")
    if name not in table:
        raise ModelError(f"{file}: {UnknownNameError(kind, name[:MAX_SHOWN_CHARACTERS], table)}")
    cls = resolve(table, name, kind)
    if not issubclass(cls, TrainedModel):
        raise ModelError(f"{file}: {name!r} is not a trainable {kind}")
    return cls.load(folder)


def _format_setting(value: Any) -> str:
    """Format a setting of an object or of its file; lists are formatted like tuples."""
    return format_value(tuple(value) if isinstance(value, list) else value)
