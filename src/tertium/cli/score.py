"""`tertium score`: systems under metrics, as segment, document and system scores."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.cli import inputs, output
from tertium.cli.paired import add_paired, add_seed, check_counts, compare_systems
from tertium.cli.runtime import add_runtime, bars, runtime_of
from tertium.cli.slices import print_slices, slice_records, sliced_results
from tertium.data.formats import write_jsonl
from tertium.errors import UsageError
from tertium.extras import require
from tertium.frames import write_frame

if TYPE_CHECKING:
    from tertium.evaluation.marking import MarkedTranslations
    from tertium.evaluation.scoring import Evaluation
    from tertium.evaluation.slices import Slices
    from tertium.metrics.base.metric import Metric

TABLE_SUFFIXES = (".parquet", ".tsv", ".csv", ".jsonl")  # of segment scores and marked errors

# what a paired test would ignore
UNPAIRED = {
    "score_only": "-b",
    "sentence_level": "-sl",
    "document_level": "-dl",
    "only_system": "--only-system",
    "confidence": "--confidence",
    "confidence_n": "--confidence-n",
    "spans": "--spans",
}

HELP = "score translations"
DESCRIPTION = "Score one or more systems under one or more metrics."
EPILOG = """\
examples:
  tertium score -t ours.txt -r reference.txt
  tertium score -t a.txt b.txt c.txt -r ref1.txt ref2.txt -m bleu chrf++ --confidence
  tertium score -s source.txt -t ours.txt -r reference.txt -m meteor -sl -f tsv
  tertium score -t systems.jsonl -m bleu -f json
  tertium score -t systems.jsonl -m bleu chrf -o scores.parquet
  tertium score -t systems.jsonl -m chrf --by domain length
  tertium score -s source.txt -t ours.txt -m tertium-multi --spans errors.jsonl

With --paired-bs or --paired-ar the systems are compared as `tertium compare` does.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    inputs.add_metrics(parser, inputs.BEST)
    inputs.add_inputs(parser)
    inputs.add_slices(parser)
    add_runtime(parser)
    shown = output.add_output(parser)
    shown.add_argument(
        "-b",
        "--score-only",
        action="store_true",
        help="print scores and nothing else: of systems, or of segments (-sl) or documents (-dl)",
    )
    shown.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="also write segment scores: .parquet (needs pandas), .tsv, .csv or .jsonl",
    )
    shown.add_argument(
        "--spans",
        metavar="FILE",
        help="also write the errors that metrics mark: .jsonl (a translation a line), .tsv, .csv "
        "or .parquet (an error a line)",
    )
    levels = shown.add_mutually_exclusive_group()
    levels.add_argument(
        "-sl", "--sentence-level", action="store_true", help="print a score for each segment"
    )
    levels.add_argument(
        "-dl", "--document-level", action="store_true", help="print a score for each document"
    )
    levels.add_argument(
        "--only-system", action="store_true", help="leave segment scores out of the JSON as well"
    )
    add_confidence(parser)
    add_paired(parser)


def add_confidence(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("confidence")
    group.add_argument("--confidence", action="store_true", help="95 %% bootstrap intervals")
    group.add_argument("--confidence-n", type=int, metavar="N", help="resamples (default: 1000)")
    add_seed(group)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation import scoring
    from tertium.evaluation.marking import mark_systems

    if args.paired_bs or args.paired_ar:
        return _compare(args)
    if args.by and (args.score_only or args.sentence_level or args.document_level):
        raise UsageError("--by shows scores of slices: leave out -b, -sl and -dl")
    check_counts(args, bootstrap=False, randomization=False)
    confidence = _resamples(args)
    if confidence:
        _check_intervals_shown(args)
    output.check_outputs(args)
    check_table_file("-o", args.output, "segment scores")
    check_table_file("--spans", args.spans, "marked errors")
    testset = inputs.read_inputs(args)
    if args.document_level and not testset.documents:
        raise UsageError("--document-level needs document ids: give them with --documents")
    metrics = inputs.named_metrics(args, lambda: [scoring.best_metric(testset)])
    if args.spans:
        check_marks(metrics)
    with bars(args.quiet), runtime_of(args):
        evaluation = scoring.score(testset, metrics, confidence=confidence, seed=args.seed)
        sliced = sliced_results(args, evaluation)
        if args.spans:
            write_spans(args.spans, mark_systems(evaluation, metrics))
        if args.report:
            _write_report(args, evaluation, metrics)
    if args.to_json:
        records = evaluation.records(segments=not args.only_system)
        output.write_json(args.to_json, records + slice_records(sliced))
    if args.output:
        write_frame(evaluation.segment_columns(), args.output)
    _print(args, evaluation, sliced)
    return 0


def _compare(args: argparse.Namespace) -> int:
    if args.output:
        raise UsageError("-o writes segment scores: leave out --paired-bs and --paired-ar")
    unread = [name for key, name in UNPAIRED.items() if getattr(args, key)]
    if unread:
        raise UsageError(
            f"{', '.join(unread)}: a paired test compares systems and shows their intervals; "
            "leave it out, or leave out --paired-bs and --paired-ar"
        )
    return compare_systems(args)


def _write_report(
    args: argparse.Namespace, evaluation: Evaluation, metrics: Sequence[Metric]
) -> None:
    from tertium.evaluation.comparison import with_tests
    from tertium.reporting.page.making import report_results

    tested = with_tests(evaluation, seed=args.seed)
    page = report_results(tested, metrics, slices=sliced_results(args, tested))
    output.write_report(args.report, page, args.quiet)


def _print(args: argparse.Namespace, evaluation: Evaluation, sliced: Sequence[Slices]) -> None:
    from tertium.reporting.tables import evaluations

    if args.score_only:
        _print_scores(args, evaluation)
        return
    if args.format == "json":
        records = evaluation.records(segments=args.sentence_level)
        output.print_records(records + slice_records(sliced))
    elif sliced and args.format == "tsv":
        print_slices(args, sliced)
    elif args.sentence_level:
        output.print_table(evaluations.segment_table(evaluation, args.width), args.format)
    elif args.document_level:
        output.print_table(evaluations.document_table(evaluation, args.width), args.format)
    else:
        table = evaluations.system_table(evaluation, args.width, warnings=not args.quiet)
        output.print_table(table, args.format)
        print_slices(args, sliced)
    if args.format not in output.NOTED or args.sentence_level or args.document_level:
        output.print_warnings(evaluations.warning_lines(evaluation), args.quiet)


def _print_scores(args: argparse.Namespace, evaluation: Evaluation) -> None:
    """Print a line of bare scores, one of each metric, for each system, document or segment."""
    from tertium.reporting.tables.table import number

    for system in evaluation.systems:
        scores = [evaluation.scores[system][metric] for metric in evaluation.metrics]
        places = [s.decimals if args.width is None else args.width for s in scores]
        if args.sentence_level:
            columns = [s.segments.tolist() for s in scores]
        elif args.document_level:
            columns = [[*s.documents(evaluation.testset.documents).values()] for s in scores]
        else:
            columns = [[s.system] for s in scores]
        for row in zip(*columns, strict=True):
            print("\t".join(number(v, n).text for v, n in zip(row, places, strict=True)))


def _resamples(args: argparse.Namespace) -> int:
    """How many bootstrap samples make the intervals; 0 where none are asked for."""
    if not args.confidence:
        if args.confidence_n is not None:
            raise UsageError("--confidence-n says how many resamples --confidence takes: give both")
        return 0
    count: int = 1000 if args.confidence_n is None else args.confidence_n
    if count < 1:
        raise UsageError(f"--confidence-n {count}: intervals take at least one resample")
    return count


def _check_intervals_shown(args: argparse.Namespace) -> None:
    """Refuse intervals that would be made and shown nowhere, as sacrebleu does."""
    parts = args.sentence_level or args.document_level
    in_json = args.to_json or (args.format == "json" and not args.score_only)
    if parts and not in_json and not args.report:
        raise UsageError(
            "--confidence: -sl and -dl show no intervals; leave one out, or give --to-json FILE"
        )


def check_marks(metrics: Sequence[Metric]) -> None:
    """Refuse metrics of which none marks errors, before the work."""
    if not any(metric.gives_spans for metric in metrics):
        named = ", ".join(metric.spec for metric in metrics)
        raise UsageError(
            f"--spans: no errors are marked by {named}; add a metric that says where a translation "
            "is wrong, such as tertium-multi"
        )


def write_spans(path: str, marked: Sequence[MarkedTranslations]) -> None:
    """Write what metrics marked; the first column says which, where there are several."""
    from tertium.evaluation.marking import ERROR_COLUMNS

    if Path(path).suffix == ".jsonl":
        write_jsonl(path, (record for entry in marked for record in entry.records()))
        return
    rows = [(entry.metric, *row) for entry in marked for row in entry.rows()]
    cells = [[" ".join(v.split()) if isinstance(v, str) else v for v in row] for row in rows]
    write_frame(
        {n: [c[place] for c in cells] for place, n in enumerate(("metric", *ERROR_COLUMNS))}, path
    )


def check_table_file(option: str, path: str | None, what: str) -> None:
    """Refuse a table that could not be made, before the work and not after it."""
    if path is None:
        return
    if Path(path).suffix not in TABLE_SUFFIXES:
        *kinds, last = TABLE_SUFFIXES
        raise UsageError(
            f"{option} {path}: {what} are written to a file that ends in {', '.join(kinds)} or "
            f"{last} (JSON with a record a line)"
        )
    if Path(path).suffix == ".parquet":
        require("pandas", "pyarrow", purpose=path, hint="or write .tsv, .csv or .jsonl")
