"""`tertium agree`: agreement between raters, rater quality, and human scores of systems."""

from __future__ import annotations

import argparse

from tertium.cli import output
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.significance import add_alpha, add_seed

HELP = "measure agreement between raters, rank systems by them"
DESCRIPTION = (
    "Measure how well raters agree, describe each rater, and rank systems by human scores with "
    "intervals and clusters."
)
EPILOG = """\
examples:
  tertium agree ratings.csv
  tertium agree campaign.json --answers answers.jsonl
  tertium agree mqm_newstest.tsv --pass-mark 25
  tertium agree ratings.csv --exclude rater-3 -f json

HUMAN is a campaign of `tertium plan` with --answers, or judgments with rater names: TSV, CSV or
JSONL, MQM, ESA, Appraise, Pearmut, Label Studio. `tertium agree campaign.json --answers FILE -o
judgments.jsonl` also writes judgments for meta, train, route and report.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("human", metavar="HUMAN", help="judgments with raters, or a campaign")
    group.add_argument("--answers", metavar="FILE", help="answers of raters to a campaign (.jsonl)")
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
    from tertium.reporting.tables.rater_agreement import human_score_table, study_tables

    output.check_outputs(args)
    studies = agree(
        args.human,
        answers=args.answers,
        exclude=args.exclude,
        lps=args.lps,
        pass_mark=args.pass_mark,
        resamples=args.resamples,
        alpha=args.alpha,
        seed=args.seed,
    )
    if args.output:
        _write_judgments(args)
    records = [study.records() for study in studies]
    if args.to_json:
        output.write_json(args.to_json, records)
    if args.format == "json":
        output.print_records(records)
        return 0
    tables = [
        table
        for study in studies
        for table in ([human_score_table(study)] if args.format == "tsv" else study_tables(study))
    ]
    for number, table in enumerate(tables):
        output.print_table(table, args.format, first=not number)
    return 0


def _write_judgments(args: argparse.Namespace) -> None:
    """Write the judgments of a campaign, without those of excluded raters."""
    from tertium.campaigns.answers import read_answers, write_judgments
    from tertium.campaigns.campaign import is_campaign_file, read_campaign
    from tertium.errors import UsageError

    if not is_campaign_file(args.human):
        raise UsageError("-o writes the judgments of a campaign: give a campaign and --answers")
    answers = [a for a in read_answers(args.answers) if a.rater not in args.exclude]
    write_judgments(answers, read_campaign(args.human), args.output)
