"""`tertium.train`: train any trainable metric or ranker by its spec and a recipe."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import math
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tertium.core.atomic import PARTIAL_PATTERN, PathLike
from tertium.core.errors import TertiumError, UnknownNameError, UsageError, short_repr
from tertium.core.fields import (
    choices,
    format_spec,
    format_type,
    format_value,
    parse_fields,
    parse_value,
    split_spec,
)
from tertium.core.options import Device, InFiles, LateOptions, Option, Specs
from tertium.core.registry import METRICS, RANKERS, TRAINED_AS, resolve_scorer
from tertium.core.result import Column, Result, Table, is_frame
from tertium.data.human_data_files import read_judgment_sets, read_sets_with_texts
from tertium.data.judgments import read_judgments
from tertium.evaluation.judged import as_list
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.models.checkpoint import CONFIG, NEXT_WEIGHTS, WEIGHTS
from tertium.models.trained_model import SNAPSHOT, TrainedModel
from tertium.models.training_data import (
    LOG,
    TrainingData,
    TrainingSets,
    remove_leaks,
    sort_training_sets,
)
from tertium.models.training_options import Epoch, TrainingOption, describe_options

Sources = TrainingData | PathLike | Iterable[PathLike]
RECIPE = "ours"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A class to train, with its settings and training options."""

    cls: type[TrainedModel]
    settings: Mapping[str, Any]
    options: Any

    @classmethod
    def make(cls, spec: str, recipe: str = RECIPE, **options: Any) -> TrainingPlan:
        """Combine a spec, a recipe and options; the spec and options override the recipe."""
        learner = find_trainable_class(spec)
        texts = split_spec(spec)[1]
        if recipe not in learner.recipes:
            raise UnknownNameError("recipe", recipe, learner.recipes)
        preset = learner.recipes[recipe]
        option_names = [option.name for option in trainable_options(learner)]
        if unknown := [name for name in options if name not in option_names]:
            raise UsageError(
                f"{learner.name} has no option {_flags(unknown)}: leave it out "
                f"(options: {_flags(option_names)})"
            )
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
        raise UsageError(
            f"{plan.cls.name} does not use {_flags(unused_given)} with these settings and data: "
            f"leave it out (`tertium train {plan.cls.name} --help` describes each option)"
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


def _flags(options: Iterable[str]) -> str:
    """Return options as they are written on the command line."""
    return ", ".join("--" + name.replace("_", "-") for name in options)


def trainable_options(cls: type[TrainedModel], recipe: str = RECIPE) -> list[TrainingOption]:
    """Return the training options of a class, with the defaults of a recipe."""
    return describe_options(cls.recipes[recipe].options)


def check_folder(place: str | Path, cls: type[TrainedModel], *, overwrite: bool = False) -> None:
    """Raise an error if a folder holds other files, or a training that must not be overwritten."""
    folder = Path(place)
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"{folder} cannot be created: {parent} is not a writable folder")
    is_trained, is_interrupted = ((folder / file).is_file() for file in (CONFIG, SNAPSHOT))
    if is_interrupted and cls.resumable:
        return
    if is_trained or is_interrupted:
        content = "an interrupted training" if is_interrupted else "a trained metric"
        if not overwrite:
            raise UsageError(
                f"{folder} already has {content}: give another folder, or --overwrite "
                "(overwrite=True in Python) to replace it"
            )
        return
    leftovers = (PARTIAL_PATTERN, WEIGHTS, NEXT_WEIGHTS)  # of a killed process
    for file in folder.iterdir() if folder.is_dir() else ():
        if not any(map(file.match, leftovers)):
            raise UsageError(
                f"{folder} is not empty and has no trained metric: give another folder"
            )


@dataclass(frozen=True, kw_only=True)
class TrainingFiles:
    """Files of human judgments.

    Attributes
    ----------
    human
        Translations with human scores, or human comparisons, to train on.
    dev
        Translations with human scores, or human comparisons, for model selection.
    held_out
        Test sets whose references must not be trained on.
    gold
        Human scores to use: a name in a folder (mqm) or a column of a file.
    """

    group: ClassVar[str] = "Input"
    human: Annotated[InFiles, Option("--train", "--human")]
    dev: InFiles = ()
    held_out: InFiles = ()
    gold: str | None = None

    def read_scores(self, files: Sequence[str]) -> Sequence[Any]:
        """Read files if `gold` chooses among their scores; otherwise return their names."""
        return files if self.gold is None else read_judgment_sets(files, self.gold)


def choose_options(words: Sequence[str]) -> type[Any]:
    """Return the training options of the metric that the words name; it alone is imported."""
    cls: type[TrainedModel] | None = None
    for word in words:  # the metric need not be the first word
        with suppress(TertiumError):
            cls = cls or find_trainable_class(word)
    recipe = (str, "preset of settings and options: published or ours (default: ours)")
    kinds: dict[str, tuple[Any, str]] = {"recipe": recipe}
    help_text = ""
    if cls is not None:
        kinds["recipe"] = (str, _describe_recipes(cls))
        for option in trainable_options(cls):
            text = f"{option.description} ({_describe_defaults(cls, option.name)})"
            kinds[option.name] = (_option_type(option), text)
        help_text = _describe_class(cls)
    attributes = "\n".join(f"{name}\n    {text}" for name, (_, text) in kinds.items())
    return dataclasses.make_dataclass(
        "TrainingChoice",
        [(name, kind, None) for name, (kind, _) in kinds.items()],
        kw_only=True,
        namespace={
            "group": "Training",
            "__doc__": f"Training options.\n\nAttributes\n----------\n{attributes}\n\n{help_text}",
        },
    )


def _option_type(option: TrainingOption) -> Any:
    """Return the type of an option; without a value, the recipe decides."""
    if option.kind is bool:
        return Annotated[bool, Option(action=argparse.BooleanOptionalAction)]
    if choices(option.kind):
        return option.kind
    metavar = "N+N" if "+" in format_type(option.kind) else "N"
    parse = partial(parse_value, kind=option.kind, key=option.name)
    return Annotated[str, Option(metavar=metavar, type=parse)]


def _describe_defaults(cls: type[TrainedModel], name: str) -> str:
    """Describe the default of an option in each recipe of a class."""
    recipes = cls.recipes.items()
    defaults = {recipe: format_value(getattr(own.options, name)) for recipe, own in recipes}
    if len(set(defaults.values())) == 1:
        return f"default: {next(iter(defaults.values()))}"
    return ", ".join(f"{recipe}: {value}" for recipe, value in defaults.items())


def _describe_recipes(cls: type[TrainedModel]) -> str:
    descriptions: list[str] = []
    for name, recipe in cls.recipes.items():
        settings = ",".join(f"{key}={format_value(v)}" for key, v in recipe.settings.items())
        descriptions.append(f"{name}: {recipe.description}" + (f" ({settings})" * bool(settings)))
    return "; ".join([*descriptions, "default: ours"])


def _describe_class(cls: type[TrainedModel]) -> str:
    """Return examples that train and use a class, and a note on the settings in its spec."""
    use = f"tertium score -t ours.txt -r reference.txt -m models/{cls.name}"
    if cls.kind == "ranker":
        use = f"tertium rank -t ours.txt theirs.txt -r reference.txt -m models/{cls.name}"
    examples = textwrap.dedent(cls.train_examples.format(name=cls.name)) + use
    settings: Any = cls.settings or cls
    fields = [field for field in dataclasses.fields(settings) if field.name != "model"]
    values = ", ".join(f"{field.name}={format_value(field.default)}" for field in fields)
    note = f"{cls.name} learns from {' and '.join(cls.accepted_data)}."
    if values:
        note += f" Settings in the spec, {cls.name}:FIELD=VALUE,...:\n{values}"
    note = textwrap.fill(note, 100, break_on_hyphens=False)
    return f"Examples\n--------\n{examples}\n\nNotes\n-----\n{note}\n"


@dataclass(frozen=True, kw_only=True, eq=False)
class Training(Result):
    """A trained metric or ranker, and the folder that holds it."""

    trained: Any
    folder: str

    def contents(self) -> list[Any]:
        """Return the weights of a blend, the agreement in cross-validation, and the folder."""
        contents: list[Any] = [*self.tables()]
        agreement = self.trained.checkpoint.training.get("cross-validation")
        if agreement:  # of an adapted metric
            before = agreement["tertium-multi"]
            after = agreement["adapted"]
            contents.append(f"r on held-out sources: {after:.3f} (tertium-multi: {before:.3f})")
        use = f"saved to {self.folder}; use it with -m {self.folder}"
        return [*contents, f"{self.trained.title}: {use}"]

    def tables(self) -> list[Table]:
        """Return the weight of each metric of a blend and its share."""
        if not hasattr(type(self.trained).settings, "metrics"):
            return []
        weights = self.trained.coefficients
        total = sum(weights.values()) or 1.0
        columns = [
            Column("metric", str),
            Column("weight", weights.__getitem__, 4),
            Column("%", lambda metric: 100 * weights[metric] / total, 0),
        ]
        return [Table(columns, [*weights], "Weights of normalized scores")]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row with the metric and its folder."""
        return Table([Column("metric", "trained.name"), Column("folder")], [self])


def train_on_files(
    metric: Annotated[str | None, Option(metavar="METRIC")] = None,
    /,
    *,
    files: TrainingFiles,
    options: Annotated[Any, LateOptions(choose_options)],
    device: Device,
    judge: JudgeConnection,
    metrics: Annotated[Specs, Option("-m", "--metrics", group="Metrics")] = (),
    output: Annotated[str, Option("-o", "--output", metavar="DIR", group="Output")],
    overwrite: Annotated[bool, Option(group="Output")] = False,
) -> Training:
    """Train a metric on human judgments and save it to a folder.

    Parameters
    ----------
    metric
        Metric or ranker to train.
    metrics
        Metrics to combine, for blend.
    output
        Output folder.
    overwrite
        Replace a metric that was trained in DIR.

    Examples
    --------
    tertium train esim --train da/wmt16/*-en.jsonl.gz --dev da/wmt15/*-en.jsonl.gz -o models/esim
    tertium train bleu-r --recipe published --train mine.tsv -o models/published
    tertium train pairwise --train comparisons.tsv --dev dev.tsv -o models/ranker
    tertium score -t ours.txt -r reference.txt -m models/esim

    Notes
    -----
    METRIC is a name, with settings as in a spec (esim:encoder=mpnet). Each metric has its own
    training options: `tertium train METRIC --help` shows them with their defaults. --train and
    --dev are files with one translation and its human score per row (JSONL, TSV, CSV), or with one
    comparison per row, with the texts in the row or in a .texts.jsonl file next to them. With both,
    training starts with comparisons. Segments that share
    a reference with --dev or --held-out are not used for training. Run the same command again to
    continue an interrupted training.
    """
    if not metric:
        raise UsageError("no METRIC: give it first; --train and other options take all next words")
    spec = _add_metrics(metric, metrics) if metrics else metric
    values = {name: value for name, value in vars(options).items() if value is not None}
    recipe = values.pop("recipe", RECIPE)
    trained = train(
        spec,
        files.read_scores(files.human),
        dev=files.read_scores(files.dev),
        held_out=files.held_out,
        recipe=recipe,
        folder=output,
        overwrite=overwrite,
        on_epoch=_report_epoch,
        **values,
    )
    return Training(trained=trained, folder=output)


def _report_epoch(epoch: Epoch) -> None:
    dev = "" if math.isnan(epoch.dev) else f", dev {epoch.dev:.4f}"
    best = " (best)" if epoch.best else ""
    place = f"{epoch.stage}, epoch {epoch.number}"
    logger.warning("%s: loss %.4f%s, %.1f s%s", place, epoch.loss, dev, epoch.seconds, best)


def _add_metrics(spec: str, metrics: Sequence[str]) -> str:
    """Return the spec of a metric to train with the metrics of -m."""
    cls = find_trainable_class(spec)
    settings: Any = cls.settings
    if not hasattr(settings, "metrics"):
        raise UsageError(f"-m is for blend, which combines metrics: omit it for {cls.name}")
    fields = parse_fields(settings, cls.name, split_spec(spec)[1])
    return format_spec(cls.name, settings(**fields | {"metrics": tuple(metrics)}))
