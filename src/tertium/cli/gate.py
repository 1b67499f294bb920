"""`tertium gate`: decide whether a candidate may replace a baseline, with an exit code for CI."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs, output
from tertium.cli.judge import add_dry_run, print_plan
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.errors import CoverageError, DataError, LengthError, UnknownNameError, UsageError
from tertium.metrics.judge.usage import current_usage

if TYPE_CHECKING:
    from tertium.decisions.gate import GateSet
    from tertium.decisions.gate_configuration import GateSettings, PairFiles

DESCRIPTION = "Decide whether a candidate is worse than a baseline by more than a margin."
EPILOG = """\
examples:
  tertium gate --baseline main.txt --candidate new.txt -r ref.txt -m chrf --margin chrf=0.5
  tertium gate --baseline main.txt --candidate new.txt -s src.txt -r ref.txt \\
    --margin human=5% --max "empty=0" "wrong language=0" "truncated=1%" --min chrf=50
  tertium gate -t systems.jsonl --baseline main --candidate new --margin human=5% --by domain
  tertium gate calibrate --baseline run1.txt --candidate run2.txt -r ref.txt -m chrf

Without files, settings and language pairs are read from the table [gate] of tertium.toml (or
[tool.tertium.gate] of pyproject.toml). `calibrate` suggests margins from two runs of one system.
exit codes: 0 pass or better, 1 worse or a failed condition, 2 usage, 3 undecided or too few valid
answers of an LLM judge
"""


def add_arguments(parser: CommandParser) -> None:
    parser.groups["Input"].add_argument(
        "action",
        nargs="?",
        choices=("calibrate",),
        help="calibrate: suggest margins from two runs of one system",
    )
    inputs.add_inputs(parser, required=False)
    group = parser.groups["Input"]
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help="output of the current system, or its stored scores (.json); with -t, its name",
    )
    group.add_argument(
        "--candidate", metavar="FILE", help="output of the new system; with -t, its name"
    )
    group.add_argument(
        "--config",
        metavar="FILE",
        help="settings in the table [gate] (default: tertium.toml or pyproject.toml)",
    )
    inputs.add_metrics(parser, inputs.RECOMMENDED_METRIC)
    group = parser.groups["Statistics"]
    add_list(
        group,
        "--margin",
        metavar="METRIC=X",
        help="how much worse the candidate may be, in units of the metric; human=5%% is a "
        "difference that humans confirm in at most 55%% of system pairs",
    )
    add_list(
        group,
        "--max",
        metavar="NAME=X",
        help="largest number or share of segments with a finding of a check: empty=0, "
        "truncated=1%%; or the largest score of a metric where lower is better",
    )
    add_list(group, "--min", metavar="METRIC=X", help="smallest score of the candidate")
    inputs.add_slices(parser)
    group.add_argument(
        "--alpha",
        type=float,
        metavar="X",
        help="largest probability of a wrong pass, and of a wrong worse (default: 0.05)",
    )
    group.add_argument(
        "--undecided",
        choices=("pass", "fail"),
        help="exit with 0 or 1 instead of 3 if the verdict is undecided",
    )
    output.add_format(parser, ("text", "json", "tsv", "md"))
    group = parser.groups["Output"]
    group.add_argument("--to-json", metavar="FILE", help="also write all results as JSON")
    group.add_argument("--report", metavar="FILE", help="also write an HTML page")
    group.add_argument("--junit", metavar="FILE", help="also write JUnit XML")
    group.add_argument("--sarif", metavar="FILE", help="also write findings of checks as SARIF")
    group.add_argument(
        "--markdown", metavar="FILE", help="append Markdown, such as to $GITHUB_STEP_SUMMARY"
    )
    output.add_quiet(parser)
    add_runtime(parser)
    add_dry_run(parser)


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except LengthError as error:
        raise DataError(str(error)) from None  # exit code 1 means worse


def _run(args: argparse.Namespace) -> int:
    from tertium.decisions.gate import gate_sets
    from tertium.output.gate_files import write_gate_files

    output.check_outputs(args)
    settings = _read_settings(args)
    pairs = {} if args.baseline or args.candidate else settings.all_pairs()
    if not pairs:
        pairs = {"": _read_options(args, settings)}
    if args.action == "calibrate":
        return _calibrate(args, pairs, settings.alpha)
    sets, locations = [], {}
    for name, pair in pairs.items():
        own_args = _make_arguments(args, pair)
        gate_set = _make_set(own_args, pair, name)
        if args.dry_run:
            print_plan(own_args, gate_set.testset, gate_set.metrics)
            continue
        sets.append(gate_set)
        locations[name] = inputs.locate_segments(own_args, gate_set.testset)
    if args.dry_run:
        return 0
    with progress_bars(args.quiet), runtime_of(args):
        result = gate_sets(sets, alpha=settings.alpha)
    undecided = args.undecided or settings.undecided
    exit_code = result.exit_code(undecided)
    if current_usage().has_too_few_answers:
        exit_code = CoverageError.exit_code
    write_gate_files(
        result,
        locations,
        undecided=undecided,
        junit=args.junit,
        sarif=args.sarif,
        summary=args.markdown,
        page=args.report,
    )
    records = result.records() | {"exit_code": exit_code}
    if args.to_json:
        output.write_json(args.to_json, records)
    _print_result(args, result, records)
    return exit_code


def _read_settings(args: argparse.Namespace) -> GateSettings:
    from dataclasses import replace

    from tertium.data.configuration import find_configuration
    from tertium.decisions.gate_configuration import GateSettings, read_gate_settings

    path = args.config or find_configuration("gate")
    settings = read_gate_settings(path) if path else GateSettings()
    return settings if args.alpha is None else replace(settings, alpha=args.alpha)


def _read_options(args: argparse.Namespace, settings: GateSettings) -> PairFiles:
    """Return the files of the command line with general rules of the settings."""
    missing = [name for name in ("baseline", "candidate") if not getattr(args, name)]
    if missing:
        options = " and ".join(f"--{name}" for name in missing)
        raise UsageError(
            f"{options} missing: give files, or name them in the table [gate] of tertium.toml"
        )
    from tertium.decisions.gate_configuration import PairFiles

    files = {"baseline": args.baseline, "candidate": args.candidate}
    rules = {"metrics": settings.metrics, "by": settings.by if not args.by else ()}
    rules |= {name: getattr(settings, name) for name in ("margin", "max", "min")}
    return PairFiles(**files, **rules)  # type: ignore[arg-type]


def _make_arguments(args: argparse.Namespace, pair: PairFiles) -> argparse.Namespace:
    """Return options that read the files of one pair; options of the command line come first."""
    is_stored = Path(pair.baseline).suffix == ".json"
    files = [pair.candidate] if is_stored else [pair.baseline, pair.candidate]
    changes: dict[str, Any] = {
        "translations": args.translations or files,
        "has_names": bool(args.translations),  # --baseline and --candidate are systems of -t
        "sources": args.sources or pair.sources or None,
        "references": args.references or list(pair.references),
        "documents": args.documents or pair.documents or None,
        "source_language": args.source_language or pair.source_language or None,
        "target_language": args.target_language or pair.target_language or None,
        "metrics": args.metrics or list(pair.metrics),
        "by": args.by or list(pair.by),
    }
    return argparse.Namespace(**{**vars(args), **changes})


def _make_set(args: argparse.Namespace, pair: PairFiles, name: str) -> GateSet:
    from tertium.checks.configuration import CheckSettings
    from tertium.decisions.baselines import read_baseline
    from tertium.decisions.gate import GateSet
    from tertium.decisions.gate_rules import GateRules, split_rules
    from tertium.evaluation.metric_choice import recommend_metric

    is_stored = Path(pair.baseline).suffix == ".json"
    testset = inputs.read_inputs(args)
    names = [*testset.systems]
    baseline, candidate = names[0], names[-1]
    if args.has_names:
        baseline, candidate = pair.baseline, pair.candidate
    wanted = [candidate] if is_stored else [baseline, candidate]
    for system in wanted:
        if system not in names:
            raise UnknownNameError("system", system, names)
    testset = testset.with_systems(wanted)
    rules = {
        option: {**getattr(pair, option), **split_rules(f"--{option}", getattr(args, option))}
        for option in ("margin", "max", "min")
    }
    source, target = pair.check_languages(name)
    default = partial(recommend_metric, testset)
    return GateSet(
        testset=testset,
        baseline=read_baseline(pair.baseline) if is_stored else baseline,
        candidate=candidate,
        metrics=inputs.load_named_metrics(args, lambda language: [default(language)], testset),
        rules=GateRules.from_values(
            rules["margin"], rules["max"], rules["min"], inputs.slice_columns(args)
        ),
        name=name,
        checks=CheckSettings(
            source_language=args.source_language or source,
            target_language=args.target_language or target,
        ),
    )


def _print_result(args: argparse.Namespace, result: Any, records: dict[str, Any]) -> None:
    from dataclasses import replace

    from tertium.output.tables.gate import gate_tables

    if args.format == "json":
        output.print_records([records])
        return
    tables = gate_tables(result)
    if args.format == "tsv":
        tables = tables[:1]
        output.print_warnings([*result.cautions, result.sentence], args.quiet)
    else:
        cautions = () if args.quiet else result.cautions
        tables[0] = replace(tables[0], cautions=[*cautions, result.sentence])
    for number, table in enumerate(tables):
        output.print_table(table, args.format, first=not number)


def _calibrate(args: argparse.Namespace, pairs: dict[str, PairFiles], alpha: float) -> int:
    from dataclasses import asdict

    from tertium.decisions.margins import suggest_margins
    from tertium.evaluation.metric_choice import recommend_metric
    from tertium.evaluation.scoring import score
    from tertium.output.tables.gate import margin_table

    for number, (name, pair) in enumerate(pairs.items()):
        own_args = _make_arguments(args, pair)
        testset = inputs.read_inputs(own_args)
        default = partial(recommend_metric, testset)
        metrics = inputs.load_named_metrics(own_args, lambda code: [default(code)], testset)  # noqa: B023
        with progress_bars(args.quiet), runtime_of(args):
            margins = suggest_margins(score(testset, metrics), alpha=alpha)
        table = margin_table(margins, alpha, name)
        if args.format == "json":
            output.print_records([{"pair": name, **asdict(own)} for own in margins])
        else:
            output.print_table(table, args.format, first=not number)
    return 0
