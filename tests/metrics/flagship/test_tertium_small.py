"""tertium-small: bundled weights, properties of its score, sensitivity to errors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import TITLES, record_calls

from tertium.core.errors import ModelError, UsageError
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import find_scale
from tertium.metrics.bundled.bundled_model import BundledModel
from tertium.metrics.bundled.input_rows import Row, load_network
from tertium.metrics.bundled.row_alignment import RowAlignment, RowSlices
from tertium.metrics.bundled.tertium_small import MODEL, LateScorer, SmallSettings, TertiumSmall
from tertium.models.checkpoint import bundled_models_folder
from tertium.text.language_identification import is_plausibly_english

REFERENCE = "On Tuesday, Mr Smith said that he could not take 1,250 euros for the house in Berlin."
SEGMENT_COUNT = 6  # of the example


@pytest.fixture(scope="module")
def metric() -> TertiumSmall:
    return TertiumSmall()


def score(metric: TertiumSmall, hypothesis: str, reference: str = REFERENCE) -> float:
    return float(metric.segment_scores([Segment(hypothesis, None, (reference,))])[0])


def test_only_a_copy_of_the_reference_scores_one(metric: TertiumSmall) -> None:
    assert score(metric, REFERENCE) == 1.0
    near = score(metric, REFERENCE.replace("house", "home"))
    assert 0.5 < near < 1.0


@pytest.mark.parametrize(
    "damaged",
    [
        REFERENCE.replace("1,250", "1,950"),
        REFERENCE.replace("could not", "could"),
        REFERENCE.replace("he ", "she "),
        REFERENCE.replace("Smith", "Kowalski"),
        REFERENCE.lower(),
        REFERENCE.replace(" ", ""),
        " ".join(sorted(REFERENCE.split())),
        REFERENCE + " The weather was fine and the children were asleep.",
        "",
    ],
)
def test_damage_lowers_the_score(metric: TertiumSmall, damaged: str) -> None:
    assert score(metric, damaged) < score(metric, REFERENCE)


def test_padded_batches_give_the_scores_of_single_pairs(
    metric: TertiumSmall, example: TestSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches as on a GPU, run on a CPU, equal up to rounding; others equal to the last bit."""
    references = [texts[0] for texts in example.references][:SEGMENT_COUNT]
    good, poor = (example.systems[name][:SEGMENT_COUNT] for name in ("good", "poor"))
    left = [*good, *poor, "", "a cat", "", "long words " * 50]
    right = [*references, *references, "a cat", "", "", "long words, " * 60]
    rows: list[Row] = [(text, None, other) for text, other in zip(left, right, strict=True)]
    single = np.array([metric.reader([row])[0, 0] for row in rows])
    for threads in (1, 3):
        with runtime(device="cpu", threads=threads):
            scores = metric.reader(rows)[:, 0]
        assert np.abs(scores - single).max() <= (0 if metric.precision == "int8" else 1e-5)
    make_alignment = RowAlignment.__init__

    def pad(self: RowAlignment, rows: RowSlices, device: Any, *, padded: bool) -> None:
        make_alignment(self, rows, device, padded=True)

    monkeypatch.setattr(RowAlignment, "__init__", pad)
    for limits in ({"token_budget": 8192}, {"batch_size": 3}):
        with runtime(device="cpu", **limits):
            padded = metric.reader(rows)[:, 0]
        assert np.abs(padded - single).max() < 1e-5
    assert len({*single}) > len(references)


def test_other_languages_raise_an_error_with_alternatives() -> None:
    german = "Die Katze sitzt auf der Matte, und der Hund liegt seit gestern vor der Tür."
    with pytest.raises(UsageError, match=r"needs English references.*chrf.*sentsim"):
        TertiumSmall().score([Segment(german, None, (f"{german} {n}",)) for n in "abcde"])
    # repeated references count once, so these are too few words for an error
    assert len(TertiumSmall().score([Segment(german, None, (german,))] * 5).segments) == 5
    assert is_plausibly_english(["Yes."])
    scores = TertiumSmall().score(
        [Segment("今天公园里天气很好。", None, ("今天公园里天气很好。",))]
    )
    assert scores.warnings["reference not English"] == 1


def test_explanation_runs_the_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = record_calls(monkeypatch, LateScorer, "__call__")
    with runtime(cache=False, memory=0):
        TertiumSmall().explain(Segment("a red car", None, ("a blue car", "the blue car")))
    assert [len(rows) for _, rows in calls] == [2]


def test_damaged_weights_raise_an_error(tmp_path: Path) -> None:
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    data = bytearray((folder / "weights.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "weights.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match="damaged"):
        _ = BundledModel(folder).hash
    (folder / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        _ = BundledModel(folder).config


def test_length_penalty_follows_the_settings(metric: TertiumSmall) -> None:
    """Expected: network output minus the penalty for the clipped number of words."""
    left = ["He said it.", "She said it.", "It.", "He said so on Tuesday."]
    right = [REFERENCE, REFERENCE, "It is.", " ".join([REFERENCE] * 9)]
    length = metric.settings.length
    words = [17, 17, length.least, length.most]
    segments = [Segment(a, None, (b,)) for a, b in zip(left, right, strict=True)]
    prepared = metric.prepare(segments)
    expected = prepared.raw - length.cost * np.log(words)
    assert metric.da_raw_scores(prepared) == pytest.approx(expected, abs=1e-6)
    assert TertiumSmall(length="free").da_raw_scores(prepared) is prepared.raw


def test_no_copy_of_the_weights_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged copy in the cache could change scores silently."""
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    load_network.cache_clear()
    with runtime(cache=False):
        assert score(TertiumSmall(), "He said it on Tuesday.") > 0
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.parametrize("file", ["encoder/tokenizer.json", "encoder/config.json"])
def test_damaged_encoder_file_raises_an_error(file: str, tmp_path: Path) -> None:
    folder = tmp_path / MODEL
    shutil.copytree(bundled_models_folder() / MODEL, folder)
    model = BundledModel(folder)
    files = model.settings(SmallSettings).encoder_files
    assert model.encoder_weights(files).folder == folder / "encoder"
    (folder / file).write_bytes((folder / file).read_bytes() + b" ")
    with pytest.raises(ModelError, match=f"{file} is damaged"):
        model.encoder_weights(files)
    (folder / file).unlink()
    with pytest.raises(ModelError, match=f"{file} cannot be read"):
        model.encoder_weights(files)


def test_titles_are_not_refused(metric: TertiumSmall) -> None:
    segments = [Segment(title, None, (title,)) for title in TITLES]
    assert metric.score(segments).warnings == {}
    assert metric.explain(segments[0]).score == 1.0


def test_stated_language_wins() -> None:
    german = "Die Katze sitzt auf der Matte, und der Hund liegt seit gestern vor der Tür."
    segments = [Segment(german, None, (f"{german} {n}",)) for n in "abcde"]
    stated = TertiumSmall(language="en")
    assert stated.score(segments).warnings["reference not English"] == 5
    scales = [
        find_scale(spec, "into English", "reference") for spec in (stated.spec, "tertium-small")
    ]
    assert scales[0] == scales[1] is not None
    with pytest.raises(UsageError, match="not language=de: use tertium-multi or chrf"):
        TertiumSmall(language="de")
