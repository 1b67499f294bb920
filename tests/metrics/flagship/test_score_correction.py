"""What corrects the network of tertium-multi: its sum, its bounds, and what it refuses."""

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


def test_a_correction_is_the_sum_that_is_written_down() -> None:
    correct = Correction(
        share=0.6, softness=1.4, letters=1.7, strange_share=0.4, strange_letters=0.9
    )
    said, read = np.array([0.8, -9.0, 3.0, -4.0]), np.array([0.1, -0.3, 0.2, 0.4])
    strange = np.array([0.0, 1.0, 0.3, 0.7])
    chrf = CHRF()
    expected = []
    for (text, source, reference), s, more, f in zip(ROWS, said, read, strange, strict=True):
        bounded = s / math.sqrt(1 + (s / 1.4) ** 2)
        copied = max(2 * chrf.sentence_score(text, [source]).score / 100 - 1, 0)
        letters = chrf.sentence_score(text, [reference]).score / 100
        own = (0.6 - 0.4 * f) * bounded + copied * min(bounded, 0) + more
        expected.append(own + 1.7 * letters + 0.9 * f * (letters - 0.55))
    found = correct(ROWS, said, read, strange)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    each = [slice(n, n + 1) for n in range(len(ROWS))]
    alone = [correct(ROWS[at], said[at], read[at], strange[at])[0] for at in each]
    assert found.tolist() == alone


@pytest.mark.parametrize(
    ("source", "is_text"),
    [
        ("https://example.org/all-the-news-of-the-day", False),
        ("#TrainsAndTracks @user44", False),
        ("CH3COOCH2CH3", False),
        ("😀 12:30", False),
        ("See https://example.org/all-the-news-of-the-day", True),
        ("Der Zug fährt nicht.", True),
        ("ᓄᓇᕗᑦ", True),  # a script that is not known by its name
    ],
)
def test_a_copy_of_what_has_no_words_is_its_translation(source: str, is_text: bool) -> None:
    correct = Correction(
        share=0.6, softness=1.4, letters=0.0, strange_share=0.0, strange_letters=0.0
    )
    said, none = np.array([-2.0]), np.zeros(1)
    [copy] = correct([(source, source, None)], said, none, none)
    [other] = correct([("", source, None)], said, none, none)
    assert bool(copy < other) is is_text


def test_what_the_network_says_is_bounded_and_keeps_its_order() -> None:
    correct = Correction(
        share=1.0, softness=1.5, letters=0.0, strange_share=0.5, strange_letters=0.0
    )
    said = np.linspace(-30, 30, 501)
    for strange in (0.0, 1.0):
        subword_fragmentation = np.full(len(said), strange)
        found = correct(
            [("a", "b", None)] * len(said), said, np.zeros(len(said)), subword_fragmentation
        )
        assert (np.diff(found) > 0).all()
        assert np.abs(found).max() < 1.5


def test_no_share_falls_below_zero_however_strange_the_words_are() -> None:
    corrections = TertiumMulti().settings.corrections
    for correct in (corrections.reference, corrections.both):
        assert correct.share >= correct.strange_share
    assert corrections.source.strange_share == corrections.source.strange_letters == 0


def test_letters_count_more_where_words_are_strange() -> None:
    """Of two Livonian translations that the network says the same of, the nearer one gains."""
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
    """The settings of a copy of the model, which is used instead; read anew each time."""
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    monkeypatch.setattr(
        "tertium.metrics.flagship.calibrated_metric.load_bundled_model",
        lambda _: BundledModel(folder),
    )
    return folder / "config.json"


def test_a_signature_names_the_correction_and_unknown_parts_of_it_are_refused(
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


@pytest.mark.parametrize("view", INPUT_MODES)
def test_a_signature_names_what_moves_scores_and_nothing_else(
    config_file: Path, view: InputMode
) -> None:
    before, fingerprint = TertiumMulti().model_ids, TertiumMulti().model.fingerprint
    config = json.loads(config_file.read_text())
    scale = config["scales"][view]
    scale["uncertainty"]["deviation"][0] += 0.01
    scale["percentiles"]["segments"] += 1
    config_file.write_text(json.dumps(config))
    assert TertiumMulti().model_ids == before
    scale["calibration"]["score"][0] /= 2
    config_file.write_text(json.dumps(config))
    assert TertiumMulti().model_ids != before
    # the network says what it said, so that nothing is read anew
    assert TertiumMulti().model.fingerprint == fingerprint


@pytest.mark.parametrize(
    "text",
    [
        "Der Zug nach Hamburg fährt heute nicht um 14 Uhr ab.",
        "Le gouvernement a annoncé de nouvelles mesures pour les petites entreprises.",
    ],
)
def test_a_copy_of_the_source_is_far_below_a_translation(text: str) -> None:
    """Nobody judged copies: the second reading by itself takes some for fair translations."""
    good = {"D": "The train to Hamburg does not leave at 14:00 today."}.get(
        text[0], "The government announced new measures for small businesses."
    )
    fair, copy = TertiumMulti().segment_scores([Segment(good, text), Segment(text, text)])
    assert copy < fair - 0.15
