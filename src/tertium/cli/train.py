"""`tertium train`: a metric from human judgments, kept in a folder that `-m` then takes."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tertium.cli import LateParser
from tertium.cli.inputs import GOLD, add_list
from tertium.cli.runtime import bars
from tertium.data.evidence import read_scored_sets
from tertium.errors import TertiumError, UsageError
from tertium.runtime import runtime
from tertium.specs import print_value, read_value

if TYPE_CHECKING:
    from tertium.data.judgments import JudgmentSet
    from tertium.models.options import Epoch, Option
    from tertium.models.trained import Trained

HELP = "train a metric on human judgments"
DESCRIPTION = "Train a metric on human judgments and write it to a folder."
HEADS = ("esim", "bilstm", "bilstm-attention")
REGRESSIONS = ("rte-r", "bleu-r", "nist-r", "ter-r", "meteor-r", "mt-r", "mt-rte-r")
# Of each family, for the learner whose help is shown; of all, for the first of each.
EXAMPLES = {
    HEADS: """\
  tertium train {0} --train da/wmt16/*-en.jsonl.gz --dev da/wmt15/*-en.jsonl.gz -o models/{0}
  tertium train {0} --recipe published --train mine.tsv --dev dev.tsv -o models/published
  tertium train {0}:encoder=mpnet --preferences rankings/wmt16/*-en.judgements.tsv.gz \\
      --train mine.tsv --dev da/wmt15/*-en.jsonl.gz -o models/mine
""",
    ("svr",): """\
  tertium train {0} --train da/wmt15/*-en.jsonl.gz da/wmt16/*-en.jsonl.gz -o models/{0}
  tertium train {0}:encoders=minilm+use --train mine.tsv -o models/mine
""",
    REGRESSIONS: """\
  tertium train {0} --train da/wmt15/*-en.jsonl.gz da/wmt16/*-en.jsonl.gz -o models/{0}
  tertium train {0} --recipe published --train mine.tsv -o models/published
""",
    ("pairwise",): """\
  tertium train {0} --preferences rankings/wmt11/*-en.judgements.tsv.gz --choose-on 5000 \\
      --dev-preferences rankings/wmt13/*-en.judgements.tsv.gz -o models/ranker
  tertium train {0}:cost=logistic --recipe published --rate .3 --epochs 200 --patience 40 \\
      --preferences rankings/wmt11/*-en.judgements.tsv.gz \\
      --dev-preferences rankings/wmt13/*-en.judgements.tsv.gz -o models/published
""",
}
REMARKS = """
METRIC is a name with what to choose before training, as in a spec; `tertium train METRIC --help`
shows what that metric reads, with its own defaults. Files of --train and --dev hold a row for each
judged translation (JSONL, TSV or CSV), those of --preferences a row for each comparison, with the
texts in the row or in FILE.texts.jsonl beside FILE.judgements.tsv. Given both, comparisons are
learned from first. What shares a reference with --dev or --held-out is not trained on. The same
command goes on where an interrupted one stopped.
"""
DATA = {  # what each holds, and which learners read it
    "--train": ("judged translations to learn from", "scores"),
    "--preferences": ("comparisons to learn from", "comparisons"),
    "--dev": ("judged translations to choose by, never trained on", "scores"),
    "--dev-preferences": ("comparisons to choose by, never trained on", "comparisons"),
    "--held-out": ("judged translations whose references must not be trained on (test sets)", ""),
}


def examples(name: str = "") -> str:
    """Commands that train a learner, or the first of each family, and what to do with it."""
    mine = {names: text.format(name) for names, text in EXAMPLES.items() if name in names}
    shown = mine or {names: text.format(names[0]) for names, text in EXAMPLES.items()}
    use = "  tertium rank -t ours.txt theirs.txt -r reference.txt -m models/ranker\n"
    if name != "pairwise":
        use = f"  tertium score -t ours.txt -r reference.txt -m models/{name or 'esim'}\n"
    return "examples:\n" + "".join(shown.values()) + use


EPILOG = examples() + REMARKS


def add_arguments(parser: LateParser) -> None:
    parser.add_argument("metric", nargs="?", metavar="METRIC", help="what to train, as a spec")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the trained metric")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the metric that was trained in DIR"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no table")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:N, mps or auto")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads")
    parser.late = add_options


def _add_data(parser: argparse.ArgumentParser, shown: Sequence[type[Trained]]) -> None:
    """The files; help leaves out what the learner that is asked for would refuse."""
    group = parser.add_argument_group("data")
    for option, (says, teacher) in DATA.items():
        read = not teacher or any(teacher in cls.teachers for cls in shown) or not shown
        told = says if read else argparse.SUPPRESS
        add_list(group, option, metavar="FILE", help=told)
    scored = any("scores" in cls.teachers for cls in shown) or not shown
    says = f"{GOLD}, for --train and --dev" if scored else argparse.SUPPRESS
    group.add_argument("--gold", metavar="NAME", help=says)


def add_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """The options of all learners; help shows those of the one that is asked for."""
    from tertium.evaluation.training import RECIPE, find_learner, learners

    shown: list[type[Trained]] = []
    for word in arguments:  # the metric may stand behind other words
        with suppress(TertiumError):
            shown = shown or [find_learner(word)]
    known = learners()
    if shown:
        parser.epilog = examples(shown[0].name) + REMARKS
    _add_data(parser, shown)
    group = parser.add_argument_group("training", _explain_settings(shown))
    group.add_argument(
        "--recipe", default=RECIPE, metavar="NAME", help=_explain_recipes(shown or known)
    )
    for options in _by_name(known).values():
        option = next(iter(options.values()))
        read = {cls: options[cls] for cls in shown or known if cls in options}
        about: dict[str, Any] = {"default": None, "dest": option.name}
        if option.kind is bool:
            about["action"] = argparse.BooleanOptionalAction
        else:
            about["metavar"] = _placeholder(option.kind)
        says = _explain(read, alone=bool(shown)) if read else argparse.SUPPRESS
        group.add_argument(option.flag, help=says, **about)
        if "_" in option.name:  # as it is written in Python
            group.add_argument("--" + option.name, help=argparse.SUPPRESS, **about)


def _by_name(known: Sequence[type[Trained]]) -> dict[str, dict[type[Trained], Option]]:
    """Each option, as each learner that reads it means it."""
    from tertium.evaluation.training import options_of

    names: dict[str, dict[type[Trained], Option]] = {}
    for cls in known:
        for option in options_of(cls):
            names.setdefault(option.name, {})[cls] = option
    return names


def _explain(read: Mapping[type[Trained], Option], *, alone: bool) -> str:
    """What an option means and its default: of one learner in each recipe, of several by theirs."""
    if alone:
        (cls, option), *_ = read.items()
        return f"{option.says} ({_defaults(cls, option.name)})"
    meanings: dict[str, dict[str, list[str]]] = {}
    for cls, option in read.items():
        meanings.setdefault(option.says, {}).setdefault(option.default, []).append(cls.name)
    told = []
    for says, defaults in meanings.items():
        values = [f"{', '.join(names)}: {value}" for value, names in defaults.items()]
        told.append(f"{says} ({'; '.join(values)})")
    return "; ".join(told)


def _defaults(cls: type[Trained], name: str) -> str:
    """The default of an option in each recipe of a learner."""
    from tertium.evaluation.training import options_of

    values = {
        recipe: next(o.default for o in options_of(cls, recipe) if o.name == name)
        for recipe in cls.recipes
    }
    if len(set(values.values())) == 1:
        return f"default: {next(iter(values.values()))}"
    return ", ".join(f"{recipe}: {value}" for recipe, value in values.items())


def _explain_recipes(known: Sequence[type[Trained]]) -> str:
    from tertium.evaluation.training import has_one_recipe

    if len(known) > 1:
        return "published or ours: a preset of settings and options (default: ours)"
    told = []
    for name, recipe in known[0].recipes.items():
        chosen = ",".join(f"{key}={print_value(v)}" for key, v in recipe.settings.items())
        told.append(f"{name}: {recipe.says}" + (f" ({chosen})" if chosen else ""))
    same = [f"which is the same for {known[0].name}"] if has_one_recipe(known[0]) else []
    return "; ".join([*told, *same, "default: ours"])


def _explain_settings(shown: Sequence[type[Trained]]) -> str | None:
    """What may be chosen in the spec of a learner, with its defaults."""
    for cls in shown:
        kind: Any = cls.settings or cls
        fields = [f for f in dataclasses.fields(kind) if f.name != "model"]
        known = ", ".join(f"{f.name}={print_value(f.default)}" for f in fields)
        return f"in the spec, {cls.name}:FIELD=VALUE,...: {known}" if known else None
    return None


def _placeholder(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        return "|".join(typing.get_args(kind))
    return "N+N" if typing.get_origin(kind) is tuple else "N"


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.training import RECIPE, Plan, check_folder, has_one_recipe, train

    if not args.metric:
        raise UsageError(
            "which METRIC? it goes first, for --train and other options of files take all words "
            "that follow them"
        )
    options = _given_options(args)
    plan = Plan.make(args.metric, args.recipe, **options)  # faults show before files are read
    if not args.train and not args.preferences:
        raise UsageError("nothing to learn from: give --train FILE... or --preferences FILE...")
    if args.gold is not None and not args.train:
        raise UsageError(f"--gold {args.gold} chooses among scores of --train: leave it out")
    check_folder(args.output, plan.cls, overwrite=args.overwrite)
    if args.recipe != RECIPE and has_one_recipe(plan.cls) and not args.quiet:
        said = f"tertium: {plan.cls.name} has one recipe: {args.recipe} is the same as {RECIPE}"
        print(said, file=sys.stderr)
    with bars(args.quiet), runtime(device=args.device, threads=args.threads):
        metric = train(
            args.metric,
            [*_scored(args.train, args.gold), *args.preferences],
            dev=[*_scored(args.dev, args.gold), *args.dev_preferences],
            held_out=args.held_out,
            recipe=args.recipe,
            folder=args.output,
            overwrite=args.overwrite,
            on_epoch=None if args.quiet else _show,
            **options,
        )
    if not args.quiet:
        _show_search(metric.checkpoint.training.get("search", ()))
        print(f"{metric.title}: saved to {args.output}; use it with -m {args.output}")
    return 0


def _scored(files: Sequence[str], gold: str | None) -> Sequence[str | JudgmentSet]:
    """Files of scores, read where `gold` says which scores of them."""
    return files if gold is None else read_scored_sets(files, gold)


def _given_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options on the command line, as values of their types."""
    from tertium.evaluation.training import learners

    options = {name: next(iter(one.values())) for name, one in _by_name(learners()).items()}
    given = {name: getattr(args, name) for name in options}
    return {
        name: read_value(value, options[name].kind, name) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None
    }


def _show(epoch: Epoch) -> None:
    if epoch.number == 1:
        print("stage\tepoch\tloss\tdev\tseconds\t", flush=True)
    dev = "" if math.isnan(epoch.dev) else f"{epoch.dev:.4f}"
    mark = "*" if epoch.best else ""
    print(
        f"{epoch.stage}\t{epoch.number}\t{epoch.loss:.4f}\t{dev}\t{epoch.seconds:.1f}\t{mark}",
        flush=True,
    )


def _show_search(settings: Sequence[tuple[Mapping[str, float], float]]) -> None:
    """What a search tried, the best first; of a lone setting nothing was asked."""
    if len(settings) < 2:
        return
    print("C\tepsilon\tgamma\tR^2")
    for setting, value in settings[:10]:
        print(f"{setting['c']:g}\t{setting['epsilon']:g}\t{setting['gamma']:g}\t{value:.4f}")
