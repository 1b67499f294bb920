"""Tables of routes: thresholds with their promises, and outcomes of translations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tertium.core.result import Table
from tertium.decisions.calibration import Threshold
from tertium.decisions.route import OUTCOMES, PairThresholds, Route, RouteStage
from tertium.decisions.routing import RoutedTranslations
from tertium.output.tables.table import Cell, cell_table, number_cell

NAN = float("nan")
ROUTE_COLUMNS = (
    *("pair", "judged", "good (%)"),
    *("publish from", "share (%)", "good (%)", "at least (%)"),
    *("retranslate to", "share (%)", "bad (%)", "at least (%)"),
)


def route_tables(route: Route) -> list[Table]:
    """Return a table of thresholds for each metric of a route."""
    return [_stage_table(route, stage) for stage in route.stages]


def _stage_table(route: Route, stage: RouteStage) -> Table:
    rows = [_pair_row(lp, own, stage.higher_is_better) for lp, own in stage.pairs.items()]
    return cell_table(
        ROUTE_COLUMNS,
        rows,
        title=f"Route by {stage.metric}",
        notes=[*_describe_promise(route), *_describe_failures(stage.pairs), *stage.signatures],
        leading_columns=3,
        columns_per_group=4,
    )


def _pair_row(lp: str, own: PairThresholds, higher_is_better: bool) -> list[Cell | str]:
    sign = 1 if higher_is_better else -1

    def cells(threshold: Threshold | None) -> Iterable[Cell]:
        if threshold is None:
            return [number_cell(NAN, 1)] * 4
        shares = (threshold.share, threshold.precision, threshold.low)
        return [
            Cell(f"{sign * threshold.score:.4g}", sign * threshold.score),
            *(number_cell(100 * share, 1) for share in shares),
        ]

    judged_cells = [number_cell(own.rows, 0), number_cell(100 * own.good, 1)]
    return [lp or "all rows", *judged_cells, *cells(own.publish), *cells(own.retranslate)]


def _describe_promise(route: Route) -> list[str]:
    criteria = route.criteria
    good = f"human score of at least {criteria.good_score:g}"
    good += "" if criteria.allow_major else " and no major error"
    bad = "" if criteria.bad_score is None else f"; bad: below {criteria.bad_score:g}"
    return [
        f"promise: at least {100 * route.target_precision:g} % of the published translations are "
        f"good, with {100 * (1 - route.alpha):g} % confidence",
        f"good: {good}{bad}",
    ]


def _describe_failures(pairs: Mapping[str, PairThresholds]) -> list[str]:
    notes = []
    for lp, own in pairs.items():
        if own.publish is None:
            best = own.best_publish
            reached = f"the best lower bound is {100 * best.low:.1f} %" if best else "too few rows"
            notes.append(f"{lp or 'all rows'}: nothing is published: {reached}")
    return notes


def outcome_table(routed: RoutedTranslations) -> Table:
    """Return the number and share of each outcome by language pair."""
    counts = routed.counts()
    if len(counts) > 1:
        total: dict[str, int] = {
            name: sum(own[name] for own in counts.values()) for name in OUTCOMES
        }
        counts = {**counts, "all pairs": total}
    header = ["pair", "rows", *(column for name in OUTCOMES for column in (name, "%"))]
    rows: list[list[Cell | str]] = []
    for lp, own in counts.items():
        size = sum(own.values())
        shares = [
            cell
            for name in OUTCOMES
            for cell in (number_cell(own[name], 0), number_cell(100 * own[name] / size, 1))
        ]
        rows.append([lp or "all rows", number_cell(size, 0), *shares])
    notes = [saving.describe() for saving in routed.savings]
    return cell_table(header, rows, notes=notes, leading_columns=2, columns_per_group=2)
