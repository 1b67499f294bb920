"""`tertium train`: a metric from human judgements, kept in a folder that `-m` then takes."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.cli.bars import bars
from tertium.errors import DataError, UsageError
from tertium.registry import read_fields, resolve_scorer, split_spec

if TYPE_CHECKING:
    from tertium.data.judgements import JudgementSet
    from tertium.data.preferences import RankingSet
    from tertium.models.options import Epoch, TrainingOptions

NETWORK = ("epochs", "patience", "batch_size", "rate")
# the options that each way to train reads
READ: dict[str, tuple[str, ...]] = {
    "train_head": (*NETWORK, "comparison_epochs", "comparison_rate", "items", "loss", "mixed"),
    "train_svr": ("folds",),
    "train_ranker": NETWORK,
    "train_regression": (),
}

DESCRIPTION = "Train a metric on human judgements and write it to a folder."
EPILOG = """\
examples:
  tertium train esim --train da/wmt16/*-en.jsonl.gz --dev da/wmt15/*-en.jsonl.gz -o models/esim
  tertium train bilstm-attention:encoder=mpnet --train mine.tsv --dev da/wmt15/*-en.jsonl.gz \\
      --preferences rankings/wmt16/*-en.judgements.tsv.gz -o models/mine
  tertium train svr:encoders=minilm+use --train da/wmt16/*-en.jsonl.gz -o models/svr
  tertium score -t ours.txt -r reference.txt -m models/esim

METRIC is a name with what to choose before training, as in a spec: encoder, against (reference,
source, both), hidden, dropout; encoders and against for svr. Files of --train and --dev hold a row
for each judged translation (JSONL, TSV or CSV), those of --preferences a row for each comparison,
with the texts in the row or in FILE.texts.jsonl beside FILE.judgements.tsv. Given both, comparisons
are learned from first. What shares a reference with --dev or --held-out is not trained on. The same
command goes on where an interrupted one stopped.
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "train",
        help="train a metric on human judgements",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("metric", metavar="METRIC", help="what to train, as a spec")
    data = parser.add_argument_group("data")
    for option, help_text in (
        ("--train", "judged translations"),
        ("--preferences", "comparisons"),
        ("--dev", "to choose the epoch on"),
        ("--dev-preferences", "the same, comparisons"),
        ("--held-out", "judged translations whose references must not be trained on (test sets)"),
    ):
        data.add_argument(
            option, nargs="+", action="extend", default=[], metavar="FILE", help=help_text
        )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the trained metric")
    add_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no table")
    return parser


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training (defaults: as published)")
    group.add_argument("--epochs", type=int, help="on scores, at most (default: 30)")
    group.add_argument(
        "--patience", type=int,
        help="epochs without a better one before it stops (0: never; default: 5, of pairwise 100)",
    )  # fmt: skip
    group.add_argument("--batch-size", "--batch_size", type=int, help="judgements (default: 32)")
    group.add_argument("--rate", type=float, help="of Adam (default: 4e-4)")
    group.add_argument("--comparison-epochs", type=int, help="on comparisons (default: 4)")
    group.add_argument("--comparison-rate", type=float, help="default: 6e-4, falling")
    group.add_argument("--items", type=int, help="ranked segments in a batch (default: 64)")
    group.add_argument("--loss", choices=("logistic", "hinge"), help="of comparisons")
    group.add_argument("--mixed", action="store_true", help="scores and comparisons at once")
    group.add_argument("--folds", type=int, help="of svr's cross validation (default: 10)")
    group.add_argument("--seed", type=int, default=1, help="default: 1")
    group.add_argument("--device", default="auto", help="cpu, cuda, cuda:N, mps or auto")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads")


def run(args: argparse.Namespace) -> int:
    from tertium.runtime import runtime

    name, texts = split_spec(args.metric)
    cls = resolve_scorer(name)
    if not hasattr(cls, "train"):
        raise UsageError(f"{name} has nothing to learn; `tertium score -m {name}` uses it as it is")
    if not args.train and not args.preferences:
        raise UsageError("nothing to learn from: give --train FILE... or --preferences FILE...")
    config = read_fields(getattr(cls, "settings", cls), name, texts)
    check_options(cls, args)
    check_folder(Path(args.output))
    scores, rankings = read_sets(args.train, args.preferences)
    dev_scores, dev_rankings = read_sets(args.dev, args.dev_preferences)
    held, _ = read_sets(args.held_out, [])
    scores, rankings = _without(scores, rankings, held)
    with bars(args.quiet), runtime(device=args.device, threads=args.threads):
        train_of(cls)(
            cls, args, config, [*scores, *rankings], [*dev_scores, *dev_rankings]
        )
    return 0


def train_of(cls: Any) -> Callable[..., None]:
    """How a class is trained from the command line."""
    from tertium.metrics.base.ranker import Ranker
    from tertium.metrics.base.trainable import Trainable
    from tertium.metrics.heads.metric import PairHead

    if issubclass(cls, PairHead):
        return train_head
    if issubclass(cls, Trainable):
        return train_svr
    return train_ranker if issubclass(cls, Ranker) else train_regression


def check_options(cls: Any, args: argparse.Namespace) -> None:
    """Refuse options that would be ignored, and folds that are none."""
    read = READ[train_of(cls).__name__]
    known = dict.fromkeys(option for options in READ.values() for option in options)
    unread = [o for o in known if o not in read and getattr(args, o) not in (None, False)]
    if unread:
        names = ", ".join("--" + option.replace("_", "-") for option in unread)
        reads = ", ".join("--" + option.replace("_", "-") for option in read) or "none of these"
        raise UsageError(f"{cls.name} does not read {names}: leave it out (it reads {reads})")
    if args.folds is not None and args.folds < 2:
        raise UsageError(f"--folds {args.folds}: cross validation takes two folds or more")


def train_head(cls: Any, args: argparse.Namespace, config: dict[str, Any], data: Sequence[Any],
               dev: Sequence[Any]) -> None:  # fmt: skip
    """A network over a frozen encoder: a row for each epoch, then where it lies."""
    metric = cls.train(
        data,
        dev=dev,
        options=_options(args),
        comparison_options=_comparison_options(args),
        order="mixed" if args.mixed else "comparisons first",
        loss=args.loss or "logistic",
        folder=args.output,
        on_epoch=None if args.quiet else _show,
        **config,
    )
    _tell(args, metric)


def train_svr(cls: Any, args: argparse.Namespace, config: dict[str, Any], data: Sequence[Any],
              dev: Sequence[Any]) -> None:  # fmt: skip
    """A support vector regression: the settings that did best, then where it lies."""
    extra = {"folds": args.folds} if args.folds else {}
    chosen = {key: config[key] for key in ("encoders", "against") if key in config}
    metric = cls.train(data, dev=dev, seed=args.seed, **extra, **chosen).save(args.output)
    if not args.quiet:
        print("C\tepsilon\tgamma\tR^2")
        for setting, value in metric.checkpoint.training["search"][:10]:
            print(f"{setting['c']:g}\t{setting['epsilon']:g}\t{setting['gamma']:g}\t{value:.4f}")
    _tell(args, metric)


def train_regression(cls: Any, args: argparse.Namespace, config: dict[str, Any],
                     data: Sequence[Any], dev: Sequence[Any]) -> None:  # fmt: skip
    """A linear regression on features, which learns from scores only."""
    judgements = [j for one in data for j in getattr(one, "judgements", ())]
    if not judgements:
        raise UsageError(f"{cls.name} learns from human scores: give them with --train")
    held = [j for one in dev for j in getattr(one, "judgements", ())]
    # comparisons go along, to be refused rather than ignored
    data, dev = ([one for one in sets if not hasattr(one, "judgements")] for sets in (data, dev))
    metric = cls.train([*judgements, *data], dev=[*held, *dev], **config)
    _tell(args, metric.save(args.output))


def train_ranker(cls: Any, args: argparse.Namespace, config: dict[str, Any], data: Sequence[Any],
                 dev: Sequence[Any]) -> None:  # fmt: skip
    """A ranker, which learns from comparisons only."""
    preferences = [p for one in data if not hasattr(one, "judgements") for p in one]
    held = [p for one in dev if not hasattr(one, "judgements") for p in one]
    if not preferences or not held:
        raise UsageError(
            f"{cls.name} learns from comparisons: give --preferences and --dev-preferences"
        )
    options = _ranker_options(args)
    _tell(args, cls.train(preferences, dev=held, options=options, **config).save(args.output))


def _ranker_options(args: argparse.Namespace) -> Any:
    from tertium.metrics.pairwise.ranker import PairwiseOptions

    given = {"epochs": args.epochs, "patience": args.patience, "batch": args.batch_size,
             "rate": args.rate}  # fmt: skip
    chosen: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    return PairwiseOptions(seed=args.seed, **chosen)


def read_sets(
    files: Sequence[str], preferences: Sequence[str]
) -> tuple[list[JudgementSet], list[RankingSet]]:
    """Judged sets of files; comparisons find their texts in the row or in a file beside theirs."""
    from tertium.data.collection import read_texts
    from tertium.data.judgements import read_judgements
    from tertium.data.preferences import read_preferences

    scores = [read_judgements(file, name=_name(file), lp=_pair(file)) for file in files]
    rankings = []
    for file in preferences:
        beside = Path(str(file).replace(".judgements.tsv", ".texts.jsonl"))
        texts = read_texts(beside) if beside != Path(file) and beside.is_file() else None
        one = read_preferences(file, texts=texts, name=_name(file), lp=_pair(file))
        if not one.has_texts:
            raise DataError(
                f"{file}: no texts; expected columns hypothesis_a and hypothesis_b, or {beside}"
            )
        rankings.append(one)
    return scores, rankings


def check_folder(folder: Path) -> None:
    """Refuse to write over something that is no training folder."""
    if folder.is_file():
        raise UsageError(f"{folder} is a file: -o takes a folder")
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise UsageError(f"{folder} cannot be made: {place} is no folder that can be written to")
    known = ("config.json", "training.safetensors")
    if folder.is_dir() and any(folder.iterdir()) and not any((folder / f).is_file() for f in known):
        raise UsageError(f"{folder} is not empty and holds no trained metric: give another folder")


def _without(
    scores: list[JudgementSet], rankings: list[RankingSet], held: list[JudgementSet]
) -> tuple[list[JudgementSet], list[RankingSet]]:
    from tertium.metrics.base.trainable import without_leaks

    return without_leaks(scores, rankings, held)


def _options(args: argparse.Namespace) -> TrainingOptions:
    from dataclasses import replace

    from tertium.models.options import SCORES

    given = {"epochs": args.epochs, "patience": args.patience, "batch_size": args.batch_size,
             "rate": args.rate}  # fmt: skip
    chosen = {key: value for key, value in given.items() if value is not None}
    return replace(SCORES, seed=args.seed, device=args.device, **chosen)


def _comparison_options(args: argparse.Namespace) -> TrainingOptions:
    from dataclasses import replace

    from tertium.models.options import COMPARISONS

    given = {"epochs": args.comparison_epochs, "patience": args.comparison_epochs,
             "batch_size": args.items, "rate": args.comparison_rate}  # fmt: skip
    chosen = {key: value for key, value in given.items() if value is not None}
    return replace(COMPARISONS, seed=args.seed, device=args.device, **chosen)


def _show(epoch: Epoch) -> None:
    if epoch.number == 1:
        print("stage\tepoch\tloss\tdev\tseconds\t", flush=True)
    dev = "" if math.isnan(epoch.dev) else f"{epoch.dev:.4f}"
    mark = "*" if epoch.best else ""
    print(
        f"{epoch.stage}\t{epoch.number}\t{epoch.loss:.4f}\t{dev}\t{epoch.seconds:.1f}\t{mark}",
        flush=True,
    )


def _tell(args: argparse.Namespace, metric: Any) -> None:
    if not args.quiet:
        print(f"{metric.title}: saved to {args.output}; use it with -m {args.output}")


def _name(file: str) -> str:
    """A set's name from its path: `da/wmt16/cs-en.jsonl.gz` is `da/wmt16`."""
    parts = Path(file).parts
    return "/".join(parts[-3:-1]) or Path(file).name.split(".")[0]


def _pair(file: str) -> str:
    import re

    found = re.search(r"(?:^|\.)([a-z]{2,3}-[a-z]{2,3})(?=\.)", Path(file).name)
    return found.group(1) if found else ""
