"""Tables of a gate: tests of metrics, conditions, and suggested margins."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.core.result import Emphasis, Table
from tertium.decisions.gate_result import Condition, GateResult, MetricTest
from tertium.decisions.margins import SuggestedMargin
from tertium.output.tables.table import Cell, cell_table, number_cell

EMPHASIS: dict[str, Emphasis] = {"pass": "good", "better": "good", "worse": "bad", "fail": "bad"}
P_VALUES = {"pass": "p_pass", "better": "p_better", "worse": "p_worse", "undecided": "p_pass"}


def gate_tables(result: GateResult) -> list[Table]:
    """Return the table of tests and, if there are any, the table of conditions."""
    tables = [_test_table(result)] if result.tests else []
    return tables + ([_condition_table(result)] if result.conditions else [])


def _test_table(result: GateResult) -> Table:
    has_pairs = any(test.pair for test in result.tests)
    has_slices = any(test.is_slice for test in result.tests)
    header = [
        *(["pair"] if has_pairs else []),
        *(["slice"] if has_slices else []),
        *("metric segments baseline candidate difference bounds margin p verdict".split()),
    ]
    rows = [_test_row(test, has_pairs, has_slices) for test in result.tests]
    names = has_pairs + has_slices + 1
    text_columns = frozenset({*range(names), len(header) - 1})
    count = len(result.tests)
    adjusted = f", adjusted by Holm's method over {count} tests" if count > 1 else ""
    notes = [
        "difference: positive if the candidate is better; bounds: the true difference is between "
        f"them{' in all rows' * (count > 1)} (alpha = {result.alpha:g} on each side)",
        f"p: of the verdict (of pass if undecided), jackknife test{adjusted}",
    ]
    return cell_table(header, rows, notes=notes, text_columns=text_columns)


def _test_row(test: MetricTest, has_pairs: bool, has_slices: bool) -> list[Cell | str]:
    places = test.decimals
    p = getattr(test, P_VALUES[test.verdict])
    bounds = f"{test.low:+z.{places}f} to {test.high:+z.{places}f}" if p == p else "–"
    has_scores = test.difference == test.difference
    difference = f"{test.difference:+z.{places}f}" if has_scores else "–"
    verdict: str = test.verdict
    if test.more_segments is not None:
        verdict += f" (about {test.more_segments:,} more segments)"
    return [
        *([test.pair] if has_pairs else []),
        *([f"{test.by}: {test.slice}" if test.is_slice else "all"] if has_slices else []),
        test.name,
        number_cell(test.segments, 0),
        number_cell(test.baseline, places),
        number_cell(test.candidate, places),
        Cell(difference, test.difference),
        Cell(bounds, bounds, extra_columns={"low": test.low, "high": test.high}),
        number_cell(test.margin, max(2, places)),
        number_cell(p, 4),
        Cell(verdict, test.verdict, EMPHASIS.get(test.verdict, "")),
    ]


def _condition_table(result: GateResult) -> Table:
    has_pairs = any(condition.pair for condition in result.conditions)
    rows = [_condition_row(condition, has_pairs) for condition in result.conditions]
    header = [*(["pair"] if has_pairs else []), "condition", "observed", "bound", "verdict"]
    columns = frozenset({*range(has_pairs + 1), len(header) - 1})
    return cell_table(header, rows, text_columns=columns)


def _condition_row(condition: Condition, has_pairs: bool) -> list[Cell | str]:
    verdict = "pass" if condition.is_met else "fail"
    sign = "≤" if condition.rule == "max" else "≥"
    observed = condition.observed
    return [
        *([condition.pair] if has_pairs else []),
        condition.name,
        Cell(f"{observed:.6g}" if observed == observed else "–", observed),
        f"{sign} {condition.bound}",
        Cell(verdict, verdict, EMPHASIS[verdict]),
    ]


def margin_table(margins: Sequence[SuggestedMargin], alpha: float, title: str = "") -> Table:
    """Return the suggested margin of each metric, and what it means to human raters."""
    rows: list[list[Cell | str]] = []
    for own in margins:
        share = "" if own.human_agreement is None else f"{100 * own.human_agreement:.0f} %"
        rows.append(
            [
                own.name,
                number_cell(own.segments, 0),
                Cell(f"{own.difference:+z.{own.decimals}f}", own.difference),
                Cell(f"{own.margin:g}", own.margin),
                Cell(share, "" if own.human_agreement is None else own.human_agreement),
            ]
        )
    notes = [
        "margin: the smallest one under which these two runs pass in either direction "
        f"(alpha = {alpha:g})",
        "human agreement: share of system pairs with such a difference that human scores order "
        "the same way",
        f"use: --margin {' '.join(f'{own.spec}={own.margin:g}' for own in margins)}",
    ]
    header = ["metric", "segments", "difference", "margin", "human agreement"]
    cautions = [own.caution for own in margins if own.caution]
    return cell_table(header, rows, notes=notes, cautions=cautions)
