"""`tertium compare`: paired tests of systems under any metric, and clusters of equals."""

from __future__ import annotations

import argparse

from tertium.cli import inputs, output, score
from tertium.cli.runtime import add_runtime, bars, runtime_of
from tertium.errors import UsageError

HELP = "compare systems with significance tests"
DESCRIPTION = "Compare systems: the first is the baseline; every pair is tested."
EPILOG = """\
examples:
  tertium compare -t baseline.txt ours.txt -r reference.txt
  tertium compare -t a.txt b.txt c.txt -r reference.txt -m bleu chrf meteor --paired-ar
  tertium compare -t a.txt b.txt c.txt -r reference.txt -m chrf --pairs -f md
  tertium compare -t systems.jsonl -m chrf --by domain length
  tertium compare -t a.txt b.txt -r reference.txt -m chrf --by domain=domains.txt

The paired bootstrap (the default) gives sacrebleu's p-values, and finds a difference where there is
none about twice as often as --alpha says. Check a borderline p with --paired-ar, which does not.
Slices (--by) are tested by randomisation unless --paired-bs is given, and their p-values adjusted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    inputs.add_metrics(parser, f"bleu chrf and {inputs.BEST}")
    inputs.add_inputs(parser)
    inputs.add_slices(parser)
    add_runtime(parser)
    shown = output.add_output(parser)
    shown.add_argument(
        "--pairs", action="store_true", help="also the p-values of all pairs; in TSV these alone"
    )
    score.add_paired(parser)
    parser.add_argument(
        "--seed", type=int, default=12345, help="of all resampling (default: 12345)"
    )
    parser.add_argument(
        "--alpha", type=float, default=0.05, help="level of the marks and ranks (default: 0.05)"
    )


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation import comparison
    from tertium.evaluation.scoring import usual_metrics
    from tertium.reporting.tables import evaluations

    score.check_compared(args)
    output.check_outputs(args)
    pairs = getattr(args, "pairs", False)
    if args.format == "tsv" and pairs and args.by:
        raise UsageError("-f tsv prints one kind of rows: --pairs or the slices of --by")
    testset = inputs.read_inputs(args)
    metrics = inputs.named_metrics(args, lambda: usual_metrics(testset))
    with bars(args.quiet), runtime_of(args):
        result = comparison.compare(
            testset, metrics, **score.test_choices(args), alpha=getattr(args, "alpha", 0.05)
        )
        slices = score.sliced_results(args, result)
        if args.report:
            from tertium.reporting.page.making import report_results

            page = report_results(result, metrics, slices=slices)
            output.write_report(args.report, page, args.quiet)
    if args.to_json:
        output.write_json(args.to_json, result.records(segments=True) + score.records_of(slices))
    if args.format not in output.NOTED:
        output.print_warnings(evaluations.warning_lines(result), args.quiet)
    if args.format == "json":
        output.print_records(result.records() + score.records_of(slices))
    elif slices and args.format == "tsv":
        score.print_slices(args, slices)
    elif pairs and args.format == "tsv":
        output.print_table(evaluations.long_pair_table(result), args.format)
    else:
        table = evaluations.comparison_table(result, args.width, warnings=not args.quiet)
        output.print_table(table, args.format)
        for metric in result.metrics if pairs else ():
            output.print_table(evaluations.pair_table(result, metric), args.format, first=False)
        score.print_slices(args, slices)
    return 0
