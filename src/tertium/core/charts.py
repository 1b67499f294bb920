"""Charts of results as plain data; `tertium.output.charts` draws them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tertium.core.arrays import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Titled:
    """`title` describes a chart to screen readers; `caption` is shown above it.

    Charts with the same `row` stand next to each other in a file.
    """

    title: str
    caption: str = ""
    row: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalChart(_Titled):
    """Systems from best to worst, with intervals and shaded clusters."""

    names: Sequence[str]
    values: FloatArray  # (systems,)
    intervals: FloatArray  # (systems, 2), NaN if unknown
    clusters: Sequence[int]  # 0: in no cluster
    higher_is_better: bool = True
    decimals: int = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class DotChart(_Titled):
    """Rows with a marker for each series."""

    label: str  # of the axis
    rows: Sequence[str]
    series: Sequence[str]
    values: FloatArray  # (rows, series), NaN if missing
    intervals: FloatArray | None = None  # (rows, series, 2)
    reference_value: float | None = None  # such as chance, as a line
    decimals: int = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """The name of an axis and its value for each point."""

    name: str
    values: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ScatterChart(_Titled):
    """A point for each system or translation, by default titled by its axes.

    Points have their entry of `names` as tooltip. Without `names`, points are translations: their
    tooltip is `label` of the row with both values, and of many a part is drawn.
    """

    title: str = ""
    x: Axis
    y: Axis
    has_trend: bool = False  # the least-squares line
    names: Sequence[str] = ()
    label: Callable[[int], str] = "row {}".format


@dataclass(frozen=True, kw_only=True, eq=False)
class LineChart(_Titled):
    """Curves with a legend; a horizontal line marks `reference_value`."""

    x: Axis  # shown from 0 on
    y_label: str
    y_range: tuple[float, float]
    curves: Mapping[str, FloatArray]  # a value for each x
    description: str  # for screen readers
    reference_value: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class HeatMap(_Titled):
    """Values from 0 to 1 as shades, for pages; cells with a tooltip may have a frame."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: FloatArray  # (rows, columns), NaN if missing
    tooltips: Mapping[tuple[int, int], str] = field(default_factory=dict)
    has_frames: bool = False


Chart = IntervalChart | DotChart | ScatterChart | LineChart


def describe_direction(higher_is_better: bool) -> str:
    """Return whether higher or lower is better, in words."""
    return "higher is better" if higher_is_better else "lower is better"
