"""Regressions of Pado et al. (2009): examples of the paper, training, storage, explanations."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from tests.builders import record_calls

import tertium
from tertium.core.errors import DataError, ModelError, UnknownNameError
from tertium.core.resampling import FOLDS
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.metrics import load_metric
from tertium.metrics.base.explanation import FeatureAttribution
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.text_warnings import count_flags
from tertium.metrics.lexical.meteor_metric import METEOR
from tertium.metrics.regression import linear_metric
from tertium.metrics.regression.linear_metric import RegressionOptions
from tertium.metrics.regression.regression_metrics import BLEUR, RTER, TERR
from tertium.models import ridge

PIRATES = "Three aid workers were kidnapped by pirates."
VIRUS = "No one was infected by the virus."
# Pado et al. 2009, table 2: (reference, translation), human scores 6 and 1 of 7
GOOD = ("I shall face that fact today.", "Today I will face this reality.")
BAD = (
    "What does BBC's Haroon Rasheed say after a visit to Lal Masjid Jamia Hafsa complex? There are "
    "no underground tunnels in Lal Masjid or Jamia Hafsa. The presence of the foreigners could not "
    "be confirmed as well. What became of the extremists like Abuzar?",
    "BBC Haroon Rasheed Lal Masjid, Jamia Hafsa after his visit to Auob Medical Complex says Lal "
    "Masjid and seminary in under a land mine, not also been confirmed the presence of foreigners "
    "could not be, such as Abu by the extremist?",
)
REGRESSIONS = ("bleu-r", "nist-r", "ter-r", "meteor-r", "mt-r", "rte-r", "mt-rte-r")


@pytest.fixture(scope="module")
def rter() -> RTER:
    return RTER()


def explain(metric: Metric, hypothesis: str, *references: str) -> FeatureAttribution:
    attribution = metric.explain(Segment(hypothesis, None, references)).attribution
    assert attribution is not None
    return attribution


def test_figure_1_of_the_paper_is_reproduced(rter: RTER) -> None:
    bottom = explain(rter, "Three aid workers were kidnapped.", PIRATES)
    assert bottom.follows == {"forward": True, "backward": False}
    assert bottom.faults == ("the hypothesis drops the agent 'by pirates'",)
    top = explain(rter, "The virus did not infect anybody.", VIRUS)
    assert top.follows == {"forward": True, "backward": True}
    assert top.faults == ()
    assert "'infect' and 'infected' are both negated" in top.merits
    assert any("active and passive with the same arguments" in merit for merit in top.merits)


def test_modal_adverbs_break_entailment(rter: RTER) -> None:
    # example 2: no entailment, but only a slightly lower score, since all else is the same
    reference = "Peter is possibly from Lincolnshire."
    hypothesis = "Peter is certainly from Lincolnshire."
    attribution = explain(rter, hypothesis, reference)
    score = rter.sentence_score(hypothesis, [reference])
    assert attribution.follows == {"forward": False, "backward": False}
    assert "main clauses differ in modality" in attribution.faults[0]
    unrelated = rter.sentence_score("Apples are sold by the market.", [reference])
    assert unrelated < score < attribution.perfect
    assert attribution.perfect - score < (attribution.perfect - unrelated) / 2


def test_table_2_of_the_paper_is_reproduced(rter: RTER) -> None:
    good, bad = explain(rter, GOOD[1], GOOD[0]), explain(rter, BAD[1], BAD[0])
    scores = [rter.sentence_score(text, [reference]) for reference, text in (GOOD, BAD)]
    assert scores[0] > scores[1] + 0.5
    meteor = METEOR()  # ranks them in the wrong order, like METEORR in the paper
    assert meteor.sentence_score(GOOD[1], [GOOD[0]]) < meteor.sentence_score(BAD[1], [BAD[0]]) + 0.1
    # "Alignment fact/reality: hypernymy is ok in upward monotone context"
    assert "'reality' follows from 'fact' in its context" in good.merits
    assert not any("drops" in fault or "adds" in fault for fault in good.faults)
    # "Missing alignments for subjects; important entities cannot be aligned"
    fired = {part.feature for part in bad.contributions if part.fired}
    assert {"backward.unaligned.subject", "forward.unaligned.unknown"} <= fired
    assert "backward.root.elsewhere" in fired


@pytest.mark.parametrize("name", REGRESSIONS)
def test_contributions_add_up_to_the_score(name: str) -> None:
    metric = load_metric(name)
    perfect = explain(metric, PIRATES, PIRATES)
    assert metric.sentence_score(PIRATES, [PIRATES]) == pytest.approx(perfect.perfect)
    assert perfect.faults == ()
    segment = Segment("Three aid workers were caught.", None, (PIRATES,))
    explanation = metric.explain(segment)
    attribution = explanation.attribution
    assert attribution is not None
    total = attribution.perfect + sum(part.contribution for part in attribution.contributions)
    assert explanation.score == pytest.approx(total)
    assert explanation.score == pytest.approx(metric.score([segment]).segments[0])
    difference = explanation.score - attribution.perfect
    assert sum(attribution.groups.values()) == pytest.approx(difference)
    json.dumps(explanation.as_dict(), allow_nan=False)


def test_best_of_several_references_counts(rter: RTER) -> None:
    texts = ("Apples are cheap.", "The workers were taken by pirates.", PIRATES)
    both = rter.sentence_score("Pirates kidnapped three aid workers.", texts)
    each = [rter.sentence_score("Pirates kidnapped three aid workers.", [t]) for t in texts]
    assert both == max(each)
    attribution = explain(rter, "Pirates kidnapped three aid workers.", *texts)
    assert attribution.reference == PIRATES


GERMAN = "Wir gehen alle in den Park, weil die Sonne scheint und es warm ist, wie gestern schon."


def test_custom_model_may_be_for_any_language(tmp_path: Path) -> None:
    german = [Judgment(Segment(GERMAN[n:], None, (GERMAN,)), -n, str(n)) for n in range(24)]
    trained = tertium.train("bleu-r", german, folder=tmp_path / "german")
    assert count_flags(trained.flags([german[0].segment])) == {}


def make_deletions(n: int = 60, day: str = "yesterday") -> list[Judgment]:
    """Make translations whose score is minus the number of missing words."""
    reference = f"the old man sold the red car to a young woman in paris {day}"
    words = reference.split()
    rng = np.random.default_rng(5)
    rows = []
    for number in range(n):
        missing = number % len(words)
        left = sorted(rng.permutation(len(words))[: len(words) - missing])
        segment = Segment(" ".join(words[i] for i in left), None, (reference,))
        rows.append(Judgment(segment, -float(missing), lp="xy"[number % 2]))
    return rows


def test_warning_if_translations_score_above_references(
    caplog: pytest.LogCaptureFixture,
) -> None:
    BLEUR.train(make_deletions())
    assert not caplog.messages
    negated = [Judgment(j.segment, -j.score, lp=j.lp) for j in make_deletions()]
    BLEUR.train(negated)
    (message,) = caplog.messages
    assert re.match(r"BLEUR scores \d+ % of translations above their references", message)


def test_published_recipe_is_plain_ridge_regression() -> None:
    """Shift rates of TER are 0 in most rows: the prior would penalize such rare features more."""
    data = make_deletions()
    published = TERR.recipes["published"].options
    metric = TERR.train(data, options=replace(published, strengths=(0.1,)))
    rows = metric.compute_features([judgment.segment for judgment in data])
    shares = ridge.non_median_shares(rows)
    assert ((shares > 0) & (shares < 0.5)).any()
    z = (rows - rows.mean(axis=0)) / np.where(rows.std(axis=0) > 1e-9, rows.std(axis=0), 1.0)
    peer = Ridge(alpha=0.1 * len(data)).fit(z, [judgment.score for judgment in data])
    np.testing.assert_allclose(metric.fitted.linear.weights, peer.coef_, atol=1e-9)
    ours = TERR.train(data, options=RegressionOptions(strengths=(0.1,)))
    assert np.abs(ours.fitted.linear.weights - peer.coef_).max() > 1e-4


def test_strength_is_chosen_on_dev_data() -> None:
    metric = BLEUR.train(make_deletions(40), dev=make_deletions(20, day="today"))
    assert metric.checkpoint.training["dev"] == 20
    equal = [replace(row, score=1.0) for row in make_deletions(20, day="today")]
    with pytest.raises(DataError, match="all 20 human scores are 1: nothing can be chosen by them"):
        BLEUR.train(make_deletions(40), dev=equal)


def test_language_pairs_are_held_out_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = record_calls(monkeypatch, linear_metric, "fit_ridge")
    rows = tuple(replace(row, lp="") for row in make_deletions(10))
    pairs = ("cs-en", "de-en", "fi-en")
    BLEUR.train([JudgmentSet(name="mine", lp=lp, judgments=rows) for lp in pairs])
    assert set(calls[0][3]) == set(pairs)


def test_references_are_held_out_together_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = record_calls(monkeypatch, linear_metric, "fit_ridge")
    days = [make_deletions(6, day=f"on day {number}") for number in range(10)]
    by_segment = [row for rows in days for row in rows]
    by_system = [row for rows in zip(*days, strict=True) for row in rows]
    trained = [BLEUR.train(data) for data in (by_segment, by_system)]
    folds: list[dict[str, set[str]]] = [{}, {}]
    for number, data in enumerate((by_segment, by_system)):
        for row, fold in zip(data, calls[number][3], strict=True):
            folds[number].setdefault(row.segment.references[0], set()).add(fold)
    assert folds[0] == folds[1]
    assert all(len(chosen) == 1 for chosen in folds[0].values())
    assert len(set.union(*folds[0].values())) == FOLDS
    assert trained[0].fitted.linear.strength == trained[1].fitted.linear.strength


def test_feature_groups_need_a_model_trained_on_them() -> None:
    metric = RTER.train(make_deletions(), groups=("alignment", "insertions"))
    assert len(metric.coefficients) == 2 * (8 + 20)
    assert load_metric(metric.spec) == metric
    with pytest.raises(ModelError, match=r"was trained with groups=.*, not groups=alignment"):
        RTER(groups=("alignment",)).sentence_score("a", ["b"])
    with pytest.raises(ModelError, match="trained with vectors=glove, not vectors=minilm"):
        RTER(vectors="minilm").sentence_score("a", ["b"])
    with pytest.raises(UnknownNameError, match="alignment"):
        RTER(groups=("alignmend",))


@pytest.mark.parametrize("name", ["rte-r", "mt-rte-r", "mt-rte-r:embeddings=true"])
def test_weights_have_the_expected_sign(name: str) -> None:
    metric = load_metric(name)
    assert isinstance(metric, RTER)
    expected_positive = {
        feature.name: feature.is_positive for feature in metric.entailment.features
    }
    checked = 0
    for column, weight in metric.coefficients.items():
        direction, _, feature = column.partition(".")
        if direction in ("forward", "backward"):
            assert weight >= 0 if expected_positive[feature] else weight <= 0, column
            checked += 1
    assert checked == 212


def test_contributions_add_up_at_the_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = BLEUR()
    fitted = metric.fitted
    linear = dataclasses.replace(fitted.linear, min_target=-0.5)  # above the prediction, -0.68
    bounded = dataclasses.replace(fitted, linear=linear)
    monkeypatch.setattr(BLEUR, "fitted", property(lambda metric: bounded))
    score = metric.sentence_score("word", [PIRATES])
    assert score == -0.5
    attribution = explain(metric, "word", PIRATES)
    assert "ends of the scale" in attribution.groups
    assert attribution.perfect + sum(attribution.groups.values()) == pytest.approx(score)
