"""What a caller can mend is one line."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tertium
from tertium.errors import TertiumError, UnknownNameError


@pytest.mark.parametrize(
    "call",
    [
        lambda: tertium.train(None, "mine.tsv"),  # type: ignore[arg-type]
        lambda: tertium.train("bleu-r", [{"mt": "a", "score": 1}]),  # type: ignore[list-item]
        lambda: tertium.train("bleu-r", [], strengths=("x",)),
        lambda: tertium.challenge(None, "chrf"),  # type: ignore[arg-type]
        lambda: tertium.score_corpus(None, "chrf", "out"),  # type: ignore[arg-type]
        lambda: tertium.score_corpus([], "chrf", "out"),
        lambda: tertium.score_corpus("a.jsonl", "chrf", "out", longest="a"),  # type: ignore[arg-type]
        lambda: tertium.score_corpus("a.jsonl", None, "out"),  # type: ignore[arg-type]
        lambda: tertium.load_ranker(None),  # type: ignore[arg-type]
    ],
)
def test_calls_that_make_no_sense_are_one_line(call: Callable[[], Any]) -> None:
    with pytest.raises(TertiumError) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_unknown_name_comes_back_from_another_process() -> None:
    """A pool waits for ever for the result of a worker whose error cannot be read back."""
    error = UnknownNameError("metric", "bluu", ["chrf", "bleu"])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.name, again.known) == (str(error), "bluu", ("bleu", "chrf"))
