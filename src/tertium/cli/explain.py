"""`tertium explain`: why a translation has its score, in words."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.cli import TEXT
from tertium.cli.output import print_records, print_table, print_warnings
from tertium.errors import UsageError
from tertium.segment import Segment, check_characters

if TYPE_CHECKING:
    from tertium.metrics.base.explanation import Explanation

LONGEST_NAME = 256  # bytes of a file's name

HELP = "why a translation has its score, in words"
DESCRIPTION = (
    "Show the alignment of a translation with its reference or its source, what "
    "fired and what each feature contributed to the score."
)
EPILOG = """\
-t, -r and -s take the sentences themselves, not files. Contributions are counted from what the
reference would score as its own translation, so that they add up to the score. With -s and no -r
the translation is held against its source. With -t given again, a ranker says which one wins.

examples:
  tertium explain -r "Three aid workers were kidnapped by pirates." \\
                  -t "Three aid workers were kidnapped."
  tertium explain -m tertium-small -r "The blue car stopped." -t "The red car stopped."
  tertium explain -s "Das blaue Auto hielt an." -t "The red car stopped."
  tertium explain -m pairwise -r "The blue car stopped." -t "The red car." -t "A blue car stops."
  tertium explain -m mt-rte-r -r "..." -t "..." --top 20 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-t",
        "--translation",
        "-i",
        action="append",
        required=True,
        metavar=TEXT,
        help="the translation; again for one to compare it with",
    )
    parser.add_argument(
        "-r",
        "--reference",
        action="append",
        default=[],
        metavar=TEXT,
        help="the reference; again for another",
    )
    parser.add_argument("-s", "--source", metavar=TEXT, help="the source sentence")
    parser.add_argument(
        "-m",
        "--metric",
        metavar="METRIC",
        help="rte-r (default for English references) and the other regressions say it in words; "
        "tertium-multi (default otherwise) by pieces and suspected errors, bertscore, wmd and "
        "their relatives by pieces, against the source too; pairwise (default of several -t beside "
        "English references), or any metric, says which translation wins",
    )
    parser.add_argument("--top", type=int, default=10, metavar="N", help="features (default: 10)")
    parser.add_argument("-f", "--format", choices=("text", "json"), default="text")
    parser.add_argument("--json", action="store_true", help="the same as -f json")


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.explaining import explain

    if not args.reference and args.source is None:
        raise UsageError("nothing to hold the translation against: give -r TEXT, or -s TEXT")
    given = {"-t": args.translation, "-s": [args.source or ""], "-r": args.reference}
    for option, texts in given.items():
        for text in texts:
            check_characters(text, option)
            _refuse_file(text, option)
    if args.top < 0:
        raise UsageError(f"--top {args.top}: expected zero or more features")
    segments = [Segment(text, args.source, args.reference) for text in args.translation]
    explained = explain(*segments, metric=args.metric)
    if args.json or args.format == "json":
        print_records([explained.as_dict()])
    else:
        show(explained, args.top)
    print_warnings([f"warning: {kind}" for kind in explained.warnings], quiet=False)
    return 0


def _refuse_file(text: str, option: str) -> None:
    """Refuse the name of a file, which other commands take here."""
    if len(text.encode()) < LONGEST_NAME and Path(text).suffix and Path(text).is_file():
        raise UsageError(
            f"{option} takes the sentence itself, and {text} is a file: `tertium report` explains "
            "segments of files, `tertium score --spans` marks their errors"
        )


def show(explained: Explanation, top: int) -> None:
    """Print an explanation for a person to read, part by part."""
    from tertium.reporting.tables.explanations import parts_of
    from tertium.reporting.tables.table import Table

    for part in parts_of(explained, top):
        if isinstance(part, Table):
            print_table(part, "text")
        else:
            print(part)
