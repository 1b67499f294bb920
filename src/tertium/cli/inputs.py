"""The options that say what is read, shared by every command that looks at translations."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable
from pathlib import Path

from tertium.data.formats import RECORD_SUFFIXES
from tertium.data.testset import TestSet
from tertium.errors import UsageError
from tertium.extras import is_installed
from tertium.metrics.base.metric import Metric, load_metric
from tertium.models.shipped import are_installed
from tertium.text.english import looks_english

BEST = "tertium-small for translations into English, else the best that serves"


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add -s, -t, -r and what goes with them."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "-t", "--translations", "-i", "--input", nargs="+", action="extend", metavar="FILE",
        required=True,
        help="system outputs, one segment a line (.gz too); or one .jsonl/.tsv/.csv of records",
    )  # fmt: skip
    group.add_argument("-s", "--sources", metavar="FILE", help="the source text")
    group.add_argument(
        "-r", "--references", nargs="+", action="extend", default=[], metavar="FILE",
        help="one or more reference translations",
    )  # fmt: skip
    group.add_argument("--documents", metavar="FILE", help="a document id for each segment")
    group.add_argument(
        "--names", nargs="+", action="extend", metavar="NAME",
        help="system names (default: the file names)",
    )  # fmt: skip
    group.add_argument(
        "--fields", metavar="A,B,...", help="column names of a TSV or CSV without a header"
    )


def add_metrics(parser: argparse.ArgumentParser, default: str) -> None:
    """Add -m, and COMET's --model for one metric."""
    parser.add_argument(
        "-m", "--metrics", nargs="+", action="extend", default=[], metavar="METRIC",
        help=f"specs such as bleu, chrf:word_order=2 (default: {default}); see `tertium list`",
    )  # fmt: skip
    parser.add_argument(
        "--model", action="append", default=[], metavar="METRIC", help="the same, one at a time"
    )


def chosen_metrics(args: argparse.Namespace, testset: TestSet, beside: str = "") -> list[Metric]:
    """The metrics that were asked for, or the default ones, in the precision asked for."""
    if args.metrics or args.model:
        return named_metrics(args)
    companions = beside.split() if testset.references else []
    return loaded(dict.fromkeys([*companions, best_metric(testset)]), args.precision)


def named_metrics(args: argparse.Namespace) -> list[Metric]:
    """The metrics that were asked for, in the precision asked for."""
    return loaded([*args.metrics, *args.model], args.precision)


def loaded(specs: Iterable[str], precision: str | None) -> list[Metric]:
    """The metrics of these specs, in this precision where they have one."""
    metrics = [load_metric(spec) for spec in specs]
    if precision is None:
        return metrics
    return [_in_precision(metric, precision) for metric in metrics]


def best_metric(testset: TestSet) -> str:
    """The metric that agrees best with people on such a test set, of those that can run here."""
    if not is_installed("torch", "transformers"):
        return "chrf"
    first = [texts[0] for texts in testset.references if texts]
    if not first and testset.sources:
        return "sss"
    english = bool(first) and looks_english(first)
    return "tertium-small" if english and are_installed() else "chrf"


def _in_precision(metric: Metric, precision: str) -> Metric:
    if not any(field.name == "precision" for field in dataclasses.fields(metric)):  # type: ignore[arg-type]
        return metric
    return dataclasses.replace(metric, precision=precision)  # type: ignore[type-var]


def read_inputs(args: argparse.Namespace) -> TestSet:
    """The test set that the options describe."""
    if any("-" in (given or ()) for given in (args.translations, args.references)) or (
        args.sources == "-"
    ):
        raise UsageError("- is no file: to read from a pipe, give /dev/stdin")
    files: list[str] = args.translations
    records = [file for file in files if RECORD_SUFFIXES & set(Path(file).suffixes)]
    if not records:
        if args.fields:
            raise UsageError("--fields goes with a .tsv or .csv file of records")
        return TestSet.read(files, args.references, args.sources, args.documents, args.names)
    if len(files) > 1:
        raise UsageError(f"{records[0]} holds records; give it alone, not beside other files")
    if args.references or args.sources or args.documents or args.names:
        raise UsageError(
            f"{records[0]} holds records with their own source, references, documents and "
            "systems; leave out -s, -r, --documents and --names"
        )
    fields = args.fields.split(",") if args.fields else None
    return TestSet.from_records(files[0], fields)
