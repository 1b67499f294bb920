"""Tables of planned campaigns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tertium.campaigns.campaign import Campaign
from tertium.campaigns.power import Design, PowerPlan
from tertium.campaigns.variance import COMPONENTS
from tertium.core.charts import Axis, LineChart
from tertium.core.result import Table
from tertium.output.tables.table import Cell, cell_table, number_cell

NEGLIGIBLE = 0.005  # share of the variance
CURVE_POINTS = 60


def power_table(plan: PowerPlan) -> Table:
    """Return the power, detectable difference and working time by number of segments."""
    design, variance = plan.design, plan.variance
    rows = [
        [
            Cell(
                f"{point.segments:,}",
                point.segments,
                "best" if point.segments == plan.segments else "",
            ),
            Cell(f"{100 * point.power:.0f} %", point.power),
            number_cell(point.detectable, 2),
            Cell(f"{point.judgments:,}", point.judgments),
            number_cell(point.hours, 1),
        ]
        for point in plan.curve
    ]
    shares = [(name, getattr(variance, name) / variance.total) for name in COMPONENTS]
    parts = ", ".join(f"{name} {100 * s:.0f} %" for name, s in shares if s > NEGLIGIBLE)
    unit = f" {variance.unit}" if variance.unit else ""
    return cell_table(
        [
            "segments",
            "power",
            f"difference at {100 * design.target_power:g} %",
            "judgments",
            "hours",
        ],
        rows,
        title=f"Power to find a difference of {plan.difference:.3g}{unit} ({design.protocol}, "
        f"{design.systems} systems, {_count_raters(design)})",
        notes=[
            f"variance of a difference on one segment: {variance.total:.3g} from "
            f"{variance.origin} ({parts})",
            f"hours: of all raters together, at {design.seconds_per_judgment:g} seconds per "
            "judgment",
        ],
        text_columns=frozenset(),
    )


def power_chart(plans: Sequence[PowerPlan]) -> LineChart:
    """Return a curve for each number of raters; a line marks the requested power."""
    sizes = np.linspace(2, max(plan.curve[-1].segments for plan in plans), CURVE_POINTS)
    curves, needed = {}, []
    for plan in plans:
        name = _count_raters(plan.design)
        curves[name] = plan.power(sizes)
        needed.append(f"{name}: {plan.segments} segments")
    return LineChart(
        title=f"Power to find a difference of {plans[0].difference:.3g}",
        x=Axis(name="segments", values=sizes),
        y_label="power",
        y_range=(0.0, 1.0),
        curves=curves,
        description="; ".join(needed),
        reference_value=plans[0].design.target_power,
    )


def _count_raters(design: Design) -> str:
    return f"{design.raters} rater{'s' * (design.raters > 1)} per segment"


def raters_table(plans: Sequence[PowerPlan]) -> Table:
    """Return the segments that a difference needs, by number of raters per segment."""
    rows = []
    for plan in plans:
        point = plan.point(plan.segments)
        rows.append(
            [
                Cell(str(plan.design.raters), plan.design.raters),
                Cell(f"{plan.segments:,}", plan.segments),
                Cell(f"{point.judgments:,}", point.judgments),
                number_cell(point.hours, 1),
            ]
        )
    share = 100 * plans[0].design.target_power
    return cell_table(
        ["raters per segment", "segments", "judgments", "hours"],
        rows,
        title=f"Segments for a power of {share:g} %, by number of raters",
        text_columns=frozenset(),
    )


def campaign_table(campaign: Campaign) -> Table:
    """Return what each rater judges."""
    rows: list[list[Cell | str]] = []
    for rater in campaign.raters:
        turns = campaign.assignments.get(rater, ())
        kinds = Counter(campaign.items_by_id[turn.item].kind for turn in turns)
        segments = {turn.item for turn in turns if campaign.items_by_id[turn.item].kind == "item"}
        outputs = sum(
            len(turn.systems) for turn in turns if campaign.items_by_id[turn.item].kind == "item"
        )
        counts = (len(segments), outputs, kinds["check"], kinds["tutorial"])
        rows.append([rater, *(Cell(f"{count:,}", count) for count in counts)])
    items = sum(item.kind == "item" for item in campaign.items)
    return cell_table(
        ["rater", "segments", "translations", "checks", "tutorials"],
        rows,
        title=f"Campaign {campaign.name} ({campaign.protocol}, {items} segments of "
        f"{len(campaign.systems)} systems, id {campaign.id})",
    )
