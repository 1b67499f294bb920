"""`tertium route`: which translations to publish, post-edit or translate again."""

from __future__ import annotations

import argparse
from pathlib import Path

from tertium.cli import inputs, output
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.errors import UsageError

DESCRIPTION = (
    "Decide which translations can be published, which need post-editing and which should be "
    "translated again, by thresholds with a promised precision."
)
EPILOG = """\
examples:
  tertium route fit --human judged.jsonl -m tertium-multi --target-precision 0.9 -o route.json
  tertium route apply route.json -t new.jsonl -o labeled.jsonl
  tertium route fit --human judged.jsonl -m chrf --escalate judge:model=NAME -o route.json

`fit` needs at least 100 judged rows with texts, a human score and a language pair (lp). `apply`
adds an outcome and its reason to each row, and warns if the scores are unlike those of the fit.
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    group.add_argument("action", choices=("fit", "apply"), help="what to do")
    group.add_argument("route", nargs="?", metavar="ROUTE", help="apply: file of the fitted route")
    add_list(group, "--human", metavar="FILE", help="fit: judged translations, files or datasets")
    add_list(group, "--lps", metavar="PAIR", help="fit: language pairs to use (default: all)")
    group.add_argument("--gold", default="", metavar="NAME", help=f"fit: {inputs.GOLD_HELP}")
    group.add_argument("--data", metavar="DIR", help="fit: folder of datasets (TERTIUM_DATA)")
    inputs.add_inputs(parser, required=False)
    inputs.add_metrics(parser, inputs.RECOMMENDED_METRIC)
    parser.groups["Metrics"].add_argument(
        "--escalate",
        metavar="METRIC",
        help="fit: a more expensive metric for rows that the first leaves undecided",
    )
    add_list(
        parser.groups["Metrics"],
        "--ignore",
        metavar="ID",
        help="fit: checks that do not decide; see `tertium check --list-checks` (default: none)",
    )
    _add_promise(parser)
    output.add_format(parser)
    parser.groups["Output"].add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="fit: file of the route, .json; apply: labeled rows, .jsonl, .csv or .xlsx",
    )
    output.add_quiet(parser)
    add_runtime(parser)


def _add_promise(parser: CommandParser) -> None:
    group = parser.groups["Statistics"]
    for name, default, about in (
        ("--target-precision", 0.95, "share of good translations among the published ones"),
        ("--bad-precision", 0.5, "share of bad translations among those below the lower threshold"),
        ("--alpha", 0.05, "probability that one of these shares is not reached"),
    ):
        group.add_argument(
            name,
            type=float,
            default=default,
            metavar="P",
            help=f"fit: {about} (default: {default})",
        )
    for name, about in (
        ("--good-score", "human score of a good translation (default: 80 for ESA and DA, -1 MQM)"),
        ("--bad-score", "human score below which it is bad (default: 50 for ESA and DA, -10 MQM)"),
    ):
        group.add_argument(name, type=float, metavar="X", help=f"fit: {about}")
    group.add_argument(
        "--allow-major", action="store_true", help="fit: good translations may have a major error"
    )


def run(args: argparse.Namespace) -> int:
    return _fit(args) if args.action == "fit" else _apply(args)


def _fit(args: argparse.Namespace) -> int:
    from tertium.decisions.judged_rows import read_judged_rows
    from tertium.decisions.route import fit_route

    if args.route or args.translations:
        raise UsageError("`route fit` reads judged rows: give them with --human, without -t")
    if not args.human or not args.output:
        missing = "--human FILE" if not args.human else "-o FILE for the route"
        raise UsageError(f"`route fit` needs {missing}")
    if len(args.metrics) != 1:
        raise UsageError("`route fit` needs one metric: give it with -m, a second with --escalate")
    if Path(args.output).suffix != ".json":
        raise UsageError(f"-o {args.output}: expected a file that ends in .json")
    output.check_outputs(args)
    specs = [*args.metrics, *([args.escalate] if args.escalate else [])]
    metrics = inputs.load_in_precision(specs, args)
    with progress_bars(args.quiet), runtime_of(args):
        judged_rows = read_judged_rows(args.human, lps=args.lps, gold=args.gold, data=args.data)
        route = fit_route(
            judged_rows,
            metrics[0].spec,
            escalate=metrics[1].spec if args.escalate else None,
            target_precision=args.target_precision,
            bad_precision=args.bad_precision,
            alpha=args.alpha,
            good_score=args.good_score,
            bad_score=args.bad_score,
            allow_major=args.allow_major,
            ignore=args.ignore,
        )
    route.save(args.output)
    output.show(args, *route.tables(), records=[route.records()])
    return 0


def _apply(args: argparse.Namespace) -> int:
    from tertium.decisions.route import Route
    from tertium.decisions.routing import RoutedTranslations, apply_route

    if not args.route or not args.translations:
        missing = "the file of a route" if not args.route else "translations (-t)"
        raise UsageError(f"`route apply` needs {missing}: tertium route apply ROUTE -t FILE")
    if args.human or args.metrics or args.escalate:
        raise UsageError("--human, -m and --escalate are for `route fit`: the route has its metric")
    outputs = [args.output] if args.output else []
    RoutedTranslations.check_paths(*outputs)
    output.check_outputs(args)
    route = Route.load(args.route)
    testset = inputs.read_inputs(args)
    with progress_bars(args.quiet), runtime_of(args):
        routed = apply_route(route, testset, lp=inputs.language_pair(args))
    routed.write(*outputs)
    output.show(args, *routed.tables(), records=[routed.records()])
    output.print_warnings(routed.notes, args.quiet)
    return 0
