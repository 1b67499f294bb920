"""The calls with the conventions of sacrebleu, COMET and Hugging Face evaluate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tertium.compat import comet
from tertium.core.errors import (
    DataError,
    LengthError,
    MissingInputError,
    TertiumError,
    UnknownNameError,
    UsageError,
)
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.metrics.lexical.bleu_metric import BLEU

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
    square = BLEU().corpus_score(HYPOTHESES, [REFERENCES, BETTER], layout="streams")
    assert square.signature.startswith("BLEU|nrefs:2")


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


class PolarsLike:
    """The part of the polars API that is used."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self._rows = [*columns], [*zip(*columns.values(), strict=True)]
        self.shape = (len(self._rows), len(self.columns))

    def to_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self._rows]


TABLE = {"MT": HYPOTHESES, "ref": REFERENCES, "Ref2": [BETTER[0], None]}


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame(TABLE, index=[7, 3]),
        pd.DataFrame(TABLE, dtype="string"),
        pa.table(TABLE),
        PolarsLike(TABLE),
        [row for _, row in pd.DataFrame(TABLE).iterrows()],
        [
            {"mt": HYPOTHESES[0], "year": 1, "ref": np.array([REFERENCES[0], BETTER[0]])},
            {"mt": np.str_(HYPOTHESES[1]), "ref": REFERENCES[1], "ref2": float("nan")},
        ],
    ],
    ids=["pandas", "pandas strings", "arrow", "polars", "rows", "records"],
)
def test_a_table_is_predicted_row_by_row(data: Any) -> None:
    segments = [
        Segment(HYPOTHESES[0], None, (REFERENCES[0], BETTER[0])),
        Segment(HYPOTHESES[1], None, (REFERENCES[1],)),
    ]
    scores = BLEU().score(segments)
    assert BLEU().predict(data).scores == scores.segments.tolist()
    assert comet.Model(BLEU()).predict(data, gpus=0).system_score == scores.system


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected records, .* not None"),
        ({"mt": "a", "ref": "b"}, r"expected records, \[.* or a frame .*, not {'mt'"),
        (["a"], r"item 1: expected a record, .* not 'a'"),
        ([Segment("a")], r"item 1: expected a record, .* not Segment"),
        (pd.DataFrame([["a", "b"]], columns=["mt", "mt"]), "two columns 'mt'"),
    ],
)
def test_invalid_records_are_refused(data: Any, message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        BLEU().predict(data)


def test_texts_may_be_columns_arrays_and_generators() -> None:
    expected = BLEU().corpus_score(HYPOTHESES, REFERENCES).system
    columns: list[Any] = [pd.Series(HYPOTHESES, index=[2, 1]), np.array(HYPOTHESES), None]
    columns += [pa.array(HYPOTHESES), pa.table({"mt": HYPOTHESES})["mt"]]
    for texts in columns:
        hypotheses = iter(HYPOTHESES) if texts is None else texts
        assert BLEU().corpus_score(hypotheses, iter(REFERENCES)).system == expected
    nested = pa.array([[text] for text in REFERENCES])
    assert BLEU().corpus_score(HYPOTHESES, nested).system == expected


@pytest.mark.parametrize("texts", [{"a", "b"}, {"a": 1, "b": 2}, pd.DataFrame({"a": ["x", "y"]})])
def test_unordered_collections_and_tables_are_refused(texts: Any) -> None:
    """Column names must not be scored as texts, and sets have no reproducible order."""
    for part in ("hypotheses", "references", "sources"):
        parts = {"hypotheses": ["a", "b"], "references": ["a", "b"], part: texts}
        with pytest.raises(UsageError, match=f"{part} must be a list of texts, got "):
            BLEU().corpus_score(**parts)
    with pytest.raises(UsageError, match="'ours': expected a list of texts"):
        TestSet(systems={"ours": texts})


def test_a_missing_reference_is_none_and_its_segment_is_named() -> None:
    for missing in (None, float("nan"), pd.NA):
        with pytest.raises(MissingInputError, match="segment 2 has none"):
            BLEU().corpus_score(HYPOTHESES, [REFERENCES[0], missing])  # type: ignore[list-item]
        with pytest.raises(DataError, match="hypotheses: segment 2 is"):
            BLEU().corpus_score([HYPOTHESES[0], missing], REFERENCES)  # type: ignore[list-item]


TWO = [REFERENCES, BETTER]
INVALID: list[tuple[Any, Any, dict[str, Any], type[TertiumError], str]] = [
    (HYPOTHESES, REFERENCES[:1], {}, LengthError, "1 references for 2"),
    (HYPOTHESES, REFERENCES, {"sources": ["s"]}, LengthError, "1 sources for 2"),
    (HYPOTHESES, [["a", "b"], ["c"]], {"layout": "streams"}, LengthError, "streams of lengths"),
    (HYPOTHESES, [["a"]], {"layout": "segments"}, LengthError, "references for 1 segments"),
    (HYPOTHESES, TWO, {"layout": "stream"}, UnknownNameError, "did you mean 'streams'"),
    (HYPOTHESES, TWO, {}, UsageError, "per segment or per stream"),
    ("hello", ["hello"], {}, UsageError, "got a single text"),
    (["hello"], "hello", {}, UsageError, "got a single text"),
    (b"hello", ["hello"], {}, UsageError, "got a single text"),
    (["a"], ["a"], {"sources": "A"}, UsageError, "sources must be a list of texts, got a single"),
    (["a", "b"], ["x", ["y"]], {}, DataError, "mix texts and lists"),
    (["a", "b"], ["x", 1], {}, DataError, "reference 2 is 1: expected a text"),
    (["a", "b"], ["x", b"y"], {}, DataError, "reference 2 is b'y': expected a text"),
]


@pytest.mark.parametrize(("hypotheses", "references", "options", "error", "message"), INVALID)
def test_invalid_lists_are_refused(
    hypotheses: Any,
    references: Any,
    options: dict[str, Any],
    error: type[TertiumError],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        BLEU().corpus_score(hypotheses, references, **options)


def test_evaluate_style_compute() -> None:
    result = BLEU().compute(predictions=HYPOTHESES, references=[[r] for r in REFERENCES])
    assert result["score"] == BLEU().corpus_score(HYPOTHESES, REFERENCES).system
    assert len(result["scores"]) == 2
    with pytest.raises(LengthError, match='use layout="streams"'):
        BLEU().compute(predictions=HYPOTHESES, references=[REFERENCES])


def test_sentence_score_expects_a_list() -> None:
    assert BLEU().sentence_score("a b c d", ["a b c d"]) == pytest.approx(100)
    with pytest.raises(UsageError, match="list of texts"):
        BLEU().sentence_score("a", "a")
    assert BLEU().sentence_score("a b c d", ["a b c d", None]) == pytest.approx(100)
    for references in ({"a", "b"}, {"a": "b"}, 3, b"a"):
        with pytest.raises(UsageError, match="references must be a list of texts, got "):
            BLEU().sentence_score("a", references)  # type: ignore[arg-type]
