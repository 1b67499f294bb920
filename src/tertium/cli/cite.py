"""`tertium cite`: the BibTeX entries of metrics and rankers."""

from __future__ import annotations

import argparse
import sys

from tertium.cli.list import resolve_spec
from tertium.cli.parser import CommandParser

DESCRIPTION = "Print the BibTeX entries of metrics and rankers."
EPILOG = """\
examples:
  tertium cite bleu
  tertium cite chrf meteor pairwise > metrics.bib
"""


def add_arguments(parser: CommandParser) -> None:
    parser.groups["Metrics"].add_argument(
        "metrics", nargs="+", metavar="METRIC", help="metrics or rankers"
    )


def run(args: argparse.Namespace) -> int:
    citations = {metric: resolve_spec(metric)[1].citation for metric in args.metrics}
    for citation in dict.fromkeys(filter(None, citations.values())):
        print(citation)
    for metric, citation in citations.items():
        if not citation:
            print(f"tertium: {metric} names no paper to cite", file=sys.stderr)
    return 0
