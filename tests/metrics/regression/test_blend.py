"""Blends of metrics: weights, missing scores, explanations, storage and cross-validation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.metrics.judge.fake_server import answer_by_length, run_server, translation_of
from tests.partial_metric import UNSCORED, partial  # noqa: F401

from tertium.core.errors import DataError, ModelError, TertiumError, UsageError
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.evaluation.training import train
from tertium.metrics.base.judge_run import JudgeConnection, judge_server
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE
from tertium.metrics.blend.blend_metric import Blend, read_constants
from tertium.models.blend_model import fit_blend
from tertium.models.ridge import MAX_Z_SCORE
from tertium.models.trained_model import load_checkpoint
from tertium.output.page.segment_browser import render_explanation
from tertium.testing import check_metric

WORDS = "the cat sat on a mat while two dogs barked at it and nobody came home".split()


def make_judgments(count: int = 48, systems: int = 4) -> list[Judgment]:
    """Create translations with wrong words; the human score depends on their number."""
    rng = np.random.default_rng(45)
    rows = []
    for n in range(count):
        item, system = divmod(n, systems)
        reference = np.random.default_rng(item).permutation(WORDS)[:8].tolist()
        wrong = int(rng.integers(0, 6)) + (system == 0)
        hypothesis = " ".join(["wrong"] * wrong + reference[wrong:])
        segment = Segment(hypothesis, f"source {item}", (" ".join(reference) + f" {item}",))
        score = 80.0 - 9 * wrong + float(rng.normal(0, 5))
        names = {"item": str(item), "system": "ABCDEFG"[system], "document": f"d{item // 3}"}
        rows.append(Judgment(segment, score, lp="de-en", **names))
    return rows


DATA = make_judgments()


def make_set(rows: list[Judgment]) -> JudgmentSet:
    return JudgmentSet(name="mine", lp="de-en", judgments=tuple(rows))


def simulate(count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Human scores 2a + b + noise, of metrics a, b and one that is not related."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=(count, 3)) * [1.0, 1.0, 5.0]
    targets = values @ [2.0, 1.0, 0.0] + rng.normal(0, 0.5, count)
    return values, targets, np.arange(count) // 8


def test_weights_are_those_of_the_simulation() -> None:
    values, targets, groups = simulate()
    weights = fit_blend(("a", "b", "c"), values, targets, groups).coefficients
    assert list(weights) == ["a", "b", "c"]
    assert weights["a"] == pytest.approx(2 * values[:, 0].std(), rel=0.1)
    assert weights["b"] == pytest.approx(values[:, 1].std(), rel=0.1)
    assert 0 <= weights["c"] < 0.05
    negated = fit_blend(("a", "b", "c"), values * [1, -1, 1], targets, groups)
    assert (negated.weights >= 0).all()
    assert negated.coefficients["b"] == 0
    values[:395, 0] = np.nan
    with pytest.raises(DataError, match="only 5 of 400 judgments have scores of all of a, b, c"):
        fit_blend(("a", "b", "c"), values, targets, groups)


def simulate_missing(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlated metrics a, b and c, of which a has no score for half of the bad translations."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=2000)
    values = quality[:, None] + rng.normal(0, [0.5, 1.0, 1.0], (2000, 3))
    targets = 50 + 10 * quality
    values[(quality < -0.5) & (rng.random(2000) < 0.5), 0] = np.nan
    return values, targets, np.arange(2000) // 8


@pytest.mark.parametrize("normalization", ["z", "rank"])
def test_a_missing_score_is_replaced_by_its_bias(normalization: Any) -> None:
    """Translations without a are about 5 points worse than b and c say."""
    names = ("a", "b", "c")
    blend = fit_blend(names, *simulate_missing(1), normalization=normalization)
    ignored = replace(blend, missing_biases=np.zeros(3))
    values, targets, _ = simulate_missing(2)
    is_missing = np.isnan(values[:, 0])
    error, error_if_ignored = (
        np.sqrt(np.mean((model.predict(values) - targets)[is_missing] ** 2))
        for model in (blend, ignored)
    )
    assert error < 0.75 * error_if_ignored  # about 4.9 and 7.3 points
    assert np.mean((blend.predict(values) - targets)[is_missing]) == pytest.approx(0, abs=0.5)
    assert blend.missing_biases[0] == pytest.approx(-5, abs=0.5)
    assert blend.missing_biases[1:].tolist() == [0, 0]
    correlation, correlation_if_ignored = (
        np.corrcoef(model.predict(values), targets)[0, 1] for model in (blend, ignored)
    )
    assert correlation > correlation_if_ignored + 0.01


def test_other_metrics_are_scaled_by_what_they_say_about_a_missing_one() -> None:
    """Equal metrics replace each other; unrelated metrics do not."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 4000))
    groups, without_last = np.arange(4000) // 8, np.array([True, False])
    equal = fit_blend(("a", "b"), np.column_stack([a, a]), a, groups)
    assert equal.factor_for(without_last) == pytest.approx(2, abs=0.01)
    unrelated = fit_blend(("a", "b"), np.column_stack([a, b]), a + b, groups)
    assert unrelated.factor_for(without_last) == pytest.approx(1, abs=0.05)


def test_complete_rows_have_the_scores_of_plain_ridge_regression() -> None:
    values, targets, groups = simulate()
    values[:100, 0] = np.nan
    blend = fit_blend(("a", "b", "c"), values, targets, groups)
    complete = fit_blend(
        ("a", "b", "c"), values[100:], targets[100:], groups[100:], strengths=(blend.strength,)
    )
    np.testing.assert_array_equal(blend.predict(values[100:]), complete.predict(values[100:]))
    assert np.isnan(blend.predict(np.full((2, 3), np.nan))).all()
    mixed = np.vstack([values[:3], values[-3:], np.full((1, 3), np.nan)])
    one_by_one = [blend.predict(row[None])[0] for row in mixed]
    np.testing.assert_array_equal(blend.predict(mixed), one_by_one)


def test_untrained_blend_is_a_weighted_mean_of_z_scores() -> None:
    blend = load_metric("blend:metrics=chrf+bleu,weights=3+1")
    segments = [row.segment for row in DATA[:6]]
    constants = read_constants()["specs"]
    z = [
        (load_metric(spec).score(segments).segments - own["mean"]) / own["deviation"]
        for spec, own in ((spec, constants[spec]) for spec in ("chrf", "bleu"))
    ]
    np.testing.assert_allclose(blend.score(segments).segments, 0.75 * z[0] + 0.25 * z[1])
    assert blend.spec == "blend:metrics=chrf+bleu,weights=3.0+1.0"
    assert load_metric(blend.spec) == blend != load_metric("blend:metrics=chrf+bleu")
    assert "|parts:chrF+BLEU|weights:0.75+0.25|" in blend.score(segments).signature
    empty = blend.score([replace(segments[0], hypothesis="")]).system
    assert empty == -MAX_Z_SCORE
    check_metric(blend, segments)
    assert isinstance(blend, Blend)
    assert blend.fitted.factor_for(np.array([True, False])) == pytest.approx(4 / 3)


def test_documented_metrics_have_constants() -> None:
    for spec in ("tertium-multi", "chrf++", "judge:model=x", "judge:model=x,protocol=da"):
        metric = load_metric(f'blend:metrics="chrf+[{spec}]"')
        assert isinstance(metric, Blend)
        assert len(metric.coefficients) == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("blend:metrics=chrf", "a blend has at least 2 metrics, not 1"),
        ("blend:metrics=chrf+chrf", "given twice"),
        ("blend:metrics=chrf+bleu,weights=1", "1 weights for 2 metrics"),
        ("blend:weights=1+2", "2 weights for 0 metrics"),
        ("blend:metrics=chrf+bleu,weights=1+-1", "at least 0"),
        ("blend:metrics=chrf+bleu,weights=0+0", "one of them above 0"),
        ("blend:metrics=chrf+bleu,model=x", "omit metrics, or omit model"),
        ("blend:metrics=chrf+[bleu:lowercase=true]", "no known mean and deviation: train"),
        ("blend:metrics=chrf+bluu", "did you mean 'bleu'"),
    ],
)
def test_invalid_blends_are_errors(spec: str, message: str) -> None:
    with pytest.raises(TertiumError, match=message):
        load_metric(spec).score([DATA[0].segment])


def test_trained_blend_is_saved_and_loaded(tmp_path: Path) -> None:
    blend = train("blend:metrics=chrf+ter", DATA, folder=tmp_path / "blend")
    again = load_metric(str(tmp_path / "blend"))
    segments = [row.segment for row in DATA]
    assert again == blend
    np.testing.assert_array_equal(again.score(segments).segments, blend.score(segments).segments)
    scores = np.array([row.score for row in DATA])
    assert np.corrcoef(blend.score(segments).segments, scores)[0, 1] > 0.8
    assert blend.score(segments).system == pytest.approx(scores.mean(), abs=1)
    assert list(blend.coefficients) == sorted(blend.coefficients, key=blend.coefficients.get)[::-1]
    card = (tmp_path / "blend" / "README.md").read_text()
    assert "- metrics: chrf, ter" in card
    assert "- weights: " in card


def test_stored_scores_are_used_instead_of_the_metric() -> None:
    values = iter(range(1000))
    rows = [replace(row, metric_scores={"chrf": row.score, "x": next(values)}) for row in DATA]
    blend = train("blend:metrics=chrf+ter", [make_set(rows)])
    assert blend.coefficients["chrf"] > 5 * blend.coefficients["ter"]


def test_changed_models_of_a_part_are_refused(tmp_path: Path) -> None:
    part = train("bleu-r", DATA, folder=tmp_path / "part", strengths=(1.0,))
    blend = train(f"blend:metrics=chrf+[{part.spec}]", DATA, folder=tmp_path / "blend")
    assert blend.score([DATA[0].segment]).segments.shape == (1,)
    train("bleu-r", DATA[:24], folder=tmp_path / "part", strengths=(1.0,), overwrite=True)
    load_checkpoint.cache_clear()
    with pytest.raises(ModelError, match=r"was trained with bleu-r@.*train the blend again"):
        load_metric(str(tmp_path / "blend")).score([DATA[0].segment])
    unsaved = train("bleu-r", DATA, strengths=(1.0,))
    with pytest.raises(UsageError, match="was not saved"):
        train(f"blend:metrics=chrf+[{unsaved.spec}]", DATA)


def test_part_without_a_score_falls_back(partial: str) -> None:  # noqa: F811
    blend = train("blend:metrics=chrf+partial", DATA)
    unscored = replace(DATA[0].segment, hypothesis=UNSCORED)
    scores = blend.score([DATA[1].segment, unscored])
    assert np.isfinite(scores.segments).all()
    assert scores.warnings == {"scored without partial": 1}
    chrf = blend.part_scores([unscored])[:, 0]
    assert blend.fitted.missing_biases.tolist() == [0, 0]  # no judgment was without a score
    factor = blend.fitted.factor_for(np.array([True, False]))
    part = (chrf - blend.fitted.mean[0]) / blend.fitted.scale[0] * blend.fitted.weights[0]
    lowest = min(row.score for row in DATA)
    assert scores.segments[1] == pytest.approx(max(blend.fitted.bias + factor * part[0], lowest))


def test_a_missing_score_is_explained_by_its_bias(partial: str) -> None:  # noqa: F811
    rows = [replace(row, segment=replace(row.segment, hypothesis=UNSCORED)) for row in DATA[:12]]
    rows = [*DATA[12:], *(replace(row, score=40.0) for row in rows)]
    blend = train("blend:metrics=chrf+partial", rows)
    explanation = blend.explain(rows[-1].segment)
    parts = {c.feature: c.contribution for c in explanation.attribution.contributions}
    assert parts["no score of partial"] == blend.fitted.missing_biases[1] != 0
    assert explanation.score == pytest.approx(explanation.attribution.perfect + sum(parts.values()))
    json.dumps(explanation.as_dict(), allow_nan=False)


def test_no_score_of_any_part_has_no_weight(partial: str) -> None:  # noqa: F811
    rows = [replace(row, score=row.score + 500) for row in DATA]
    blend = train("blend:metrics=partial+[partial:unscored=x]", rows)
    segment = replace(DATA[0].segment, hypothesis=UNSCORED)
    assert np.isfinite(blend.score([segment]).segments).all()
    other = replace(blend.parts[1], unscored=UNSCORED)
    object.__setattr__(blend, "parts", (blend.parts[0], other))
    scores = blend.score([DATA[0].segment, segment])
    assert np.isnan(scores.segments[1])
    assert scores.system == scores.segments[0]
    assert scores.warnings[NO_SCORE] == 1


def answer_unless_bad(payload: Any) -> str:
    """Give no valid answer for translations with three wrong words."""
    is_bad = translation_of(payload).startswith("wrong wrong wrong")
    return "I cannot say." if is_bad else answer_by_length(payload)


def test_judge_without_an_answer_falls_back(tmp_path: Path) -> None:
    judge = "judge:model=tiny,protocol=da,retries=0"
    with run_server() as server, judge_server(JudgeConnection(judge_url=server.url)):
        server.answer = answer_unless_bad
        blend = train(f'blend:metrics="[{judge}]+chrf"', DATA, folder=tmp_path / "blend")
        segments = [row.segment for row in DATA]
        failed = sum(s.hypothesis.startswith("wrong wrong wrong") for s in segments)
        scores = blend.score(segments)
        scored = next(s for s in segments if not s.hypothesis.startswith("wrong wrong"))
        explanation = blend.explain(scored)
    assert 0 < failed < 38
    assert np.isfinite(scores.segments).all()
    assert scores.warnings[f"scored without {judge}"] == failed
    assert {c.feature for c in explanation.attribution.contributions} >= {judge, "chrf"}
    assert explanation.reasons == ("short",)


def test_contributions_sum_to_the_score() -> None:
    blend = train("blend:metrics=chrf+ter", DATA)
    for segment in (DATA[0].segment, Segment("no no", None, ("yes",))):
        explanation = blend.explain(segment)
        parts = explanation.attribution
        total = parts.perfect + sum(c.contribution for c in parts.contributions)
        assert explanation.score == pytest.approx(total)
    values = {c.feature: c.value for c in parts.contributions}
    assert values["ter"] == load_metric("ter").score([segment]).system
    assert "an average translation scores" in str(explanation)
    assert "reference" not in str(render_explanation(explanation))
    json.dumps(explanation.as_dict())


def test_training_without_metrics_says_how_to_choose_them() -> None:
    with pytest.raises(UsageError, match=r"-m \(tertium train blend -m chrf tertium-multi"):
        Blend.train(DATA)
