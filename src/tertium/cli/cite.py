"""`tertium cite`: what to cite for a metric, as BibTeX."""

from __future__ import annotations

import argparse

from tertium.registry import METRICS, resolve, split_spec

EPILOG = """\
examples:
  tertium cite bleu
  tertium cite chrf meteor > metrics.bib
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "cite",
        help="what to cite for a metric",
        description="Print the BibTeX entries of metrics.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("metrics", nargs="+", metavar="METRIC")
    return parser


def run(args: argparse.Namespace) -> int:
    entries = [resolve(METRICS, split_spec(m)[0], "metric").citation for m in args.metrics]
    print("\n".join(dict.fromkeys(entries)))
    return 0
