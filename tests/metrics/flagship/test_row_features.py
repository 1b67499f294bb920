"""Surface features of tertium-multi, and the formula of its head."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.builders import change_json

from tertium.core.segment import Against
from tertium.metrics.bundled.bundled_model import BundledModel
from tertium.metrics.bundled.input_rows import INPUT_MODES, Row
from tertium.metrics.bundled.row_scorer import (
    ROW_FEATURES,
    row_features,
)
from tertium.metrics.bundled.tertium_multi import MODEL, TertiumMulti
from tertium.models.checkpoint import bundled_models_folder


def feature(name: str, row: Row) -> float:
    return float(row_features([row], np.zeros(1))[0, ROW_FEATURES.index(name)])


@pytest.mark.parametrize(
    ("source", "is_text"),
    [
        ("https://example.org/all-the-news-of-the-day", False),
        ("#TrainsAndTracks @user44", False),
        ("CH3COOCH2CH3", False),
        ("😀 12:30", False),
        ("See https://example.org/all-the-news-of-the-day", True),
        ("Der Zug fährt nicht.", True),
        ("ᓄᓇᕗᑦ", True),  # an unlisted script
    ],
)
def test_sources_without_words_may_be_copied(source: str, is_text: bool) -> None:
    assert (feature("copied", (source, source, None)) > 0) is is_text


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of a copy of the model, which replaces the bundled one and is not cached."""
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    monkeypatch.setattr(
        "tertium.metrics.bundled.calibrated_metric.load_bundled_model",
        lambda _: BundledModel(folder),
    )
    return folder / "config.json"


@pytest.mark.parametrize("mode", INPUT_MODES)
def test_signature_depends_only_on_what_changes_scores(config_file: Path, mode: Against) -> None:
    before, weights = TertiumMulti().model_ids, TertiumMulti().settings.weights_sha256
    scale = json.loads(config_file.read_text())["scales"][mode]
    scale["uncertainty"]["deviation"][0] += 0.01
    scale["percentiles"]["segments"] += 1
    change_json(config_file, scales={mode: scale})
    assert TertiumMulti().model_ids == before
    scale["calibration"]["score"][0] /= 2
    change_json(config_file, scales={mode: scale})
    assert TertiumMulti().model_ids != before
    # raw outputs are unchanged, so cached ones stay valid
    assert TertiumMulti().settings.weights_sha256 == weights
