"""`tertium rank`: rank systems, or candidates of each segment, by their probability of winning."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from tertium.cli import inputs, output
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.data.tables import missing_to_null
from tertium.errors import UsageError

if TYPE_CHECKING:
    from tertium.metrics.base.ranker import Ranker

WIDTH = 4  # decimals of win probabilities
DESCRIPTION = (
    "Compare every two translations of each segment and rank systems by their mean probability "
    "of winning."
)
EPILOG = """\
examples:
  tertium rank -t a.txt b.txt c.txt -r reference.txt
  tertium rank -s source.txt -t a.txt b.txt
  tertium rank -t a.txt b.txt -r reference.txt -m chrf -sl -f tsv
  tertium rank --nbest -t candidates.jsonl > reordered.jsonl

RANKER is pairwise, pairwise:model=NAME (pairwise-minilm, a larger network; pairwise-published, the
network of the paper; a folder with your own), or any metric, whose better score wins. With --nbest,
-t is a JSONL file of records with candidates, source and references; the output has the candidates
from best to worst.
"""


def add_arguments(parser: CommandParser) -> None:
    inputs.add_inputs(parser)
    parser.groups["Input"].add_argument(
        "--nbest", action="store_true", help="-t is a JSONL file of candidate lists"
    )
    default = "pairwise for English references, otherwise tertium-multi"
    add_list(
        parser.groups["Metrics"],
        "-m",
        "--ranker",
        "--model",
        metavar="RANKER",
        help=f"ranker or metric (default: {default})",
    )
    output.add_output(parser, WIDTH, report=False)
    parser.groups["Output"].add_argument(
        "-sl", "--sentence-level", action="store_true", help="print a probability for each segment"
    )
    add_runtime(parser, precision=False)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.ranking import rank
    from tertium.metrics.base.ranker import load_ranker

    output.check_outputs(args)
    if len(args.ranker) > 1:
        raise UsageError(f"-m {' '.join(args.ranker)}: expected one ranker; run once for each")
    ranker = load_ranker(args.ranker[0]) if args.ranker else None  # fail before files are read
    if args.nbest:
        return _rerank(args, ranker)
    testset = inputs.read_inputs(args)
    with progress_bars(args.quiet), runtime_of(args):
        ranking = rank(testset, args.ranker[0] if args.ranker else None)
    if args.to_json:
        output.write_json(args.to_json, ranking.records(segments=True))
    if args.sentence_level:
        table = ranking.segment_table()
    else:
        table = ranking.system_table(warnings=not args.quiet)
    records = ranking.records(segments=args.sentence_level)
    output.show(args, table, records=records)
    if args.sentence_level or args.format not in output.FORMATS_WITH_NOTES:
        output.print_warnings(ranking.warning_lines(), args.quiet)
    return 0


def _rerank(args: argparse.Namespace, ranker: Ranker | None) -> int:
    from tertium.data.candidate_lists import read_candidates
    from tertium.evaluation.ranking import NOT_COMPARED, recommend_ranker, rerank
    from tertium.metrics.base.ranker import load_ranker

    other_inputs = (args.references, args.sources, args.documents, args.names, args.fields)
    if len(args.translations) != 1 or any(other_inputs):
        raise UsageError("--nbest reads one JSONL file with all texts: give only -t FILE")
    if args.format != "text" or args.width != WIDTH or args.sentence_level:
        raise UsageError("--nbest prints the records as JSONL: omit -f, -w and -sl")
    lists = read_candidates(args.translations[0])
    if ranker is None:
        ranker = load_ranker(recommend_ranker([entry.segments[0] for entry in lists]))
    with progress_bars(args.quiet), runtime_of(args):
        records = rerank(lists, ranker)
        counts = ranker.warnings([segment for entry in lists for segment in entry.segments])
        score_lists = [record["scores"] for record in records if len(record["scores"]) > 1]
        if not_compared := sum(scores.count(None) for scores in score_lists):
            counts = {**counts, NOT_COMPARED: not_compared}
    if args.to_json:
        output.write_json(args.to_json, records)
    for record in records:
        sys.stdout.write(json.dumps(missing_to_null(record), ensure_ascii=False) + "\n")
    output.print_warnings([f"warning: {kind}: {n}" for kind, n in counts.items()], args.quiet)
    return 0
