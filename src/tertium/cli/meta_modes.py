"""What `tertium meta` does instead of agreement: protocol, marked errors, thresholds, decisions.

Each mode calls one public function and says what to show of its result.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tertium.cli.inputs import named_metrics
from tertium.errors import UsageError
from tertium.reporting.tables.table import Table

Shown = tuple[dict[str, Any], list[Table]]  # records for JSON, and tables
# options that belong to agreement alone, and those that marked errors have no use for
AGREEMENT = "statistic level by test over threshold tie_rate intervals p_values plot".split()
AGREEMENT += ["panel", "report"]
OF_SCORES = "scores ceiling standardise lower_better".split()


@dataclass(frozen=True)
class Mode:
    """An option that asks for something else, and options that go without it."""

    option: str
    show: Callable[[argparse.Namespace], Shown]
    refused: Sequence[str] = ()


def chosen_mode(args: argparse.Namespace) -> Mode | None:
    """The mode that was asked for; several, or options that say nothing to it, are refused."""
    asked = [mode for name, mode in MODES.items() if _is_given(getattr(args, name))]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(m.option for m in asked)}: give one of them at a time")
    for mode in asked:
        for name in (*AGREEMENT, *mode.refused):
            if _is_given(value := getattr(args, name)) and value not in ([], "auto"):
                raise UsageError(f"--{name.replace('_', '-')} does not go with {mode.option}")
    return asked[0] if asked else None


def _is_given(value: Any) -> bool:
    """Whether an option was; 0 is a value as any other, though equal to False."""
    return value is not None and value is not False


def sources(args: argparse.Namespace) -> dict[str, Any]:
    """Metrics, their scores, and what of the judgements is read."""
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
    return named_metrics(args) if args.metrics or args.model else ()


def _show_protocol(args: argparse.Namespace) -> Shown:
    from tertium.evaluation.protocol import rank_metrics
    from tertium.reporting.tables.agreements import protocol_table

    tests = {"samples": args.samples, "alpha": args.alpha, "seed": args.seed}
    ranking = rank_metrics(args.human, **sources(args), protocol=args.protocol, **tests)
    return ranking.records(), [protocol_table(ranking.results, args.width)]


def _show_thresholds(args: argparse.Namespace) -> Shown:
    from tertium.evaluation.protocol import fit_differences
    from tertium.reporting.tables.agreements import difference_table

    scales = fit_differences(args.human, **sources(args))
    records = {"scales": [scale.record() for scale in scales]}
    return records, [difference_table(scales, args.width)]


def _show_decisions(args: argparse.Namespace) -> Shown:
    from tertium.evaluation.decisions import decide_with
    from tertium.reporting.tables.agreements import decision_table

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


MODES: Mapping[str, Mode] = {
    "protocol": Mode("--protocol", _show_protocol),
    "spans": Mode("--spans", _show_spans, OF_SCORES),
    "thresholds": Mode("--thresholds", _show_thresholds),
    "decisions": Mode("--decisions", _show_decisions),
}
