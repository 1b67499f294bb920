"""Folders and tables of the WMT quality estimation and span tasks, as published."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import read_one, write_file, write_files

from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.spans import ErrorAnnotations, Span, UnlocatedError
from tertium.data.formats.wmt_quality_estimation import find_qe_stems, read_qe
from tertium.data.human_data_files import read_human_data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    contents = {
        "dev.src": "a house\na cat\n",
        "dev.mt": "ein Haus\nder Hund schläft\n",
        "dev.tags": "OK OK OK OK OK\nOK BAD OK BAD OK BAD BAD\n",  # with gaps
        "dev.src_tags": "OK OK\nOK BAD\n",
        "dev.hter": "0.0\n0.75\n",
        "dev.da": "90\nNone\n",
    }
    return write_files(tmp_path / "en-de", contents)


def test_bad_words_are_spans_and_bad_gaps_are_unlocated(folder):
    judgment_set = read_qe(folder / "dev", gold="hter", lp="en-de")
    assert judgment_set.scores.tolist() == [0.0, -0.75]
    assert judgment_set.judgments[0].error_annotations == ErrorAnnotations()
    wrong = (Span(0, 16), Span(2, 5, "source"))
    assert judgment_set.judgments[1].error_annotations == ErrorAnnotations(
        wrong, (UnlocatedError("bad", "gap"),)
    )


def test_gold_selects_the_scores_of_a_folder(folder):
    (result,) = read_human_data(folder)
    assert (result.name, result.lp, result.excluded_counts) == ("dev", "en-de", {"no score": 1})
    (other,) = read_human_data(folder, gold="hter")
    matrix = other.matrix()
    assert matrix.values.tolist() == [[0.0, -0.75]]
    with pytest.raises(UnknownNameError, match="unknown human scores"):
        read_human_data(folder, gold="mqm")


@pytest.mark.parametrize(
    ("name", "lp"), [("en-de-dev", "en-de"), ("en-cs_2022", "en-cs"), ("mine", ""), ("a-be", "")]
)
def test_language_pair_from_the_folder_name(folder, name, lp):
    (result,) = read_human_data(folder.rename(folder.with_name(name)))
    assert result.lp == lp


def test_scores_and_tags_of_a_folder(folder):
    for name in ("dev.hter", "dev.da", "dev.src_tags"):
        (folder / name).unlink()
    (folder / "dev.tags").write_text("OK OK\nOK BAD BAD\n", encoding="utf-8")
    assert read_qe(folder / "dev").scores.tolist() == [0.0, -2 / 3]
    (folder / "dev.tags").write_text("OK\nOK OK OK OK OK\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev.tags, line 1: 1 tags for 2 words"):
        read_qe(folder / "dev")
    (folder / "dev.tags").write_text("OK OK\n", encoding="utf-8")
    with pytest.raises(LengthError, match=r"dev\.src has 2 lines but .*dev\.tags has 1"):
        read_qe(folder / "dev")


def test_folder_without_scores_and_tags_raises(tmp_path):
    write_files(tmp_path, {"dev.src": "x\n", "dev.mt": "x\n"})
    assert find_qe_stems(tmp_path) == []
    with pytest.raises(DataError, match="expected a folder of mt-metrics-eval"):
        read_human_data(tmp_path)


def test_names_with_a_language_pair_and_tokenized_texts(tmp_path):
    texts = {"src": "A cat.", "mt": "Ein Hund.", "src_tok": "A cat .", "mt_tok": "Ein Hund ."}
    texts |= {"en-de.tags": "OK BAD OK", "en-de.da_score": "-0.5"}
    contents = {f"test.2022.{ending}": f"{text}\n" for ending, text in texts.items()}
    part = read_one(write_files(tmp_path / "en-de", contents))
    assert part.lp == "en-de"
    (judgment,) = part.judgments
    assert judgment.score == -0.5
    assert judgment.segment.hypothesis == "Ein Hund ."
    assert [span.of("Ein Hund .") for span in judgment.error_annotations.spans] == ["Hund"]


def test_wmt24_scores_name_their_segment(tmp_path):
    contents = {
        "WMT24_enhi.src": "A cat.\nA dog.\n",
        "WMT24_enhi.tgt": "एक बिल्ली।\nएक कुत्ता।\n",
        "test_wmt24.enhi.da_f": "1\n1\n1\nen-hi\tDA\tgold\t1\t-0.5\n",
    }
    folder = write_files(tmp_path / "en-hi", contents)
    part = read_one(folder)
    assert (part.lp, part.excluded_counts) == ("en-hi", {"no score": 1})
    assert [(j.item, j.score, j.segment.source) for j in part.judgments] == [("2", -0.5, "A dog.")]
    for row, message in {
        "2\t1": "line 4: segment 2, but the texts have 2 lines",
        "2": "line 4: 4 fields; expected 5",
        "x\t1": "line 4: segment is 'x'",
    }.items():
        (folder / "test_wmt24.enhi.da_f").write_text(f"1\n1\n1\nen-hi\tDA\tgold\t{row}\n")
        with pytest.raises(DataError, match=message):
            read_human_data(folder)


def test_tags_with_a_row_for_each_word(tmp_path):
    contents = {
        "test21.src": "A cat.\nA dog.\n",
        "test21.mt": "Ein Hund.\nEin Hund.\n",
        "test21.tok.src": "A cat .\nA dog .\n",
        "test21.tok.mt": "Ein Hund .\nEin Hund .\n",
        "goldlabels/test21.da": "-0.5\n0.5\n",
        "goldlabels/test21.hter": "0.5\n0.0\n",
        "goldlabels/task2_wordlevel_mt.tags": word_rows("mt", "OK BAD OK", "OK OK OK"),
        "goldlabels/task2_wordlevel_src.tags": word_rows("source", "OK BAD OK", "OK OK OK"),
        "goldlabels/task2_wordlevel_gaps.tags": word_rows("gap", "OK OK OK BAD", "OK OK OK OK"),
    }
    folder = write_files(tmp_path / "en-de-test21", contents)
    part = read_one(folder)
    assert (part.name, part.lp, part.excluded_counts) == ("test21", "en-de", {})
    assert part.scores.tolist() == [-0.5, 0.5]
    first, second = (judgment.error_annotations for judgment in part.judgments)
    spans, gap = (Span(4, 8), Span(2, 5, "source")), UnlocatedError("bad", "gap")
    assert first == ErrorAnnotations(spans, (gap,))
    assert second == ErrorAnnotations()
    tags = folder / "goldlabels" / "task2_wordlevel_mt.tags"
    tags.write_text(word_rows("mt", "OK BAD OK", "OK OK"))
    assert read_one(folder).excluded_counts == {"unreadable row": 1}
    tags.write_text("en-de\tREFERENCE\tmt\t2\t0\tEin\tOK\n")
    with pytest.raises(DataError, match="segment 2, but the texts have 2 lines"):
        read_human_data(folder)


def word_rows(side: str, *segments: str) -> str:
    return "".join(
        f"en-de\tREFERENCE\t{side}\t{segment}\t{number}\tword\t{tag}\n"
        for segment, tags in enumerate(segments)
        for number, tag in enumerate(tags.split())
    )


@pytest.mark.parametrize("header", ["lp\tgold\tsid\tmt\tmttok\ttags\n", ""])
def test_wmt23_tables_of_tags_with_and_without_header(tmp_path, header):
    path = tmp_path / "gold_T1w.tsv"
    path.write_text(f"{header}en-de\tgold\t0\tEin Hund.\tEin Hund . <EOS>\tOK BAD OK OK\n")
    part = read_one(path)
    (judgment,) = part.judgments
    assert (part.lp, judgment.item, judgment.score) == ("en-de", "0", -0.25)
    assert judgment.error_annotations == ErrorAnnotations((Span(4, 8),))
    path.write_text(f"{header}en-de\tgold\t0\tEin Hund.\tEin Hund . <EOS>\tOK\n")
    with pytest.raises(DataError, match=r"gold_T1w\.tsv, line \d: 1 tags for 3 words"):
        read_human_data(path)


@pytest.mark.parametrize("header", ["lp\tgold\tsid\tscore\n", ""])
def test_wmt23_tables_of_scores_with_and_without_header(tmp_path, header):
    path = tmp_path / "gold_T1s.tsv"
    path.write_text(f"{header}en-de\tgold\t0\t0.5\nen-de\tgold\t1\t-0.5\n")
    part = read_one(path)
    assert (part.lp, part.scores.tolist()) == ("en-de", [0.5, -0.5])


GOLD = """\
lp\tgold\tsid\tmt\tstart_id\tend_id\terror
en-de\tgold\t0\tDer Hund schlief.\t-1\t-1\tno-error
en-de\tgold\t1\tDie Katze sass im Hut.\t18 10\t21 14\tmajor minor
en-de\tgold\t2\tGut.\t0 4\t0 4\tminor major
"""
TRAINING = """\
mt_system\tdoc_id\tseg_id\tannotator_id\tsource\ttarget\tstart_ids\tend_ids\terrors
MT1\td1\t0\tr1\tThe dog slept.\tDer Hund schlief.\t-1\t-1\tno-error
MT1\td1\t1\tr1\tThe cat sat in a hat.\tDie Katze sass im Hut.\t10\t14\tmajor
"""


@pytest.fixture(params=[True, False], ids=["header", "no header"])
def read(request, tmp_path):
    """Return a function that reads the text of a table, with its header or without."""

    def read_table(text):
        text = text if request.param else text.partition("\n")[2]
        result = read_one(write_file(tmp_path / "a_en-de_x.tsv", text))
        assert result.lp == "en-de"
        return result.judgments

    return read_table


def test_gold_labels(read):
    first, second, third = read(GOLD)
    assert (first.item, first.lp, first.error_annotations.spans) == ("0", "en-de", ())
    marks = (Span(18, 21, severity="major"), Span(10, 14, severity="minor"))
    assert second.error_annotations.spans == marks
    # a span with equal start and end marks one character; the text has no character at its end
    assert third.error_annotations.spans == (Span(0, 1, severity="minor"),)
    assert third.error_annotations.missing == (UnlocatedError("major"),)


def test_training_data(read):
    _, second = read(TRAINING)
    assert second.segment.source == "The cat sat in a hat."
    assert second.system == "MT1"
    assert second.error_annotations.spans == (Span(10, 14, severity="major", rater="r1"),)
