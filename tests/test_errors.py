"""Errors that a user can fix have one-line messages."""

from __future__ import annotations

import pickle

import pytest

import tertium
from tertium.core.errors import TertiumError, UnknownNameError, short_repr
from tertium.corpus.corpus_run import RowOptions


@pytest.mark.parametrize(
    "call",
    [
        lambda: tertium.train(None, "mine.tsv"),
        lambda: tertium.train("bleu-r", [{"mt": "a", "score": 1}]),
        lambda: tertium.train("bleu-r", [], strengths=("x",)),
        lambda: tertium.challenge(None, "chrf"),
        lambda: tertium.score_corpus(None, "chrf", "out"),
        lambda: tertium.score_corpus([], "chrf", "out"),
        lambda: tertium.score_corpus("a.jsonl", "chrf", "out", rows=RowOptions(max_length="a")),
        lambda: tertium.score_corpus("a.jsonl", None, "out"),
        lambda: tertium.load_ranker(None),
    ],
)
def test_invalid_calls_raise_one_line_errors(call):
    with pytest.raises(TertiumError) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_errors_can_be_pickled_and_printed():
    """A process pool hangs if the error of a worker cannot be unpickled."""
    error = UnknownNameError("metric", "bluu", ["chrf", "bleu"])
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.name, copy.known_names) == (str(error), "bluu", ("bleu", "chrf"))
    assert short_repr(10**5000) == "a int"
