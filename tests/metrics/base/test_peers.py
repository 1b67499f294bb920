"""The calls people know from sacrebleu, COMET and HF evaluate."""

from __future__ import annotations

import pytest

from tertium.errors import DataError, LengthError, UsageError
from tertium.metrics.base.peers import arrange
from tertium.metrics.lexical.bleu import BLEU

HYPOTHESES = ["the cat sat on the mat", "a dog barked loudly today"]
REFERENCES = ["the cat sat on a mat", "a dog barked loudly"]
BETTER = ["the cat sat on the mat today", "a dog barked loudly today indeed"]


def test_streams_and_segments_mean_the_same() -> None:
    three = [*HYPOTHESES, "x y z"]
    streams = [[*REFERENCES, "x y z"], [*BETTER, "x"]]
    rows = [list(row) for row in zip(*streams, strict=True)]
    by_stream = BLEU().corpus_score(three, streams)
    assert by_stream.system == BLEU().corpus_score(three, rows).system
    assert by_stream.system == BLEU().corpus_score(three, rows, layout="segments").system


def test_a_square_of_references_is_ambiguous() -> None:
    with pytest.raises(UsageError, match="per segment or per stream"):
        BLEU().corpus_score(HYPOTHESES, [REFERENCES, BETTER])
    streams = BLEU().corpus_score(HYPOTHESES, [REFERENCES, BETTER], layout="streams")
    assert streams.signature.startswith("BLEU|nrefs:2")


def test_flat_references_are_one_each() -> None:
    flat = BLEU().corpus_score(HYPOTHESES, REFERENCES)
    assert flat.system == BLEU().corpus_score(HYPOTHESES, [REFERENCES]).system


def test_comet_style_predict() -> None:
    rows = [{"src": "s", "mt": h, "ref": r} for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    prediction = BLEU().predict(rows)
    assert len(prediction.scores) == 2
    assert prediction.system_score == BLEU().corpus_score(HYPOTHESES, REFERENCES).system
    with pytest.raises(DataError, match="item 2: no translation"):
        BLEU().predict([rows[0], {"src": "s"}])


def test_evaluate_style_compute() -> None:
    result = BLEU().compute(predictions=HYPOTHESES, references=[[r] for r in REFERENCES])
    assert result["score"] == BLEU().corpus_score(HYPOTHESES, REFERENCES).system
    assert len(result["scores"]) == 2


def test_sentence_score_wants_a_list() -> None:
    assert BLEU().sentence_score("a b c d", ["a b c d"]) == pytest.approx(100)
    with pytest.raises(UsageError, match="list of texts"):
        BLEU().sentence_score("a", "a")


def test_lengths_are_checked_never_cut() -> None:
    with pytest.raises(LengthError, match="1 references for 2"):
        arrange(HYPOTHESES, REFERENCES[:1])
    with pytest.raises(LengthError, match="1 sources for 2"):
        arrange(HYPOTHESES, REFERENCES, ["s"])
    with pytest.raises(LengthError, match="streams of lengths"):
        arrange(HYPOTHESES, [REFERENCES, BETTER[:1]], layout="streams")
    with pytest.raises(LengthError, match="references for 1 segments"):
        arrange(HYPOTHESES, [["a"]], layout="segments")


def test_strings_in_place_of_lists_are_refused() -> None:
    with pytest.raises(UsageError, match="not one text"):
        arrange("hello", ["hello"])
    with pytest.raises(UsageError, match="not one text"):
        arrange(["hello"], "hello")
    with pytest.raises(DataError, match="mix plain texts and lists"):
        arrange(["a", "b"], ["x", ["y"]])
