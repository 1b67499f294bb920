"""`tertium meta`: how well metrics agree with people, or what else is asked of both.

A mode (protocol, marked errors, thresholds, decisions) calls one public function in place of
`meta_evaluate`, and says what to show of its result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output
from tertium.cli.paired import add_seed
from tertium.cli.runtime import add_runtime, bars, runtime_of
from tertium.errors import UsageError
from tertium.meta.protocol import PROTOCOLS
from tertium.meta.tasks import STATISTICS
from tertium.reporting.tables.table import Table, show_controls

if TYPE_CHECKING:
    from tertium.evaluation.agreement import AgreementStudy
    from tertium.evaluation.panel.panel import DoubtPanel

Shown = tuple[dict[str, Any], list[Table]]  # records for JSON, and tables
Mode = Callable[[argparse.Namespace], Shown]
GROUPINGS = ("none", "item", "system")
# numbers that one statistic alone, or its relatives, reads
OF_STATISTICS = {"threshold": {"darr", "darr17"}, "tie_rate": {"tie-aware"}}
# options that belong to agreement alone, and those that marked errors have no use for
AGREEMENT = (
    "statistic level by test over threshold tie_rate intervals p_values plot panel report"
).split()
OF_SCORES = "scores ceiling standardise lower_better".split()
# numbers of tests with what they are unless they are given, and the modes that read each
NUMBERS = {"samples": 1000, "confidence": 0.95, "alpha": 0.05}
READ_BY = {"samples": ("protocol", "spans"), "confidence": (), "alpha": ("protocol",)}
HELP = "measure how well metrics agree with people"
DESCRIPTION = "Measure how well metrics agree with human judgments, and whether they differ."
EPILOG = """\
--human and --scores take files in many layouts; see docs/meta-evaluation.md. Several language
pairs make several columns; scores are matched to them by the language pair in the file name, its
folder, or a column `lp`, and to judgments by system and segment.

examples:
  tertium meta --human judgements.tsv --scores chrf.tsv mymetric.tsv
  tertium meta --human judgments.jsonl -m bleu chrf --statistic pearson kendall
  tertium meta --human da/wmt17 --data judgments/ -m bleu chrf -f md
  tertium meta --human rankings/wmt12 -m bleu chrf --statistic tau-strict
  tertium meta --human judgments.jsonl -m bleu chrf --by domain length
  tertium meta --human wmt22/ --gold mqm --lps en-de --statistic 'acc-eq*'
  tertium meta --human modern/dev/mqm/ted21 --spans mymetric.jsonl
  tertium meta --human human/de-en.mqm.seg.score --scores chrf.de-en.seg.score --plot chrf.svg
  tertium meta --human wmt24/ --gold mqm --protocol wmt24
  tertium meta --human judgments.jsonl -m chrf tertium-small --panel --report doubts.html
  tertium meta --human da/wmt16 --data judgments/ -m bleu chrf --thresholds
  tertium meta --human esa.jsonl -m chrf tertium-multi --decisions 80
  tertium meta --human ratings.tsv -m bleu chrf --statistic kendall --ceiling rater
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_sources(parser)
    inputs.add_metrics(parser, "none, where --scores are given")
    add_modes(parser)
    add_statistics(parser)
    add_runtime(parser)
    shown = output.add_output(parser, places=3)
    shown.add_argument("--intervals", action="store_true", help="show confidence intervals")
    shown.add_argument(
        "--p-values", action="store_true", help="also p-values of all pairs; in TSV these alone"
    )
    shown.add_argument("--plot", metavar="FILE", help="a scatter plot (.svg)")
    shown.add_argument(
        "--panel",
        action="store_true",
        help="also ask what there is to doubt: sentinels, chance, bad outputs, length and more",
    )


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
    inputs.add_list(group, "--scores", metavar="FILE", help="scores that metrics gave")
    group.add_argument(
        "--spans",
        nargs="*",
        action="extend",
        metavar="FILE",
        help="compare marked errors instead: those in files, or of the metrics of -m that mark any",
    )
    group.add_argument("--data", metavar="DIR", help="where named sets are (or TERTIUM_DATA)")
    inputs.add_list(group, "--lps", metavar="LP", help="these language pairs")
    inputs.add_list(group, "--exclude", metavar="SYSTEM", help="leave these systems out")
    inputs.add_list(
        group,
        "--ceiling",
        metavar="FILE",
        help="people as a row of the table: a second campaign, or `rater` for one held out of each "
        "translation",
    )
    group.add_argument("--gold", metavar="NAME", help=inputs.GOLD)
    group.add_argument(
        "--standardise", action="store_true", help="turn ratings into z-scores of each annotator"
    )
    inputs.add_list(
        group,
        "--lower-better",
        metavar="METRIC",
        help="metrics of --scores of which a lower score is better",
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
    inputs.add_list(
        group,
        "--statistic",
        metavar="NAME",
        choices=[*STATISTICS],
        help=f"one or more of {', '.join(STATISTICS)} (default: pearson, or tau-strict where "
        "people compared)",
    )
    group.add_argument("--level", choices=("segment", "system"), help="default: by statistic")
    inputs.add_list(
        group,
        "--by",
        metavar="COLUMN",
        help="none, item or system: how a statistic is grouped; anything else: also slice by slice "
        "(domain, document, length, language or any column of the judgments)",
    )
    group.add_argument(
        "--test",
        default="auto",
        choices=("auto", "bootstrap", "perm-both", "williams", "pairs", "none"),
        help="of differences (default: by statistic)",
    )
    group.add_argument("--over", choices=("segments", "systems"), help="what the bootstrap draws")
    for name, what in (
        ("samples", "draws of tests and intervals, 0: neither"),
        ("confidence", "of intervals"),
        ("alpha", "level of significance"),
    ):
        usual = NUMBERS[name]
        group.add_argument(
            f"--{name}",
            type=type(usual),
            default=usual,
            metavar="N",
            help=f"{what} (default: {usual})",
        )
    group.add_argument("--threshold", type=float, metavar="N", help="of DARR (default: 25)")
    group.add_argument(
        "--tie-rate", type=float, metavar="SHARE", help="of tie-aware prediction, which needs it"
    )
    add_seed(group)


def run(args: argparse.Namespace) -> int:
    from tertium.evaluation.panel.panel import ask_doubts

    output.check_outputs(args)
    mode = chosen_mode(args)
    if mode is not None:
        return _run_mode(args, mode)
    if args.plot:
        from tertium.reporting.charts.clouds import check_plot, write_scatter

        check_plot(args.plot)
    with bars(args.quiet), runtime_of(args):
        agreement = _measure(args)
        panel = ask_doubts(agreement, seed=args.seed) if args.panel else None
    records = agreement.records() | ({"panel": panel.records()} if panel else {})
    if args.plot:
        turned = agreement.turned_over
        write_scatter(args.plot, agreement.sets, level=agreement.level, turned=turned)
    if args.report:
        from tertium.reporting.page.making import report_agreement

        output.write_report(args.report, report_agreement(agreement, panel), args.quiet)
    if _write_records(args, records):
        return 0
    if panel is None or args.format != "tsv":  # which is one kind of rows
        _print(args, agreement)
    if panel is not None:
        _print_panel(args, panel)
    return 0


def _run_mode(args: argparse.Namespace, mode: Mode) -> int:
    with bars(args.quiet), runtime_of(args):
        records, tables = mode(args)
    if not _write_records(args, records):
        for number, table in enumerate(tables):
            output.print_table(table, args.format, first=not number)
    return 0


def _write_records(args: argparse.Namespace, records: dict[str, Any]) -> bool:
    """Write JSON where it was asked for; whether that is all."""
    if args.to_json:
        output.write_json(args.to_json, records)
    if args.format == "json":
        output.print_records([records])
    return bool(args.format == "json")


def _measure(args: argparse.Namespace) -> AgreementStudy:
    from tertium.evaluation.agreement import meta_evaluate

    numbers = _numbers_of_statistics(args)
    _check_shown(args)
    return meta_evaluate(
        args.human,
        **sources(args),
        statistics=args.statistic,
        level=args.level or "",
        seed=args.seed,
        by=_grouping(args.by),
        slices=_slice_columns(args),
        test=args.test,
        over=args.over or "",
        samples=args.samples,
        confidence=args.confidence,
        alpha=args.alpha,
        **numbers,
    )


def _numbers_of_statistics(args: argparse.Namespace) -> dict[str, Any]:
    """Numbers that one statistic alone reads, as far as given; one that none reads is refused."""
    given = {name: getattr(args, name) for name in OF_STATISTICS}
    numbers = {name: value for name, value in given.items() if value is not None}
    for name in numbers:
        if not OF_STATISTICS[name] & {*args.statistic}:
            raise UsageError(
                f"--{name.replace('_', '-')} says nothing to what is measured: give --statistic "
                f"{' or '.join(sorted(OF_STATISTICS[name]))}, or leave it out"
            )
    return numbers


def _check_shown(args: argparse.Namespace) -> None:
    """Refuse what could not be shown: rows of two kinds, intervals and p-values of no draws."""
    shown = {
        "--intervals": args.intervals,
        "--p-values": args.p_values,
        "--by": _slice_columns(args),
    }
    if args.panel and args.format == "tsv" and any(shown.values()):
        other = next(option for option, given in shown.items() if given)
        raise UsageError(f"-f tsv prints one kind of rows: those of --panel or of {other}")
    if args.intervals and not args.samples:
        raise UsageError("--intervals come from samples, and --samples 0 draws none")
    if args.p_values and (args.test == "none" or not args.samples):
        why = "--test none" if args.test == "none" else "--samples 0"
        raise UsageError(f"--p-values are of tests, and {why} leaves them out")


def _print_panel(args: argparse.Namespace, panel: DoubtPanel) -> None:
    from tertium.reporting.tables import panels

    drawn = args.format == "text"
    tables = [panels.doubt_table(doubt, args.width, drawn=drawn) for doubt in panel.doubts]
    for table in [panels.long_panel_table(panel)] if args.format == "tsv" else tables:
        output.print_table(table, args.format, first=False)
    output.print_warnings(panels.not_asked_lines(panel), args.quiet)


def _slice_columns(args: argparse.Namespace) -> list[str]:
    return [by for by in args.by if by not in GROUPINGS]


def _grouping(given: Sequence[str]) -> str:
    chosen = [by for by in given if by in GROUPINGS]
    if len(chosen) > 1:
        raise UsageError(f"--by {' '.join(chosen)}: a statistic is grouped in one way")
    return chosen[0] if chosen else ""


def _print(args: argparse.Namespace, agreement: AgreementStudy) -> None:
    from tertium.reporting.tables import agreements

    results, statistics, slices = agreement.results, agreement.statistics, agreement.slices
    if args.format == "tsv" and (args.p_values or len(statistics) > 1 or slices):
        output.print_table(_long_table(agreement, p_values=args.p_values), args.format)
        statistics, slices = (), {}
    for number, statistic in enumerate(statistics):
        part = results.by_statistic()[statistic]
        table = agreements.agreement_table(part, args.width, intervals=args.intervals)
        output.print_table(table, args.format, first=number == 0)
        for task in part.tasks if args.p_values else ():
            output.print_table(agreements.p_value_table(task), args.format, first=False)
    if len(statistics) > 1:
        output.print_table(agreements.rank_table(results), args.format, first=False)
    for by, sliced in slices.items():
        from tertium.reporting.tables.slices import agreement_slice_tables

        for table in agreement_slice_tables(sliced, by, args.width, intervals=args.intervals):
            output.print_table(table, args.format, first=False)
    for line in () if args.quiet else agreements.left_out_lines(results, agreement.left_out):
        print(show_controls(line), file=sys.stderr)


def _long_table(agreement: AgreementStudy, *, p_values: bool) -> Table:
    """All rows in one table, those of slices too, that says what slices are by."""
    from tertium.reporting.tables import agreements

    tabulate = agreements.long_p_value_table if p_values else agreements.long_table
    table = tabulate(agreement.results)
    if not agreement.slices:
        return table
    sliced = [(by, tabulate(results)) for by, results in agreement.slices.items()]
    rows = [[*row, by] for by, part in [("", table), *sliced] for row in part.rows]
    return replace(table, header=[*table.header, "by"], rows=rows)


def chosen_mode(args: argparse.Namespace) -> Mode | None:
    """The mode that was asked for; several, or options that say nothing to it, are refused."""
    asked = [name for name in MODES if _is_given(getattr(args, name))]
    if len(asked) > 1:
        both = " and ".join(f"--{mode}" for mode in asked)
        raise UsageError(f"{both}: give one of them at a time")
    for mode in asked:
        for name in (*AGREEMENT, *(OF_SCORES if mode == "spans" else ())):
            if _is_given(value := getattr(args, name)) and value not in ([], "auto"):
                raise UsageError(f"--{name.replace('_', '-')} does not go with --{mode}")
        for name, usual in NUMBERS.items():
            if mode not in READ_BY[name] and getattr(args, name) != usual:
                raise UsageError(f"--{name} does not go with --{mode}")
    return MODES[asked[0]] if asked else None


def _is_given(value: Any) -> bool:
    """Whether an option was; 0 is a value as any other, though equal to False."""
    return value is not None and value is not False


def sources(args: argparse.Namespace) -> dict[str, Any]:
    """Metrics, their scores, and what of the judgments is read."""
    return {
        "metrics": _metrics(args),
        "scores": args.scores,
        "lps": args.lps,
        "exclude": args.exclude,
        "gold": args.gold or "",
        "data": args.data,
        "standardise": args.standardise,
        "lower_better": args.lower_better,
        "ceiling": args.ceiling,
    }


def _metrics(args: argparse.Namespace) -> Any:
    return inputs.named_metrics(args) if args.metrics or args.model else ()


def _show_protocol(args: argparse.Namespace) -> Shown:
    from tertium.evaluation.decisions import rank_metrics
    from tertium.reporting.tables.protocols import protocol_table

    tests = {"samples": args.samples, "alpha": args.alpha, "seed": args.seed}
    ranking = rank_metrics(args.human, **sources(args), protocol=args.protocol, **tests)
    return ranking.records(), [protocol_table(ranking.results, args.width)]


def _show_thresholds(args: argparse.Namespace) -> Shown:
    from tertium.evaluation.decisions import fit_differences
    from tertium.reporting.tables.decisions import difference_table

    scales = fit_differences(args.human, **sources(args))
    records = {"scales": [scale.record() for scale in scales]}
    return records, [difference_table(scales, args.width)]


def _show_decisions(args: argparse.Namespace) -> Shown:
    from tertium.evaluation.decisions import decide_with
    from tertium.reporting.tables.decisions import decision_table

    decisions = decide_with(args.human, bar=args.decisions, **sources(args))
    records = {"bar": args.decisions, "decisions": [d.record() for d in decisions]}
    return records, [decision_table(decisions, args.width)]


def _show_spans(args: argparse.Namespace) -> Shown:
    from tertium.evaluation.error_spans import SpanStudy, compare_spans
    from tertium.reporting.tables.error_spans import detail_tables, span_table

    def tables(study: SpanStudy) -> Iterator[Table]:
        for name in study.people:
            yield span_table(study, name, args.width)
            if args.format != "tsv":  # which is one kind of rows
                yield from detail_tables(study, name, args.width)

    study = compare_spans(
        args.human,
        _metrics(args),
        spans=args.spans,
        lps=args.lps,
        exclude=args.exclude,
        gold=args.gold or "",
        data=args.data,
        samples=args.samples,
        seed=args.seed,
    )
    return study.records(), [*tables(study)]


MODES: Mapping[str, Mode] = {  # by the option that asks for each
    "protocol": _show_protocol,
    "spans": _show_spans,
    "thresholds": _show_thresholds,
    "decisions": _show_decisions,
}
