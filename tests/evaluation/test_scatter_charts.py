"""Scatter plots of metric and human scores."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from tertium.errors import DataError, UsageError
from tertium.meta.aligned_scores import AlignedScores
from tertium.output.charts import scatter_grid as plots
from tertium.output.charts.draw import draw, write_charts
from tertium.output.charts.scatter_grid import scatter_grid
from tertium.output.charts.svg_file import check_plot_file
from tertium.scores import ScoreMatrix


def make_set(name, seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(4, 50))
    systems = ("A", "B", "C", "D")
    metrics = [
        ScoreMatrix(label, systems, truth + rng.normal(0, spread, truth.shape))
        for label, spread in (("bad", 6.0), ("good", 0.3), ("fair_1", 1.0))
    ]
    return AlignedScores.align(name, metrics, human=ScoreMatrix("da", systems, truth))


def test_scatter_plots_are_written_the_same_each_time(tmp_path):
    files = [tmp_path / f"{n}.svg" for n in (1, 2)]
    for file in files:
        write_charts(file, scatter_grid([make_set("de-en", 1), make_set("fi-en", 2)]))
    assert files[0].read_bytes() == files[1].read_bytes()
    root = ElementTree.parse(files[0]).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = float(root.get("width")), float(root.get("height"))
    assert (width, height) == (2 * 340 + 30, 3 * (250 + 22) + 40)


def test_a_plot_carries_its_style_for_light_and_dark(tmp_path):
    """Every variable of a rule has a color in both themes."""
    write_charts(tmp_path / "x.svg", scatter_grid([make_set("de-en", 1)]))
    style = next(ElementTree.parse(tmp_path / "x.svg").iter("{http://www.w3.org/2000/svg}style"))
    light, dark, *rules = style.text.splitlines()
    assert "prefers-color-scheme: dark" in dark
    assert "prefers" not in light
    used = set(re.findall(r"var\((--\w+)\)", "".join(rules)))
    assert len(used) > 10
    assert all(f"{name}: #" in light and f"{name}: #" in dark for name in used)


def test_scatter_shows_each_judged_point_and_its_correlation():
    sets = [make_set("de-en", 1), make_set("fi-en", 2)]
    figure = scatter_grid(sets)
    assert [len(row) for row in figure] == [2, 2, 2]
    chart = figure[0][0]
    assert chart.caption.startswith("de-en  r = ")
    assert chart.caption.endswith("n = 200")
    assert draw(chart).count("<circle") == 200
    assert draw(scatter_grid(sets, level="system")[0][0]).count("<circle") == 4
    first, second = sets[0].metrics[:2]
    negated = scatter_grid(sets, negated={first})
    assert f">−{first}<" in draw(negated[0][0])
    assert f">{second}<" in draw(negated[1][0])


def test_scatter_plots_check_their_arguments_early(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"expected a name that ends in \.svg"):
        check_plot_file(tmp_path / "x.png")
    with pytest.raises(DataError, match="does not exist"):
        check_plot_file(tmp_path / "no" / "x.svg")
    with pytest.raises(DataError, match="nothing to plot"):
        scatter_grid([])
    monkeypatch.setattr(plots, "MAX_PANELS", 2)
    with pytest.raises(UsageError, match="too many panels"):
        scatter_grid([make_set("x", 1)])
