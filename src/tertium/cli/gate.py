"""`tertium gate`: decide whether a candidate may replace a baseline, with an exit code for CI."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.atomic import write_text
from tertium.cli import inputs, output
from tertium.cli.judge import add_dry_run, print_plan
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.errors import CoverageError, DataError, LengthError, UnknownNameError, UsageError
from tertium.metrics.judge.usage import current_usage

if TYPE_CHECKING:
    from tertium.data.testset import TestSet
    from tertium.decisions.gate import GateSet
    from tertium.decisions.gate_configuration import GateSettings, PairFiles
    from tertium.decisions.gate_result import GateResult
    from tertium.metrics.base.metric import Metric

MARKS = {"pass": "✅", "better": "✅", "worse": "❌", "fail": "❌", "undecided": "⚠️"}

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

    output.check_outputs(args)
    settings = _read_settings(args)
    pairs = {} if args.baseline or args.candidate else settings.all_pairs()
    if not pairs:
        pairs = {"": _read_options(args, settings)}
    if args.action == "calibrate":
        return _calibrate(args, pairs, settings.alpha)
    sets = []
    for name, pair in pairs.items():
        own_args = _make_arguments(args, pair)
        gate_set = _make_set(own_args, pair, name)
        if args.dry_run:
            print_plan(own_args, gate_set.testset, gate_set.metrics)
        sets.append(gate_set)
    if args.dry_run:
        return 0
    with progress_bars(args.quiet), runtime_of(args):
        result = gate_sets(sets, alpha=settings.alpha)
    result = replace(result, undecided=args.undecided or settings.undecided)
    has_answers = not current_usage().has_too_few_answers
    exit_code = result.exit_code if has_answers else CoverageError.exit_code
    records = result.records() | {"exit_code": exit_code}
    _write_files(args, result)
    if args.to_json:
        output.write_json(args.to_json, records)
    _print_result(args, result, records)
    return exit_code


def _write_files(args: argparse.Namespace, result: GateResult) -> None:
    """Write the requested files; the Markdown summary is appended to its file."""
    from tertium.output import html, junit, markdown, sarif

    if args.junit:
        junit.write(result, args.junit)
    if args.sarif:
        sarif.write(result, args.sarif)
    if args.report:
        html.write(result, args.report)
    if args.markdown:
        path = Path(args.markdown)
        earlier = path.read_text(encoding="utf-8") if path.exists() else ""
        heading = f"### {MARKS[result.verdict]} tertium gate: {result.verdict}\n"
        tables = map(markdown.render_table, result.tables())
        write_text(path, earlier + "\n".join([heading, *tables]) + "\n")


def _read_settings(args: argparse.Namespace) -> GateSettings:
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

    return PairFiles(
        baseline=args.baseline,
        candidate=args.candidate,
        metrics=settings.metrics,
        by=settings.by,
        margin=settings.margin,
        max=settings.max,
        min=settings.min,
    )


def _make_arguments(args: argparse.Namespace, pair: PairFiles) -> argparse.Namespace:
    """Return options that read the files of one pair; options of the command line come first."""
    is_stored = Path(pair.baseline).suffix == ".json"
    files = [pair.candidate] if is_stored else [pair.baseline, pair.candidate]
    changes: dict[str, Any] = {
        "translations": args.translations or files,
        "has_names": bool(args.translations),  # --baseline and --candidate are systems of -t
    }
    for name in ("sources", "documents", "source_language", "target_language"):
        changes[name] = getattr(args, name) or getattr(pair, name) or None
    for name in ("references", "metrics", "by"):
        changes[name] = getattr(args, name) or [*getattr(pair, name)]
    return argparse.Namespace(**{**vars(args), **changes})


def _load_metrics(args: argparse.Namespace, testset: TestSet) -> list[Metric]:
    from tertium.evaluation.metric_choice import recommend_metric

    return inputs.load_named_metrics(
        args, lambda language: [recommend_metric(testset, language)], testset
    )


def _make_set(args: argparse.Namespace, pair: PairFiles, name: str) -> GateSet:
    from tertium.checks.configuration import CheckSettings
    from tertium.decisions.baselines import read_baseline
    from tertium.decisions.gate import GateSet
    from tertium.decisions.gate_rules import GateRules, split_rules

    is_stored = Path(pair.baseline).suffix == ".json"
    testset = inputs.read_inputs(args)
    locate = inputs.locate_segments(args, testset)
    names = [*testset.systems]
    baseline, candidate = names[0], names[-1]
    if args.has_names:
        baseline, candidate = pair.baseline, pair.candidate
    wanted = [candidate] if is_stored else [baseline, candidate]
    for system in wanted:
        if system not in names:
            raise UnknownNameError("system", system, names)
    testset = testset.with_systems(wanted)
    margin, maximum, minimum = (
        {**getattr(pair, option), **split_rules(f"--{option}", getattr(args, option))}
        for option in ("margin", "max", "min")
    )
    source, target = pair.check_languages(name)
    return GateSet(
        testset=testset,
        baseline=read_baseline(pair.baseline) if is_stored else baseline,
        candidate=candidate,
        metrics=_load_metrics(args, testset),
        rules=GateRules.from_values(margin, maximum, minimum, inputs.slice_columns(args)),
        name=name,
        checks=CheckSettings(
            source_language=args.source_language or source,
            target_language=args.target_language or target,
        ),
        locate=locate,
    )


def _print_result(args: argparse.Namespace, result: GateResult, records: dict[str, Any]) -> None:
    tables = replace(result, cautions=()).tables() if args.quiet else result.tables()
    if args.format == "tsv":
        tables = tables[:1]
        output.print_warnings(tables[0].cautions, args.quiet)
    output.show(args, *tables, records=[records])


def _calibrate(args: argparse.Namespace, pairs: dict[str, PairFiles], alpha: float) -> int:
    from tertium.decisions.margins import suggest_margins
    from tertium.evaluation.scoring import score

    records, tables = [], []
    for name, pair in pairs.items():
        own_args = _make_arguments(args, pair)
        testset = inputs.read_inputs(own_args)
        metrics = _load_metrics(own_args, testset)
        with progress_bars(args.quiet), runtime_of(args):
            margins = suggest_margins(score(testset, metrics), alpha=alpha)
        records += [{"pair": name, **record} for record in margins.records()]
        tables += [replace(table, title=name) for table in margins.tables()]
    output.show(args, *tables, records=records)
    return 0
