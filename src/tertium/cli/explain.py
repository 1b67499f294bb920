"""`tertium explain`: why a translation has its score, in words."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tertium.cli.output import print_records, print_table
from tertium.errors import UsageError
from tertium.report.tables import Table
from tertium.segment import Segment

if TYPE_CHECKING:
    from tertium.metrics.reasons import Reasons

MOST = 15  # sentences of each kind that are printed
QUESTIONS = {
    "forward": "does the hypothesis follow from the reference?",
    "backward": "does the reference follow from the hypothesis?",
}

EPILOG = """\
-t and -r take the sentences themselves, not files. Contributions are counted from what the
reference would score as its own translation, so that they add up to the score.

examples:
  tertium explain -r "Three aid workers were kidnapped by pirates." \\
                  -t "Three aid workers were kidnapped."
  tertium explain -m mt-rte-r -r "..." -t "..." --top 20 --json
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "explain",
        help="why a translation has its score, in words",
        description="Show the alignment of a translation with its reference, what fired and what "
        "each feature contributed to the score.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-t", "--translation", "-i", required=True, metavar="TEXT", help="the translation"
    )
    parser.add_argument(
        "-r", "--reference", required=True, action="append", metavar="TEXT",
        help="the reference; again for another",
    )  # fmt: skip
    parser.add_argument("-m", "--metric", default="rte-r", help="default: rte-r")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="features (default: 10)")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    parser.add_argument("--json", action="store_true", help="the same as -f json")
    return parser


def run(args: argparse.Namespace) -> int:
    from tertium.metrics import load_metric
    from tertium.metrics.reasons import Reasons

    metric = load_metric(args.metric)
    explain = getattr(metric, "explain", None)
    if explain is None:
        raise UsageError(
            f"{metric.name} cannot explain its scores: use rte-r, mt-rte-r, mt-r or another "
            "regression on named features"
        )
    found = explain(Segment(args.translation, None, tuple(args.reference)))
    if isinstance(found, Reasons) and not (args.json or args.format == "json"):
        show(found, args.top)
    else:  # what other metrics say is for machines: which piece was matched with which
        print_records([found.as_dict()])
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
