"""`tertium explain`: why a translation has its score, in words."""

from __future__ import annotations

import argparse
import sys
from statistics import median
from typing import TYPE_CHECKING

from tertium.cli.output import print_records, print_table
from tertium.errors import UsageError
from tertium.report.tables.table import Table
from tertium.segment import Segment, check_characters

if TYPE_CHECKING:
    from tertium.metrics.base.links import Alignment, Comparison
    from tertium.metrics.regression.reasons import Reasons

MOST = 15  # sentences of each kind that are printed
FAR = 0.15  # below the usual cosine by so much, a best partner is none
QUESTIONS = {
    "forward": "does the hypothesis follow from the reference?",
    "backward": "does the reference follow from the hypothesis?",
}

EPILOG = """\
-t, -r and -s take the sentences themselves, not files. Contributions are counted from what the
reference would score as its own translation, so that they add up to the score. With -s and no -r
the translation is held against its source.

examples:
  tertium explain -r "Three aid workers were kidnapped by pirates." \\
                  -t "Three aid workers were kidnapped."
  tertium explain -m tertium-small -r "The blue car stopped." -t "The red car stopped."
  tertium explain -s "Das blaue Auto hielt an." -t "The red car stopped."
  tertium explain -m mt-rte-r -r "..." -t "..." --top 20 --json
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "explain",
        help="why a translation has its score, in words",
        description="Show the alignment of a translation with its reference or its source, what "
        "fired and what each feature contributed to the score.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-t", "--translation", "-i", required=True, metavar="TEXT", help="the translation"
    )
    parser.add_argument(
        "-r", "--reference", action="append", default=[], metavar="TEXT",
        help="the reference; again for another",
    )  # fmt: skip
    parser.add_argument("-s", "--source", metavar="TEXT", help="the source sentence")
    parser.add_argument(
        "-m", "--metric", metavar="METRIC",
        help="rte-r (default) and the other regressions say it in words; tertium-small, bertscore, "
        "wmd and their relatives by pieces, sentsim (default without -r) against the source too",
    )  # fmt: skip
    parser.add_argument("--top", type=int, default=10, metavar="N", help="features (default: 10)")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    parser.add_argument("--json", action="store_true", help="the same as -f json")
    return parser


def run(args: argparse.Namespace) -> int:
    from tertium.metrics import load_metric
    from tertium.metrics.regression.reasons import Reasons

    if not args.reference and args.source is None:
        raise UsageError("nothing to hold the translation against: give -r TEXT, or -s TEXT")
    for option, text in (("-t", args.translation), ("-s", args.source or ""),
                         *(("-r", reference) for reference in args.reference)):  # fmt: skip
        check_characters(text, option)
    if args.top < 0:
        raise UsageError(f"--top {args.top}: expected zero or more features")
    metric = load_metric(args.metric or ("rte-r" if args.reference else "sentsim"))
    explain = getattr(metric, "explain", None)
    if explain is None:
        raise UsageError(
            f"{metric.name} cannot explain its scores: use rte-r, mt-rte-r or another regression "
            "on named features, or tertium-small, bertscore, wmd or sentsim"
        )
    found = explain(Segment(args.translation, args.source, tuple(args.reference)))
    if args.json or args.format == "json":
        print_records([found.as_dict()])
    elif isinstance(found, Reasons):
        show(found, args.top)
    else:
        show_alignment(found, args.top)
    return 0


def show(explanation: Reasons, top: int) -> None:
    """Print an explanation for a person to read."""
    e = explanation
    print(f"{e.metric}: {e.score:+.3f}, of {e.perfect:+.3f} for the reference itself")
    for warning in e.warnings:
        print(f"tertium: {warning}", file=sys.stderr)
    for direction, question in QUESTIONS.items():
        if direction in e.follows:
            print(f"{question} {'yes' if e.follows[direction] else 'no'}")
    for title, sentences in (("faults", e.faults), ("merits", e.merits)):
        if sentences:
            print(f"\n{title}")
            print("\n".join(f"  - {sentence}" for sentence in sentences[:MOST]))
            if len(sentences) > MOST:
                print(f"  - and {len(sentences) - MOST} more (--json shows all)")
    if e.alignment:
        print_table(_alignment_table(e), "text")
    print_table(_group_table(e), "text")
    print_table(_feature_table(e, top), "text")


def show_alignment(alignment: Alignment, top: int) -> None:
    """Print which pieces found no partner, and the weakest links, for a person to read."""
    print(f"{alignment.metric}: {alignment.score:.4f}")
    for comparison in alignment.comparisons:
        values = ", ".join(f"{name} {value:.4g}" for name, value in comparison.values.items())
        print(f"\nagainst the {comparison.side} {comparison.text!r}: {values}")
        for side, pieces in partnerless(comparison).items():
            if pieces:
                print(f"  without a partner in the {side}: {', '.join(pieces)}")
        if comparison.links:
            print_table(_link_table(comparison, top), "text")


def partnerless(comparison: Comparison) -> dict[str, list[str]]:
    """The pieces of each text whose best partner is far less similar than is usual here, by the
    text that lacks it."""
    found: dict[str, list[str]] = {}
    sides = (
        ("recall", "translation", comparison.other_pieces, "other"),
        ("precision", comparison.side, comparison.hypothesis_pieces, "hypothesis"),
    )
    for direction, lacking, pieces, end in sides:
        links = [link for link in comparison.links if link.direction == direction]
        usual = median([link.similarity for link in links]) if links else 0.0
        weak = [link for link in links if link.similarity < usual - FAR]
        found[lacking] = [pieces[getattr(link, end)] for link in weak]
    return found


def _link_table(comparison: Comparison, top: int) -> Table:
    """The weakest links first; in a plan, those that move most over a distance."""
    plan = any(link.direction == "transport" for link in comparison.links)
    ordered = sorted(
        comparison.links,
        key=lambda link: -link.weight * link.similarity if plan else link.similarity,
    )
    rows = [
        (comparison.hypothesis_pieces[link.hypothesis], comparison.other_pieces[link.other],
         link.direction, f"{link.similarity:.3f}", f"{link.weight:.3f}")
        for link in ordered[:top]
    ]  # fmt: skip
    measure = "distance" if plan else "similarity"
    return Table(
        header=("translation", comparison.side, "looked for by", measure, "weight"),
        rows=rows,
        left=frozenset({0, 1, 2}),
    )


def _alignment_table(e: Reasons) -> Table:
    rows = [
        (m.hypothesis or "-", m.reference or "-", m.relation if m.relation != "none" else "",
         f"{m.similarity:.2f}" if m.reference and m.hypothesis else "")
        for m in e.alignment
    ]  # fmt: skip
    return Table(
        header=("translation", "reference", "relation", "similarity"),
        rows=rows,
        left=frozenset({0, 1, 2}),
    )


def _group_table(e: Reasons) -> Table:
    ordered = sorted(e.groups.items(), key=lambda item: item[1])
    rows = [(group, f"{value:+.3f}") for group, value in ordered]
    return Table(header=("group", "contribution"), rows=rows)


def _feature_table(e: Reasons, top: int) -> Table:
    rows = [
        (c.feature, f"{c.value:.3f}", f"{c.contribution:+.3f}") for c in e.contributions[:top]
    ]
    return Table(header=("feature", "value", "contribution"), rows=rows)
