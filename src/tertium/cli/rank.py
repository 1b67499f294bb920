"""`tertium rank`: systems, or candidates of one system, ordered by their chance to win."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from tertium.cli import inputs, output
from tertium.cli.runtime import add_runtime, bars, runtime_of
from tertium.data.formats import null_missing
from tertium.errors import UsageError
from tertium.reporting.tables.table import CHANCE_DECIMALS, counted_lines

if TYPE_CHECKING:
    from tertium.metrics.base.ranker import Ranker

HELP = "rank systems or candidate lists in pairs"
DESCRIPTION = (
    "Compare every two translations of each segment and rank systems by their mean chance to win."
)
EPILOG = """\
examples:
  tertium rank -t a.txt b.txt c.txt -r reference.txt
  tertium rank -t a.txt b.txt c.txt -r reference.txt -m chrf -f json
  tertium rank -t a.txt b.txt -r reference.txt -sl -f tsv
  tertium rank -s source.txt -t a.txt b.txt
  tertium rank --nbest -t candidates.jsonl > reordered.jsonl

RANKER is a ranker (pairwise; pairwise:model=pairwise-minilm, a network; pairwise:model=
pairwise-published, the network of its paper; pairwise:model=FOLDER, your own) or any metric, whose
better score wins. With --nbest, -t names a JSONL file of records with candidates, source and
references; they come back with the candidates from best to worst.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ("-m", "--ranker", "--model")
    best = "pairwise for English references, tertium-multi for others or none"
    inputs.add_list(parser, *names, metavar="RANKER", help=f"default: {best}")
    inputs.add_inputs(parser)
    parser.add_argument("--nbest", action="store_true", help="-t is a JSONL file of candidates")
    add_runtime(parser, precision=False)
    shown = output.add_output(parser, places=CHANCE_DECIMALS)
    shown.add_argument(
        "-sl", "--sentence-level", action="store_true", help="print a chance for each segment"
    )


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.ranking import rank
    from tertium.metrics.base.ranker import load_ranker
    from tertium.reporting.tables import evaluations

    output.check_outputs(args)
    if len(args.ranker) > 1:
        raise UsageError(f"-m {' '.join(args.ranker)}: one ranks at a time; call it once for each")
    # a wrong name is said before files are read
    ranker = load_ranker(args.ranker[0]) if args.ranker else None
    if args.nbest:
        return _rerank(args, ranker)
    testset = inputs.read_inputs(args)
    with bars(args.quiet), runtime_of(args):
        ranking = rank(testset, ranker)
        if args.report:
            from tertium.reporting.page.making import report_ranking

            output.write_report(args.report, report_ranking(ranking), args.quiet)
    if args.to_json:
        output.write_json(args.to_json, ranking.records(segments=True))
    if args.format == "json":
        output.print_records(ranking.records(segments=args.sentence_level))
    elif args.sentence_level:
        output.print_table(evaluations.ranked_segment_table(ranking, args.width), args.format)
    else:
        table = evaluations.ranking_table(ranking, args.width, warnings=not args.quiet)
        output.print_table(table, args.format)
    if args.sentence_level or args.format not in output.NOTED:
        output.print_warnings(counted_lines(ranking.warnings), args.quiet)
    return 0


def _rerank(args: argparse.Namespace, given: Ranker | None) -> int:
    from tertium.data.candidates import read_candidates
    from tertium.evaluation.ranking import NOT_COMPARED, best_ranker, rerank
    from tertium.metrics.base.ranker import load_ranker

    if args.report:
        raise UsageError("--report shows systems, not lists of candidates: leave out --nbest")
    extra = (args.references, args.sources, args.documents, args.names, args.fields)
    if len(args.translations) != 1 or any(extra):
        raise UsageError("--nbest reads one JSONL file that holds everything: give -t FILE alone")
    if args.format != "text" or args.width != CHANCE_DECIMALS or args.sentence_level:
        raise UsageError("--nbest prints the records as JSONL: leave out -f, -w and -sl")
    inputs.check_dash(args)
    lists = read_candidates(args.translations[0])
    ranker = given or load_ranker(best_ranker([entry.segments[0] for entry in lists]))
    with bars(args.quiet), runtime_of(args):
        records = rerank(lists, ranker)
        counts = ranker.warnings([segment for entry in lists for segment in entry.segments])
        several = [record["scores"] for record in records if len(record["scores"]) > 1]
        if lost := sum(scores.count(None) for scores in several):
            counts = {**counts, NOT_COMPARED: lost}
    if args.to_json:
        output.write_json(args.to_json, records)
    for record in records:
        sys.stdout.write(json.dumps(null_missing(record), ensure_ascii=False) + "\n")
    output.print_warnings([f"warning: {kind}: {n}" for kind, n in counts.items()], args.quiet)
    return 0
