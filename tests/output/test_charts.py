"""Charts are well-formed, have text descriptions, and accept any data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree

import numpy as np
import pytest

from tertium.core.arrays import FloatArray
from tertium.core.charts import (
    Axis,
    Chart,
    DotChart,
    IntervalChart,
    LineChart,
    ScatterChart,
)
from tertium.core.result import Result
from tertium.evaluation.scoring import score
from tertium.output.charts.axes import Scale, axis_limits, make_plot, ticks
from tertium.output.charts.draw import MAX_DOTS, draw, pearson
from tertium.output.html import render_fragment
from tertium.output.page.report import chart_translations
from tertium.output.page.translation_grid import TranslationGrid, grid_from_evaluation

NAN = float("nan")


def parsed(chart: str) -> ElementTree.Element:
    root = ElementTree.fromstring(chart)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert not re.search(r"\bnan\b|\binf\b", chart.replace(root.get("aria-label") or "", ""))
    return root


def drawn(chart: Chart) -> ElementTree.Element:
    return parsed(draw(chart))


def test_ticks_are_round_and_inside():
    assert [text for _, text in ticks(0.012, 0.048, 4)] == ["0.02", "0.03", "0.04"]
    expected = "0 200 400 600 800 1000 1200".split()
    assert [text for _, text in ticks(-7, 1234, 5)] == expected
    assert ticks(3.0, 3.0, 5) == [(3.0, "3")]
    assert ticks(NAN, NAN, 5) == []
    assert Scale(2, 2, 0, 100)(2) == 50  # one value is in the middle
    usual, wide = make_plot((0, 1), (0, 100)), make_plot((0, 1), (0, 1_000_000))
    assert usual.x.start == 52
    assert wide.x.start > 26 + 6 * len("1000000")


def test_bounds_leave_out_the_outermost():
    few, many = np.array([0.0] * 99 + [100.0]), np.array([0.0, 1.0] * 2000 + [100.0])
    assert axis_limits(few, margin=0)[1] == 100
    assert axis_limits(many, margin=0)[1] == 1
    assert axis_limits(np.array([NAN])) == (0.0, 1.0)


def test_systems_are_sorted_best_first_and_clusters_are_shaded():
    values = np.array([10.0, 30.0, 20.0])
    chart = IntervalChart(
        title="Systems by BLEU",
        names=["a", "b", "c"],
        values=values,
        intervals=np.stack([values - 1, values + 1], axis=1),
        clusters=[2, 1, 2],
    )
    root = drawn(chart)
    names = [t.text or t[0].tail for t in root.iter("text") if t.get("class") == "name"]
    assert names == ["b", "c", "a"]
    assert len(list(root.iter("rect"))) == 1  # the band of the only system of cluster 1
    description = "Systems by BLEU. b 30.00 (29.00 to 31.00), cluster 1; "
    assert str(root.get("aria-label")).startswith(description)
    lower = drawn(replace(chart, clusters=[0, 0, 0], higher_is_better=False))
    assert "a 10.00" in str(lower.get("aria-label")).split(";")[0]


def test_a_system_without_interval_or_score_is_still_named():
    chart = IntervalChart(
        title="m",
        names=["x", "y"],
        values=np.array([1.0, NAN]),
        intervals=np.full((2, 2), NAN),
        clusters=[0, 0],
    )
    root = drawn(chart)
    assert len(list(root.iter("circle"))) == 1
    assert root.get("aria-label") == "m. x 1.00; y: no score"


def test_missing_values_are_neither_drawn_nor_described():
    chart = DotChart(
        title="slices",
        label="chrF",
        rows=["news", "talks"],
        series=["A", "B"],
        values=np.array([[0.25, NAN], [0.5, 0.75]]),
    )
    assert "news: A 0.250; talks: A 0.500, B 0.750" in draw(chart)
    assert "nan" not in draw(chart)
    assert "dashed" not in draw(chart)
    assert "dashed" in draw(replace(chart, reference_value=0.5))


def test_curves_have_names_and_an_optional_rule():
    chart = LineChart(
        title="Power",
        x=Axis(name="segments", values=np.array([2.0, 50.0, 100.0])),
        y_label="power",
        y_range=(0.0, 1.0),
        curves={"one rater": np.array([0.1, 0.5, 0.7]), "two": np.array([0.2, 0.8, 1.0])},
        description="one rater: 70 segments",
    )
    root = drawn(chart)
    assert root.get("aria-label") == "Power. one rater: 70 segments"
    names = [t.text for t in root.iter("text") if t.get("class") == "name"]
    assert names == ["one rater", "two"]
    assert [line.get("class") for line in root.iter("polyline")] == ["line c0", "line c1"]
    assert 'class="interval"' not in draw(chart)
    assert 'class="interval"' in draw(replace(chart, reference_value=0.8))


@dataclass(frozen=True)
class Charts(Result):
    """A result that is only charts."""

    all_charts: Sequence[Chart]

    def charts(self) -> Sequence[Chart]:
        return self.all_charts


def test_charts_are_written_in_rows_with_their_captions(tmp_path):
    axis = Axis(name="x", values=np.arange(3.0))
    chart = ScatterChart(caption="a & b", x=axis, y=axis)
    charts = [chart, replace(chart, caption="c"), replace(chart, caption="d", row=1)]
    Charts(charts).write(tmp_path / "new" / "three.svg")
    root = ElementTree.parse(tmp_path / "new" / "three.svg").getroot()
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a & b", "c", "d"} <= set(texts)
    groups = root.findall("{http://www.w3.org/2000/svg}g")
    places = [group.get("transform") for group in groups]
    assert places == ["translate(10 32)", "translate(360 32)", "translate(10 314)"]


def test_translations_are_dots_that_know_their_row_and_of_many_a_part_is_shown():
    few = Axis(name="x", values=np.array([1.0, NAN, 3.0]))
    y = Axis(name="y", values=np.array([2.0, 5.0, 6.0]))
    chart = drawn(ScatterChart(x=few, y=y, has_trend=True))
    assert str(chart.get("aria-label")).startswith("y against x. ")
    assert [c.get("data-row") for c in chart.iter("circle")] == ["0", "2"]
    assert [c[0].text for c in chart.iter("circle")] == ["row 0: 1 / 2", "row 2: 3 / 6"]
    assert [line.get("class") for line in chart.iter("polyline")] == ["fit"]
    rng = np.random.default_rng(2)
    many = Axis(name="x", values=rng.normal(size=5000))
    chart = drawn(ScatterChart(x=many, y=Axis(name="y", values=many.values * 2)))
    rows = [int(circle.get("data-row") or 0) for circle in chart.iter("circle")]
    assert MAX_DOTS <= len(rows) < 2 * MAX_DOTS
    assert max(rows) > 4900
    assert "r = 1.000, n = 5,000" in str(chart.get("aria-label"))


def test_dots_name_their_translation_and_correlation(example):
    grid = grid_from_evaluation(score(example, ["chrf", "ter"]))
    chrf, ter = (column.values for column in grid.columns)
    label = f"segment 1, {next(iter(example.systems))}"
    assert f"<title>{label}: {chrf[0]:.3g} / {ter[0]:.3g}</title>" in draw_pairs(grid)
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 50))
    x, y = Axis(name="x", values=a), Axis(name="y", values=b)
    assert pearson(x, y) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert np.isnan(pearson(x, replace(y, values=np.ones(50))))


def draw_pairs(grid: TranslationGrid) -> str:
    [pairs] = [own for own in chart_translations(grid) if own.title == "Metrics against each other"]
    return render_fragment([pairs])


def test_lines_of_the_same_color_have_different_markers():
    names = [f"line {n}" for n in range(30)]
    chart = LineChart(
        title="",
        x=Axis(name="x", values=np.array([0.0, 1.0])),
        y_label="y",
        y_range=(0.0, 1.0),
        curves=dict.fromkeys(names, np.array([0.0, 0.5])),
        description="",
    )
    root = drawn(chart)
    texts = [t for t in root.iter("text") if t.get("class") == "name"]
    assert [t.text for t in texts] == names
    assert len({(p.get("class"), p.get("d")) for p in root.iter("path")}) == 30


def test_a_long_number_below_the_right_end_stays_inside():
    chart = drawn(
        IntervalChart(
            title="TER",
            names=["a"],
            values=np.array([40000.0]),
            intervals=np.array([[0.0, 80000.0]]),
            clusters=[0],
        )
    )
    wide = float(chart.get("viewBox", "").split()[2])
    numbers = [t for t in chart.iter("text") if t.get("class") == "tick"]
    assert numbers[-1].text == "80000"
    for tick in numbers:
        assert float(tick.get("x") or 0) + 6.6 * len(tick.text or "") / 2 <= wide


def ends_of_fit(x: list[float], y: list[float]) -> FloatArray:
    axes = {"x": Axis(name="x", values=np.array(x)), "y": Axis(name="y", values=np.array(y))}
    chart = drawn(ScatterChart(**axes, has_trend=True))
    [line] = [p for p in chart.iter("polyline") if p.get("class") == "fit"]
    return np.array([point.split(",") for point in line.get("points", "").split()], dtype=float)


def test_the_fit_is_clipped_to_the_plot_and_keeps_its_slope():
    """With many translations, outliers are outside the plot; the line must be clipped."""
    rng = np.random.default_rng(2)
    x = np.append(rng.normal(0, 1, 1999), -50.0)
    y = 3 * x + rng.normal(0, 1, 2000)
    plot = make_plot(axis_limits(x), axis_limits(y))
    ends = ends_of_fit(x.tolist(), y.tolist())
    assert plot.x.start <= ends[:, 0].min() < ends[:, 0].max() <= plot.x.end
    slope, start = np.polyfit(x, y, 1)
    for place, value in ends:
        a = plot.x.low + (place - plot.x.start) / (plot.x.end - plot.x.start) * (
            plot.x.high - plot.x.low
        )
        assert value == pytest.approx(plot.y(start + slope * a), abs=0.1)
    few = ends_of_fit([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])  # all of it where it fits
    small = make_plot(axis_limits(np.arange(3.0)), axis_limits(np.arange(3.0)))
    assert few[:, 0].tolist() == pytest.approx([small.x(0.0), small.x(2.0)], abs=0.01)
