"""Surface features of tertium-multi, and the formula of its head."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from tertium.core.segment import Against
from tertium.metrics.bundled.bundled_model import BundledModel
from tertium.metrics.bundled.input_rows import INPUT_MODES, Row
from tertium.metrics.bundled.row_scorer import (
    NEUTRAL_CHRF,
    ROW_FEATURES,
    row_features,
)
from tertium.metrics.bundled.tertium_multi import MODEL, TertiumMulti
from tertium.models.checkpoint import bundled_models_folder

ROWS = [
    ("The train does not leave.", "Der Zug fährt nicht.", "The train is not leaving."),
    ("", "Der Zug fährt nicht.", "The train is not leaving."),
    ("火车今天不开。", "Der Zug fährt nicht.", "火车今天不发车。"),
    ("Der Zug fährt noch nicht.", "Der Zug fährt nicht.", "The train is not leaving."),
]


def feature(name: str, row: Row) -> float:
    return float(row_features([row], np.zeros(1))[0, ROW_FEATURES.index(name)])


def test_similarities_are_those_of_chrf() -> None:
    chrf, fragmentation = CHRF(), np.array([0.0, 1.0, 0.3, 0.7])
    features = row_features(ROWS, fragmentation)
    for row, f, own in zip(ROWS, fragmentation, features, strict=True):
        similarity = chrf.sentence_score(row[0], [row[2]]).score / 100
        copied = max(2 * chrf.sentence_score(row[0], [row[1]]).score / 100 - 1, 0)
        expected = similarity, f * (similarity - NEUTRAL_CHRF), copied
        np.testing.assert_allclose(own[:3], expected, rtol=1e-12)
    single = [row_features([row], fragmentation[[n]])[0] for n, row in enumerate(ROWS)]
    assert features.tolist() == np.stack(single).tolist()


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
    config = json.loads(config_file.read_text())
    scale = config["scales"][mode]
    scale["uncertainty"]["deviation"][0] += 0.01
    scale["percentiles"]["segments"] += 1
    config_file.write_text(json.dumps(config))
    assert TertiumMulti().model_ids == before
    scale["calibration"]["score"][0] /= 2
    config_file.write_text(json.dumps(config))
    assert TertiumMulti().model_ids != before
    # raw outputs are unchanged, so cached ones stay valid
    assert TertiumMulti().settings.weights_sha256 == weights
