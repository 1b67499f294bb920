"""`tertium cite`: what to cite for a metric or ranker, as BibTeX."""

from __future__ import annotations

import argparse

from tertium.cli.list import named_scorer

HELP = "what to cite for a metric or ranker"
DESCRIPTION = "Print the BibTeX entries of metrics and rankers."
EPILOG = """\
examples:
  tertium cite bleu
  tertium cite chrf meteor pairwise > metrics.bib
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("metrics", nargs="+", metavar="METRIC")


def run(args: argparse.Namespace) -> int:
    entries = [named_scorer(metric)[1].citation for metric in args.metrics]
    print("\n".join(dict.fromkeys(entries)))
    return 0
