"""Errors that a user can fix have one-line messages."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import tertium
from tertium.core.errors import TertiumError, UnknownNameError, short_repr
from tertium.corpus.corpus_run import RowOptions


@pytest.mark.parametrize(
    "call",
    [
        lambda: tertium.train(None, "mine.tsv"),  # type: ignore[arg-type]
        lambda: tertium.train("bleu-r", [{"mt": "a", "score": 1}]),  # type: ignore[list-item]
        lambda: tertium.train("bleu-r", [], strengths=("x",)),
        lambda: tertium.challenge(None, "chrf"),  # type: ignore[arg-type]
        lambda: tertium.score_corpus(None, "chrf", "out"),  # type: ignore[arg-type]
        lambda: tertium.score_corpus([], "chrf", "out"),
        lambda: tertium.score_corpus("a.jsonl", "chrf", "out", rows=RowOptions(max_length="a")),  # type: ignore[arg-type]
        lambda: tertium.score_corpus("a.jsonl", None, "out"),  # type: ignore[arg-type]
        lambda: tertium.load_ranker(None),  # type: ignore[arg-type]
    ],
)
def test_invalid_calls_raise_one_line_errors(call: Callable[[], Any]) -> None:
    with pytest.raises(TertiumError) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_unknown_name_error_can_be_pickled() -> None:
    """A process pool hangs if the error of a worker cannot be unpickled."""
    error = UnknownNameError("metric", "bluu", ["chrf", "bleu"])
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.name, copy.known_names) == (str(error), "bluu", ("bleu", "chrf"))


def test_a_number_with_more_digits_than_python_prints() -> None:
    assert short_repr(10**5000) == "a int"
