"""`tertium train`: train a metric or ranker on human judgments and save it to a folder."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.cli import blend, judge
from tertium.cli.inputs import GOLD_HELP
from tertium.cli.output import add_quiet
from tertium.cli.parser import CommandParser, add_list, replace_underscores
from tertium.cli.runtime import add_device, progress_bars
from tertium.data.human_data_files import read_judgment_sets
from tertium.errors import TertiumError, UsageError
from tertium.execution import runtime
from tertium.specs import format_value, parse_value

if TYPE_CHECKING:
    from tertium.data.judgments import JudgmentSet
    from tertium.models.trained_model import TrainedModel
    from tertium.models.training_options import Epoch, Option

DESCRIPTION = "Train a metric on human judgments and save it to a folder."
NOTES = """
METRIC is a name, with settings as in a spec (esim:encoder=mpnet). `tertium train METRIC --help`
shows its options and defaults. --train and --dev are files with one translation and its human score
per row (JSONL, TSV, CSV). --preferences are files with one comparison per row, with the texts in
the row or in a .texts.jsonl file next to them. With both, training starts with comparisons.
Segments that share a reference with --dev or --held-out are not used for training. Run the same
command again to continue an interrupted training.
"""
EPILOG = f"""\
examples:
  tertium train esim --train da/wmt16/*-en.jsonl.gz --dev da/wmt15/*-en.jsonl.gz -o models/esim
  tertium train bleu-r --recipe published --train mine.tsv -o models/published
  tertium train pairwise --preferences comparisons.tsv --dev-preferences dev.tsv -o models/ranker
  tertium score -t ours.txt -r reference.txt -m models/esim
{NOTES}"""
DATA_OPTIONS = {  # meaning, and the kind of data ("": used by all)
    "--train": ("translations with human scores to train on", "scores"),
    "--human": ("the same as --train", "scores"),
    "--preferences": ("human comparisons to train on", "comparisons"),
    "--dev": ("translations with human scores for model selection", "scores"),
    "--dev-preferences": ("human comparisons for model selection", "comparisons"),
    "--held-out": ("test sets whose references must not be trained on", ""),
}


def add_arguments(parser: CommandParser) -> None:
    parser.groups["Metrics"].add_argument(
        "metric", nargs="?", metavar="METRIC", help="metric or ranker to train"
    )
    group = parser.groups["Output"]
    group.add_argument("-o", "--output", required=True, metavar="DIR", help="output folder")
    group.add_argument(
        "--overwrite", action="store_true", help="replace a metric that was trained in DIR"
    )
    add_quiet(parser)
    add_device(parser)
    judge.add_judge(parser)
    add_list(
        parser.groups["Metrics"],
        "-m",
        "--metrics",
        metavar="METRIC",
        help="metrics to combine, for blend",
    )
    parser.add_late_options = add_training_options


def add_training_options(parser: CommandParser, arguments: Sequence[str]) -> None:
    """Add the options of the named metric, which alone is imported; without one, those of all.

    With an option that it does not have, the others are added too: an error then names the option.
    """
    from tertium.evaluation.training import RECIPE, find_trainable_class, trainable_classes

    requested: list[type[TrainedModel]] = []
    for word in arguments:  # the metric need not be the first word
        with suppress(TertiumError):
            requested = requested or [find_trainable_class(word)]
    classes = requested or trainable_classes()
    if requested:
        parser.epilog = _make_examples(requested[0]) + NOTES
        parser.groups["Training"].description = _describe_settings(requested[0])
    _add_data_options(parser, classes)
    parser.groups["Training"].add_argument(
        "--recipe", default=RECIPE, metavar="NAME", help=_describe_recipes(classes)
    )
    kinds: dict[str, Any] = {}
    for name, options in _group_options(classes).items():
        text = _describe_option(options, alone=bool(requested))
        kinds[name] = _add_training_option(parser, options, text)
    names = {word.partition("=")[0] for word in replace_underscores(arguments)}
    if any(name.startswith("--") and name not in parser._option_string_actions for name in names):
        for name, options in _group_options(trainable_classes()).items():
            if name not in kinds:
                kinds[name] = _add_training_option(parser, options, argparse.SUPPRESS)
    parser.set_defaults(option_kinds=kinds)


def _add_training_option(
    parser: CommandParser, options: Mapping[type[TrainedModel], Option], text: str
) -> Any:
    """Add an option, given for each class that has it; return the type of its values."""
    option = next(iter(options.values()))
    settings: dict[str, Any] = {"default": None, "dest": option.name}
    if option.kind is bool:
        settings["action"] = argparse.BooleanOptionalAction
    else:
        settings["metavar"] = _metavar(option.kind)
    parser.groups["Training"].add_argument(option.flag, help=text, **settings)
    return option.kind


def _make_examples(cls: type[TrainedModel]) -> str:
    """Return example commands that train and use one metric or ranker."""
    use = f"  tertium score -t ours.txt -r reference.txt -m models/{cls.name}\n"
    if cls.kind == "ranker":
        use = f"  tertium rank -t ours.txt theirs.txt -r reference.txt -m models/{cls.name}\n"
    return f"examples:\n{cls.train_examples.format(name=cls.name)}{use}"


def _add_data_options(parser: CommandParser, classes: Sequence[type[TrainedModel]]) -> None:
    """Add the options for files; help omits kinds of data that the classes do not accept."""
    group = parser.groups["Input"]
    accepted = {"", *(kind for cls in classes for kind in cls.accepted_data)}
    for option, (text, kind) in DATA_OPTIONS.items():
        help_text = text if kind in accepted else argparse.SUPPRESS
        add_list(group, option, metavar="FILE", help=help_text)
    help_text = GOLD_HELP if "scores" in accepted else argparse.SUPPRESS
    group.add_argument("--gold", metavar="NAME", help=help_text)


def _group_options(
    classes: Sequence[type[TrainedModel]],
) -> dict[str, dict[type[TrainedModel], Option]]:
    """Return the options by name, and for each name by class."""
    from tertium.evaluation.training import trainable_options

    options: dict[str, dict[type[TrainedModel], Option]] = {}
    for cls in classes:
        for option in trainable_options(cls):
            options.setdefault(option.name, {})[cls] = option
    return options


def _describe_option(options: Mapping[type[TrainedModel], Option], *, alone: bool) -> str:
    """Describe an option and its defaults, by recipe for one class, by class for several."""
    if alone:
        (cls, option), *_ = options.items()
        return f"{option.description} ({_describe_defaults(cls, option.name)})"
    meanings: dict[str, dict[str, list[str]]] = {}
    for cls, option in options.items():
        meanings.setdefault(option.description, {}).setdefault(option.default, []).append(cls.name)
    descriptions = []
    for text, defaults in meanings.items():
        values = [f"{', '.join(names)}: {value}" for value, names in defaults.items()]
        descriptions.append(f"{text} ({'; '.join(values)})")
    return "; ".join(descriptions)


def _describe_defaults(cls: type[TrainedModel], name: str) -> str:
    """Describe the default of an option in each recipe of a class."""
    from tertium.evaluation.training import trainable_options

    defaults = {
        recipe: next(o.default for o in trainable_options(cls, recipe) if o.name == name)
        for recipe in cls.recipes
    }
    if len(set(defaults.values())) == 1:
        return f"default: {next(iter(defaults.values()))}"
    return ", ".join(f"{recipe}: {value}" for recipe, value in defaults.items())


def _describe_recipes(classes: Sequence[type[TrainedModel]]) -> str:
    from tertium.evaluation.training import has_one_recipe

    if len(classes) > 1:
        return "preset of settings and options: published or ours (default: ours)"
    cls, descriptions = classes[0], []
    for name, recipe in cls.recipes.items():
        settings = ",".join(f"{key}={format_value(v)}" for key, v in recipe.settings.items())
        descriptions.append(f"{name}: {recipe.description}" + (f" ({settings})" * bool(settings)))
    if has_one_recipe(cls):
        descriptions.append(f"both are the same for {cls.name}")
    return "; ".join([*descriptions, "default: ours"])


def _describe_settings(cls: type[TrainedModel]) -> str | None:
    """Describe the settings in the spec of a class, with their defaults."""
    settings: Any = cls.settings or cls
    fields = [f for f in dataclasses.fields(settings) if f.name != "model"]
    values = ", ".join(f"{f.name}={format_value(f.default)}" for f in fields)
    return f"Settings in the spec, {cls.name}:FIELD=VALUE,...: {values}" if values else None


def _metavar(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return "|".join(typing.get_args(kind))
    return "N+N" if typing.get_origin(kind) is tuple else "N"


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.training import (
        RECIPE,
        TrainingPlan,
        check_folder,
        has_one_recipe,
        train,
    )

    if not args.metric:
        raise UsageError("no METRIC: give it first; --train and other options take all next words")
    options = _parse_options(args)
    if args.metrics:
        args.metric = blend.add_metrics(args.metric, args.metrics)
    plan = TrainingPlan.make(args.metric, args.recipe, **options)  # check before files are read
    args.train = [*args.train, *args.human]
    if not args.train and not args.preferences:
        raise UsageError("no training data: give --train FILE... or --preferences FILE...")
    if args.gold is not None and not args.train:
        raise UsageError(f"--gold {args.gold} needs --train FILE...")
    check_folder(args.output, plan.cls, overwrite=args.overwrite)
    if args.recipe != RECIPE and has_one_recipe(plan.cls) and not args.quiet:
        note = f"{plan.cls.name} has one recipe: {args.recipe} is the same as {RECIPE}"
        print(f"tertium: {note}", file=sys.stderr)
    with (
        _explain_interrupts(args.output),
        progress_bars(args.quiet),
        runtime(
            device=args.device or "auto", threads=args.threads, judge=judge.judge_options(args)
        ),
    ):
        data, scored_sets = _read_scores(args.train, args.gold), []
        if blend.combines_metrics(plan.cls):
            data = scored_sets = blend.read_scored_sets(args, plan.settings)
        metric = train(
            args.metric,
            [*data, *args.preferences],
            dev=[*_read_scores(args.dev, args.gold), *args.dev_preferences],
            held_out=args.held_out,
            recipe=args.recipe,
            folder=args.output,
            overwrite=args.overwrite,
            on_epoch=None if args.quiet else _print_epoch,
            **options,
        )
    if not args.quiet:
        _print_search(metric.checkpoint.training.get("search", ()))
        _print_cross_validation(metric.checkpoint.training.get("cross-validation", {}))
        if scored_sets:
            blend.print_study(metric, scored_sets, plan)
        print(f"{metric.title}: saved to {args.output}; use it with -m {args.output}")
    return 0


@contextmanager
def _explain_interrupts(folder: str) -> Iterator[None]:
    """Say what remains of a training that is interrupted by Ctrl-C."""
    from tertium.models.trained_model import SNAPSHOT

    try:
        yield
    except KeyboardInterrupt:
        if (Path(folder) / SNAPSHOT).is_file():
            message = f"{folder} holds the finished epochs: run the same command again to continue"
        else:
            message = f"nothing was saved to {folder}"
        print(f"tertium: {message}", file=sys.stderr)
        raise


def _read_scores(files: Sequence[str], gold: str | None) -> Sequence[str | JudgmentSet]:
    """Read files if `gold` chooses among their human scores; otherwise return the names."""
    return files if gold is None else read_judgment_sets(files, gold)


def _parse_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the training options of the command line, converted to their types."""
    values = {name: getattr(args, name) for name in args.option_kinds}
    return {
        name: parse_value(value, args.option_kinds[name], name) if isinstance(value, str) else value
        for name, value in values.items()
        if value is not None
    }


def _print_epoch(epoch: Epoch) -> None:
    if epoch.number == 1:
        print("stage\tepoch\tloss\tdev\tseconds\t", flush=True)
    dev = "" if math.isnan(epoch.dev) else f"{epoch.dev:.4f}"
    mark = "*" if epoch.best else ""
    print(
        f"{epoch.stage}\t{epoch.number}\t{epoch.loss:.4f}\t{dev}\t{epoch.seconds:.1f}\t{mark}",
        flush=True,
    )


def _print_cross_validation(values: Mapping[str, float]) -> None:
    """Print the agreement of an adapted metric on held-out sources."""
    if values:
        before, after = values["tertium-multi"], values["adapted"]
        print(f"r on held-out sources: {after:.3f} (tertium-multi: {before:.3f})")


def _print_search(settings: Sequence[tuple[Mapping[str, float], float]]) -> None:
    """Print the best settings of a search, if it tried more than one."""
    if len(settings) < 2:
        return
    print("C\tepsilon\tgamma\tR^2")
    for setting, value in settings[:10]:
        print(f"{setting['c']:g}\t{setting['epsilon']:g}\t{setting['gamma']:g}\t{value:.4f}")
