"""Correction of tertium-multi's network score: formula, bounds and settings."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from tertium.errors import ModelError
from tertium.metrics.flagship.bundled_model import BundledModel
from tertium.metrics.flagship.score_correction import Correction
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, MODEL, InputMode, TertiumMulti
from tertium.models.checkpoint import bundled_models_folder
from tertium.segment import Segment

ROWS = [
    ("The train does not leave.", "Der Zug fährt nicht.", "The train is not leaving."),
    ("", "Der Zug fährt nicht.", "The train is not leaving."),
    ("火车今天不开。", "Der Zug fährt nicht.", "火车今天不发车。"),
    ("Der Zug fährt noch nicht.", "Der Zug fährt nicht.", "The train is not leaving."),
]


def test_correction_equals_its_formula() -> None:
    correct = Correction(
        share=0.6, softness=1.4, letters=1.7, strange_share=0.4, strange_letters=0.9
    )
    scores, readouts = np.array([0.8, -9.0, 3.0, -4.0]), np.array([0.1, -0.3, 0.2, 0.4])
    fragmentation = np.array([0.0, 1.0, 0.3, 0.7])
    chrf = CHRF()
    expected = []
    for (text, source, reference), s, more, f in zip(
        ROWS, scores, readouts, fragmentation, strict=True
    ):
        bounded = s / math.sqrt(1 + (s / 1.4) ** 2)
        copied = max(2 * chrf.sentence_score(text, [source]).score / 100 - 1, 0)
        letters = chrf.sentence_score(text, [reference]).score / 100
        own = (0.6 - 0.4 * f) * bounded + copied * min(bounded, 0) + more
        expected.append(own + 1.7 * letters + 0.9 * f * (letters - 0.55))
    corrected = correct(ROWS, scores, readouts, fragmentation)
    np.testing.assert_allclose(corrected, expected, rtol=1e-12)
    slices = [slice(n, n + 1) for n in range(len(ROWS))]
    single = [correct(ROWS[s], scores[s], readouts[s], fragmentation[s])[0] for s in slices]
    assert corrected.tolist() == single


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
def test_copy_of_a_source_without_words_is_not_penalized(source: str, is_text: bool) -> None:
    correct = Correction(
        share=0.6, softness=1.4, letters=0.0, strange_share=0.0, strange_letters=0.0
    )
    score, zero = np.array([-2.0]), np.zeros(1)
    [copy] = correct([(source, source, None)], score, zero, zero)
    [other] = correct([("", source, None)], score, zero, zero)
    assert bool(copy < other) is is_text


def test_network_score_is_bounded_and_keeps_its_order() -> None:
    correct = Correction(
        share=1.0, softness=1.5, letters=0.0, strange_share=0.5, strange_letters=0.0
    )
    scores = np.linspace(-30, 30, 501)
    rows = [("a", "b", None)] * len(scores)
    for value in (0.0, 1.0):
        fragmentation = np.full(len(scores), value)
        corrected = correct(rows, scores, np.zeros(len(scores)), fragmentation)
        assert (np.diff(corrected) > 0).all()
        assert np.abs(corrected).max() < 1.5


def test_weight_of_the_network_score_is_never_negative() -> None:
    corrections = TertiumMulti().settings.corrections
    for correct in (corrections.reference, corrections.both):
        assert correct.share >= correct.strange_share
    assert corrections.source.strange_share == corrections.source.strange_letters == 0


def test_chrf_has_more_weight_in_rare_languages() -> None:
    """Of two Livonian translations with equal network scores, the closer one gains."""
    reference = "Līvõd rānda um ilzõ nīžtõd."
    rows = [("Līvõd rānda um nīžtõd.", None, reference), ("Rāndalizt jelābõd", None, reference)]
    metric = TertiumMulti()
    assert metric.reader.mean_fragmentation(rows).tolist() == [1.0, 1.0]
    correct = metric.settings.corrections.reference
    near, far = correct(rows, np.zeros(2), np.zeros(2), np.ones(2))
    plain, other = correct(rows, np.zeros(2), np.zeros(2), np.zeros(2))
    assert near - far > 1.5 * (plain - other) > 0


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of a copy of the model, which replaces the bundled one and is not cached."""
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    monkeypatch.setattr(
        "tertium.metrics.flagship.calibrated_metric.load_bundled_model",
        lambda _: BundledModel(folder),
    )
    return folder / "config.json"


def test_signature_depends_on_the_correction_and_unknown_fields_raise_an_error(
    config_file: Path,
) -> None:
    before, config = TertiumMulti().model_ids, json.loads(config_file.read_text())
    config["corrections"]["source"]["softness"] += 0.5
    config_file.write_text(json.dumps(config))
    assert TertiumMulti().model_ids != before
    config["corrections"]["source"]["vowels"] = 1.0
    config_file.write_text(json.dumps(config))
    with pytest.raises(ModelError, match="vowels"):
        _ = TertiumMulti().settings


@pytest.mark.parametrize("mode", INPUT_MODES)
def test_signature_depends_only_on_what_changes_scores(config_file: Path, mode: InputMode) -> None:
    before, fingerprint = TertiumMulti().model_ids, TertiumMulti().model.fingerprint
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
    assert TertiumMulti().model.fingerprint == fingerprint


@pytest.mark.parametrize(
    "text",
    [
        "Der Zug nach Hamburg fährt heute nicht um 14 Uhr ab.",
        "Le gouvernement a annoncé de nouvelles mesures pour les petites entreprises.",
    ],
)
def test_copy_of_the_source_scores_far_below_a_translation(text: str) -> None:
    """The readout alone rates some copies as fair, since no human scores cover them."""
    good = {"D": "The train to Hamburg does not leave at 14:00 today."}.get(
        text[0], "The government announced new measures for small businesses."
    )
    fair, copy = TertiumMulti().segment_scores([Segment(good, text), Segment(text, text)])
    assert copy < fair - 0.15
