"""Learning curves and ablations: nested, seeded, and averaged over seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tertium.errors import DataError, UsageError
from tertium.meta.learning_curves import (
    LearningCurve,
    LearningRun,
    ablation,
    draw_subset,
    learning_curve,
    read_curves,
)
from tertium.reporting.charts.learning_curves import learning_curve_chart

RUN = {"setting": "1", "size": 1, "seed": 0, "test": "wmt", "value": 0.5}
INVALID_VALUES: dict[str, list[Any]] = {
    "setting": [1, None, [], "\0"],
    "test": [1, None, [], "\0"],
    "size": [1.5, None, "x", True, [], {}, 0, -1, 10**400],
    "seed": [1.5, None, "x", True, [], {}],
    "value": ["x", [], {}, 1e308, 10**400],
}


def test_subsets_are_nested_and_seeded():
    for seed in range(5):
        small, large = draw_subset(100, 10, seed), draw_subset(100, 40, seed)
        assert set(small) < set(large)
        assert small == draw_subset(100, 10, seed)
        assert len(small) == 10
    assert draw_subset(100, 10, 0) != draw_subset(100, 10, 1)


def test_more_data_fits_a_line_better():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    data = list(zip(x, 2 * x + rng.normal(0, 2, 200), strict=True))

    def train(subset, seed):
        xs, ys = np.array(subset).T
        return float(xs @ ys / (xs @ xs))

    curve = learning_curve(
        train, lambda slope: {"error": abs(slope - 2)}, data, [5, 0.25, 1.0], seeds=range(8)
    )
    points = curve.points()
    assert [p.setting for p in points] == ["5", "50", "200"]
    assert points[0].mean > points[2].mean
    assert points[0].deviation > points[1].deviation > points[2].deviation == 0.0
    assert all(p.runs == 8 for p in points)
    assert len(curve.records()) == 24
    assert curve.records()[0] == {
        "setting": "5",
        "size": 5,
        "seed": 0,
        "test": "error",
        "value": curve.runs[0].value,
    }


def test_training_gets_the_subset_and_the_seed():
    calls = []
    learning_curve(
        lambda subset, seed: calls.append((tuple(subset), seed)),
        lambda scorer: {"t": 1.0},
        "abcdef",
        [2, 6],
        seeds=[7],
    )
    assert calls[0] == (tuple("abcdef"[n] for n in draw_subset(6, 2, 7)), 7)
    assert calls[1] == (tuple("abcdef"), 7)


def test_ablation_leaves_out_each_part():
    worth = {"lexical": 0.5, "syntax": 0.2, "entities": 0.1}
    curve = ablation(
        lambda parts, seed: sum(worth[p] for p in parts),
        lambda total: {"de": total, "fi": total / 2},
        list(worth),
        alone=True,
        seeds=[0, 1],
    )
    means = {(p.setting, p.test): p.mean for p in curve.points()}
    assert means["all", "de"] == pytest.approx(0.8)
    assert means["without lexical", "de"] == pytest.approx(0.3)
    assert means["only syntax", "fi"] == pytest.approx(0.1)
    assert len(curve.runs) == 7 * 2 * 2


def test_undefined_runs_are_counted():
    runs = tuple(
        LearningRun(setting="5", size=5, seed=s, test="t", value=v)
        for s, v in enumerate([0.2, float("nan"), 0.4])
    )
    (point,) = LearningCurve(runs=runs).points()
    assert (point.mean, point.runs, point.undefined) == (pytest.approx(0.3), 3, 1)
    assert (point.low, point.high) == (0.2, 0.4)
    (single,) = LearningCurve(runs=runs[:1]).points()
    assert np.isnan(single.deviation)


def test_invalid_input():
    def train(subset, seed):
        return 0

    with pytest.raises(DataError, match="size 4 cannot be drawn from 3"):
        learning_curve(train, lambda s: {"t": 0.0}, [1, 2, 3], [4])
    with pytest.raises(DataError, match="size 0 cannot"):
        learning_curve(train, lambda s: {"t": 0.0}, [1, 2, 3], [0])
    with pytest.raises(UsageError, match="one size and one seed"):
        learning_curve(train, lambda s: {"t": 0.0}, [1, 2, 3], [])
    with pytest.raises(DataError, match="no value"):
        learning_curve(train, lambda s: {}, [1, 2, 3], [1])
    with pytest.raises(UsageError, match="two or more distinct parts"):
        ablation(train, lambda s: {"t": 0.0}, ["a", "a"])
    with pytest.raises(UsageError, match="at least one seed"):
        ablation(train, lambda s: {"t": 0.0}, ["a", "b"], seeds=[])


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        5,
        None,
        "runs",
        [5],
        [None],
        [[RUN]],
        [{}],
        [RUN | {"more": 1}],
        [{k: v for k, v in RUN.items() if k != "seed"}],
        *([RUN | {name: value}] for name, values in INVALID_VALUES.items() for value in values),
    ],
)
def test_invalid_runs_are_errors_that_name_the_file(tmp_path: Path, content: object) -> None:
    file = tmp_path / "curve.json"
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"curve\.json.*(expected|NUL|not a number|not finite)"):
        read_curves([file])


def test_undefined_values_are_drawn_as_missing(tmp_path: Path) -> None:
    file = tmp_path / "curve.json"
    for setting in ("1", "all"):
        file.write_text(json.dumps([RUN | {"setting": setting, "value": None}]))
        (curve,) = read_curves([file]).values()
        assert np.isnan(curve.runs[0].value)
        assert learning_curve_chart(curve, "chart")


def test_curves_of_files_with_the_same_name_are_kept(tmp_path: Path) -> None:
    files = [tmp_path / folder / "mean.json" for folder in ("esim", "bilstm")]
    for file in files:
        file.parent.mkdir()
        file.write_text(json.dumps([RUN]))
    assert list(read_curves(files)) == ["esim/mean", "bilstm/mean"]
    other = files[0].with_suffix(".txt")
    other.write_text(json.dumps([RUN]))
    assert len(read_curves([files[0], other])) == 2
    with pytest.raises(UsageError, match="given twice"):
        read_curves([files[0], files[0]])
