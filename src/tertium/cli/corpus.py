"""`tertium corpus`: score files of any size, on this machine or on a Ray cluster."""

from __future__ import annotations

import argparse

from tertium.cli.inputs import add_fields, add_languages, load_named_metrics
from tertium.cli.output import add_format, add_quiet, show
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.errors import UsageError
from tertium.metrics.base.metric import Metric

DESCRIPTION = (
    "Score every row of Parquet, JSONL, TSV or CSV files, or every string of XLIFF, TMX or PO "
    "files, and write the rows with their scores."
)
EPILOG = """\
examples:
  tertium corpus pairs.jsonl.gz -m chrf -o scored
  tertium corpus 'data/*.parquet' -m chrf tertium-small -o scored --keep 'tertium-small >= 0.7'
  tertium corpus data -m chrf -o scored --resume
  tertium corpus data -m tertium-small -o scored --engine ray --address auto --workers 8

Rows keep their order and columns; each metric adds a column of scores and one of warnings. --keep
compares scores with >=, >, <= or <; for other filters query the output with pyarrow or duckdb.
Rows that cannot be scored go to OUTPUT/_bad with the reason. Use --resume to continue an
interrupted run.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("inputs", nargs="*", metavar="INPUT", help="files, folders or globs")
    add_fields(parser)
    group.add_argument("--strict", action="store_true", help="stop at the first invalid row")
    group.add_argument(
        "--longest",
        type=int,
        default=100_000,
        metavar="N",
        help="maximum number of characters of a text (default: 100,000)",
    )
    add_list(
        parser.groups["Metrics"],
        "-m",
        "--metrics",
        required=True,
        metavar="METRIC",
        help="metrics such as chrf or tertium-small; see `tertium list`",
    )
    add_languages(parser)
    _add_corpus_output(parser)
    _add_engine(parser)
    add_runtime(parser)


def _add_corpus_output(parser: CommandParser) -> None:
    group = parser.groups["Output"]
    group.add_argument("-o", "--output", required=True, metavar="FOLDER", help="output folder")
    group.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="CONDITION",
        help="write only rows with such scores, as in 'chrf >= 50'; repeat it for several metrics "
        "(default: all)",
    )
    group.add_argument(
        "--resume", action="store_true", help="continue the run in FOLDER, or start one"
    )
    group.add_argument(
        "--spans",
        action="store_true",
        help="also write the errors that metrics mark, as JSON in columns METRIC.spans",
    )
    group.add_argument(
        "--shards",
        choices=("parquet", "jsonl"),
        default="parquet",
        help="format of the output files (default: parquet)",
    )
    group.add_argument(
        "--part-rows",
        type=int,
        default=100_000,
        metavar="N",
        help="rows per output file (default: 100,000)",
    )
    add_format(parser, ("text", "json", "tsv", "md"), "format of the summary")
    add_quiet(parser)


def _add_engine(parser: CommandParser) -> None:
    group = parser.groups["Runtime"]
    group.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="run on this machine or on Ray (default: local)",
    )
    group.add_argument(
        "--workers", type=int, metavar="N", help="processes or Ray actors (default: automatic)"
    )
    group.add_argument(
        "--address", metavar="HOST:PORT", help="Ray cluster, or auto (default: a local one)"
    )
    group.add_argument(
        "--worker-cpus", type=float, default=1, metavar="X", help="CPUs per actor (default: 1)"
    )
    group.add_argument(
        "--worker-gpus",
        type=float,
        default=0,
        metavar="X",
        help="GPUs per actor, such as 0.25 (default: 0)",
    )


def run(args: argparse.Namespace) -> int:
    from tertium.corpus.run import score_corpus

    if not args.inputs:
        raise UsageError("no INPUT: give files before -m, which takes all following words")
    with progress_bars(args.quiet), runtime_of(args):
        summary = score_corpus(
            args.inputs,
            _metrics(args),
            args.output,
            engine=args.engine,
            keep=args.keep,
            resume=args.resume,
            strict=args.strict,
            fields=args.fields.split(",") if args.fields else None,
            shards=args.shards,
            longest=args.longest,
            part_rows=args.part_rows,
            spans=args.spans,
            workers=args.workers,
            address=args.address,
            cpus=args.worker_cpus,
            gpus=args.worker_gpus,
        )
    show(args, summary)
    return 0


def _metrics(args: argparse.Namespace) -> list[str | Metric]:
    """Return the metrics, by their specs if their tokenizer depends on the language of the rows."""
    metrics = load_named_metrics(args)
    if args.target_language:
        return [*metrics]
    pairs = zip(metrics, args.metrics, strict=True)
    return [spec if hasattr(metric, "tokenize") else metric for metric, spec in pairs]
