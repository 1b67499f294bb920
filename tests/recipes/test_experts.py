"""Expert scale of the flagship models: rows read and fitted map."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.flagship import experts

from tertium.data.dataset_folder import DatasetFolder


def test_read_rows_skips_copies_and_rows_without_reference(tmp_path: Path) -> None:
    folder = tmp_path / experts.EXPERT_SET
    folder.mkdir(parents=True)
    plain = {
        "lp": "zh-en",
        "segment": "1",
        "doc": "d",
        "system": "a",
        "source": "一",
        "score": -5.0,
    }
    rows = [
        plain | {"hypothesis": "one", "reference": "two"},
        plain | {"hypothesis": "three", "reference": "three"},
        plain | {"hypothesis": "four"},
        plain | {"hypothesis": "five", "reference": "six", "score": -100.0},
    ]
    with gzip.open(folder / "zh-en.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    sample, expert_scores = experts.read_rows(DatasetFolder(tmp_path), 10)
    assert sorted(zip(sample, expert_scores.tolist(), strict=True)) == [
        (("five", None, "six"), 0.0),
        (("one", None, "two"), 0.8),
    ]


def test_expert_scale_is_increasing_with_uncertainty() -> None:
    rng = np.random.default_rng(8)
    sums = -rng.uniform(0, 0.4, 2000)
    fitted = experts.fit_expert_scale(sums, 1 + sums + rng.normal(0, 0.02, len(sums)))
    knots = fitted["calibration"]
    assert len(knots["raw"]) == experts.KNOTS
    assert np.diff(knots["score"]).min() > 0
    assert knots["score"] == pytest.approx([1 + raw for raw in knots["raw"]], abs=0.005)
    assert fitted["uncertainty"]["deviation"] == pytest.approx([0.02] * 8, abs=0.01)
