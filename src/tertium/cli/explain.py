"""`tertium explain`: why a translation has its score."""

from __future__ import annotations

import argparse
from pathlib import Path

from tertium.cli import inputs, output
from tertium.cli.judge import add_judge, judge_options
from tertium.cli.parser import TEXT, CommandParser
from tertium.errors import UsageError
from tertium.execution import runtime
from tertium.segment import Segment, check_surrogates

DESCRIPTION = (
    "Show the alignment of a translation with its reference or source, and what each feature "
    "contributes to the score."
)
EPILOG = """\
examples:
  tertium explain --reference-text "The blue car stopped." --translation-text "The red car stopped."
  tertium explain -m tertium-small -t ours.txt -r reference.txt --segment 3
  tertium explain --source-text "Das blaue Auto hielt an." --translation-text "The red car stopped."
  tertium explain -m pairwise -t ours.txt theirs.txt -r reference.txt --segment 3

Contributions are relative to the score of the reference itself, and add up to the score. Without a
reference the translation is compared with its source. With two or more translations, a ranker (or
any metric) shows which one wins.
"""
TEXT_OPTIONS = {"translations": "translation", "sources": "source", "references": "reference"}


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument(
        "--translation-text",
        action="append",
        default=[],
        metavar=TEXT,
        help="a translation; repeat it to compare translations",
    )
    group.add_argument(
        "--reference-text",
        action="append",
        default=[],
        metavar=TEXT,
        help="a reference; repeat it for several references",
    )
    group.add_argument("--source-text", metavar=TEXT, help="the source sentence")
    inputs.add_inputs(parser, required=False)
    group.add_argument(
        "--segment", type=int, metavar="N", help="with files: the segment to explain, from 1"
    )
    parser.groups["Metrics"].add_argument(
        "-m",
        "--metric",
        metavar="METRIC",
        help="metric or ranker (default: rte-r for English references, otherwise tertium-multi; "
        "pairwise for several translations with English references)",
    )
    output.add_format(parser, ("text", "json"))
    parser.groups["Output"].add_argument(
        "--top", type=int, default=10, metavar="N", help="number of features (default: 10)"
    )
    add_judge(parser)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.explaining import explain

    if args.top < 0:
        raise UsageError(f"--top {args.top}: expected 0 or more")
    with runtime(judge=judge_options(args)):
        explanation = explain(*read_segments(args), metric=args.metric)
    output.show(args, *explanation.top_sections(args.top), records=[explanation.records()])
    output.print_warnings([f"warning: {kind}" for kind in explanation.warnings], quiet=False)
    return 0


def read_segments(args: argparse.Namespace) -> list[Segment]:
    """Return one segment per translation, from the texts or from one segment of the files."""
    if not args.translations and not args.translation_text:
        raise UsageError("no translation: give --translation-text TEXT, or -t FILE --segment N")
    if args.translations:
        return _read_segment_of_files(args)
    files = {"-s": args.sources, "-r": args.references, "--segment": args.segment}
    for option, value in files.items():
        if value:
            raise UsageError(f"{option} is for files: give -t FILE, not --translation-text")
    if not args.reference_text and args.source_text is None:
        raise UsageError(
            "nothing to compare the translation with: give --reference-text or --source-text"
        )
    texts = {
        "--translation-text": args.translation_text,
        "--source-text": [args.source_text or ""],
        "--reference-text": args.reference_text,
    }
    for option, values in texts.items():
        for text in values:
            check_surrogates(text, option)
    return [Segment(text, args.source_text, args.reference_text) for text in args.translation_text]


def _read_segment_of_files(args: argparse.Namespace) -> list[Segment]:
    for dest, name in TEXT_OPTIONS.items():
        values = getattr(args, dest) or []
        for value in [values] if isinstance(values, str) else values:
            if value != inputs.STDIN and not Path(value[:4096]).exists():
                raise UsageError(
                    f"--{dest} {value}: no such file; give a sentence with --{name}-text"
                )
    if args.translation_text or args.reference_text or args.source_text is not None:
        raise UsageError("give either files (-s, -t, -r) or texts (--translation-text), not both")
    testset = inputs.read_inputs(args)
    if args.segment is None and len(testset) > 1:
        raise UsageError(f"{len(testset)} segments: choose one with --segment N")
    number = args.segment or 1
    if not 1 <= number <= len(testset):
        raise UsageError(f"--segment {number}: expected 1 to {len(testset)}")
    return [testset.segments(system)[number - 1] for system in testset.systems]
