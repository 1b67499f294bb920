"""`tertium.train`: any learner by its spec, from files or values, by a recipe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from tertium.atomic import REMAINS
from tertium.data.evidence import read_sets
from tertium.data.formats import PathLike
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.rankings import RankingSet
from tertium.errors import TertiumError, UnknownNameError, UsageError, one_line
from tertium.frames import is_frame
from tertium.models.checkpoint import CONFIG
from tertium.models.judged import JudgedSets, TrainingData, training_sets, without_leaks
from tertium.models.options import Epoch, Option, describe_options
from tertium.models.trained import LOG, SNAPSHOT, Trained
from tertium.registry import METRICS, RANKERS, resolve_scorer
from tertium.specs import read_fields, split_spec

Sources = TrainingData | PathLike | Iterable[PathLike]
RECIPE = "ours"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a spec, a recipe and options come to: a class, its settings, and how to train it."""

    cls: type[Trained]
    settings: Mapping[str, Any]
    options: Any

    @classmethod
    def make(cls, spec: str, recipe: str = RECIPE, **options: Any) -> Plan:
        """What the spec says goes before the recipe's settings; options likewise."""
        learner, texts = find_learner(spec), split_spec(spec)[1]
        if recipe not in learner.recipes:
            raise UnknownNameError("recipe", recipe, learner.recipes)
        preset = learner.recipes[recipe]
        check_options(learner, options)
        if "model" in texts:
            raise UsageError(f"{spec}: model= is what was trained before; leave it out to train")
        given = read_fields(learner.settings or learner, learner.name, texts)
        settings = {**preset.settings, **given}
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
    """Train a metric or a ranker from people's judgments, by the recipe it does best with.

    `spec` is a name with what to choose before training (`esim:encoder=mpnet`), `recipe` one of
    `ours` and `published`, `options` change it (`describe_options(ESIM.options)` lists them).
    `data`, `dev` and `held_out` are sets, single judgments and preferences, or where they lie.
    `dev` chooses; what shares a reference with it or with `held_out` is never trained on. With
    `folder` the result is saved there, and heads go on where an interrupted training stopped; what
    was trained there before stays unless `overwrite`.

        metric = tertium.train("bleu-r", "mine.tsv", folder="models/mine")
    """
    plan = Plan.make(spec, recipe, **options)
    if folder is not None:
        check_folder(folder, plan.cls, overwrite=overwrite)
    held = [one for sets in training_sets(_read(held_out)) for one in sets]
    scores, rankings = without_leaks(*training_sets(_read(data)), held)
    _refuse_unread(plan, JudgedSets(scores, rankings), options)
    trained = plan.cls.train(
        [*scores, *rankings],
        dev=_read(dev),
        options=plan.options,
        folder=folder,
        on_epoch=on_epoch,
        **plan.settings,
    )
    if folder is not None and not plan.cls.goes_on:
        for remains in (SNAPSHOT, LOG):  # of what was replaced
            (Path(folder) / remains).unlink(missing_ok=True)
    return trained


def _refuse_unread(plan: Plan, data: JudgedSets, options: Iterable[str]) -> None:
    """Refuse options that say nothing of what is trained here, and would be ignored."""
    kind: Any = plan.cls.settings or plan.cls
    unread = plan.cls.unread(kind(**plan.settings), plan.options, data)
    if idle := [name for name in options if name in unread]:
        said = ", ".join("--" + name.replace("_", "-") for name in idle)
        raise UsageError(
            f"{plan.cls.name} does not read {said} with such settings and data: leave it out "
            f"(`tertium train {plan.cls.name} --help` says what each option is of)"
        )


def _read(sources: Sources) -> TrainingData:
    """Sets and single verdicts as they are, frames read, and what lies at each path."""
    single = isinstance(sources, str | os.PathLike | JudgmentSet | RankingSet)
    if not single and not isinstance(sources, Iterable):
        raise UsageError(f"expected files or sets of judgments, got {one_line(sources)}")
    entries = [sources] if single or is_frame(sources) else list(cast(Iterable[Any], sources))
    paths = [entry for entry in entries if isinstance(entry, str | os.PathLike)]
    given: list[Any] = [one for one in entries if not isinstance(one, str | os.PathLike)]
    given = [read_judgments(entry) if is_frame(entry) else entry for entry in given]
    return [*given, *read_sets(paths)] if paths else given


@lru_cache(maxsize=1)
def learners() -> list[type[Trained]]:
    """All classes that can be trained here, in the order of their names."""
    found = []
    for name in sorted({*METRICS, *RANKERS}):
        with suppress(TertiumError):  # needs an extra that is not installed, or a sound plugin
            cls: Any = resolve_scorer(name)
            found += [cls] if issubclass(cls, Trained) else []
    return found


def find_learner(spec: str) -> type[Trained]:
    """The class that a spec would train."""
    if not isinstance(spec, str):
        raise UsageError(f"what to train is named by a text, 'bleu-r', not by {one_line(spec)}")
    name, _ = split_spec(spec)
    if "/" in name:
        raise UsageError(f"{name} is a folder: name what to train (esim, bleu-r), and -o a folder")
    cls: Any = resolve_scorer(name)
    if not issubclass(cls, Trained):
        raise UsageError(f"{name} has nothing to learn; `tertium score -m {name}` uses it as it is")
    learner: type[Trained] = cls
    return learner


def check_options(cls: type[Trained], options: Iterable[str]) -> None:
    """Refuse options that would be ignored."""
    read = {field.name for field in fields(cls.options)}
    unread = ", ".join("--" + name.replace("_", "-") for name in options if name not in read)
    if unread:
        reads = ", ".join(option.flag for option in options_of(cls))
        raise UsageError(f"{cls.name} does not read {unread}: leave it out (it reads {reads})")


def has_one_recipe(cls: type[Trained]) -> bool:
    """Whether all recipes of a class come to the same settings and options."""
    first, *others = cls.recipes.values()
    return all((one.settings, one.options) == (first.settings, first.options) for one in others)


def options_of(cls: type[Trained], recipe: str = RECIPE) -> list[Option]:
    """What may be said of how a class is trained, with the defaults of a recipe."""
    return describe_options(cls.recipes[recipe].options)


def check_folder(place: str | Path, cls: type[Trained], *, overwrite: bool = False) -> None:
    """Refuse to write over what is no training folder, or over what was trained unless told to.

    An interrupted training is gone on with where the class can; by another it would be lost.
    """
    folder = Path(place)
    if folder.is_file():
        raise UsageError(f"{folder} is a file: -o takes a folder")
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise UsageError(f"{folder} cannot be made: {there} is no folder that can be written to")
    trained, interrupted = ((folder / file).is_file() for file in (CONFIG, SNAPSHOT))
    others = [p for p in folder.iterdir() if not p.match(REMAINS)] if folder.is_dir() else []
    if others and not (trained or interrupted):
        raise UsageError(f"{folder} is not empty and holds no trained metric: give another folder")
    if (interrupted and not cls.goes_on) or (trained and not interrupted):
        what = "a training that was interrupted" if interrupted else "a trained metric already"
        if not overwrite:
            raise UsageError(
                f"{folder} holds {what}: give another folder, or --overwrite "
                "(overwrite=True in Python) to replace it"
            )
