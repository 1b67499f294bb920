"""Folders of the WMT quality estimation tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.spans import ErrorAnnotations, Span, UnlocatedError
from tertium.data.formats.wmt_quality_estimation import find_qe_stems, read_qe
from tertium.data.human_data_files import read_human_data
from tertium.data.judgments import JudgmentSet


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
    (folder / "dev.tags").write_text("OK\nOK OK OK OK OK\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev.tags, line 1: 1 tags for 2 words"):
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


def test_wmt24_scores_name_their_segment(tmp_path: Path) -> None:
    folder = tmp_path / "en-hi"
    folder.mkdir()
    (folder / "WMT24_enhi.src").write_text("A cat.\nA dog.\n")
    (folder / "WMT24_enhi.tgt").write_text("एक बिल्ली।\nएक कुत्ता।\n", encoding="utf-8")
    rows = "1\n1\n1\nen-hi\tDA\tgold\t1\t-0.5\n"
    (folder / "test_wmt24.enhi.da_f").write_text(rows)
    (part,) = read_human_data(folder)
    assert (part.lp, part.excluded_counts) == ("en-hi", {"no score": 1})
    assert isinstance(part, JudgmentSet)
    assert [(j.item, j.score, j.segment.source) for j in part.judgments] == [("2", -0.5, "A dog.")]
    for row, message in {
        "en-hi\tDA\tgold\t2\t1": "line 4: segment 2, but the texts have 2 lines",
        "en-hi\tDA\tgold\t2": "line 4: 4 fields; expected 5",
        "en-hi\tDA\tgold\tx\t1": "line 4: segment is 'x'",
    }.items():
        (folder / "test_wmt24.enhi.da_f").write_text(f"1\n1\n1\n{row}\n")
        with pytest.raises(DataError, match=message):
            read_human_data(folder)


def test_tags_with_a_row_for_each_word(tmp_path: Path) -> None:
    folder = tmp_path / "en-de-test21"
    (folder / "goldlabels").mkdir(parents=True)
    files = {
        "test21.src": "A cat.\nA dog.",
        "test21.mt": "Ein Hund.\nEin Hund.",
        "test21.tok.src": "A cat .\nA dog .",
        "test21.tok.mt": "Ein Hund .\nEin Hund .",
        "goldlabels/test21.da": "-0.5\n0.5",
        "goldlabels/test21.hter": "0.5\n0.0",
        "goldlabels/task2_wordlevel_mt.tags": word_rows("mt", "OK BAD OK", "OK OK OK"),
        "goldlabels/task2_wordlevel_src.tags": word_rows("source", "OK BAD OK", "OK OK OK"),
        "goldlabels/task2_wordlevel_gaps.tags": word_rows("gap", "OK OK OK BAD", "OK OK OK OK"),
    }
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")
    (part,) = read_human_data(folder)
    assert (part.name, part.lp, part.excluded_counts) == ("test21", "en-de", {})
    assert isinstance(part, JudgmentSet)
    assert part.scores.tolist() == [-0.5, 0.5]
    first, second = (judgment.error_annotations for judgment in part.judgments)
    assert first == ErrorAnnotations(
        (Span(4, 8), Span(2, 5, "source")), (UnlocatedError("bad", "gap"),)
    )
    assert second == ErrorAnnotations()
    tags = folder / "goldlabels" / "task2_wordlevel_mt.tags"
    tags.write_text(word_rows("mt", "OK BAD OK", "OK OK") + "\n")
    (part,) = read_human_data(folder)
    assert part.excluded_counts == {"unreadable row": 1}
    tags.write_text("en-de\tREFERENCE\tmt\t2\t0\tEin\tOK\n")
    with pytest.raises(DataError, match="segment 2, but the texts have 2 lines"):
        read_human_data(folder)


def word_rows(side: str, *segments: str) -> str:
    return "\n".join(
        f"en-de\tREFERENCE\t{side}\t{segment}\t{number}\tword\t{tag}"
        for segment, tags in enumerate(segments)
        for number, tag in enumerate(tags.split())
    )


@pytest.mark.parametrize("header", ["lp\tgold\tsid\tmt\tmttok\ttags\n", ""])
def test_wmt23_tables_of_tags_with_and_without_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "gold_T1w.tsv"
    path.write_text(f"{header}en-de\tgold\t0\tEin Hund.\tEin Hund . <EOS>\tOK BAD OK OK\n")
    (part,) = read_human_data(path)
    assert isinstance(part, JudgmentSet)
    (judgment,) = part.judgments
    assert (part.lp, judgment.item, judgment.score) == ("en-de", "0", -0.25)
    assert judgment.error_annotations == ErrorAnnotations((Span(4, 8),))
    path.write_text(f"{header}en-de\tgold\t0\tEin Hund.\tEin Hund . <EOS>\tOK\n")
    with pytest.raises(DataError, match=r"gold_T1w\.tsv, line \d: 1 tags for 3 words"):
        read_human_data(path)


@pytest.mark.parametrize("header", ["lp\tgold\tsid\tscore\n", ""])
def test_wmt23_tables_of_scores_with_and_without_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "gold_T1s.tsv"
    path.write_text(f"{header}en-de\tgold\t0\t0.5\nen-de\tgold\t1\t-0.5\n")
    (part,) = read_human_data(path)
    assert isinstance(part, JudgmentSet)
    assert (part.lp, part.scores.tolist()) == ("en-de", [0.5, -0.5])
