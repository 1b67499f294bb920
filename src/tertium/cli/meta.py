"""`tertium meta`: agreement of metrics with human judgments.

`meta_analyses` has the other analyses of the same data: protocols, error spans, thresholds and
decisions.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output
from tertium.cli.meta_analyses import (
    DEFAULT_NUMBERS,
    add_analyses,
    data_options,
    requested_analysis,
)
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.cli.significance import add_seed
from tertium.errors import UsageError
from tertium.meta.tasks import STATISTICS, resolve_statistic
from tertium.text.control_characters import replace_control_characters

if TYPE_CHECKING:
    from tertium.evaluation.meta_evaluation import AgreementStudy

LEVELS = ("segment", "system")
# Numbers that only some statistics use.
STATISTIC_NUMBERS = {"threshold": {"darr", "darr17"}, "tie_rate": {"tie-aware"}}
DESCRIPTION = "Measure how well metrics agree with human judgments, and whether they differ."
EPILOG = """\
examples:
  tertium meta --human judgments.tsv --scores chrf.tsv mymetric.tsv
  tertium meta --human judgments.jsonl -m bleu chrf --statistic pearson kendall --by domain
  tertium meta --human wmt24/ --gold mqm --protocol wmt24
  tertium meta --human modern/dev/mqm/ted21 --spans mymetric.jsonl

docs/meta-evaluation/statistics.md describes the formats of --human and --scores. Each language pair
becomes a column. Scores are matched to language pairs by the file name, its folder or a column
`lp`, and to judgments by system and segment.
"""


def add_arguments(parser: CommandParser) -> None:
    add_data(parser)
    inputs.add_metrics(parser, "none, if --scores is given")
    add_statistics(parser)
    add_analyses(parser)
    output.add_output(parser, 3)
    group = parser.groups["Output"]
    group.add_argument(
        "--p-values",
        action="store_true",
        help="also show p-values of all pairs (in TSV only these)",
    )
    group.add_argument("--plot", metavar="FILE", help="also write a scatter plot (.svg)")
    add_runtime(parser)


def add_data(parser: CommandParser) -> None:
    """Add the options that choose human judgments and metric scores."""
    group = parser.groups["Input"]
    add_list(
        group,
        "--human",
        required=True,
        metavar="FILE",
        help="human scores or comparisons: files, folders, names of sets in --data, or - for stdin",
    )
    add_list(group, "--scores", metavar="FILE", help="files of metric scores")
    group.add_argument(
        "--scores-from-rows",
        nargs="*",
        action="extend",
        metavar="METRIC",
        help="also evaluate metric scores in the field `scores` of the judgments: all, or those "
        "named (default: all, if there are no other metrics)",
    )
    group.add_argument(
        "--spans",
        nargs="*",
        action="extend",
        metavar="FILE",
        help="compare error spans instead: from files, or marked by the metrics of -m",
    )
    group.add_argument(
        "--data", metavar="DIR", help="folder of human judgments (default: $TERTIUM_DATA)"
    )
    add_list(group, "--lps", metavar="LP", help="only these language pairs (default: all)")
    add_list(group, "--exclude", metavar="SYSTEM", help="systems to exclude")
    group.add_argument("--gold", metavar="NAME", help=inputs.GOLD_HELP)
    group.add_argument(
        "--standardize", action="store_true", help="replace ratings by z-scores of each rater"
    )
    add_list(
        group,
        "--human-baseline",
        metavar="FILE",
        help="add human scores as a row: a second set, or `rater` to hold out one rater",
    )
    add_list(
        group, "--lower-better", metavar="METRIC", help="metrics of --scores where lower is better"
    )


def add_statistics(parser: CommandParser) -> None:
    """Add the options that choose statistics, their grouping, slices and tests."""
    group = parser.groups["Statistics"]
    add_list(
        group,
        "--statistic",
        metavar="NAME",
        help=f"one or more of {', '.join(STATISTICS)}; also the names in papers, such as acc_eq, "
        "SPA, kendall-tau-b (default: pearson, or tau-strict for comparisons)",
    )
    add_list(
        group, "--level", choices=LEVELS, help="segment, system or both (default: by statistic)"
    )
    group.add_argument(
        "--grouping",
        choices=("none", "item", "system"),
        help="compute a statistic within groups and average (default: by statistic)",
    )
    add_list(
        group,
        "--by",
        metavar="COLUMN",
        help="also show results by domain, document, length, language or any column of the "
        "judgments",
    )
    group.add_argument(
        "--test",
        default="auto",
        choices=("auto", "bootstrap", "perm-both", "williams", "pairs", "none"),
        help="significance test of differences (default: auto, by statistic)",
    )
    group.add_argument(
        "--over",
        choices=("segments", "systems"),
        help="what the bootstrap resamples (default: by statistic)",
    )
    group.add_argument("--confidence", action="store_true", help="show confidence intervals")
    numbers = {
        "confidence_level": "level of confidence intervals",
        "resamples": "resamples of tests and intervals, 0 for neither",
        "alpha": "significance level of marks and ranks",
    }
    for name, text in numbers.items():
        default = DEFAULT_NUMBERS[name]
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default),
            default=default,
            metavar="N" if isinstance(default, int) else "X",
            help=f"{text} (default: {default})",
        )
    group.add_argument(
        "--threshold", type=float, metavar="X", help="minimum difference of DARR (default: 25)"
    )
    group.add_argument(
        "--tie-rate", type=float, metavar="X", help="share of ties that tie-aware predicts"
    )
    add_seed(parser)
    group.add_argument(
        "--diagnostics",
        action="store_true",
        help="also run diagnostics: baselines, chance, bad outputs, length and more",
    )


def run(args: argparse.Namespace) -> int:
    output.check_outputs(args)
    args.statistic = [resolve_statistic(name) for name in args.statistic]
    analysis = requested_analysis(args)
    if analysis is None:
        _run_agreement(args)
        return 0
    with progress_bars(args.quiet), runtime_of(args):
        result = analysis(args)
    if args.to_json:
        output.write_json(args.to_json, result.records())
    output.show(args, result)
    return 0


def _run_agreement(args: argparse.Namespace) -> None:
    from tertium.evaluation.diagnostics.run import run_diagnostics

    if args.plot:
        from tertium.output.charts.draw import write_charts
        from tertium.output.charts.scatter_grid import scatter_grid
        from tertium.output.charts.svg_file import check_plot_file

        check_plot_file(args.plot)
    with progress_bars(args.quiet), runtime_of(args):
        agreement = _meta_evaluate(args)
        if args.diagnostics:
            agreement = replace(agreement, diagnostics=run_diagnostics(agreement, seed=args.seed))
    if args.plot:
        negated = agreement.negated_metrics
        charts = scatter_grid(agreement.sets, level=agreement.level, negated=negated)
        write_charts(args.plot, charts)
    if args.report:
        from tertium.output.page.report import report_meta_evaluation

        report = report_meta_evaluation(agreement)
        output.write_report(args.report, report, args.quiet)
    if args.to_json:
        output.write_json(args.to_json, agreement.records())
    columns = {"intervals": args.confidence, "p_values": args.p_values}
    if args.format == "tsv":
        tables = [agreement.file_table(**columns)]
    else:
        tables = agreement.tables(**columns, chart=args.format == "text")
    output.show(args, *tables, records=[agreement.records()])
    if args.quiet or args.format == "json":
        return
    for line in agreement.exclusion_lines():
        print(replace_control_characters(line), file=sys.stderr)
    if agreement.diagnostics:
        output.print_warnings(agreement.diagnostics.skipped_lines(), args.quiet)


def _meta_evaluate(args: argparse.Namespace) -> AgreementStudy:
    from tertium.evaluation.meta_evaluation import meta_evaluate

    numbers = _statistic_numbers(args)
    _check_output_options(args)
    return meta_evaluate(
        args.human,
        **data_options(args),
        statistic=args.statistic,
        level=args.level,
        seed=args.seed,
        grouping=args.grouping or "",
        by=args.by,
        test=args.test,
        over=args.over or "",
        resamples=args.resamples,
        confidence_level=args.confidence_level,
        alpha=args.alpha,
        **numbers,
    )


def _statistic_numbers(args: argparse.Namespace) -> dict[str, Any]:
    """Return the numbers of statistics that are given; one that no statistic uses is an error."""
    values = {name: getattr(args, name) for name in STATISTIC_NUMBERS}
    numbers = {name: value for name, value in values.items() if value is not None}
    for name in numbers:
        if not STATISTIC_NUMBERS[name] & {*args.statistic}:
            raise UsageError(
                f"--{name.replace('_', '-')} needs --statistic "
                f"{' or '.join(sorted(STATISTIC_NUMBERS[name]))}: give it, or omit the number"
            )
    return numbers


def _check_output_options(args: argparse.Namespace) -> None:
    """Raise an error for output that cannot be shown."""
    options = {"--confidence": args.confidence, "--p-values": args.p_values, "--by": args.by}
    if args.diagnostics and args.format == "tsv" and any(options.values()):
        other = next(option for option, value in options.items() if value)
        raise UsageError(f"-f tsv prints one table: give either --diagnostics or {other}")
    if args.confidence and not args.resamples:
        raise UsageError("--confidence needs resamples, but --resamples is 0")
    if args.p_values and (args.test == "none" or not args.resamples):
        reason = "--test none disables it" if args.test == "none" else "--resamples is 0"
        raise UsageError(f"--p-values needs a significance test, but {reason}")
