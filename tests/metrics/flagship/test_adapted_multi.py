"""tertium-multi adapted to human scores: ridge regression, guard, scale, saving and errors."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from tests.builders import change_json, record_calls

from tertium.cli import main
from tertium.core.errors import DataError, ModelError, UsageError
from tertium.core.segment import Judgment, Segment
from tertium.evaluation.training import train
from tertium.metrics.base.loading import load_metric
from tertium.metrics.bundled import adapted_multi as adaptation
from tertium.metrics.bundled.adapted_multi import AdaptedMulti
from tertium.metrics.bundled.tertium_multi import TertiumMulti

pytest.importorskip("torch")
TEXTS = (
    ("The train does not leave today.", 90.0),
    ("The train leaves today.", 30.0),
    ("No train today.", 70.0),
    ("train leave not", 20.0),
)
JUDGMENTS = [
    Judgment(Segment(text, "Der Zug fährt heute nicht.", ("The train is not leaving today.",)), s)
    for text, s in TEXTS
]


def make_data(rows: int, signal: float, seed: int = 1) -> adaptation.JudgedValues:
    """Rows with human scores that depend on other values than those of the shipped head."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, 40))
    weights = np.concatenate([np.ones(5), np.zeros(35)])
    human = values @ weights + signal * values[:, 20:25].sum(1) + rng.normal(size=rows)
    return adaptation.JudgedValues(
        values=values,
        targets=50 + 10 * human,
        sources=np.arange(rows) // 2,
        shipped=(weights, 0.3),
    )


@pytest.mark.parametrize("rows", [30, 60])  # more columns than rows, and fewer
def test_ridge_equals_its_normal_equations(rows: int) -> None:
    data = make_data(rows, 1.0)
    values, human = data.values, data.targets
    raw = values @ data.shipped[0] + 0.3
    z = (human - human.mean()) / human.std()
    factor, offset = np.polyfit(raw, z, 1)
    centered = values - values.mean(0)
    penalty = 3.0 * (centered**2).sum() / rows
    gram = centered.T @ centered + penalty * np.eye(40)
    expected = np.linalg.solve(gram, centered.T @ (z - factor * raw - offset))
    adapted = adaptation.adapt_head(data, [3.0])[0].predict(values)
    direct = factor * raw + offset + centered @ expected
    np.testing.assert_allclose(adapted, human.mean() + human.std() * direct, rtol=1e-9)


def test_guard_accepts_gains_and_refuses_noise() -> None:
    for signal, is_accepted in ((1.5, True), (0.0, False)):
        study = adaptation.cross_validate(make_data(300, signal), (1.0, 10.0, 100.0))
        if is_accepted:
            adaptation.check_gain(study, 300)
            assert study.unbiased.mean() > study.shipped.mean() + 0.05
        else:
            with pytest.raises(DataError, match="does not clearly agree better with these 300"):
                adaptation.check_gain(study, 300)


def test_folds_hold_out_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = record_calls(monkeypatch, adaptation, "adapt_head")
    adaptation.cross_validate(make_data(60, 1.0), (1.0,))
    folds = [{*data.sources.tolist()} for data, _ in calls]
    assert [len(fold) for fold in folds] == [24] * 5  # sources in training, of 30
    assert len(set.union(*({*range(30)} - fold for fold in folds))) == 30


def test_adapted_scale_keeps_the_order_and_has_the_units_of_human_scores(tmp_path: Path) -> None:
    adapted = train("tertium-multi", JUDGMENTS, adapt="scale", folder=tmp_path / "mine")
    segments = [judgment.segment for judgment in JUDGMENTS]
    scores, base = adapted.score(segments), TertiumMulti(against="both")
    order = np.argsort(
        base.raw_scores([(s.hypothesis, s.source, s.references[0]) for s in segments])
    )
    assert np.argsort(scores.segments).tolist() == order.tolist()
    assert scores.segments.min() >= 20
    assert scores.segments.max() > 60
    again = load_metric(str(tmp_path / "mine"))
    assert isinstance(again, AdaptedMulti)
    assert again.score(segments).segments.tolist() == scores.segments.tolist()
    assert again.score(segments[:1]).segments[0] == scores.segments[0]
    assert again.score([Segment("", segments[0].source, segments[0].references)]).system == 20
    assert "|against:source+reference|" in scores.signature
    assert base.model_ids[0] in scores.signature
    assert again.uncertainty(scores.segments)[0] > 0
    assert again.explain(segments[0]).score == scores.segments[0]
    spans = dataclasses.replace(base).spans(segments)
    assert again.spans(segments) == spans


def test_input_mode_follows_the_judgments() -> None:
    rows = [Judgment(dataclasses.replace(j.segment, references=()), j.score) for j in JUDGMENTS]
    adapted = train("tertium-multi", rows, adapt="scale")
    assert adapted.required_inputs == {"source"}
    assert (
        train("tertium-multi:against=source", JUDGMENTS, adapt="scale").config.against == "source"
    )


def test_useless_and_reversed_judgments_raise_an_error() -> None:
    with pytest.raises(DataError, match="4 translations of 1 sources are too few"):
        train("tertium-multi", JUDGMENTS)
    reversed_scores = [Judgment(j.segment, -j.score) for j in JUDGMENTS]
    with pytest.raises(UsageError, match="check that higher human scores are better"):
        train("tertium-multi", reversed_scores, adapt="scale")


def test_models_for_other_weights_and_with_trained_layers_raise_an_error(tmp_path: Path) -> None:
    for name, settings, message in (
        ("other", {"model_sha256": "0" * 64}, "adapts tertium-multi@00000000, but"),
        ("older", {"layers": 2}, r"layers .*no longer supported; train again"),
    ):
        train("tertium-multi", JUDGMENTS, adapt="scale", folder=tmp_path / name)
        change_json(tmp_path / name / "config.json", config=settings)
        with pytest.raises(ModelError, match=message):
            load_metric(str(tmp_path / name)).score([JUDGMENTS[0].segment])


def test_unused_options_raise_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="does not use --strengths"):
        train("tertium-multi", JUDGMENTS, adapt="scale", strengths=(2.0,))
    with pytest.raises(UsageError, match="adapt='layers': expected 'head' or 'scale'"):
        train("tertium-multi", JUDGMENTS, adapt="layers")
    command = ["train", "tertium-multi", "--human", "mine.jsonl", "-o", str(tmp_path / "model")]
    assert main([*command, "--adapt", "layers"]) == 2
    assert "invalid choice: 'layers'" in capsys.readouterr().err


def test_command_reports_cross_validation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values of the head are replaced, so that adapting pays."""
    table = make_data(120, 2.0)
    reader = type(TertiumMulti().reader)
    monkeypatch.setattr(reader, "head_values", lambda _, rows: list(table.values[: len(rows)]))
    monkeypatch.setattr(reader, "last_layer", lambda _, mode: table.shipped)
    lines = [
        json.dumps({"source": f"Satz {s}", "hypothesis": f"line {n}", "score": float(h)})
        for n, (s, h) in enumerate(zip(table.sources, table.targets, strict=True))
    ]
    data, folder = tmp_path / "mine.jsonl", tmp_path / "model"
    data.write_text("\n".join(lines))
    assert main(["train", "tertium-multi", "--human", str(data), "-o", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "r on held-out sources: 0." in printed
    assert "(tertium-multi: 0." in printed
    training = json.loads((folder / "config.json").read_text())["training"]["cross-validation"]
    assert training["adapted"] > training["tertium-multi"]
