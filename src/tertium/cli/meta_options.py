"""The options of `tertium meta`: what is read, and which statistic is asked of it."""

from __future__ import annotations

import argparse

from tertium.meta.protocol import PROTOCOLS
from tertium.meta.tasks import STATISTICS


def add_sources(parser: argparse.ArgumentParser) -> None:
    """What people said, what metrics gave, and what of it is taken."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "--human",
        nargs="+",
        action="extend",
        required=True,
        metavar="FILE",
        help="human scores or comparisons: files, folders, or names of sets in --data",
    )
    _add_list(group, "--scores", "FILE", "scores that metrics gave")
    group.add_argument(
        "--spans",
        nargs="*",
        metavar="FILE",
        help="compare marked errors instead: those in files, or of the metrics of -m that mark any",
    )
    group.add_argument("--data", metavar="DIR", help="where named sets are (or TERTIUM_DATA)")
    _add_list(group, "--lps", "LP", "these language pairs")
    _add_list(group, "--exclude", "SYSTEM", "leave these systems out")
    _add_list(
        group,
        "--ceiling",
        "FILE",
        "people as a row of the table: a second campaign, or `rater` for one held out of each "
        "translation",
    )
    group.add_argument("--gold", metavar="NAME", help="which human scores of a folder, e.g. mqm")
    group.add_argument(
        "--standardise", action="store_true", help="turn ratings into z-scores of each annotator"
    )
    _add_list(
        group, "--lower-better", "METRIC", "metrics of --scores of which a lower score is better"
    )


def add_modes(parser: argparse.ArgumentParser) -> None:
    """What is asked instead of agreement; one of them at a time."""
    group = parser.add_argument_group("instead of agreement")
    group.add_argument(
        "--protocol",
        choices=[*PROTOCOLS],
        help="the ranking of metrics by the rules of a shared task (statistics, level, tests)",
    )
    group.add_argument(
        "--decisions",
        type=float,
        metavar="BAR",
        help="how well metrics decide: which translations reach this human score, which output of "
        "a segment is best, which score is not to be trusted",
    )
    group.add_argument(
        "--thresholds",
        action="store_true",
        help="what a difference of two systems means: how often people agree with its order",
    )


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """Which agreement, how it is grouped, sliced and tested."""
    group = parser.add_argument_group("statistics")
    group.add_argument(
        "--statistic",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        choices=[*STATISTICS],
        help=f"one or more of {', '.join(STATISTICS)} (default: pearson, or tau-strict where "
        "people compared)",
    )
    group.add_argument("--level", choices=("segment", "system"), help="default: by statistic")
    _add_list(
        group,
        "--by",
        "COLUMN",
        "none, item or system: how a statistic is grouped; anything else: also slice by slice "
        "(domain, document, length, language or any column of the judgements)",
    )
    group.add_argument(
        "--test",
        default="auto",
        choices=("auto", "bootstrap", "perm-both", "williams", "pairs", "none"),
        help="of differences (default: by statistic)",
    )
    group.add_argument("--over", choices=("segments", "systems"), help="what the bootstrap draws")
    group.add_argument("--samples", type=int, default=1000, metavar="N", help="0: no tests")
    group.add_argument("--confidence", type=float, default=0.95, help="of intervals")
    group.add_argument("--alpha", type=float, default=0.05, help="level of significance")
    group.add_argument("--threshold", type=float, default=25.0, help="of DARR")
    group.add_argument("--tie-rate", type=float, metavar="SHARE", help="of tie-aware prediction")
    group.add_argument("--seed", type=int, default=12345, help="of all resampling")


def _add_list(group: argparse._ArgumentGroup, option: str, what: str, said: str) -> None:
    group.add_argument(option, nargs="+", action="extend", default=[], metavar=what, help=said)
