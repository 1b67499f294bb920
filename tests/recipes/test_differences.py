"""Difference scales: no training sets, no reported sets."""

from __future__ import annotations

import json

import pytest
from recipes.differences import FILE, build_aligned_scores, fit

from tertium.evaluation.comparison import find_scale

SCORED = json.loads(FILE.read_text(encoding="utf-8"))["scored"]


@pytest.mark.parametrize("metric", sorted(SCORED))
def test_scales_exclude_reported_and_training_sets(metric: str) -> None:
    sets = SCORED[metric]["sets"]
    assert not [name for name in sets if name.startswith("wmt17") and name.endswith("-en")]
    if not metric.startswith("tertium-"):
        assert not [name for name in sets if name.startswith("wmt18")]
    if metric == "tertium-multi":
        assert not [name for name in sets if name.startswith("train/")]
    if metric in ("tertium-small", "tertium-base"):
        assert not {"train/mqm/news21 zh-en", "dev/mqm/ted21 zh-en"} & set(sets)
        assert all(name.endswith("-en") for name in sets)


def test_english_metric_has_no_scale_for_other_languages() -> None:
    assert find_scale("tertium-small", "into English", "reference") is not None
    assert find_scale("tertium-small", "not into English", "reference") is None


def test_fit_replaces_scales_of_its_metrics_only(tmp_path, monkeypatch) -> None:
    human_scores = {f"s{n}": float(n) for n in range(8)}
    line = {
        "set": "dev/da/wmt22 uk-en",
        "metric": "chrf",
        "inputs": "reference",
        "learned": [],
        "segments": 3,
        "people": human_scores,
        "scores": {name: 2 * score for name, score in human_scores.items()},
    }
    assert build_aligned_scores(line).metrics == ("chrf",)
    file = tmp_path / "scales.json"
    old = {
        "metric": "bleu",
        "direction": "all",
        "inputs": "reference",
        "bins": [],
        "learned": [],
    }
    file.write_text(json.dumps({"scored": {}, "scales": [old, {**old, "metric": "chrf"}]}))
    monkeypatch.setattr("recipes.differences.FILE", file)
    fit([line])
    stored = json.loads(file.read_text())
    assert [s["metric"] for s in stored["scales"]] == ["bleu", "chrf"]
    assert stored["scales"][1]["direction"] == "into English"
    assert sum(b["pairs"] for b in stored["scales"][1]["bins"]) == 28
    assert stored["scales"][1]["inputs"] == "reference"
    assert stored["scored"]["chrf"] == {
        "inputs": "reference",
        "segments": 3,
        "sets": ["dev/da/wmt22 uk-en"],
    }
