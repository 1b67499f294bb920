"""Contracts of trainable metrics, on a set small enough to be memorized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.builders import WORDS, change_json, make_judgments

from tertium.core.errors import DataError, ModelError, TertiumError, UnknownNameError, UsageError
from tertium.core.segment import Judgment, Preference, Segment
from tertium.data.judgments import JudgmentSet
from tertium.encoders.toy_encoder import ToyEncoder
from tertium.evaluation.training import find_trainable_class
from tertium.metrics.base.loading import load_metric
from tertium.metrics.heads.config import HeadOptions
from tertium.metrics.regression.svr import SVR, SVROptions
from tertium.models.training_data import sort_training_sets

OPTIONS = HeadOptions(epochs=20, rate=2e-2, batch_size=8)
ONE_SETTING = SVROptions(folds=3, c=(10.0,), epsilon=(0.01,), gamma=(1.0,))
HEAD: dict[str, Any] = {"encoder": "toy", "hidden": 8, "dropout": 0.0, "options": OPTIONS}


def preferences(count: int) -> list[Preference]:
    """Make comparisons of perfect translations with worthless ones."""
    segments = [row.segment for row in make_judgments(4 * count, seed=5)[::4]]
    return [Preference(s, replace(s, hypothesis="wrong " * 5), 1.0) for s in segments]


HEADS = ["bilstm", "bilstm-attention", "esim"]


def train(name: str, data: Any, **changes: Any) -> Any:
    """Train a small metric over toy vectors."""
    settings = {"encoders": ["toy"], "options": ONE_SETTING} if name == "svr" else HEAD
    return find_trainable_class(name).train(data, **{**settings, **changes})


def train_quickly(name: str, data: Any, epochs: int = 1, **settings: Any) -> Any:
    """Train for a few epochs; an SVR has none."""
    short = {} if name == "svr" else {"options": replace(OPTIONS, epochs=epochs)}
    return train(name, data, **short, **settings)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Use one thread: faster for small networks, and deterministic."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def change_segment(judgment: Judgment, **changes: Any) -> Judgment:
    return replace(judgment, segment=replace(judgment.segment, **changes))


@cache
def trained(name: str) -> Any:
    """Train a metric on sixteen judgments, once for all tests of a process."""
    return train(name, make_judgments(16))


@pytest.fixture(params=[*HEADS, "svr"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def segment_scores(metric: Any, rows: list[Judgment]) -> np.ndarray:
    return metric.score([row.segment for row in rows]).segments


def test_tiny_dataset_is_memorized(name: str) -> None:
    rows = make_judgments(16)
    r = np.corrcoef(segment_scores(trained(name), rows), [row.score for row in rows])[0, 1]
    assert r > 0.95


def test_equal_seeds_give_equal_weights(name: str) -> None:
    first, second = (train_quickly(name, make_judgments(8), 2) for _ in range(2))
    assert first.checkpoint.hash == second.checkpoint.hash
    if name != "svr":
        other = train(name, make_judgments(8), options=replace(OPTIONS, epochs=2, seed=2))
        assert other != first


def test_several_references_use_best_or_mean(name: str) -> None:
    a, b = "the cat sat", "a big red house"
    single = [trained(name).sentence_score("the cat sat", [r]) for r in (a, b)]
    best, mean = (replace(trained(name), references=value) for value in ("best", "mean"))
    assert best.sentence_score("the cat sat", [a, b]) == pytest.approx(max(single), abs=1e-6)
    assert mean.sentence_score("the cat sat", [a, b]) == pytest.approx(np.mean(single), abs=1e-6)


@pytest.mark.parametrize("against", ["source", "both"])
def test_source_based_variants_read_the_source(name: str, against: str) -> None:
    metric = train_quickly(name, make_judgments(8), 2, against=against)
    assert "source" in metric.required_inputs
    assert ("references" in metric.required_inputs) == (against == "both")
    rows = make_judgments(4, seed=4)
    other = [change_segment(row, source="moon moon") for row in rows]
    assert not np.allclose(segment_scores(metric, rows), segment_scores(metric, other))
    if against == "source":
        bare = [change_segment(row, references=()) for row in rows]
        np.testing.assert_allclose(
            segment_scores(metric, bare), segment_scores(metric, rows), atol=1e-6
        )


@pytest.mark.parametrize(
    ("against", "truncated"), [("reference", (1, 1, 0)), ("source", (1, 0, 1)), ("both", (1, 1, 1))]
)
def test_truncation_is_counted_for_the_texts_that_are_read(
    name: str, against: str, truncated: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = train_quickly(name, make_judgments(8), against=against)
    monkeypatch.setattr(
        ToyEncoder, "find_truncated", lambda _, texts: {t for t in texts if len(t.split()) > 5}
    )
    long, fits = " ".join(WORDS[:9]), "the cat sat"
    for texts, count in zip(
        [(long, fits, fits), (fits, fits, long), (fits, long, fits)], truncated, strict=True
    ):
        hypothesis, source, reference = texts
        result = metric.score([Segment(hypothesis, source, (reference,))])
        assert result.warnings.get("truncated text", 0) == count
        assert f"|trunc:{count}|" in result.signature


def test_signature_lists_several_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Other(ToyEncoder):
        """Truncates after two words."""

        def find_truncated(self, texts: Sequence[str]) -> set[str]:
            return {text for text in texts if len(text.split()) > 2}

        def signature_fields(self) -> dict[str, str]:
            return {"model": "other@1", "prec": "fp32", "maxlen": "2"}

    monkeypatch.setattr(SVR, "encoders", (ToyEncoder(), Other()))
    fields = trained("svr").signature_fields([Segment("a b c", None, ("a b c",))])
    assert fields["model"].startswith("toy@")
    assert fields["model"].endswith("+other@1")
    assert (fields["prec"], fields["maxlen"], fields["trunc"]) == ("fp32", "2", "1")


@pytest.mark.parametrize("name", HEADS)
def test_training_on_comparisons_only(name: str) -> None:
    options = HeadOptions(comparison_epochs=15, comparison_rate=4e-2, items=4)
    metric = train(name, preferences(6), options=options)
    pairs = preferences(6)
    better = metric.score([p.left for p in pairs]).segments
    worse = metric.score([p.right for p in pairs]).segments
    assert (better > worse).all()


def test_training_on_comparisons_and_scores() -> None:
    short = replace(OPTIONS, epochs=2, comparison_epochs=2)
    stages = []
    train(
        "esim",
        [*make_judgments(8), *preferences(3)],
        options=short,
        on_epoch=lambda epoch: stages.append(epoch.stage),
    )
    assert stages == ["comparisons"] * 2 + ["scores"] * 2


def test_interrupted_training_is_resumed(tmp_path: Path) -> None:
    options = replace(OPTIONS, epochs=4, patience=4, comparison_epochs=4)
    data, dev = [*make_judgments(8), *preferences(3)], make_judgments(6, seed=9)
    uninterrupted = train("esim", data, dev=dev, options=options)

    def kill(epoch: Any) -> None:
        if (epoch.stage, epoch.number) == ("scores", 2):
            raise KeyboardInterrupt

    folder = tmp_path / "model"
    arguments = {"dev": dev, "options": options, "folder": folder}
    with pytest.raises(KeyboardInterrupt):
        train("esim", data, on_epoch=kill, **arguments)
    assert np.isfinite(segment_scores(load_metric(str(folder)), dev)).all()
    negated = [replace(row, score=-row.score) for row in dev]  # another epoch would be the best
    with pytest.raises(UsageError, match="other data or settings"):
        train("esim", data, **{**arguments, "dev": negated})
    epochs: list[Any] = []
    resumed = train("esim", data, on_epoch=epochs.append, **arguments)
    assert [(epoch.stage, epoch.number) for epoch in epochs] == [("scores", 3), ("scores", 4)]
    assert resumed == uninterrupted
    assert len((folder / "log.jsonl").read_text().splitlines()) == 8
    assert not (folder / "training.safetensors").exists()


def test_best_epoch_is_selected_by_the_mean_over_language_pairs() -> None:
    from tertium.metrics.heads.head_training import NumberedSets
    from tertium.models.training_data import TrainingSets

    rows = [replace(row, lp=lp) for lp in ("de-en", "fi-en") for row in make_judgments(2)]
    numbered = NumberedSets.from_sets(sort_training_sets(rows), "reference", {})
    assert numbered.groups == ("de-en", "de-en", "fi-en", "fi-en")
    bare = JudgmentSet(name="x", lp="cs-en", judgments=tuple(replace(r, lp="") for r in rows))
    assert set(NumberedSets.from_sets(TrainingSets([bare]), "reference", {}).groups) == {"cs-en"}


def test_rows_without_reference_are_excluded_and_counted(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows = make_judgments(6)
    rows[4] = change_segment(rows[4], references=())
    metric = train_quickly(name, rows, against="reference")
    assert metric.checkpoint.training["data"] == {"judgments": 5}
    assert "1 of 6 translations have no reference" in caplog.text


SIX = make_judgments(6)
INVALID: list[tuple[list[Judgment], dict[str, Any], type[TertiumError], str]] = [
    ([], {}, DataError, "no training data"),
    ([replace(row, score=0.5) for row in SIX], {}, DataError, "nothing can be learned"),
    ([replace(row, score=float("nan")) for row in SIX], {}, DataError, "not numbers"),
    (
        [*SIX[:4], change_segment(SIX[4], source=None)],
        {"against": "source"},
        DataError,
        "segment 5 of judgments has no",
    ),
    (SIX, {"encoder": "minilmm"}, UnknownNameError, "did you mean 'minilm'"),
    (SIX, {"against": "target"}, UsageError, "against=.*expected .*source"),
]


@pytest.mark.parametrize(("rows", "settings", "error", "message"), INVALID)
def test_invalid_data_and_settings_are_refused(
    name: str, rows: Any, settings: dict[str, Any], error: type[TertiumError], message: str
) -> None:
    if name == "svr" and "encoder" in settings:
        settings = {"encoders": [settings["encoder"]]}
    with pytest.raises(error, match=message):
        train(name, rows, **settings)


def test_encoder_with_another_hash_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyEncoder, "weights_hash", property(lambda self: "f" * 64))
    with pytest.raises(ModelError, match="was trained with toy"):
        segment_scores(trained(name), make_judgments(2))


def test_weights_inconsistent_with_settings_are_refused(tmp_path: Path) -> None:
    train("esim", make_judgments(4), options=replace(OPTIONS, epochs=1)).save(tmp_path / "m")
    change_json(tmp_path / "m" / "config.json", config={"hidden": 9})
    with pytest.raises(ModelError, match="do not fit"):
        segment_scores(load_metric(str(tmp_path / "m")), make_judgments(2))


def test_svr_without_support_vectors_is_constant(tmp_path: Path) -> None:
    """All targets are inside the epsilon tube, so there are no support vectors."""
    options = SVROptions(c=(1.0,), epsilon=(10.0,), gamma=(0.1,), folds=3)
    metric = SVR.train(make_judgments(16), encoders=["toy"], options=options).save(tmp_path / "m")
    assert metric.checkpoint.arrays["coefficients"].shape == (0,)
    assert np.ptp(segment_scores(metric, make_judgments(4))) == 0
