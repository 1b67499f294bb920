"""Paired tests on the command line: their options, how these go together, and systems compared."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output
from tertium.cli.runtime import bars, runtime_of
from tertium.cli.slices import print_slices, slice_records, sliced_results
from tertium.errors import UsageError

if TYPE_CHECKING:
    from tertium.evaluation.comparison import Comparison
    from tertium.evaluation.slices import Slices


def add_paired(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("paired tests against the first system")
    kind = group.add_mutually_exclusive_group()
    kind.add_argument("--paired-bs", action="store_true", help="paired bootstrap")
    kind.add_argument("--paired-ar", action="store_true", help="approximate randomization")
    group.add_argument(
        "--paired-bs-n", type=int, metavar="N", help="resamples of the bootstrap (default: 1000)"
    )
    group.add_argument(
        "--paired-ar-n", type=int, metavar="N", help="trials of randomization (default: 10000)"
    )


def add_seed(group: argparse._ActionsContainer) -> None:
    group.add_argument("--seed", type=int, default=12345, help="of all resampling (default: 12345)")


def add_seed_and_level(parser: argparse.ArgumentParser) -> None:
    add_seed(parser)
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        help="level of significance, of marks and ranks (default: 0.05)",
    )


def test_choices(args: argparse.Namespace) -> dict[str, Any]:
    """The paired test that was asked for, the bootstrap unless another was."""
    kind = "randomization" if args.paired_ar else "bootstrap"
    resamples = args.paired_ar_n if args.paired_ar else args.paired_bs_n
    return {"test": kind, "resamples": resamples, "seed": args.seed}


def check_counts(args: argparse.Namespace, *, bootstrap: bool, randomization: bool) -> None:
    """Refuse numbers of resamples that no test takes, given the tests that are made."""
    if args.paired_bs_n is not None and not bootstrap:
        raise UsageError(
            "--paired-bs-n says how many resamples --paired-bs takes, which is not done here: "
            "give --paired-bs, or leave the number out"
        )
    if args.paired_ar_n is not None and not randomization:
        raise UsageError(
            "--paired-ar-n says how many trials --paired-ar takes, which is not done here: "
            "give --paired-ar, or leave the number out"
        )


def check_compared(args: argparse.Namespace) -> None:
    """Refuse numbers of resamples that no test takes where systems are compared."""
    sliced = bool(args.by) and not args.paired_bs  # by randomization, whatever the whole takes
    check_counts(args, bootstrap=not args.paired_ar, randomization=args.paired_ar or sliced)


def compare_systems(args: argparse.Namespace, *, pairs: bool = False, alpha: float = 0.05) -> int:
    """Test systems as the options say, and print what came out; `pairs` also pair by pair."""
    from tertium.evaluation import comparison
    from tertium.evaluation.scoring import usual_metrics

    check_compared(args)
    output.check_outputs(args)
    if args.format == "tsv" and pairs and args.by:
        raise UsageError("-f tsv prints one kind of rows: --pairs or the slices of --by")
    testset = inputs.read_inputs(args)
    metrics = inputs.named_metrics(args, lambda: usual_metrics(testset))
    with bars(args.quiet), runtime_of(args):
        result = comparison.compare(testset, metrics, **test_choices(args), alpha=alpha)
        slices = sliced_results(args, result)
        if args.report:
            from tertium.reporting.page.making import report_results

            page = report_results(result, metrics, slices=slices)
            output.write_report(args.report, page, args.quiet)
    if args.to_json:
        output.write_json(args.to_json, result.records(segments=True) + slice_records(slices))
    _print(args, result, slices, pairs=pairs)
    return 0


def _print(
    args: argparse.Namespace, result: Comparison, slices: Sequence[Slices], *, pairs: bool
) -> None:
    from tertium.reporting.tables import evaluations

    if args.format not in output.NOTED:
        output.print_warnings(evaluations.warning_lines(result), args.quiet)
    if args.format == "json":
        output.print_records(result.records() + slice_records(slices))
    elif slices and args.format == "tsv":
        print_slices(args, slices)
    elif pairs and args.format == "tsv":
        output.print_table(evaluations.long_pair_table(result), args.format)
    else:
        table = evaluations.comparison_table(result, args.width, warnings=not args.quiet)
        output.print_table(table, args.format)
        for metric in result.metrics if pairs else ():
            output.print_table(evaluations.pair_table(result, metric), args.format, first=False)
        print_slices(args, slices)
