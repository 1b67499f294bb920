"""The options that say what is read, shared by every command that looks at translations."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tertium.data.formats import RECORD_SUFFIXES, read_lines
from tertium.data.testset import TestSet
from tertium.errors import UsageError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.registry import check_once
from tertium.text.language_codes import check_code

BEST = "tertium-small for English references, tertium-multi for others or none"
GOLD = "which human scores of a folder (mqm), or the column of a file that holds them"


def add_list(group: argparse._ActionsContainer, *options: str, **said: Any) -> None:
    """Add an option that takes one or more values, and more where it is given again."""
    group.add_argument(*options, nargs="+", action="extend", default=[], **said)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add -s, -t, -r and what goes with them."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "-t",
        "--translations",
        "-i",
        "--input",
        nargs="+",
        action="extend",
        metavar="FILE",
        required=True,
        help="system outputs, one segment a line (.gz too); or one file of records, .jsonl, .tsv, "
        ".csv or .parquet",
    )
    group.add_argument("-s", "--sources", metavar="FILE", help="the source text")
    add_list(group, "-r", "--references", metavar="FILE", help="one or more reference translations")
    group.add_argument("--documents", metavar="FILE", help="a document id for each segment")
    group.add_argument(
        "--names",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="system names (default: the file names)",
    )
    group.add_argument(
        "--fields", metavar="A,B,...", help="column names of a TSV or CSV without a header"
    )


def add_slices(parser: argparse.ArgumentParser) -> None:
    """Add --by."""
    add_list(
        parser,
        "--by",
        metavar="COLUMN",
        help="also slice by slice: document, length, language, domain or any field of the records; "
        "NAME=FILE reads a label for each segment",
    )


def slice_columns(args: argparse.Namespace) -> list[str]:
    """The columns that --by names, each once."""
    columns = [given.partition("=")[0] for given in args.by]
    check_once("--by", columns)
    return columns


def add_metrics(parser: argparse.ArgumentParser, default: str) -> None:
    """Add -m, and COMET's --model for one metric."""
    add_list(
        parser,
        "-m",
        "--metrics",
        metavar="METRIC",
        help=f"specs such as bleu, chrf:word_order=2 (default: {default}); see `tertium list`",
    )
    parser.add_argument(
        "--model", action="append", default=[], metavar="METRIC", help="the same, one at a time"
    )
    add_languages(parser)


def add_languages(parser: argparse.ArgumentParser) -> None:
    """Add the languages of both sides, for metrics that ask."""
    parser.add_argument(
        "--source-language",
        metavar="CODE",
        help="of the sources, such as de, for metrics that read the source (default: told by the "
        "texts); with the other side's",
    )
    parser.add_argument(
        "--target-language",
        metavar="CODE",
        help="of the translations, such as de, for metrics that read the source, meteor, and the "
        "tokenizer of bleu and nist (default: told by the texts; meteor: en); with the other "
        "side's",
    )


def named_metrics(
    args: argparse.Namespace, otherwise: Callable[[], Iterable[str]] = tuple
) -> list[Metric]:
    """The metrics that were asked for, or others, in the precision and languages asked for."""
    specs = [*args.metrics, *args.model] or [*otherwise()]
    metrics = load_in_precision(specs, args.precision)
    pair = (args.source_language, args.target_language)
    if not any(pair):
        return metrics
    if not all(pair):
        raise UsageError("give both --source-language and --target-language, or neither")
    for code in pair:
        check_code(code)
    return [_in_languages(m, spec, pair) for m, spec in zip(metrics, specs, strict=True)]


def load_in_precision(specs: Iterable[str], precision: str | None) -> list[Metric]:
    """The metrics of these specs, in this precision where they have one."""
    metrics = [load_metric(spec) for spec in specs]
    if precision is None:
        return metrics
    return [_replace(m, precision=precision) if _has(m, "precision") else m for m in metrics]


def _in_languages(metric: Metric, spec: str, pair: tuple[str, str]) -> Metric:
    """A metric told the languages of the command line, unless its spec names its own.

    BLEU and NIST take the tokenizer that sacrebleu takes for the target language.
    """
    from tertium.metrics.lexical.sacre import TOKENIZERS_BY_LANGUAGE

    if _has(metric, "lp") and not getattr(metric, "lp", ""):
        return _replace(metric, lp="-".join(pair))
    if _has(metric, "language") and "language=" not in spec:
        return _replace(metric, language=pair[1])
    tokenizer = TOKENIZERS_BY_LANGUAGE.get(pair[1])
    if tokenizer and _has(metric, "tokenize") and "tokenize" not in spec:
        return _replace(metric, tokenize=tokenizer)
    return metric


def _has(metric: Metric, field: str) -> bool:
    return any(known.name == field for known in dataclasses.fields(metric))  # type: ignore[arg-type]


def _replace(metric: Metric, **fields: str) -> Metric:
    return dataclasses.replace(metric, **fields)  # type: ignore[type-var]


def read_inputs(args: argparse.Namespace) -> TestSet:
    """The test set that the options describe, with the labels that --by reads from files."""
    if getattr(args, "by", []):
        slice_columns(args)  # one named twice is said before files are read
    testset, labels = _read_testset(args), {}
    for given in getattr(args, "by", []):
        name, equals, file = given.partition("=")
        if equals:
            labels[name] = read_lines(file)
    return dataclasses.replace(testset, columns={**testset.columns, **labels})


def check_dash(args: argparse.Namespace) -> None:
    """Refuse the name that other programs take for a pipe."""
    if "-" in (*args.translations, *args.references, args.sources, args.documents):
        raise UsageError("- is no file: to read from a pipe, give /dev/stdin")


def _read_testset(args: argparse.Namespace) -> TestSet:
    check_dash(args)
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
