"""Options for significance tests and confidence intervals, and the comparison of systems."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output
from tertium.cli.judge import print_plan
from tertium.cli.parser import CommandParser, StoreWithName
from tertium.cli.runtime import progress_bars, runtime_of
from tertium.cli.slices import join_slices, make_slices, slice_records, slice_tables
from tertium.errors import UsageError

if TYPE_CHECKING:
    from tertium.evaluation.comparison import Comparison
    from tertium.evaluation.slices import Slices

SACREBLEU_NAMES = ("--paired-bs-n", "--paired-ar-n")


def add_paired_tests(parser: CommandParser) -> None:
    """Add --paired-bs and --paired-ar."""
    tests = parser.groups["Statistics"].add_mutually_exclusive_group()
    tests.add_argument(
        "--paired-bs", action="store_true", help="test against the first system: paired bootstrap"
    )
    tests.add_argument(
        "--paired-ar",
        action="store_true",
        help="test against the first system: approximate randomization",
    )


def add_resamples(parser: CommandParser, *aliases: str) -> None:
    """Add --resamples with the names that sacrebleu has for it, and --seed."""
    parser.groups["Statistics"].add_argument(
        "--resamples",
        *aliases,
        action=StoreWithName,
        type=int,
        metavar="N",
        help="resamples of tests and intervals (default: 1000 for the bootstrap, 10000 for "
        "randomization)",
    )
    add_seed(parser)


def add_seed(parser: CommandParser) -> None:
    """Add --seed."""
    parser.groups["Statistics"].add_argument(
        "--seed", type=int, default=12345, metavar="N", help="random seed (default: 12345)"
    )


def add_alpha(parser: CommandParser) -> None:
    """Add --alpha."""
    parser.groups["Statistics"].add_argument(
        "--alpha",
        type=float,
        default=0.05,
        metavar="X",
        help="significance level of marks and ranks (default: 0.05)",
    )


def test_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the requested paired test; the bootstrap is the default."""
    test = "randomization" if args.paired_ar else "bootstrap"
    return {"test": test, "resamples": args.resamples, "seed": args.seed}


def check_resamples(args: argparse.Namespace) -> None:
    """Raise an error if sacrebleu's name of --resamples is given for a test that is not run."""
    is_sliced = bool(args.by) and not args.paired_bs  # slices are tested by randomization
    is_run = {
        "--confidence-n": False,
        "--paired-bs-n": not args.paired_ar,
        "--paired-ar-n": args.paired_ar or is_sliced,
    }
    option = getattr(args, "resamples_option", None)
    if not is_run.get(option or "", True):
        raise UsageError(f"{option} needs {str(option).removesuffix('-n')}: use --resamples")


def compare_systems(args: argparse.Namespace, *, pairs: bool = False, alpha: float = 0.05) -> int:
    """Compare systems and print the result; with `pairs` also the p-values of all pairs."""
    from tertium.evaluation import comparison
    from tertium.evaluation.metric_choice import default_metrics

    check_resamples(args)
    output.check_outputs(args)
    if args.format == "tsv" and pairs and args.by:
        raise UsageError("-f tsv prints one table: give either --pairs or --by")
    testset = inputs.read_inputs(args)
    metrics = inputs.load_named_metrics(args, partial(default_metrics, testset), testset)
    if args.dry_run:
        return print_plan(args, testset, metrics)
    with progress_bars(args.quiet), runtime_of(args):
        result = comparison.compare(testset, metrics, **test_options(args), alpha=alpha)
        slices = make_slices(args, result)
        if args.report:
            from tertium.output.page.report import report_results

            page = report_results(result, metrics, slices=slices)
            output.write_report(args.report, page, args.quiet)
    if args.to_json:
        output.write_json(args.to_json, result.records(segments=True) + slice_records(slices))
    _print_comparison(args, result, slices, pairs=pairs)
    return 0


def _print_comparison(
    args: argparse.Namespace, result: Comparison, slices: Sequence[Slices], *, pairs: bool
) -> None:
    from tertium.evaluation.verdicts import describe_verdict

    if args.format not in output.FORMATS_WITH_NOTES:
        lines = [*result.warning_lines(), describe_verdict(result)]
        output.print_warnings([*filter(None, lines)], args.quiet)
    if args.format == "json":
        output.print_records(result.records() + slice_records(slices))
    elif slices and args.format == "tsv":
        output.show(args, join_slices(slices))
    elif pairs and args.format == "tsv":
        output.show(args, result.pair_list())
    else:
        table = result.comparison_table(warnings=not args.quiet)
        pair_tables = [result.pair_table(metric) for metric in result.metrics if pairs]
        output.show(args, table, *pair_tables, *slice_tables(slices))
