"""Scores: one formula for segments, documents, subsets and weights."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.arrays import FloatArray
from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.core.scores import ScoreMatrix, Scores
from tertium.core.segment import Segment
from tertium.evaluation.scoring import score
from tertium.metrics.base.text_warnings import count_flags
from tertium.metrics.lexical.bleu_metric import BLEU
from tertium.metrics.lexical.meteor_metric import METEOR


def test_documents_are_scored_as_corpora(example):
    scores = score(example, "bleu").scores["fair"]["bleu"]
    by_document = scores.documents(example.documents)
    assert list(by_document) == list(dict.fromkeys(example.documents))
    for name in by_document:
        rows = [n for n, document in enumerate(example.documents) if document == name]
        alone = BLEU().score([example.segments("fair")[n] for n in rows])
        assert by_document[name] == alone.system


def test_weights_and_rows_are_checked(segments):
    scores = BLEU().score(segments)
    assert scores.subset(slice(0, 2)).system == BLEU().score(segments[:2]).system
    assert len(scores.subset([True, False, True, False, False, False])) == 2
    assert scores.aggregate(np.ones((2, len(segments)))).tolist() == [scores.system] * 2
    for weights, count in (([1.0] * 3, "3"), (np.ones((len(segments), 1)), "1"), (1.0, "no")):
        with pytest.raises(LengthError, match=f"^{count} weights for {len(segments)} segments"):
            scores.aggregate(weights)
    with pytest.raises(DataError, match="a weight is missing or infinite"):
        scores.aggregate([1, np.nan, 1, 1, 1, 1])
    with pytest.raises(DataError, match="rows of 6 segments: index 9 is out of bounds"):
        scores.subset([0, 9])


def test_document_names_may_have_any_type(segments):
    scores = BLEU().score(segments[:3])
    by_name = scores.documents(["1", "2", "1"])
    assert scores.documents([1, 2, 1]) == scores.documents(iter([1, 2, 1])) == by_name
    for missing in (None, float("nan")):
        with pytest.raises(DataError, match="segment 2 has no document"):
            scores.documents(["a", missing, "a"])
    with pytest.raises(LengthError, match="2 document ids for 3 segments"):
        scores.documents(["a", "b"])


def test_a_score_matrix_averages_without_nan():
    matrix = ScoreMatrix("human", ("a", "b"), np.array([[1.0, np.nan, 3.0], [np.nan] * 3]))
    assert matrix.system_scores[0] == 2.0
    assert np.isnan(matrix.system_scores[1])
    assert matrix["a"][2] == 3.0
    with pytest.raises(LengthError, match="1 systems"):
        ScoreMatrix("human", ("a",), np.ones((2, 3)))
    with pytest.raises(LengthError, match="2 items"):
        ScoreMatrix("human", ("a",), np.ones((1, 3)), ("x", "y"))
    with pytest.raises(UnknownNameError, match="unknown system 'our': did you mean 'ours'"):
        ScoreMatrix("chrf", ("ours",), np.ones((1, 2)))["our"]
    with pytest.raises(DataError, match="segments, k"):
        Scores(metric="x", statistics=np.ones(3), reduce=lambda t: t)


def test_subsets_and_repeated_metrics(example):
    good, empty = (Segment(text, None, ("a cat sat",)) for text in ("a cat sat", ""))
    scores = BLEU().score([good, empty])
    assert scores.warnings == {"empty hypothesis": 1}
    assert scores.subset([0]).warnings == {}
    with pytest.raises(UsageError, match="given twice"):
        score(example, ["bleu", "bleu"])
    with pytest.raises(UsageError, match="no metric"):
        score(example, [])


def test_records_have_the_keys_of_sacrebleu(example):
    record = score(example, "bleu", confidence=True, resamples=50).records()[0]
    keys = "name score signature verbose_score confidence_mean confidence_var segments system"
    assert set(keys.split()) <= set(record)
    assert isinstance(record["score"], float)
    assert len(record["segments"]) == len(example)
    assert record["confidence_mean"] == pytest.approx(record["score"], abs=5)


def test_words_in_different_unicode_forms_are_counted():
    composed, decomposed = "un café noir", "un cafe\u0301 noir"
    assert composed != decomposed
    for hypothesis, reference, count in (
        (decomposed, composed, 1),
        (composed, decomposed, 1),
        (decomposed, decomposed, 0),  # the same form
        (decomposed, "une nuit noire", 0),  # another word
        ("a cat", "a cat", 0),
    ):
        segment = Segment(hypothesis, references=("x", reference))
        warnings = count_flags(BLEU().flags([segment, segment]))
        kind = "words of the reference in another Unicode form"
        assert warnings == ({kind: 2 * count} if count else {})


def test_texts_that_a_tokenizer_cut_are_counted():
    untokenized, cut = "A dog barks.", "A dog barks ."
    kinds = [f"{side} ends in a tokenized period" for side in ("hypothesis", "reference")]
    segments = [
        Segment(cut, references=(untokenized, cut)),
        Segment(cut + "\n", references=(untokenized,)),
        Segment("狗 叫 。", references=("A dog barks ...",)),
        Segment(".", references=("Un chien aboie ?",)),
    ]
    assert count_flags(BLEU().flags(segments)) == {kinds[0]: 3, kinds[1]: 1}
    for metric in (BLEU(tokenize="none"), METEOR(normalise=False)):
        assert not {*kinds} & {*count_flags(metric.flags(segments[:2]))}  # cut as intended
    assert {*kinds} <= {*count_flags(METEOR().flags(segments))}


def test_files_have_a_row_per_segment(tmp_path):
    def divide(totals: FloatArray) -> FloatArray:
        return totals[..., 0] / totals[..., 1]

    scores = Scores(metric="demo", statistics=np.array([[1.0, 1], [3.0, 1]]), reduce=divide)
    scores.write(tmp_path / "scores.tsv")
    assert (tmp_path / "scores.tsv").read_text() == "segment\tscore\n1\t1.0\n2\t3.0\n"
    [table] = scores.tables()
    texts = [cell.text for cell in table.cells()[0]]
    assert texts == ["demo", "2.0000", "2", "1.0000", "1.5000", "2.0000", "2.5000", "3.0000"]
    assert str(scores) == repr(scores)
