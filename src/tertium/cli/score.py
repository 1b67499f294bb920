"""`tertium score`: segment, document and system scores of systems under metrics."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output
from tertium.cli.judge import add_dry_run, print_plan
from tertium.cli.localization import add_write_back, check_write_back_option, write_back_result
from tertium.cli.parser import CommandParser
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.cli.significance import (
    SACREBLEU_NAMES,
    add_paired_tests,
    add_resamples,
    compare_systems,
)
from tertium.cli.slices import join_slices, make_slices, slice_records, slice_tables
from tertium.errors import UsageError

if TYPE_CHECKING:
    from tertium.core.result import Table
    from tertium.evaluation.evaluation import Evaluation
    from tertium.evaluation.slices import Slices
    from tertium.metrics.base.metric import Metric

logger = logging.getLogger(__name__)

FORMATS = (*output.FORMATS, "csv")
# Options that a paired test would ignore.
UNPAIRED_OPTIONS = {
    "output": "-o",
    "score_only": "-b",
    "sentence_level": "-sl",
    "document_level": "-dl",
    "only_system": "--only-system",
    "statistics": "--statistics",
    "confidence": "--confidence",
    "to_spans": "--to-spans",
    "to_xlsx": "--to-xlsx",
    "excel": "--excel",
    "write_back": "--write-back",
}

DESCRIPTION = "Score one or more systems under one or more metrics."
EPILOG = """\
examples:
  tertium score -t ours.txt -r reference.txt
  tertium score -t a.txt b.txt c.txt -r ref1.txt ref2.txt -m bleu chrf++ --confidence
  tertium score -s source.txt -t ours.txt -m tertium-multi --to-spans errors.jsonl
  tertium score -t systems.jsonl -m bleu chrf -sl --with-texts --excel > scores.csv

With --paired-bs or --paired-ar the systems are compared as by `tertium compare`.
"""


def add_arguments(parser: CommandParser) -> None:
    inputs.add_inputs(parser)
    inputs.add_metrics(parser, inputs.RECOMMENDED_METRIC)
    inputs.add_slices(parser)
    parser.groups["Statistics"].add_argument(
        "--confidence", action="store_true", help="show 95 %% bootstrap confidence intervals"
    )
    add_paired_tests(parser)
    add_resamples(parser, "--confidence-n", *SACREBLEU_NAMES)
    output.add_output(parser, formats=FORMATS)
    _add_score_output(parser)
    add_runtime(parser)
    add_dry_run(parser)


def _add_score_output(parser: CommandParser) -> None:
    group = parser.groups["Output"]
    group.add_argument("-b", "--score-only", action="store_true", help="print only the scores")
    levels = group.add_mutually_exclusive_group()
    levels.add_argument(
        "-sl", "--sentence-level", action="store_true", help="print a score for each segment"
    )
    levels.add_argument(
        "-dl", "--document-level", action="store_true", help="print a score for each document"
    )
    levels.add_argument(
        "--only-system", action="store_true", help="omit segment scores from --to-json"
    )
    levels.add_argument(
        "--statistics",
        action="store_true",
        help="add statistics to --to-json, as `gate --baseline` needs them",
    )
    group.add_argument(
        "--with-texts", action="store_true", help="with -sl: add source, translation and reference"
    )
    group.add_argument(
        "--excel", action="store_true", help="print CSV that Excel opens correctly (UTF-8, BOM)"
    )
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="also write segment scores: .parquet (needs pandas), .tsv, .csv or .jsonl",
    )
    group.add_argument(
        "--to-xlsx", metavar="FILE", help="also write segment scores with texts as a workbook"
    )
    add_write_back(parser)
    group.add_argument(
        "--to-spans",
        metavar="FILE",
        help="also write the error spans that metrics mark: .jsonl (one translation per line), "
        ".tsv, .csv or .parquet (one error per line)",
    )


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.metric_choice import recommend_metric
    from tertium.evaluation.scoring import score

    if args.excel:
        if args.format not in ("text", "csv"):
            raise UsageError(f"--excel prints CSV: omit -f {args.format}")
        args.format = "csv"
    if args.paired_bs or args.paired_ar:
        _check_paired_options(args)
        return compare_systems(args)
    _check_options(args)
    testset = inputs.read_inputs(args)
    if args.document_level and not testset.documents:
        raise UsageError("--document-level needs document ids: give them with --documents")
    metrics = inputs.load_named_metrics(
        args, lambda language: [recommend_metric(testset, language)], testset
    )
    if args.dry_run:
        return print_plan(args, testset, metrics)
    if args.to_spans:
        check_error_marking(metrics)
    check_write_back_option(args)
    intervals: dict[str, Any] = {"confidence": args.confidence, "seed": args.seed}
    if args.resamples is not None:
        intervals["resamples"] = args.resamples
    with progress_bars(args.quiet), runtime_of(args):
        evaluation = score(testset, metrics, **intervals)
        slices = make_slices(args, evaluation)
        write_back_result(args, evaluation, metrics)
        if args.to_spans:
            from tertium.evaluation.error_marking import mark_errors

            marked = mark_errors(evaluation, metrics)
            marked.write(args.to_spans)
            for entry in marked:
                if entry.note and not entry.counts():
                    message = "warning: --to-spans: %s: no spans; %s"
                    logger.warning(message, entry.metric, entry.note)
        if args.report:
            _write_report(args, evaluation, metrics)
    if args.to_json:
        if args.statistics:
            from tertium.decisions.baselines import baseline_records

            records = baseline_records(evaluation)
        else:
            records = evaluation.records(segments=not args.only_system)
        output.write_json(args.to_json, records + slice_records(slices))
    if args.output:
        evaluation.write(args.output)
    if args.to_xlsx:
        evaluation.write(args.to_xlsx)
    _print_scores(args, evaluation, slices)
    return 0


def _check_paired_options(args: argparse.Namespace) -> None:
    ignored = [name for key, name in UNPAIRED_OPTIONS.items() if getattr(args, key)]
    if ignored or args.format == "csv":
        raise UsageError(
            f"{', '.join(ignored) or '-f csv'}: not available with a paired test; omit it, or "
            "omit --paired-bs and --paired-ar"
        )


def _check_options(args: argparse.Namespace) -> None:
    if args.by and (args.score_only or args.sentence_level or args.document_level):
        raise UsageError("--by prints scores of slices: omit -b, -sl and -dl")
    if args.statistics and not args.to_json:
        raise UsageError("--statistics are written to a file: give --to-json FILE as well")
    if args.with_texts and not args.sentence_level:
        raise UsageError("--with-texts adds texts to segment scores: give -sl as well")
    option = getattr(args, "resamples_option", "--resamples")
    if args.resamples is not None and (not args.confidence or "paired" in option):
        raise UsageError(f"{option} needs --confidence, --paired-bs or --paired-ar: give one")
    if args.resamples is not None and args.resamples < 1:
        raise UsageError(f"--resamples {args.resamples}: expected at least 1")
    in_json = args.to_json or (args.format == "json" and not args.score_only)
    levels = args.sentence_level or args.document_level
    if args.confidence and levels and not in_json and not args.report:
        raise UsageError(
            "--confidence: -sl and -dl show no intervals; omit one of them, or give --to-json FILE"
        )
    output.check_outputs(args)
    if args.output:
        from tertium.evaluation.evaluation import Evaluation

        Evaluation.check_paths(args.output)
    if args.to_spans:
        from tertium.evaluation.error_marking import MarkedErrors

        MarkedErrors.check_paths(args.to_spans)
    if args.to_xlsx and Path(args.to_xlsx).suffix != ".xlsx":
        raise UsageError(
            f"--to-xlsx {args.to_xlsx}: a workbook is written to a file that ends in .xlsx"
        )


def _write_report(
    args: argparse.Namespace, evaluation: Evaluation, metrics: Sequence[Metric]
) -> None:
    from tertium.evaluation.comparison import add_significance
    from tertium.output.page.report import report_results

    tested = add_significance(evaluation, seed=args.seed)
    page = report_results(tested, metrics, slices=make_slices(args, tested))
    output.write_report(args.report, page, args.quiet)


def _print_scores(
    args: argparse.Namespace, evaluation: Evaluation, slices: Sequence[Slices]
) -> None:
    if args.score_only:
        _print_bare_scores(args, evaluation)
        return
    if args.format == "json":
        records = evaluation.records(segments=args.sentence_level)
        output.print_records(records + slice_records(slices))
    elif slices and args.format == "tsv":
        output.show(args, join_slices(slices))
    elif args.sentence_level:
        _print_tables(args, evaluation.segment_table(include_texts=args.with_texts))
    elif args.document_level:
        _print_tables(args, evaluation.document_table())
    else:
        warnings = not args.quiet and args.format != "csv"
        _print_tables(args, evaluation.system_table(warnings=warnings), *slice_tables(slices))
    has_notes = args.format in output.FORMATS_WITH_NOTES
    if not has_notes or args.sentence_level or args.document_level:
        output.print_warnings(evaluation.warning_lines(), args.quiet)


def _print_tables(args: argparse.Namespace, *tables: Table) -> None:
    if args.format != "csv":
        output.show(args, *tables)
    elif args.by:
        raise UsageError("-f csv prints one table: omit --by, or use -f tsv")
    else:
        from tertium.data.tables import csv_lines

        sys.stdout.writelines(csv_lines(tables[0].values(), excel=args.excel))


def _print_bare_scores(args: argparse.Namespace, evaluation: Evaluation) -> None:
    """Print one line of scores, one per metric, for each system, document or segment."""
    from tertium.core.result import format_number

    for system in evaluation.systems:
        scores = [evaluation.scores[system][metric] for metric in evaluation.metrics]
        decimals = [s.decimals if args.width is None else args.width for s in scores]
        if args.sentence_level:
            columns = [s.segments.tolist() for s in scores]
        elif args.document_level:
            columns = [[*s.documents(evaluation.testset.documents).values()] for s in scores]
        else:
            columns = [[s.system] for s in scores]
        for row in zip(*columns, strict=True):
            print("\t".join(map(format_number, row, decimals)))


def check_error_marking(metrics: Sequence[Metric]) -> None:
    """Raise an error if none of the metrics marks error spans."""
    if not any(metric.can_mark_errors for metric in metrics):
        names = ", ".join(metric.spec for metric in metrics)
        raise UsageError(
            f"--to-spans: {names} cannot mark error spans; add a metric that can, such as "
            "tertium-multi"
        )
