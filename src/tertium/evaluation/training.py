"""`tertium.train`: train any trainable metric or ranker by its spec and a recipe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tertium.core.atomic import PARTIAL_PATTERN, PathLike
from tertium.core.errors import TertiumError, UnknownNameError, UsageError, short_repr
from tertium.core.fields import parse_fields, split_spec
from tertium.core.frames import is_frame
from tertium.core.registry import METRICS, RANKERS, TRAINED_AS, resolve_scorer
from tertium.data.human_data_files import read_sets_with_texts
from tertium.data.judgments import read_judgments
from tertium.evaluation.judged import as_list
from tertium.models.checkpoint import CONFIG, NEXT_WEIGHTS, WEIGHTS
from tertium.models.trained_model import SNAPSHOT, TrainedModel
from tertium.models.training_data import (
    TrainingData,
    TrainingSets,
    remove_leaks,
    sort_training_sets,
)
from tertium.models.training_job import LOG
from tertium.models.training_options import Epoch, TrainingOption, describe_options

Sources = TrainingData | PathLike | Iterable[PathLike]
RECIPE = "ours"


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A class to train, with its settings and training options."""

    cls: type[TrainedModel]
    settings: Mapping[str, Any]
    options: Any

    @classmethod
    def make(cls, spec: str, recipe: str = RECIPE, **options: Any) -> TrainingPlan:
        """Combine a spec, a recipe and options; the spec and options override the recipe."""
        learner, texts = find_trainable_class(spec), split_spec(spec)[1]
        if recipe not in learner.recipes:
            raise UnknownNameError("recipe", recipe, learner.recipes)
        preset = learner.recipes[recipe]
        check_options(learner, options)
        if "model" in texts:
            raise UsageError(
                f"{spec}: model= names a trained model: leave it out to train a new one"
            )
        spec_settings = parse_fields(learner.settings or learner, learner.name, texts)
        settings = {**preset.settings, **spec_settings}
        return cls(cls=learner, settings=settings, options=replace(preset.options, **options))


def train(
    spec: str,
    data: Sources,
    *,
    dev: Sources = (),
    held_out: Sources = (),
    recipe: str = RECIPE,
    folder: str | Path | None = None,
    overwrite: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    **options: Any,
) -> Any:
    """Train a metric or a ranker on human judgments.

    Parameters
    ----------
    spec
        The name, with settings if needed: "esim:encoder=mpnet".
    data
        Sets, single judgments and preferences, a frame, or files.
    dev
        Data that choose the best epoch or settings.
    held_out
        Data to keep out of training: like those of `dev`, their references are never trained on.
    recipe
        "ours" (our best settings) or "published" (those of the paper).
    folder
        Where to save the result. An interrupted training is resumed if the class supports it.
    overwrite
        Whether to replace a trained metric in `folder`.
    on_epoch
        Called after each epoch.
    options
        Training options that override the recipe; `describe_options(ESIM.options)` lists them.

    Returns
    -------
    Metric or Ranker
        The trained metric or ranker.

    Examples
    --------
    metric = tertium.train("bleu-r", "mine.tsv", folder="models/mine")
    """
    plan = TrainingPlan.make(spec, recipe, **options)
    if folder is not None:
        check_folder(folder, plan.cls, overwrite=overwrite)
    held_out_sets = sort_training_sets(_read_data(held_out)).all
    sets = remove_leaks(sort_training_sets(_read_data(data)), held_out_sets)
    _reject_unused_options(plan, sets, options)
    trained = plan.cls.train(
        sets.all,
        dev=_read_data(dev),
        options=plan.options,
        folder=folder,
        on_epoch=on_epoch,
        **plan.settings,
    )
    if folder is not None and not plan.cls.resumable:
        for file in (SNAPSHOT, LOG):  # of the replaced training
            (Path(folder) / file).unlink(missing_ok=True)
    return trained


def _reject_unused_options(plan: TrainingPlan, data: TrainingSets, options: Iterable[str]) -> None:
    """Raise an error for options that these settings and data do not use."""
    kind: Any = plan.cls.settings or plan.cls
    unused = plan.cls.unused_options(kind(**plan.settings), plan.options, data)
    if unused_given := [name for name in options if name in unused]:
        flags = ", ".join("--" + name.replace("_", "-") for name in unused_given)
        raise UsageError(
            f"{plan.cls.name} does not use {flags} with these settings and data: leave it out "
            f"(`tertium train {plan.cls.name} --help` describes each option)"
        )


def _read_data(sources: Sources) -> TrainingData:
    """Read paths and frames; keep sets and single judgments as they are."""
    entries: list[Any] = as_list(sources)
    paths = [entry for entry in entries if isinstance(entry, str | os.PathLike)]
    values = [entry for entry in entries if not isinstance(entry, str | os.PathLike)]
    values = [read_judgments(entry) if is_frame(entry) else entry for entry in values]
    return [*values, *read_sets_with_texts(paths)] if paths else values


@lru_cache(maxsize=1)
def trainable_classes() -> list[type[TrainedModel]]:
    """Return all classes that can be trained here, sorted by name."""
    classes = []
    for name in sorted({*METRICS, *RANKERS}):
        with suppress(TertiumError):  # a missing extra, or a broken plugin
            cls: Any = resolve_scorer(name)
            classes += [cls] if issubclass(cls, TrainedModel) else []
    return classes


def find_trainable_class(spec: str) -> type[TrainedModel]:
    if not isinstance(spec, str):
        raise UsageError(f"expected the name of a trainable metric, got {short_repr(spec)}")
    name, _ = split_spec(spec)
    if "/" in name:
        raise UsageError(
            f"{name} is a folder: give a metric to train (bleu-r), and the folder with -o"
        )
    cls: Any = resolve_scorer(TRAINED_AS.get(name, name))
    if not issubclass(cls, TrainedModel):
        raise UsageError(f"{name} cannot be trained: use it directly, `tertium score -m {name}`")
    learner: type[TrainedModel] = cls
    return learner


def check_options(cls: type[TrainedModel], options: Iterable[str]) -> None:
    """Raise an error for options that a class does not have."""
    option_names = {field.name for field in fields(cls.options)}
    unknown = ", ".join(
        "--" + name.replace("_", "-") for name in options if name not in option_names
    )
    if unknown:
        flags = ", ".join(option.flag for option in trainable_options(cls))
        raise UsageError(f"{cls.name} has no option {unknown}: leave it out (options: {flags})")


def trainable_options(cls: type[TrainedModel], recipe: str = RECIPE) -> list[TrainingOption]:
    """Return the training options of a class, with the defaults of a recipe."""
    return describe_options(cls.recipes[recipe].options)


def check_folder(place: str | Path, cls: type[TrainedModel], *, overwrite: bool = False) -> None:
    """Raise an error if a folder holds other files, or a training that must not be overwritten."""
    folder = Path(place)
    if folder.is_file():
        raise UsageError(f"{folder} is a file: -o needs a folder")
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"{folder} cannot be created: {parent} is not a writable folder")
    trained, interrupted = ((folder / file).is_file() for file in (CONFIG, SNAPSHOT))
    if interrupted and cls.resumable:
        return
    if (trained or interrupted) and not overwrite:
        content = "an interrupted training" if interrupted else "a trained metric"
        raise UsageError(
            f"{folder} already has {content}: give another folder, or --overwrite "
            "(overwrite=True in Python) to replace it"
        )
    incomplete = (PARTIAL_PATTERN, WEIGHTS, NEXT_WEIGHTS)  # left by a killed process
    files = folder.iterdir() if folder.is_dir() and not (trained or interrupted) else ()
    if not all(any(map(file.match, incomplete)) for file in files):
        raise UsageError(f"{folder} is not empty and has no trained metric: give another folder")
