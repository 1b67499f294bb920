"""Contracts of every trainable class: train, save, load, equality, errors."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import WORDS, change_json, make_judgments, make_preferences

from tertium.core.errors import DataError, ModelError, UsageError
from tertium.core.segment import Judgment, Preference, Segment
from tertium.evaluation.training import (
    TrainingPlan,
    find_trainable_class,
    train,
    trainable_classes,
    trainable_options,
)
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker
from tertium.metrics.bundled.tertium_base import TertiumBase
from tertium.models.checkpoint import CARD, MARKER, bundled_models_folder
from tertium.models.trained_model import TrainedModel, load_checkpoint

NAMES = [cls.name for cls in trainable_classes()]
# options that make training fast, by an option that the class has
QUICK: dict[str, dict[str, Any]] = {
    "epochs": {"epochs": 1},
    "folds": {"folds": 2, "c": (1.0,), "gamma": (0.1,)},
    "strengths": {"strengths": (1.0,)},
    "adapt": {"adapt": "scale"},
}
SPECS = {
    "bilstm": "encoder=toy,hidden=2",
    "blend": "metrics=chrf+bleu",
    "bilstm-attention": "encoder=toy,hidden=2",
    "esim": "encoder=toy,hidden=2",
    "svr": "encoders=toy",
    "pairwise": "features=bleucomp+chrf",
    "rte-r": "groups=alignment,vectors=toy",
    "mt-rte-r": "groups=alignment,vectors=toy",
}


def test_all_trainable_classes_are_tested() -> None:
    assert {"bilstm", "bilstm-attention", "esim", "svr", "pairwise"} <= set(NAMES)
    assert {"bleu-r", "nist-r", "ter-r", "meteor-r", "mt-r", "rte-r", "mt-rte-r"} <= set(NAMES)


def data_for(cls: type[TrainedModel], seed: int) -> list[Any]:
    return (
        make_judgments(seed=seed) if "scores" in cls.accepted_data else make_preferences(seed=seed)
    )


@lru_cache(maxsize=32)
def trained(name: str, seed: int = 1) -> Any:
    """Train a model quickly (cached)."""
    cls = find_trainable_class(name)
    supported = {option.name for option in trainable_options(cls)}
    options = {k: v for key, quick in QUICK.items() if key in supported for k, v in quick.items()}
    if "adapt" in supported:
        del options["strengths"]  # not used by --adapt scale
    spec = f"{name}:{SPECS[name]}" if name in SPECS else name
    return train(spec, data_for(cls, seed), dev=data_for(cls, 7), **options)


def score_unseen(model: Any) -> np.ndarray:
    """Score segments that are not in the training data."""
    segments = [row.segment for row in make_judgments(4, seed=5)]
    if model.kind == "metric":
        scores: np.ndarray = model.score(segments).segments
        return scores
    return model.prefer(segments, [dataclasses.replace(s, hypothesis="noon") for s in segments])


def load(cls: type[TrainedModel]) -> Callable[[str], Any]:
    return load_metric if cls.kind == "metric" else load_ranker


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_saved_model_equals_loaded_model(name: str, tmp_path: Path) -> None:
    model = trained(name)
    saved, again = model.save(tmp_path / "m"), load(type(model))
    assert again(str(tmp_path / "m")) == saved == model == again(saved.spec)
    assert hash(saved) == hash(model)
    assert type(saved).load(tmp_path / "m").weights_hash == model.weights_hash
    load_checkpoint.cache_clear()
    assert (score_unseen(again(str(tmp_path / "m"))) == score_unseen(model)).all()


def test_equality_depends_on_weights_not_on_folder(name: str, tmp_path: Path) -> None:
    model, other = trained(name), trained(name, 2)
    assert model.weights_hash != other.weights_hash
    assert model != other
    here, there = model.save(tmp_path / "here"), model.save(tmp_path / "there")
    assert here.model != there.model
    assert here == there
    shutil.copytree(tmp_path / "here", tmp_path / "copy")
    assert type(model).load(tmp_path / "copy") == here
    other.save(tmp_path / "there")
    assert here != there  # the folder now has other weights


def test_fields_are_saved_with_the_model(tmp_path: Path) -> None:
    changed = dataclasses.replace(trained("svr"), references="mean")
    saved = changed.save(tmp_path / "m")
    assert load_metric(str(tmp_path / "m")) == saved == changed != trained("svr")
    assert "- references: mean" in (tmp_path / "m" / CARD).read_text()
    trained("svr").save(tmp_path / "m")  # default fields
    assert load_metric(str(tmp_path / "m")) == trained("svr")
    change_json(tmp_path / "m" / "config.json", fields={"precision": 3})
    load_checkpoint.cache_clear()
    with pytest.raises(ModelError, match=r"fields.precision is the number 3, expected one"):
        load_metric(str(tmp_path / "m"))


def test_model_saved_in_working_directory_is_not_the_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved = trained("svr").save("")
    assert saved.weights_hash == trained("svr").weights_hash


def test_the_spec_of_a_model_that_was_not_saved_is_an_error(name: str) -> None:
    model = trained(name)
    with pytest.raises(UsageError, match=r"was not saved: save it with `metric.save\(FOLDER\)`"):
        score_unseen(load(type(model))(model.spec))


SCORE_PICKLES = """
import json, pickle
for model, arguments in pickle.load(open("models.pickle", "rb")):
    scores = getattr(model, "prefer" if model.kind == "ranker" else "score")(*arguments)
    print(json.dumps(getattr(scores, "segments", scores).tolist()))
"""


def test_unsaved_models_are_pickled_with_their_weights(tmp_path: Path) -> None:
    models = [trained(name) for name in ("bleu-r", "rte-r", "svr", "bilstm", "pairwise")]
    segments = [row.segment for row in make_judgments(4, seed=5)]
    other = [dataclasses.replace(s, hypothesis="noon") for s in segments]
    calls = [(m, (segments, other) if m.kind == "ranker" else (segments,)) for m in models]
    (tmp_path / "models.pickle").write_bytes(pickle.dumps(calls))
    command = [sys.executable, "-c", SCORE_PICKLES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for model, line in zip(models, done.stdout.splitlines(), strict=True):
        np.testing.assert_allclose(json.loads(line), score_unseen(model), atol=1e-6)


def test_folder_of_another_class_is_refused(name: str, tmp_path: Path) -> None:
    trained(name).save(tmp_path / "m")
    other: Any = find_trainable_class("svr" if name != "svr" else "esim")
    with pytest.raises(ModelError, match=f"expected a model of {other.name}, got {name}"):
        other.load(tmp_path / "m")
    mismatched: Any = other(model=str(tmp_path / "m"))
    with pytest.raises(ModelError, match=f"expected a model of {other.name}, got {name}"):
        _ = mismatched.checkpoint


def test_model_card_is_written_and_edited_cards_are_kept(name: str, tmp_path: Path) -> None:
    trained(name).save(tmp_path)
    text = (tmp_path / CARD).read_text()
    assert text.startswith(MARKER)
    assert f"`{name}`" in text
    assert "License" in text
    assert not [
        line for line in text.splitlines() if line.rstrip().endswith(":") and line[0] == "-"
    ]
    (tmp_path / CARD).write_text("mine")
    trained(name).save(tmp_path)
    assert (tmp_path / CARD).read_text() == "mine"


def test_unsupported_training_data_are_refused(name: str) -> None:
    cls = find_trainable_class(name)
    with pytest.raises(DataError, match="no training data"):
        cls.train([])
    for kind, rows in (("scores", make_judgments()), ("comparisons", make_preferences())):
        if kind not in cls.accepted_data:
            with pytest.raises(
                UsageError, match=r"learns from .*(--train|--preferences).*; it cannot use"
            ):
                cls.train(rows)


def test_training_data_overlapping_dev_or_held_out_are_removed(name: str) -> None:
    rows = data_for(find_trainable_class(name), 1)
    with pytest.raises(DataError, match="nothing is left"):
        train(name, rows, dev=rows)
    with pytest.raises(DataError, match="nothing is left"):
        train(name, rows, held_out=rows)


GERMAN = (
    "Die Katze schlief den ganzen Tag auf dem Sofa und wachte erst am Abend wieder auf.",
    "Der Zug nach Hamburg fährt heute wegen einer Störung erst um sieben Uhr ab.",
    "Niemand wusste, warum das Fenster offen stand und das Licht noch brannte.",
    "Wir haben gestern lange mit unseren Nachbarn über den neuen Garten gesprochen.",
)


class TrainingStarted(Exception):
    """Raised instead of training."""


@pytest.fixture
def warnings_before_training(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[..., list[str]]:
    """Return the warnings that are logged before a class is fitted to texts."""

    def fit(job: Any) -> Any:
        raise TrainingStarted

    def warnings(cls: Any, references: Sequence[str], **settings: Any) -> list[str]:
        caplog.clear()
        monkeypatch.setattr(cls, "fit", fit)
        segments = [Segment(text[:40], f"{text} x", (text,)) for text in references]
        rows: list[Any] = [Judgment(s, len(s.hypothesis)) for s in segments]
        if "scores" not in cls.accepted_data:
            other = [dataclasses.replace(s, hypothesis="noon") for s in segments]
            rows = [Preference(*pair, 1.0) for pair in zip(segments, other, strict=True)]
        with pytest.raises(TrainingStarted):
            cls.train(rows, **settings)
        return caplog.messages

    return warnings


def test_training_english_models_on_another_language_is_a_warning(
    name: str, warnings_before_training: Callable[..., list[str]]
) -> None:
    cls = find_trainable_class(name)
    english = [" ".join(np.random.default_rng(n).permutation(WORDS)) for n in range(4)]
    assert not warnings_before_training(cls, english)
    messages = "\n".join(warnings_before_training(cls, GERMAN))
    assert ("4 of 4 training segments" in messages) == (
        name not in ("blend", "bleu-r", "nist-r", "ter-r", "tertium-multi-adapted")
    )


@pytest.mark.parametrize(
    ("name", "settings", "warns"),
    [
        ("svr", {"encoders": ("use",)}, False),
        ("svr", {"encoders": ("use", "minilm")}, True),
        ("svr", {"against": "source"}, True),
        ("esim", {"encoder": "toy"}, False),
        ("pairwise", {"features": ("bleu",)}, False),
        ("pairwise", {"features": ("bleu", "nist", "ter", "meteor")}, True),
        ("pairwise", {"features": ("bleu",), "vectors": ("minilm",)}, True),
        ("pairwise", {"features": ("bleu",), "vectors": ("syntax25",)}, True),
    ],
)
def test_language_warnings_of_training_depend_on_the_settings(
    name: str,
    settings: dict[str, Any],
    warns: bool,
    warnings_before_training: Callable[..., list[str]],
) -> None:
    cls = find_trainable_class(name)
    assert bool(warnings_before_training(cls, GERMAN, **settings)) == warns


def test_recipes_are_valid_settings_and_options(name: str) -> None:
    cls = find_trainable_class(name)
    assert set(cls.recipes) == {"published", "ours"}
    for recipe, preset in cls.recipes.items():
        assert preset.description
        assert isinstance(preset.options, cls.options)
        kind: Any = cls.settings or cls
        assert kind(**TrainingPlan.make(name, recipe).settings)
    plan = TrainingPlan.make(f"{name}:{SPECS[name]}") if name in SPECS else TrainingPlan.make(name)
    assert plan.cls is cls
    with pytest.raises(UsageError, match="unknown recipe 'theirs'"):
        TrainingPlan.make(name, "theirs")
    with pytest.raises(UsageError, match=f"{name} has no option --epoch-s"):
        TrainingPlan.make(name, epoch_s=3)


def test_spec_and_arguments_override_the_recipe() -> None:
    plan = TrainingPlan.make("esim:hidden=3", "ours", epochs=2)
    assert plan.settings == {"difference": "absolute", "input_dropout": 0.0, "hidden": 3}
    assert (plan.options.epochs, plan.options.schedule) == (2, "linear")
    assert TrainingPlan.make("esim", "published").settings == {}


def test_bundled_models_are_equal_by_weights(tmp_path: Path) -> None:
    shutil.copytree(bundled_models_folder() / "tertium-base", tmp_path / "base")
    shutil.copytree(bundled_models_folder() / "bleu-r", tmp_path / "bleu-r")
    assert TertiumBase(folder=str(tmp_path / "base")) == TertiumBase()
    assert TertiumBase(references="mean") != TertiumBase()
    assert load_metric("tertium-small") == load_metric("tertium-small")
    assert load_metric(str(tmp_path / "bleu-r")) == load_metric("bleu-r")
