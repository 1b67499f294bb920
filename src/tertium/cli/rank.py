"""`tertium rank`: systems, or candidates of one system, ordered by their chance to win."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tertium.cli.bars import bars
from tertium.cli.inputs import add_inputs, read_inputs
from tertium.cli.output import add_output, check_outputs, print_records, print_table, write_json
from tertium.cli.runtime import add_runtime, runtime_of
from tertium.data.testset import TestSet
from tertium.errors import UsageError
from tertium.reporting.tables.table import Cell, Table, number
from tertium.scores import ScoreMatrix

DEFAULT = "pairwise"
DESCRIPTION = (
    "Compare every two translations of each segment and rank systems by their mean chance to win."
)
EPILOG = """\
examples:
  tertium rank -t a.txt b.txt c.txt -r reference.txt
  tertium rank -t a.txt b.txt c.txt -r reference.txt -m chrf -f json
  tertium rank -t a.txt b.txt -r reference.txt -sl -f tsv
  tertium rank --nbest -t candidates.jsonl > reordered.jsonl

RANKER is a ranker (pairwise; pairwise:model=pairwise-minilm, a network; pairwise:model=FOLDER, your
own) or any metric, whose better score wins. With --nbest, -t names a JSONL file of records with
candidates, source and references; they come back with the candidates from best to worst.
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "rank",
        help="rank systems or candidate lists in pairs",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-m", "--ranker", "--model", default=DEFAULT, metavar="RANKER", help=f"default: {DEFAULT}"
    )
    add_inputs(parser)
    parser.add_argument("--nbest", action="store_true", help="-t is a JSONL file of candidates")
    add_runtime(parser, precision=False)
    output = add_output(parser)
    output.add_argument(
        "-sl", "--sentence-level", action="store_true", help="print a chance for each segment"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    from tertium.metrics.base.ranker import load_ranker

    check_outputs(args)
    ranker = load_ranker(args.ranker)
    if args.nbest:
        return _rerank(args, ranker)
    testset = read_inputs(args)
    with bars(args.quiet), runtime_of(args):
        matrix = ranker.rank(testset)
        signature = ranker.signature(testset.segments(matrix.systems[0]))
        if args.report:
            from tertium.cli import pages

            page = pages.ranking_report(testset, matrix, ranker, signature)
            pages.write_report(args.report, page, args.quiet)
    records = _records(matrix, signature, segments=args.sentence_level or bool(args.to_json))
    if args.to_json:
        write_json(args.to_json, records)
    if args.format == "json":
        plain = [{k: v for k, v in r.items() if k != "segments"} for r in records]
        print_records(records if args.sentence_level else plain)
    elif args.sentence_level:
        print_table(_segment_table(matrix, args.width), args.format)
    else:
        print_table(_system_table(matrix, testset, signature, args.width), args.format)
    return 0


def _rerank(args: argparse.Namespace, ranker: Any) -> int:
    from tertium.data.candidates import read_candidates

    if args.report:
        raise UsageError("--report shows systems, not lists of candidates: leave out --nbest")
    extra = (args.references, args.sources, args.documents, args.names, args.fields)
    if len(args.translations) != 1 or any(extra):
        raise UsageError("--nbest reads one JSONL file that holds everything: give -t FILE alone")
    lists = read_candidates(args.translations[0])
    with bars(args.quiet), runtime_of(args):
        rates = ranker.win_rates([entry.segments for entry in lists])
    records = [e.reordered(r.tolist()) for e, r in zip(lists, rates, strict=True)]
    if args.to_json:
        write_json(args.to_json, records)
    for record in records:
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    return 0


def _order(matrix: ScoreMatrix) -> Sequence[int]:
    """The systems from best to worst; equals in the order given."""
    order: list[int] = np.argsort(-matrix.system_scores, kind="stable").tolist()
    return order


def _places(matrix: ScoreMatrix) -> list[int]:
    """The place of each system, from 1; equals share the better one."""
    scores = matrix.system_scores
    return [1 + int((scores > score).sum()) for score in scores]


def _records(matrix: ScoreMatrix, signature: str, *, segments: bool) -> list[dict[str, Any]]:
    places, scores = _places(matrix), matrix.system_scores
    return [
        {
            "name": matrix.name,
            "system": matrix.systems[n],
            "rank": places[n],
            "score": float(scores[n]),
            "best": int(_wins(matrix)[n]),
            "signature": signature,
            **({"segments": matrix.values[n].tolist()} if segments else {}),
        }
        for n in _order(matrix)
    ]


def _wins(matrix: ScoreMatrix) -> Any:
    """On how many segments each system is the best, alone or with others."""
    return (matrix.values >= matrix.values.max(axis=0) - 1e-12).sum(axis=1)


def _system_table(
    matrix: ScoreMatrix, testset: TestSet, signature: str, width: int | None
) -> Table:
    places, scores, wins = _places(matrix), matrix.system_scores, _wins(matrix)
    decimals = 4 if width is None else width
    rows: list[list[Cell | str]] = [
        [
            matrix.systems[n],
            number(places[n], 0),
            number(float(scores[n]), decimals, "best" if places[n] == 1 else ""),
            number(int(wins[n]), 0),
        ]
        for n in _order(matrix)
    ]
    notes = [f"{len(testset)} segments, every pair of {len(matrix.systems)} systems", signature]
    return Table(["system", "rank", "wins", "best on"], rows, notes=notes)


def _segment_table(matrix: ScoreMatrix, width: int | None) -> Table:
    rows: list[list[Cell | str]] = [
        [item, *(number(float(v), 4 if width is None else width) for v in column)]
        for item, column in zip(matrix.items, matrix.values.T, strict=True)
    ]
    return Table(["segment", *matrix.systems], rows)
