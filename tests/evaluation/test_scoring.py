"""Evaluations and comparisons: access by metric spec and system name, and input types."""

from __future__ import annotations

import copy
import pickle

import pytest
from tests.builders import record_calls

import tertium
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.runtime import runtime
from tertium.data.testset import TestSet
from tertium.encoders.vector_cache import clear_memory


@pytest.fixture(scope="module")
def comparison(example: TestSet) -> tertium.Comparison:
    return tertium.compare(example, ["chrf++", "chrf:beta=2"], resamples=20)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"alpha": "0.05"}, "^alpha, the significance level, must be a number .* 1, got '0.05'"),
        ({"alpha": 1.0}, "^alpha, the significance level, .* got 1.0"),
        ({"test": "t-test"}, "^unknown test 't-test': choose bootstrap or randomization"),
        ({"test": ["bootstrap"]}, r"^unknown test \['bootstrap'\]: "),
    ],
)
def test_invalid_test_options_are_rejected_before_scoring(example, choices, message):
    with pytest.raises(UsageError, match=message):
        tertium.compare(example, "comet", **choices)  # fails if it is loaded: it has no model


def test_metric_is_found_by_any_spelling(comparison):
    evaluation: tertium.Evaluation = comparison
    for spelling in ("chrf++", "chrfpp", "chrf: word_order=2", "chrf:word_order=2,beta=2"):
        scores = evaluation.scores["good"][spelling]
        assert scores is evaluation.scores["good"]["chrf:word_order=2"]
        assert evaluation.metric_scores(spelling)[0] is scores
        assert evaluation.intervals["good"][spelling].low < scores.system
        assert comparison.p_value(spelling, "poor") < 0.1
        assert comparison.difference(spelling, "poor") < 0
        assert comparison.clusters[spelling] == comparison.clusters["chrf:word_order=2"]
        assert spelling in evaluation.scores["good"]
        assert evaluation.scores["good"].get(spelling) is scores
        agreement = comparison.human_agreement(spelling, "poor")
        assert agreement
        assert agreement == comparison.human_agreement("chrf:word_order=2", "poor")
    assert comparison["good"]["chrf++"] is comparison.scores["good"]["chrf:word_order=2"]
    assert [*comparison] == [*comparison.systems]
    assert "bleu" not in evaluation.scores["good"]
    assert evaluation.scores["good"].get("bleu") is None
    assert evaluation.metrics == ("chrf:word_order=2", "chrf")


def test_unknown_names_list_known_ones(comparison):
    calls = {
        r"unknown metric 'bleu'.*known: chrf, chrf:word": lambda: comparison["good"]["bleu"],
        "metric 'chrff': did you mean 'chrf'": lambda: comparison.p_value("chrff", "poor"),
        "unknown system 'goood': did you mean 'good'": lambda: comparison.scores["goood"],
        "system 'godo': did you mean 'good'": lambda: comparison["godo"],
        "unknown system 'zzz'": lambda: comparison.p_value("chrf", "zzz"),
        "unknown system 'zz'": lambda: comparison.difference("chrf", "zz"),
    }
    for message, call in calls.items():
        with pytest.raises(UnknownNameError, match=message):
            call()


def test_evaluation_can_be_copied_and_pickled(comparison):
    for other in (copy.deepcopy(comparison), pickle.loads(pickle.dumps(comparison))):
        assert other.p_value("chrf++", "poor") == comparison.p_value("chrf++", "poor")


def test_metrics_with_one_encoder_share_a_pass(tiny_model, monkeypatch):
    """Other layers come from the same pass, and scores do not depend on other metrics."""
    pytest.importorskip("torch")
    from tertium.encoders.transformer_encoder import TransformerEncoder

    encoder = f"dir/{tiny_model('bert')}"
    specs = [f"{name}:encoder={encoder}@{n}" for name, n in (("bertr", 1), ("wmd", 2), ("sss", 1))]
    systems = {"a": ["the cat", "a dog"], "b": ["a cat", "dogs"]}
    small = TestSet(systems=systems, references=[["the cat sat"], ["the dog"]])
    with runtime(cache=False):
        separate = [tertium.score(small, spec) for spec in specs]
        clear_memory()
        calls = record_calls(monkeypatch, TransformerEncoder, "encode_requests")
        evaluation = tertium.score(small, specs)
    encoded = [text for _, texts, *_ in calls for text in texts]
    assert sorted(encoded) == sorted({*encoded})
    assert len(encoded) == 6
    for alone, spec in zip(separate, evaluation.metrics, strict=True):
        for system in small.systems:
            both = evaluation.scores[system][spec], alone.scores[system][spec]
            assert (both[0].statistics == both[1].statistics).all()


def test_lists_and_frames_score_like_a_test_set(example):
    pandas = pytest.importorskip("pandas")
    sources, references = list(example.sources), [list(texts) for texts in example.references]
    systems = {name: list(texts) for name, texts in example.systems.items()}
    rows = [
        {"system": name, "mt": text, "src": source, "ref": texts[0]}
        for name, outputs in systems.items()
        for text, source, texts in zip(outputs, sources, references, strict=True)
    ]
    first = {"sources": sources, "references": [texts[0] for texts in references]}
    expected = tertium.score(systems, "chrf", **first)["good"]["chrf"].system
    assert tertium.score(pandas.DataFrame(rows), "chrf")["good"]["chrf"].system == expected
    alone = tertium.score(systems["good"], "chrf", **first)
    assert alone["system"]["chrf"].system == expected
    many = tertium.score(systems, "chrf", sources=sources, references=references)
    assert many["good"]["chrf"].system == tertium.score(example, "chrf")["good"]["chrf"].system


def test_texts_go_with_lists_of_translations(example):
    with pytest.raises(UsageError, match="references= need lists of translations"):
        tertium.score(example, "chrf", references=["a"])
    with pytest.raises(UsageError, match="expected a TestSet, got 'hello'"):
        tertium.score("hello", "chrf", references=["hello"])


def test_frame_of_a_comparison(comparison):
    pytest.importorskip("pandas")
    frame = comparison.to_frame()
    assert len(frame) == len(comparison.systems) * len(comparison.metrics)
    for row in frame.to_dict("records"):
        system, metric = row["system"], row["metric"]
        place = comparison.systems.index(system)
        assert row["score"] == comparison.scores[system][metric].system
        assert row["cluster"] == comparison.clusters[metric][place]
        if place:
            assert row["p_value"] == comparison.p_value(metric, system)
            assert row["difference"] == comparison.difference(metric, system)
        else:
            assert row["p_value"] != row["p_value"]
    best = frame[frame["rank"] == 1]
    assert set(best["system"]) == {"good"}
