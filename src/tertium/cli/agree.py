"""`tertium agree`: agreement between raters, rater quality, and human scores of systems."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.cli import output
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.significance import add_alpha, add_seed
from tertium.errors import DataError, UsageError

if TYPE_CHECKING:
    from tertium.campaigns.answers import RaterAnswer

DATABASE_SUFFIX = ".db"

DESCRIPTION = (
    "Measure how well raters agree, describe each rater, and rank systems by human scores with "
    "intervals and clusters."
)
EPILOG = """\
examples:
  tertium agree ratings.csv
  tertium agree campaign.json
  tertium agree campaign.json --answers answers.jsonl -o judgments.jsonl
  tertium agree ratings.csv --exclude rater-3 -f json

HUMAN is a campaign that raters answered in `tertium annotate`, or judgments with rater names: TSV,
CSV or JSONL, MQM, ESA, Appraise, Pearmut, Label Studio. -o writes the judgments of a campaign;
meta, train, route and report read them.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("human", metavar="HUMAN", help="judgments with raters, or a campaign")
    group.add_argument(
        "--answers",
        metavar="FILE",
        help="answers to a campaign: the database of `tertium annotate` or .jsonl (default: the "
        "database next to the campaign)",
    )
    add_list(group, "--exclude", metavar="RATER", help="raters to leave out")
    add_list(group, "--lps", metavar="LP", help="only these language pairs (default: all)")
    group = parser.groups["Statistics"]
    group.add_argument(
        "--pass-mark",
        type=float,
        metavar="X",
        help="MQM points per 1,000 words up to which a system passes (default: no result)",
    )
    group.add_argument(
        "--resamples",
        type=int,
        default=1000,
        metavar="N",
        help="bootstrap samples of intervals (default: 1000)",
    )
    add_alpha(parser)
    add_seed(parser)
    output.add_format(parser)
    group = parser.groups["Output"]
    group.add_argument(
        "-o", "--output", metavar="FILE", help="write the judgments of a campaign (.jsonl)"
    )
    group.add_argument("--to-json", metavar="FILE", help="also write all results as JSON")
    output.add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.rater_agreement import agree

    output.check_outputs(args)
    answers = _read_answers(args)
    studies = agree(
        args.human,
        answers=answers,
        exclude=args.exclude,
        lps=args.lps,
        pass_mark=args.pass_mark,
        resamples=args.resamples,
        alpha=args.alpha,
        seed=args.seed,
    )
    if args.output:
        _write_judgments(args, answers)
    if args.to_json:
        output.write_json(args.to_json, [study.records() for study in studies])
    output.show(args, *studies)
    return 0


def _read_answers(args: argparse.Namespace) -> Any:
    """Return the answers to a campaign; otherwise --answers, which is an error of `agree`."""
    from tertium.annotation.session import AnnotationSession, default_database
    from tertium.campaigns.answers import read_answers
    from tertium.campaigns.campaign import is_campaign_file, read_campaign

    if not is_campaign_file(args.human):
        return args.answers
    path = Path(args.answers or default_database(args.human))
    if not path.is_file():
        raise DataError(
            f"{args.human} is a campaign: give the answers of its raters (--answers); {path} does "
            "not exist"
        )
    if path.suffix != DATABASE_SUFFIX:
        return read_answers(path)
    with closing(AnnotationSession(read_campaign(args.human), path)) as session:
        return session.state.answers()


def _write_judgments(args: argparse.Namespace, answers: Sequence[RaterAnswer] | None) -> None:
    """Write the judgments of a campaign, without those of excluded raters."""
    from tertium.campaigns.answers import write_judgments
    from tertium.campaigns.campaign import read_campaign

    if answers is None:
        raise UsageError("-o writes the judgments of a campaign: give a campaign and --answers")
    chosen = [answer for answer in answers if answer.rater not in args.exclude]
    write_judgments(chosen, read_campaign(args.human), args.output)
