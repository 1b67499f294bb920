"""What an evaluation and a comparison answer to: any spelling of a metric, and known systems."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tertium
from tertium.cache.vector_cache import clear_memory
from tertium.data.testset import TestSet
from tertium.errors import UnknownNameError, UsageError
from tertium.execution import runtime


@pytest.fixture(scope="module")
def comparison(example: TestSet) -> tertium.Comparison:
    return tertium.compare(example, ["chrf++", "chrf:beta=2"], resamples=20)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"alpha": "0.05"}, "^alpha, the level of significance, is a number .* 1, not '0.05'"),
        ({"alpha": 1.0}, "^alpha, the level .* not 1.0"),
        ({"test": "t-test"}, "^unknown test 't-test': bootstrap or randomization"),
        ({"test": ["bootstrap"]}, r"^unknown test \['bootstrap'\]: "),
    ],
)
def test_what_is_no_test_is_refused_before_anything_is_scored(
    example: TestSet, choices: dict[str, Any], message: str
) -> None:
    for call in (tertium.compare, tertium.report):
        with pytest.raises(UsageError, match=message):
            call(example, "comet", **choices)  # which has no model


def test_a_metric_answers_to_every_spelling(comparison: tertium.Comparison) -> None:
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
        human_agreement = comparison.human_agreement(spelling, "poor")
        assert meaning is not None
        assert meaning == comparison.human_agreement("chrf:word_order=2", "poor")
    assert "bleu" not in evaluation.scores["good"]
    assert evaluation.scores["good"].get("bleu") is None
    assert evaluation.metrics == ("chrf:word_order=2", "chrf")


def test_what_was_not_scored_is_answered_with_what_was(comparison: tertium.Comparison) -> None:
    scores = comparison.scores
    with pytest.raises(UnknownNameError, match=r"unknown metric 'bleu'.*known: chrf, chrf:word"):
        _ = scores["good"]["bleu"]
    with pytest.raises(UnknownNameError, match="unknown metric 'chrff': did you mean 'chrf'"):
        comparison.p_value("chrff", "poor")
    with pytest.raises(UnknownNameError, match="unknown system 'goood': did you mean 'good'"):
        _ = scores["goood"]
    with pytest.raises(UnknownNameError, match="unknown system 'zzz'"):
        comparison.p_value("chrf", "zzz")
    with pytest.raises(UnknownNameError, match="unknown system 'zzz'"):
        comparison.difference("chrf", "zzz")


def test_a_comparison_says_in_a_line_what_it_is(comparison: tertium.Comparison) -> None:
    assert "\n" not in repr(comparison)
    assert "resamples=20" in repr(comparison)


def test_an_evaluation_is_copied_and_sent_to_processes(comparison: tertium.Comparison) -> None:
    for other in (copy.deepcopy(comparison), pickle.loads(pickle.dumps(comparison))):
        assert other.p_value("chrf++", "poor") == comparison.p_value("chrf++", "poor")


def test_metrics_over_one_encoder_share_a_pass(
    tiny_model: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other layers and parts come from the same pass, and no score knows of its neighbors."""
    pytest.importorskip("torch")
    from tertium.encoders.transformer_encoder import TransformerEncoder

    encoder = f"dir/{tiny_model('bert')}"
    specs = [f"{name}:encoder={encoder}@{n}" for name, n in (("bertr", 1), ("wmd", 2), ("sss", 1))]
    small = TestSet(
        systems={"a": ["the cat", "a dog"], "b": ["a cat", "dogs"]},
        references=[["the cat sat"], ["the dog"]],
    )
    asked: list[str] = []
    together = TransformerEncoder.encode_requests

    def count(self: TransformerEncoder, texts: Sequence[str], *rest: Any) -> Any:
        asked.extend(texts)
        return together(self, texts, *rest)

    monkeypatch.setattr(TransformerEncoder, "encode_requests", count)
    with runtime(cache=False):
        apart = [tertium.score(small, spec) for spec in specs]
        clear_memory()
        asked.clear()
        evaluation = tertium.score(small, specs)
    assert sorted(asked) == sorted({*asked})
    assert len(asked) == 6
    for alone, spec in zip(apart, evaluation.metrics, strict=True):
        for system in small.systems:
            both = evaluation.scores[system][spec], alone.scores[system][spec]
            assert (both[0].statistics == both[1].statistics).all()
