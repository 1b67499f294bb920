"""Folders of the WMT quality estimation tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tertium.data.human_data_files import read_human_data
from tertium.data.judgments import JudgmentSet
from tertium.data.wmt_quality_estimation import find_qe_stems, read_qe
from tertium.errors import DataError, LengthError, UnknownNameError
from tertium.spans import ErrorAnnotations, Span, UnlocatedError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "en-de"
    folder.mkdir()
    files = {
        "dev.src": "a house\na cat",
        "dev.mt": "ein Haus\nder Hund schläft",
        "dev.tags": "OK OK OK OK OK\nOK BAD OK BAD OK BAD BAD",  # with gaps
        "dev.src_tags": "OK OK\nOK BAD",
        "dev.hter": "0.0\n0.75",
        "dev.da": "90\nNone",
    }
    for name, text in files.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return folder


def test_bad_words_are_spans_and_bad_gaps_are_unlocated(folder: Path) -> None:
    judgment_set = read_qe(folder / "dev", gold="hter", lp="en-de")
    assert judgment_set.scores.tolist() == [0.0, -0.75]
    assert judgment_set.judgments[0].error_annotations == ErrorAnnotations()
    wrong = (Span(0, 16), Span(2, 5, "source"))
    assert judgment_set.judgments[1].error_annotations == ErrorAnnotations(
        wrong, (UnlocatedError("bad", "gap"),)
    )


def test_gold_selects_the_scores_of_a_folder(folder: Path) -> None:
    (result,) = read_human_data(folder)
    assert (result.name, result.lp, result.excluded_counts) == ("dev", "en-de", {"no score": 1})
    (other,) = read_human_data(folder, gold="hter")
    matrix = other.matrix()
    assert matrix is not None
    assert matrix.values.tolist() == [[0.0, -0.75]]
    with pytest.raises(UnknownNameError, match="unknown human scores"):
        read_human_data(folder, gold="mqm")


@pytest.mark.parametrize(
    ("name", "lp"), [("en-de-dev", "en-de"), ("en-cs_2022", "en-cs"), ("mine", ""), ("a-be", "")]
)
def test_language_pair_from_the_folder_name(folder: Path, name: str, lp: str) -> None:
    (result,) = read_human_data(folder.rename(folder.with_name(name)))
    assert result.lp == lp


def test_without_scores_the_proportion_of_bad_words_is_used(folder: Path) -> None:
    for name in ("dev.hter", "dev.da", "dev.src_tags"):
        (folder / name).unlink()
    (folder / "dev.tags").write_text("OK OK\nOK BAD BAD\n", encoding="utf-8")
    assert read_qe(folder / "dev").scores.tolist() == [0.0, -2 / 3]


def test_wrong_number_of_tags_raises_with_line(folder: Path) -> None:
    (folder / "dev.tags").write_text("OK OK\nOK OK OK OK OK\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev.tags, line 2: 5 tags for 3 words"):
        read_qe(folder / "dev")
    (folder / "dev.tags").write_text("OK OK\n", encoding="utf-8")
    with pytest.raises(LengthError, match=r"dev\.src has 2 lines but .*dev\.tags has 1"):
        read_qe(folder / "dev")


def test_folder_without_scores_and_tags_raises(tmp_path: Path) -> None:
    for ending in ("src", "mt"):
        (tmp_path / f"dev.{ending}").write_text("x\n")
    assert find_qe_stems(tmp_path) == []
    with pytest.raises(DataError, match="expected a folder of mt-metrics-eval"):
        read_human_data(tmp_path)


def test_names_with_a_language_pair_and_tokenized_texts(tmp_path: Path) -> None:
    folder = tmp_path / "en-de"
    folder.mkdir()
    texts = {"src": "A cat.", "mt": "Ein Hund.", "src_tok": "A cat .", "mt_tok": "Ein Hund ."}
    for ending, text in {**texts, "en-de.tags": "OK BAD OK", "en-de.da_score": "-0.5"}.items():
        (folder / f"test.2022.{ending}").write_text(f"{text}\n")
    (part,) = read_human_data(folder)
    assert part.lp == "en-de"
    assert isinstance(part, JudgmentSet)
    (judgment,) = part.judgments
    assert judgment.score == -0.5
    assert judgment.segment.hypothesis == "Ein Hund ."
    assert judgment.error_annotations is not None
    assert [span.of("Ein Hund .") for span in judgment.error_annotations.spans] == ["Hund"]
