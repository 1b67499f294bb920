"""Options for input files and metrics, shared by all commands that read translations."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.cli.localization import is_localization, read_localization
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import device_of
from tertium.data.record_files import RECORD_SUFFIXES
from tertium.data.testset import TestSet
from tertium.data.text_files import read_lines
from tertium.errors import UsageError
from tertium.execution import resolve_device
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.specs import check_unique_names
from tertium.text.language_codes import check_language_code

if TYPE_CHECKING:
    from tertium.core.findings import Locate

RECOMMENDED_METRIC = "tertium-small for English references, otherwise tertium-multi"
GOLD_HELP = "human scores to use: a name in a folder (mqm) or a column of a file"
STDIN = "-"


def add_translations(parser: CommandParser, *, required: bool = True) -> None:
    """Add -t, -s, --names and --fields."""
    _add_texts(parser, required=required)
    add_list(
        parser.groups["Input"],
        "--names",
        metavar="NAME",
        help="system names (default: the file names)",
    )
    add_fields(parser)


def _add_texts(parser: CommandParser, *, required: bool) -> None:
    group = parser.groups["Input"]
    add_list(
        group,
        "-t",
        "--translations",
        "-i",
        "--input",
        metavar="FILE",
        required=required,
        help="system outputs, one segment per line (also .gz), one file of records (.jsonl, .tsv, "
        ".csv, .xlsx, .parquet), or localization files (.xliff, .po, .json, ...); - reads standard "
        "input",
    )
    group.add_argument("-s", "--sources", metavar="FILE", help="source texts (- for stdin)")


def add_inputs(parser: CommandParser, *, required: bool = True) -> None:
    """Add -s, -t, -r and related options."""
    _add_texts(parser, required=required)
    group = parser.groups["Input"]
    add_list(
        group, "-r", "--references", metavar="FILE", help="one or more references (- for stdin)"
    )
    group.add_argument("--documents", metavar="FILE", help="a document id for each segment")
    add_list(group, "--names", metavar="NAME", help="system names (default: the file names)")
    add_fields(parser)


def add_fields(parser: CommandParser) -> None:
    """Add --fields."""
    parser.groups["Input"].add_argument(
        "--fields", metavar="A,B,...", help="column names of a TSV or CSV file without a header"
    )


def add_slices(parser: CommandParser) -> None:
    """Add --by."""
    add_list(
        parser.groups["Statistics"],
        "--by",
        metavar="COLUMN",
        help="also show results by document, length, language, domain or any field of the "
        "records; NAME=FILE reads one label per segment",
    )


def slice_columns(args: argparse.Namespace) -> list[str]:
    """Return the columns named by --by; repeated names are an error."""
    columns = [column.partition("=")[0] for column in args.by]
    check_unique_names("--by", columns)
    return columns


def add_metrics(parser: CommandParser, default: str) -> None:
    """Add -m, COMET's --model, and the languages."""
    add_list(
        parser.groups["Metrics"],
        "-m",
        "--metrics",
        "--model",
        metavar="METRIC",
        help=f"metrics such as bleu or chrf:word_order=2; see `tertium list` (default: {default})",
    )
    add_languages(parser)


def add_languages(parser: CommandParser) -> None:
    """Add the language options."""
    group = parser.groups["Metrics"]
    group.add_argument(
        "--source-language",
        metavar="CODE",
        help="language of the sources, such as de; needs --target-language (default: detected)",
    )
    group.add_argument(
        "--target-language",
        metavar="CODE",
        help="language of the translations, for meteor, tertium-small and the tokenizer of bleu "
        "and nist; with --source-language also for metrics that read the source (default: "
        "detected; meteor: en; bleu and nist in meta and challenge, which may mix languages: none)",
    )


def language_pair(args: argparse.Namespace) -> str:
    """Return the language pair of the language options, empty if they are not given."""
    source, target = args.source_language or "", args.target_language or ""
    if not source and not target:
        return ""
    if not (source and target):
        raise UsageError("give both --source-language and --target-language, or a column lp")
    for code in (source, target):
        check_language_code(code)
    return f"{source}-{target}"


def load_named_metrics(
    args: argparse.Namespace,
    default: Callable[[str], Iterable[str]] = lambda language: (),
    testset: TestSet | None = None,
) -> list[Metric]:
    """Load the metrics of -m, or the default ones, in the requested precision and languages.

    `default` takes the target language, if given. Otherwise it is detected in `testset`.
    """
    from tertium.evaluation.metric_choice import choose_tokenizers, set_languages, target_texts

    source, target = args.source_language, args.target_language
    if source and not target:
        raise UsageError(f"--source-language {source} needs --target-language: give both")
    for code in filter(None, (source, target)):
        check_language_code(code)
    specs = args.metrics or [*default(target or "")]
    metrics = load_in_precision(specs, args)
    if not target:
        return choose_tokenizers(metrics, specs, target_texts(testset) if testset else ())
    return [
        set_languages(metric, spec, source or "", target)
        for metric, spec in zip(metrics, specs, strict=True)
    ]


def load_named_metric(
    args: argparse.Namespace, spec: str | None, testset: TestSet
) -> Metric | None:
    """Load the metric of an option other than -m, in the same precision and languages."""
    if spec is None:
        return None
    own = argparse.Namespace(**{**vars(args), "metrics": [spec]})
    return load_named_metrics(own, testset=testset)[0]


def load_in_precision(specs: Iterable[str], args: argparse.Namespace) -> list[Metric]:
    """Load metrics, in the precision of --precision if they have one."""
    metrics = [load_metric(spec) for spec in specs]
    precision = args.precision
    if precision is None or not any(_has(metric, "precision") for metric in metrics):
        return metrics
    if precision == "auto":
        from tertium.encoders.linear_layers import fastest_precision

        device = resolve_device(device_of(args) or "auto")
        precision = fastest_precision(device)
        if not args.quiet:
            print(f"tertium: precision {precision}, the fastest on {device}", file=sys.stderr)
    return [_replace(m, precision=precision) if _has(m, "precision") else m for m in metrics]


def _has(metric: Metric, field: str) -> bool:
    return any(own_field.name == field for own_field in dataclasses.fields(metric))  # type: ignore[arg-type]


def _replace(metric: Metric, **fields: str) -> Metric:
    return dataclasses.replace(metric, **fields)  # type: ignore[type-var]


def read_inputs(args: argparse.Namespace, *, keep_untranslated: bool = False) -> TestSet:
    """Read the test set, with the labels of --by NAME=FILE as columns.

    `keep_untranslated` keeps strings of localization files that have no translation.
    """
    by = getattr(args, "by", [])
    if by:
        slice_columns(args)  # fail before files are read
    check_stdin_once(args)
    testset, labels = _read_testset(args, keep_untranslated), {}
    for column in by:
        name, equals, file = column.partition("=")
        if equals:
            labels[name] = read_lines(file)
    return testset.with_columns({**testset.columns, **labels}) if labels else testset


def locate_segments(args: argparse.Namespace, testset: TestSet) -> Locate:
    """Return a function that finds the texts of a test set in the files of the options."""
    files: list[str] = args.translations
    from tertium.data.locations import locate_lines, locate_records

    if is_localization(args):
        from tertium.localization.projects import locate_units

        return locate_units(files, testset)
    if len(files) == 1 and RECORD_SUFFIXES & set(Path(files[0]).suffixes):
        fields = args.fields.split(",") if args.fields else None
        return locate_records(files[0], testset.systems, testset.sources, fields)
    return locate_lines(dict(zip(testset.systems, files, strict=True)), args.sources)


def check_stdin_once(args: argparse.Namespace) -> None:
    """Raise an error if two options read standard input."""
    files = [*args.translations, *args.references, args.sources, args.documents]
    if files.count(STDIN) > 1:
        raise UsageError("- (standard input) is given twice: only one option can read it")


def _read_testset(args: argparse.Namespace, keep_untranslated: bool) -> TestSet:
    files: list[str] = args.translations
    if is_localization(args):
        return read_localization(args, keep_untranslated=keep_untranslated)
    records = [file for file in files if RECORD_SUFFIXES & set(Path(file).suffixes)]
    if not records:
        if args.fields:
            raise UsageError("--fields is for a .tsv or .csv file of records")
        names = args.names or None
        return TestSet.read(files, args.references, args.sources, args.documents, names)
    if len(files) > 1:
        raise UsageError(f"{records[0]} is a file of records: give it alone, without other files")
    if args.references or args.sources or args.documents or args.names:
        raise UsageError(
            f"{records[0]} is a file of records with their own source, references, documents and "
            "systems: omit -s, -r, --documents and --names"
        )
    return TestSet.from_records(files[0], args.fields.split(",") if args.fields else None)
