"""`tertium meta`: how well metrics agree with people."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tertium.cli.bars import bars
from tertium.cli.inputs import add_metrics, named_metrics
from tertium.cli.output import add_output, check_outputs, print_table, to_json, write_json
from tertium.cli.runtime import add_runtime, runtime_of
from tertium.errors import UsageError
from tertium.meta.tasks import STATISTICS, tasks_for

DESCRIPTION = "Measure how well metrics agree with human judgements, and whether they differ."
EPILOG = """\
--human and --scores take files in many layouts; see docs/meta-evaluation.md. Several language
pairs make several columns; scores are matched to them by the language pair in the file name, its
folder, or a column `lp`, and to judgements by system and segment.

examples:
  tertium meta --human judgements.tsv --scores chrf.tsv mymetric.tsv
  tertium meta --human judgements.jsonl -m bleu chrf --statistic pearson kendall
  tertium meta --human da/wmt17 --data judgements/ -m bleu chrf -f md
  tertium meta --human rankings/wmt12 -m bleu chrf --statistic tau-strict
  tertium meta --human wmt22/ --gold mqm --lps en-de --statistic 'acc-eq*'
  tertium meta --human human/de-en.mqm.seg.score --scores chrf.de-en.seg.score --plot chrf.png
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "meta",
        help="measure how well metrics agree with people",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_inputs(parser)
    add_metrics(parser, "none, where --scores are given")
    _add_statistics(parser)
    add_runtime(parser)
    output = add_output(parser)
    output.add_argument("--intervals", action="store_true", help="show confidence intervals")
    output.add_argument(
        "--p-values", action="store_true", help="also p-values of all pairs; in TSV these alone"
    )
    output.add_argument("--plot", metavar="FILE", help="a scatter plot (.png, .pdf, .svg)")
    return parser


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--human", nargs="+", action="extend", required=True, metavar="FILE",
        help="human scores or comparisons: files, folders, or names of sets in --data",
    )  # fmt: skip
    group.add_argument(
        "--scores", nargs="+", action="extend", default=[], metavar="FILE",
        help="scores that metrics gave",
    )  # fmt: skip
    group.add_argument("--data", metavar="DIR", help="where named sets are (or TERTIUM_DATA)")
    group.add_argument(
        "--lps", nargs="+", action="extend", default=[], metavar="LP", help="these language pairs"
    )
    group.add_argument(
        "--exclude", nargs="+", action="extend", default=[], metavar="SYSTEM",
        help="leave these systems out",
    )  # fmt: skip
    group.add_argument("--gold", metavar="NAME", help="which human scores of a folder, e.g. mqm")
    group.add_argument(
        "--standardise", action="store_true", help="turn ratings into z-scores of each annotator"
    )
    group.add_argument(
        "--lower-better", nargs="+", action="extend", default=[], metavar="METRIC",
        help="metrics of --scores of which a lower score is better",
    )  # fmt: skip


def _add_statistics(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("statistics")
    group.add_argument(
        "--statistic", nargs="+", action="extend", default=[], metavar="NAME",
        choices=[*STATISTICS],
        help=f"one or more of {', '.join(STATISTICS)} (default: pearson, or tau-strict where "
        "people compared)",
    )  # fmt: skip
    group.add_argument("--level", choices=("segment", "system"), help="default: by statistic")
    group.add_argument("--by", choices=("none", "item", "system"), help="grouping")
    group.add_argument(
        "--test", default="auto", choices=("auto", "bootstrap", "perm-both", "williams", "pairs",
                                           "none"), help="of differences (default: by statistic)",
    )  # fmt: skip
    group.add_argument(
        "--over", choices=("segments", "systems"), help="what the bootstrap draws"
    )
    group.add_argument("--samples", type=int, default=1000, metavar="N", help="0: no tests")
    group.add_argument("--confidence", type=float, default=0.95, help="of intervals")
    group.add_argument("--alpha", type=float, default=0.05, help="level of significance")
    group.add_argument("--threshold", type=float, default=25.0, help="of DARR")
    group.add_argument("--tie-rate", type=float, metavar="SHARE", help="of tie-aware prediction")
    group.add_argument("--seed", type=int, default=12345, help="of all resampling")


def run(args: argparse.Namespace) -> int:
    from tertium.meta.evaluation import MetaEvaluation

    check_outputs(args)
    if args.plot:
        from tertium.reporting.charts.scatter import check_plot, write_scatter

        check_plot(args.plot)
    level = _level(args)
    with bars(args.quiet), runtime_of(args):
        metrics = named_metrics(args) if args.metrics or args.model else []
        sets, left_out, human, about = _read(args, level, metrics)
        ranked = level == "segment" and all(judged.comparisons is not None for judged in sets)
        statistics = args.statistic or ["tau-strict" if ranked else "pearson"]
        tasks = [task for s in statistics for task in _tasks(args, s, [j.name for j in sets])]
        results = MetaEvaluation(sets, seed=args.seed).run(tasks)
    if args.plot:
        write_scatter(args.plot, sets, level=level)
    if args.report:
        from tertium.cli import pages
        from tertium.reporting.page.reports import agreement_report

        texts = {name: pages.texts_of(people) for name, people in human.items()}
        page = agreement_report(
            results, sets, texts, about=about, signatures=_signatures(metrics, texts)
        )
        pages.write_report(args.report, page, args.quiet)
    records = {**results.records(), "judgements_left_out": left_out}
    if args.to_json:
        write_json(args.to_json, records)
    if args.format == "json":
        sys.stdout.write(to_json(records))
        return 0
    _print(args, results, statistics, left_out)
    return 0


def _level(args: argparse.Namespace) -> str:
    """The level that all statistics asked for share, for the data are read at one level."""
    levels = {args.level or STATISTICS[s].levels[0] for s in args.statistic or ["pearson"]}
    if len(levels) > 1:
        raise UsageError("statistics of segments and of systems need a call each (see --level)")
    return str(levels.pop())


def _signatures(metrics: Sequence[Any], texts: dict[str, Any]) -> list[str]:
    """The signatures of metrics that scored now, on each set whose texts are known."""
    scored = [list(found.values()) for found in texts.values() if found]
    return list(dict.fromkeys(m.signature(segments) for m in metrics for segments in scored))


def _read(
    args: argparse.Namespace, level: str, metrics: Sequence[Any]
) -> tuple[list[Any], dict[str, dict[str, int]], dict[str, Any], list[Any]]:
    """Judged sets, what was left out of each, the judgements behind them, and how metrics look."""
    from tertium.cli.meta_inputs import judged_sets, read_human, read_scores, score_now
    from tertium.reporting.page.grid import About

    # Soft accuracy is about systems, but asks people segment by segment how sure the order is.
    human = read_human(args, "segment" if "spa" in args.statistic else level)
    beside = [str(file) for people in human.values() for file in people.files]
    files = args.scores or ([] if metrics else beside)
    if not files and not metrics:
        raise UsageError("nothing to compare with people: give --scores FILES or -m METRICS")
    parts = [read_scores(args, files, human)] if files else []
    turned = {name for part in parts for scored in part.values() for name in scored.turned}
    if metrics:
        parts.append(score_now(metrics, human, level))
    left_out = {name: dict(people.left_out) for name, people in human.items() if people.left_out}
    sets = judged_sets(human, parts, level)
    about = [About(spec=name, name=name, higher_is_better=False) for name in sorted(turned)]
    about += [
        About(spec=metric.spec, name=metric.label, higher_is_better=metric.higher_is_better,
              decimals=metric.decimals)
        for metric in metrics
    ]  # fmt: skip
    return [judged.without(args.exclude) for judged in sets], left_out, human, about


def _tasks(args: argparse.Namespace, statistic: str, sets: Sequence[str]) -> list[Any]:
    return tasks_for(
        sets, statistic, level=args.level or "", by=args.by or "", test=args.test,
        over=args.over or "", samples=args.samples, confidence=args.confidence, alpha=args.alpha,
        threshold=args.threshold, tie_rate=args.tie_rate,
    )  # fmt: skip


def _print(
    args: argparse.Namespace,
    results: Any,
    statistics: Sequence[str],
    left_out: dict[str, dict[str, int]],
) -> None:
    from tertium.reporting.tables import agreements

    if args.format == "tsv" and (args.p_values or len(statistics) > 1):
        long = agreements.long_p_value_table if args.p_values else agreements.long_table
        print_table(long(results), args.format)
        statistics = ()
    for number, statistic in enumerate(statistics):
        tasks = [task for task in results.tasks if task.task.statistic == statistic]
        table = agreements.agreement_table(results, tasks, args.width, intervals=args.intervals)
        print_table(table, args.format, first=number == 0)
        for task in tasks if args.p_values else []:
            print_table(agreements.p_value_table(task), args.format, first=False)
    if len(statistics) > 1:
        print_table(agreements.rank_table(results), args.format, first=False)
    for line in agreements.left_out_lines(results, left_out):
        if not args.quiet:
            print(line, file=sys.stderr)
