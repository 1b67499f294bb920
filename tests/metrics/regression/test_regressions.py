"""The regressions of Pado et al. 2009: their own examples, training, storage, faults, reasons."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tertium
from tertium.cli import main
from tertium.data.collection import Collection
from tertium.data.judgments import JudgmentSet
from tertium.errors import DataError, ModelError, UnknownNameError, UsageError
from tertium.metrics import load_metric
from tertium.metrics.base.explanation import Reasons
from tertium.metrics.base.metric import Metric
from tertium.metrics.lexical.meteor import METEOR
from tertium.metrics.regression import linear
from tertium.metrics.regression.linear import LinearModel
from tertium.metrics.regression.regressions import BLEUR, MTRTER, RTER
from tertium.models.checkpoint import shipped_models
from tertium.models.trained import load_checkpoint
from tertium.segment import Judgment, Preference, Segment

PIRATES = "Three aid workers were kidnapped by pirates."
VIRUS = "No one was infected by the virus."
# Pado et al. 2009, table 2: (reference, translation, judged 6 and 1 of 7)
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


def reasons_of(metric: Metric, hypothesis: str, *references: str) -> Reasons:
    reasons = metric.explain(Segment(hypothesis, None, references)).reasons
    assert reasons is not None
    return reasons


def test_a_dropped_agent_breaks_one_direction(rter: RTER) -> None:
    # figure 1, bottom: the hypothesis follows from the reference, but not the reverse
    found = reasons_of(rter, "Three aid workers were kidnapped.", PIRATES)
    assert found.follows == {"forward": True, "backward": False}
    assert found.faults == ("the hypothesis drops the agent 'by pirates'",)


def test_a_passive_paraphrase_entails_both_ways(rter: RTER) -> None:
    # figure 1, top
    found = reasons_of(rter, "The virus did not infect anybody.", VIRUS)
    assert found.follows == {"forward": True, "backward": True}
    assert found.faults == ()
    assert "'infect' and 'infected' are both negated" in found.merits
    assert any("active and passive with the same arguments" in merit for merit in found.merits)


def test_modal_adverbs_break_entailment(rter: RTER) -> None:
    # example 2: broken, and yet not judged crucially lower, since all else is the same
    reference = "Peter is possibly from Lincolnshire."
    hypothesis = "Peter is certainly from Lincolnshire."
    found = reasons_of(rter, hypothesis, reference)
    score = rter.sentence_score(hypothesis, [reference])
    assert found.follows == {"forward": False, "backward": False}
    assert "main clauses differ in modality" in found.faults[0]
    unrelated = rter.sentence_score("Apples are sold by the market.", [reference])
    assert unrelated < score < found.perfect
    assert found.perfect - score < (found.perfect - unrelated) / 2


def test_table_2_comes_out_as_published(rter: RTER) -> None:
    good, bad = reasons_of(rter, GOOD[1], GOOD[0]), reasons_of(rter, BAD[1], BAD[0])
    scores = [rter.sentence_score(text, [reference]) for reference, text in (GOOD, BAD)]
    assert scores[0] > scores[1] + 0.5
    meteor = METEOR()  # ranks them the wrong way round, as METEORR did
    assert meteor.sentence_score(GOOD[1], [GOOD[0]]) < meteor.sentence_score(BAD[1], [BAD[0]]) + 0.1
    # "Alignment fact/reality: hypernymy is ok in upward monotone context"
    assert "'reality' follows from 'fact' in its context" in good.merits
    assert not any("drops" in fault or "adds" in fault for fault in good.faults)
    # "Missing alignments for subjects; important entities cannot be aligned"
    fired = {part.feature for part in bad.contributions if part.fired}
    assert {"backward.unaligned.subject", "forward.unaligned.unknown"} <= fired
    assert "backward.root.elsewhere" in fired


@pytest.mark.parametrize("name", REGRESSIONS)
def test_reasons_add_up_to_the_score(name: str) -> None:
    metric = load_metric(name)
    segment = Segment("Three aid workers were caught.", None, (PIRATES,))
    found = metric.explain(segment)
    reasons = found.reasons
    assert reasons is not None
    total = reasons.perfect + sum(part.contribution for part in reasons.contributions)
    assert found.score == pytest.approx(total)
    assert found.score == pytest.approx(metric.score([segment]).segments[0])
    assert sum(reasons.groups.values()) == pytest.approx(found.score - reasons.perfect)
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_reference_itself_has_no_faults(name: str) -> None:
    metric = load_metric(name)
    found = reasons_of(metric, VIRUS, VIRUS)
    assert metric.sentence_score(VIRUS, [VIRUS]) == pytest.approx(found.perfect)
    assert found.faults == ()


def test_the_best_of_several_references_counts(rter: RTER) -> None:
    texts = ("Apples are cheap.", "The workers were taken by pirates.", PIRATES)
    both = rter.sentence_score("Pirates kidnapped three aid workers.", texts)
    each = [rter.sentence_score("Pirates kidnapped three aid workers.", [t]) for t in texts]
    assert both == max(each)
    found = reasons_of(rter, "Pirates kidnapped three aid workers.", *texts)
    assert found.reference == PIRATES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes",
        "The old man sold the car . " * 80,
        "Это русский текст.",
        "😀 🎉",
        "<b>He</b> &",
        "\"He said 'no (",
        "1,000 ½ $5 10-15 ٣٤ 0x1F 99%",
        "a\0b",
        "the " * 500,
    ],
)
def test_faults_have_finite_features(rter: RTER, text: str) -> None:
    for segment in (Segment(text, None, (PIRATES,)), Segment(PIRATES, None, (text,))):
        assert np.isfinite(rter.features([segment])).all()
        assert np.isfinite(rter.score([segment]).segments).all()


def test_other_languages_are_counted(rter: RTER) -> None:
    scores = rter.score(
        [
            Segment("Drei Helfer wurden von Piraten entführt.", None, (PIRATES,)),
            Segment("Three workers were taken.", None, ("Это не английский текст.",)),
            Segment("Three workers were taken.", None, (PIRATES,)),
        ]
    )
    assert scores.warnings["hypothesis not English"] == 1
    assert scores.warnings["reference not English"] == 1


GERMAN = "Wir gehen alle in den Park, weil die Sonne scheint und es warm ist, wie gestern schon."


@pytest.mark.parametrize("name", ["bleu-r", "nist-r", "ter-r", "meteor-r", "mt-r"])
def test_references_that_what_ships_did_not_learn_from_are_counted(name: str) -> None:
    segments = [Segment(text, None, (text,)) for text in (GERMAN, GERMAN[3:])]
    assert load_metric(name).score(segments).warnings == {"reference not English": 2}
    assert load_metric(name).score([Segment(PIRATES, None, (PIRATES,))]).warnings == {}


def test_a_model_of_ones_own_may_be_of_any_language(tmp_path: Path) -> None:
    german = [Judgment(Segment(GERMAN[n:], None, (GERMAN,)), -n, str(n)) for n in range(24)]
    trained = tertium.train("bleu-r", german, folder=tmp_path / "german")
    assert trained.warnings([german[0].segment]) == {}


def test_entailment_goes_by_the_hypothesis_not_its_neighbors(rter: RTER) -> None:
    texts = ["The virus did not infect anybody.", "The virus infected somebody.", "Virus no."]
    segments = [Segment(text, None, (VIRUS,)) for text in texts]
    alone = [rter.score([segment]).segments[0] for segment in segments]
    np.testing.assert_array_equal(rter.score(segments).segments, alone)


# ---- training and storage


def judgments(n: int = 60, day: str = "yesterday") -> list[Judgment]:
    """Translations that lost the more words the worse they are."""
    reference = f"the old man sold the red car to a young woman in paris {day}"
    words = reference.split()
    rng = np.random.default_rng(5)
    rows = []
    for number in range(n):
        lost = number % len(words)
        kept = sorted(rng.permutation(len(words))[: len(words) - lost])
        text = " ".join(words[i] for i in kept)
        rows.append(Judgment(Segment(text, None, (reference,)), -float(lost), lp="xy"[number % 2]))
    return rows


def test_training_learns_and_is_remembered(tmp_path: Path) -> None:
    data = judgments()
    metric = BLEUR.train(data, note="made up")
    predicted = metric.score([j.segment for j in data]).segments
    assert np.corrcoef(predicted, [j.score for j in data])[0, 1] > 0.95
    assert load_metric(metric.spec) == metric
    saved = metric.save(tmp_path / "mine")
    again = BLEUR.load(tmp_path / "mine")
    assert again == saved
    np.testing.assert_array_equal(again.score([j.segment for j in data]).segments, predicted)
    assert load_metric(saved.spec) == saved
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    assert list(config["training"].pop("coefficients")) == list(metric.coefficients)
    assert config["training"] == {
        "judgements": 60,
        "dev": 0,
        "strength": metric.trained.linear.strength,
        "data": "made up",
    }
    assert load_metric(str(tmp_path / "mine")) == saved


def test_a_model_that_puts_references_below_translations_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    BLEUR.train(judgments())
    assert not caplog.messages
    upside_down = [Judgment(j.segment, -j.score, lp=j.lp) for j in judgments()]
    BLEUR.train(upside_down)
    (said,) = caplog.messages
    assert re.match(r"BLEUR puts \d+ % of translations above their references, whose scores", said)


def test_training_again_is_not_taken_from_memory() -> None:
    data = judgments(20)
    assert BLEUR.train(data, note="first").checkpoint.training["data"] == "first"
    assert BLEUR.train(data, note="second").checkpoint.training["data"] == "second"


def test_comparisons_are_refused() -> None:
    data, (better, worse) = judgments(20), judgments(2, day="today")
    said = [Preference(better.segment, worse.segment, 1.0)]
    for arguments in ({"data": [*data, *said]}, {"data": data, "dev": said}):
        with pytest.raises(UsageError, match="bleu-r learns from human scores"):
            BLEUR.train(**arguments)


def test_development_data_choose_the_strength() -> None:
    metric = BLEUR.train(judgments(40), dev=judgments(20, day="today"))
    assert metric.checkpoint.training["dev"] == 20
    equal = [replace(row, score=1.0) for row in judgments(20, day="today")]
    with pytest.raises(DataError, match="all 20 human scores are 1: nothing can be chosen by them"):
        BLEUR.train(judgments(40), dev=equal)  # took the first strength


def test_language_pairs_of_sets_are_left_out_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def fit(*arguments: Any) -> LinearModel:
        seen.append(arguments[3])
        return linear.fit(*arguments)

    monkeypatch.setattr("tertium.metrics.regression.metric.fit", fit)
    rows = tuple(replace(row, lp="") for row in judgments(10))
    pairs = ("cs-en", "de-en", "fi-en")
    BLEUR.train([JudgmentSet(name="mine", lp=lp, judgments=rows) for lp in pairs])
    assert set(seen[0]) == set(pairs)


def test_segments_are_left_out_whole_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, set[str]]] = []

    def fit(*arguments: Any) -> LinearModel:
        folds: dict[str, set[str]] = {}
        for row, fold in zip(data, arguments[3], strict=True):
            folds.setdefault(row.segment.references[0], set()).add(fold)
        seen.append(folds)
        return linear.fit(*arguments)

    monkeypatch.setattr("tertium.metrics.regression.metric.fit", fit)
    days = [judgments(6, day=f"on day {number}") for number in range(10)]
    data = [row for rows in days for row in rows]
    first = BLEUR.train(data)
    data = [row for rows in zip(*days, strict=True) for row in rows]  # by system, not by segment
    again = BLEUR.train(data)
    assert seen[0] == seen[1]
    assert all(len(folds) == 1 for folds in seen[0].values())
    assert len({fold for folds in seen[0].values() for fold in folds}) == linear.FOLDS
    assert first.trained.linear.strength == again.trained.linear.strength


def test_groups_can_be_chosen_and_must_be_trained() -> None:
    metric = RTER.train(judgments(), groups=("alignment", "insertions"))
    assert len(metric.coefficients) == 2 * (8 + 20)
    assert load_metric(metric.spec) == metric
    with pytest.raises(ModelError, match=r"was trained with groups=.*, not with groups=alignment"):
        RTER(groups=("alignment",)).sentence_score("a", ["b"])
    with pytest.raises(ModelError, match="trained with vectors=glove, not with vectors=minilm"):
        RTER(vectors="minilm").sentence_score("a", ["b"])  # whose features had weights of glove's
    with pytest.raises(UnknownNameError, match="alignment"):
        RTER(groups=("alignmend",))


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no config"):
        BLEUR(model=str(tmp_path)).sentence_score("a", ["b"])
    saved = BLEUR.train(judgments()).save(tmp_path / "m")
    with pytest.raises(ModelError, match="of bleu-r"):
        RTER.load(tmp_path / "m")
    (tmp_path / "m" / "weights.safetensors").write_bytes(b"cut")
    load_checkpoint.cache_clear()
    with pytest.raises(ModelError, match="damaged"):
        saved.sentence_score("a", ["b"])
    with pytest.raises(UsageError, match="never saved"):
        BLEUR(model="unsaved-123").sentence_score("a", ["b"])
    with pytest.raises(DataError, match="learn"):
        BLEUR.train([])


def test_every_default_ships_and_is_small() -> None:
    for name in (*REGRESSIONS, "mt-rte-r-embeddings"):
        folder = shipped_models() / name
        config = json.loads((folder / "config.json").read_text())
        assert "wmt17" not in config["training"]["data"]
        assert "wmt12" not in config["training"]["data"]
        assert config["training"]["judgements"] == 5360
        assert sum(file.stat().st_size for file in folder.iterdir()) < 300_000


@pytest.mark.parametrize("name", ["rte-r", "mt-rte-r", "mt-rte-r:embeddings=true"])
def test_a_fault_never_adds_and_a_merit_never_takes(name: str) -> None:
    metric = load_metric(name)
    assert isinstance(metric, RTER)
    good = {feature.name: feature.good for feature in metric.entailment.features}
    checked = 0
    for column, weight in metric.coefficients.items():
        direction, _, feature = column.partition(".")
        if direction in ("forward", "backward"):
            assert weight >= 0 if good[feature] else weight <= 0, column
            checked += 1
    assert checked == 212


def test_the_signature_names_model_and_parser() -> None:
    signature = MTRTER().score([Segment(VIRUS, None, (VIRUS,))]).signature
    assert "|weights:default@" in signature
    assert "|parser:en_core_web_sm-3.8.0|vectors:glove|" in signature


# ---- the command


def test_explain_tells_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-r", PIRATES, "-t", "Three aid workers were kidnapped."]) == 0
    text = capsys.readouterr().out
    assert "the hypothesis drops the agent 'by pirates'" in text
    assert "does the hypothesis follow from the reference? yes" in text
    assert "kidnapped     kidnapped" in text


def test_explain_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-r", PIRATES, "-r", VIRUS, "-t", "Three aid workers were kidnapped.", "--json"]
    assert main(["explain", *arguments]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["reference"] == PIRATES
    assert record["follows"] == {"forward": True, "backward": False}
    assert {"hypothesis": "", "reference": "pirates"}.items() <= record["alignment"][-1].items()


def test_explain_refuses_a_metric_without_features(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-m", "bleu", "-r", "a", "-t", "b"]) == 2
    assert "cannot explain" in capsys.readouterr().err


# ---- what the paper claims


@pytest.mark.slow
def test_the_papers_claims_hold_on_wmt17(human_data: Path) -> None:
    from tertium.meta.correlation import pearson
    from tertium.meta.significance import williams

    collection = Collection.at(human_data)
    pairs = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")
    sets = [collection.judgments("da/wmt17", lp) for lp in pairs]
    segments = [segment for one in sets for segment in one.segments]
    bounds = np.cumsum([0, *(len(one) for one in sets)])
    scores = {name: load_metric(name).score(segments).segments for name in REGRESSIONS}
    r = {
        name: [
            float(pearson(one.scores, values[bounds[k] : bounds[k + 1]]))
            for k, one in enumerate(sets)
        ]
        for name, values in scores.items()
    }
    mean = {name: float(np.mean(values)) for name, values in r.items()}
    assert mean["mt-r"] > max(mean[n] for n in ("bleu-r", "nist-r", "ter-r", "meteor-r"))
    assert mean["rte-r"] > mean["meteor-r"]
    assert mean["mt-rte-r"] > max(mean["rte-r"], mean["mt-r"])
    better = 0
    for k, one in enumerate(sets):
        both = np.stack([scores[n][bounds[k] : bounds[k + 1]] for n in ("mt-rte-r", "mt-r")])
        better += float(williams(one.scores, both)[0, 1]) < 0.05
    assert better >= 5


@pytest.mark.parametrize("spec", [*REGRESSIONS, "mt-rte-r:embeddings=true"])
def test_nothing_is_worse_than_an_empty_text_or_better_than_the_reference(spec: str) -> None:
    metric = load_metric(spec)
    texts = ["word", "?", "x y z", "the the the the", "My old bicycle is green.", PIRATES, VIRUS]
    for reference in (PIRATES, "?", "Yes"):
        rows = ["", " \t", *texts, reference]
        scores = metric.score([Segment(text, None, (reference,)) for text in rows]).segments
        assert scores[0] == scores[1] == scores.min(), reference
        assert scores[-1] == scores.max(), reference
    blank = metric.score([Segment(text, None, ("",)) for text in ("", "word")]).segments
    assert blank[0] >= blank[1]


def test_an_explanation_adds_up_at_the_end_of_the_scale() -> None:
    metric = BLEUR()
    score = metric.sentence_score("", [PIRATES])
    found = reasons_of(metric, "", PIRATES)
    assert "ends of the scale" in found.groups
    assert found.perfect + sum(found.groups.values()) == pytest.approx(score)
