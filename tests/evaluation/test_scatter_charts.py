"""Scatter plots of metric and human scores."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.builders import make_aligned_scores

import tertium
from tertium.output.charts.draw import draw
from tertium.studies.meta_evaluation import make_scatter_charts


@pytest.fixture
def study(tmp_path):
    """Two metrics on two language pairs."""
    rng = np.random.default_rng(4)
    human, scores = "lp\titem\tsystem\tscore\n", []
    for lp in ("de-en", "fi-en"):
        cells = [(item, system, rng.normal()) for item in range(9) for system in "AB"]
        human += "".join(f"{lp}\t{item}\t{system}\t{z}\n" for item, system, z in cells)
        for name in ("good", "bad"):
            path = tmp_path / f"{name}.{lp}.tsv"
            rows = "".join(f"{n}\t{s}\t{z + rng.normal()}\n" for n, s, z in cells)
            path.write_text("item\tsystem\tscore\n" + rows)
            scores.append(path)
    (tmp_path / "human.tsv").write_text(human)
    return tertium.meta_evaluate(tmp_path / "human.tsv", scores=scores, resamples=0)


def test_scatter_plots_are_written_the_same_each_time(study, tmp_path):
    files = [tmp_path / f"{n}.svg" for n in (1, 2)]
    study.write(*files)
    assert files[0].read_bytes() == files[1].read_bytes()
    root = ElementTree.parse(files[0]).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = float(root.get("width")), float(root.get("height"))
    assert (width, height) == (2 * 340 + 30, 2 * (250 + 22) + 30)


def test_a_plot_carries_its_style_for_light_and_dark(study, tmp_path):
    """Every variable of a rule has a color in both themes."""
    study.write(tmp_path / "x.svg")
    style = next(ElementTree.parse(tmp_path / "x.svg").iter("{http://www.w3.org/2000/svg}style"))
    light, dark, *rules = style.text.splitlines()
    assert "prefers-color-scheme: dark" in dark
    assert "prefers" not in light
    used = set(re.findall(r"var\((--\w+)\)", "".join(rules)))
    assert len(used) > 10
    assert all(f"{name}: #" in light and f"{name}: #" in dark for name in used)


def test_scatter_shows_each_judged_point_and_its_correlation():
    noise = {"bad": 6.0, "good": 0.3, "fair_1": 1.0}
    sets = [make_aligned_scores("de-en", 1, noise), make_aligned_scores("fi-en", 2, noise)]
    charts = make_scatter_charts(sets)
    assert [chart.row for chart in charts] == [0, 0, 1, 1, 2, 2]
    assert charts[0].caption.startswith("de-en  r = ")
    assert charts[0].caption.endswith("n = 200")
    assert draw(charts[0]).count("<circle") == 200
    assert draw(make_scatter_charts(sets, level="system")[0]).count("<circle") == 4
    first, second = sets[0].metrics[:2]
    negated = make_scatter_charts(sets, negated={first})
    assert f">−{first}<" in draw(negated[0])
    assert f">{second}<" in draw(negated[2])
