"""`tertium cite`: what to cite for a metric or ranker, as BibTeX."""

from __future__ import annotations

import argparse

from tertium.registry import ALIASES, resolve_scorer, split_spec

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
    names = [split_spec(ALIASES.get(m, m))[0] for m in args.metrics]
    entries = [resolve_scorer(name).citation for name in names]
    print("\n".join(dict.fromkeys(entries)))
    return 0
