"""Analyses of `tertium meta` other than agreement: protocol, error spans, thresholds, decisions.

Each analysis calls one public function and returns its result.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tertium.cli import inputs
from tertium.cli.parser import CommandParser
from tertium.core.result import Result
from tertium.errors import UsageError
from tertium.meta.protocol import PROTOCOLS

if TYPE_CHECKING:
    from tertium.evaluation.decisions import Decisions, DifferenceScales, MetricRanking
    from tertium.evaluation.error_spans import SpanStudy

Analysis = Callable[[argparse.Namespace], Result]
# Options of agreement that no other analysis uses, and options that error spans do not use.
AGREEMENT_OPTIONS = (
    "statistic level grouping by test over threshold tie_rate confidence p_values plot diagnostics "
    "report"
).split()
SCORE_OPTIONS = ("scores", "scores_from_rows", "human_baseline", "standardize", "lower_better")
# Defaults of numbers, and the analyses that use them.
DEFAULT_NUMBERS: Mapping[str, Any] = {"resamples": 1000, "confidence_level": 0.95, "alpha": 0.05}
NUMBERS_USED_BY = {
    "resamples": ("protocol", "spans"),
    "confidence_level": (),
    "alpha": ("protocol",),
}


def add_analyses(parser: CommandParser) -> None:
    """Add the options that choose another analysis than agreement."""
    group = parser.groups["Statistics"]
    group.add_argument(
        "--protocol",
        choices=[*PROTOCOLS],
        help="instead: rank metrics by the rules of a shared task",
    )
    group.add_argument(
        "--decisions",
        type=float,
        metavar="X",
        help="instead: how well metrics find translations with a human score of at least X, the "
        "best output of a segment, and unreliable scores",
    )
    group.add_argument(
        "--thresholds",
        action="store_true",
        help="instead: how often human raters agree with a score difference of two systems",
    )


def requested_analysis(args: argparse.Namespace) -> Analysis | None:
    """Return the requested analysis, None for agreement; incompatible options are an error."""
    names = [name for name in ANALYSES if _is_given(getattr(args, name))]
    if len(names) > 1:
        raise UsageError(f"--{' and --'.join(names)}: give only one of them")
    for analysis in names:
        for name in (*AGREEMENT_OPTIONS, *(SCORE_OPTIONS if analysis == "spans" else ())):
            if _is_given(value := getattr(args, name)) and value not in ([], "auto"):
                raise UsageError(f"--{name.replace('_', '-')} cannot be used with --{analysis}")
        for name, default in DEFAULT_NUMBERS.items():
            if analysis not in NUMBERS_USED_BY[name] and getattr(args, name) != default:
                raise UsageError(f"--{name.replace('_', '-')} cannot be used with --{analysis}")
    return ANALYSES[names[0]] if names else None


def _is_given(value: Any) -> bool:
    """Whether an option has a value; 0 is a value."""
    return value is not None and value is not False


def data_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return metrics, score files and the selection of judgments."""
    return {
        "metrics": _load_metrics(args),
        "scores": args.scores,
        "lps": args.lps,
        "exclude": args.exclude,
        "gold": args.gold or "",
        "data": args.data,
        "standardize": args.standardize,
        "lower_better": args.lower_better,
        "human_baseline": args.human_baseline,
        "scores_from_rows": args.scores_from_rows == [] or args.scores_from_rows or False,
    }


def _load_metrics(args: argparse.Namespace) -> Any:
    return inputs.load_named_metrics(args) if args.metrics else ()


def _apply_protocol(args: argparse.Namespace) -> MetricRanking:
    from tertium.evaluation.decisions import rank_metrics

    tests = {"resamples": args.resamples, "alpha": args.alpha, "seed": args.seed}
    return rank_metrics(args.human, **data_options(args), protocol=args.protocol, **tests)


def _fit_thresholds(args: argparse.Namespace) -> DifferenceScales:
    from tertium.evaluation.decisions import fit_difference_scales

    return fit_difference_scales(args.human, **data_options(args))


def _evaluate_decisions(args: argparse.Namespace) -> Decisions:
    from tertium.evaluation.decisions import evaluate_decisions

    return evaluate_decisions(args.human, min_good_score=args.decisions, **data_options(args))


def _compare_spans(args: argparse.Namespace) -> SpanStudy:
    from tertium.evaluation.error_spans import compare_spans

    return compare_spans(
        args.human,
        _load_metrics(args),
        spans=args.spans,
        lps=args.lps,
        exclude=args.exclude,
        gold=args.gold or "",
        data=args.data,
        resamples=args.resamples,
        seed=args.seed,
    )


ANALYSES: Mapping[str, Analysis] = {  # by the option that requests it
    "protocol": _apply_protocol,
    "spans": _compare_spans,
    "thresholds": _fit_thresholds,
    "decisions": _evaluate_decisions,
}
