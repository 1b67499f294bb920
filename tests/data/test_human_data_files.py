"""Human data of every format are read by one function."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose
from tests.builders import read_one, write_file, write_files

import tertium
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.segment import Segment
from tertium.data.human_data_files import read_human_data, read_sets_with_texts
from tertium.data.ratings import standardize_ratings
from tertium.data.text_files import language_pair_in_path
from tertium.models.training_data import TrainingSets


def test_judgments_by_language_pair(tmp_path):
    file = write_file(
        tmp_path / "da.tsv",
        "lp\titem\tsystem\tscore\nde-en\t1\tA\t70\nde-en\t1\tB\t\nfi-en\t1\tA\t50\n"
        "de-en\t1\tA\t70\n",
    )
    sets: Any = read_human_data(file)
    german, finnish = sets
    assert (german.lp, finnish.lp) == ("de-en", "fi-en")
    assert german.scores.tolist() == [70.0]
    assert german.excluded_counts == {"no score": 1, "duplicate row": 1}
    assert finnish.excluded_counts == {}
    (only,) = read_human_data(file, lps=["fi-en"])
    assert only.lp == "fi-en"
    assert read_human_data(file, lps=["ru-en"]) == []


@pytest.mark.parametrize(
    "texts",
    [
        {"segment": "1", "source": "s", "reference": "r"},
        {"Item": 1, "src": "s", "ref": ["r"]},
        {"id": "1", "original": "s", "ref1": "r", "ref2": ""},
    ],
)
def test_comparisons_with_texts_in_a_second_file(tmp_path, texts):
    texts |= {"outputs": {"A": "x", "B": "y"}}
    write_file(tmp_path / "de-en.texts.jsonl", [texts])
    file = write_file(
        tmp_path / "de-en.judgements.tsv",
        "segment\tjudge\tsystem_a\tsystem_b\tpreference\n1\tj\tA\tB\ta\n1\tj\tA\tC\tb\n",
    )
    entry = read_one(file)
    assert entry.lp == "de-en"
    assert len(entry) == 1
    assert entry.has_texts
    assert entry.segments[0] == Segment("x", "s", ("r",))
    assert entry.excluded_counts == {"unknown system": 1}


def test_tables_and_score_files(tmp_path):
    (entry,) = read_human_data(
        write_file(tmp_path / "en-de.mqm.seg.score", "A\t1\nA\tNone\nB\t2\nB\t3\n")
    )
    assert entry.lp == "en-de"
    assert entry.matrix().values.shape == (2, 2)
    (table,) = read_human_data(write_file(tmp_path / "en-de.mqm.sys.score", "A\t1\nB\tNone\n"))
    assert table.system_scores == {"A": 1.0}
    assert table.matrix() is None
    with pytest.raises(DataError, match="only system scores"):
        table.segment_scores()
    file = write_file(tmp_path / "de-en.systems.tsv", "system\tscore\nA\t1\nB\t2\n")
    (entry,) = read_human_data(file, level="system")
    assert entry.system_scores == {"A": 1.0, "B": 2.0}
    double = write_file(tmp_path / "x.tsv", "system\tscore\nA\t1\nA\t2\n")
    with pytest.raises(DataError, match="line 3: a second score of system 'A'"):
        read_human_data(double, level="system")
    words = write_file(tmp_path / "y.tsv", "system\tscore\nA\tfine\n")
    with pytest.raises(DataError, match="line 2: the score 'fine' is not a number"):
        read_human_data(words, level="system")


def folder(tmp_path):
    contents = {
        "sources/en-de.txt": "one\ntwo\n",
        "references/en-de.refA.txt": "eins\nzwei\n",
        "system-outputs/en-de/A.txt": "A eins\nzwei\n",
        "system-outputs/en-de/B.txt": "B eins\nzwei\n",
        "human-scores/en-de.mqm.seg.score": "A\t1\nA\t2\nB\t3\nB\tNone\n",
        "human-scores/en-de.wmt.seg.score": "A\t9\nA\t9\nB\t9\nB\t8\n",
        "human-scores/en-de.mqm.sys.score": "A\t1.5\nB\t3\n",
        "metric-scores/en-de/m-refA.seg.score": "A\t1\nA\t2\nB\t3\nB\t4\n",
    }
    return write_files(tmp_path / "wmt99", contents)


def test_folders_of_mt_metrics_eval(tmp_path):
    root = folder(tmp_path)
    (entry,) = read_human_data(root, gold="mqm")
    assert (entry.name, entry.lp) == ("wmt99", "en-de")
    assert_allclose(entry.matrix()["A"], [1, 2])
    assert entry.texts()["A", "1"].hypothesis == "A eins"
    assert [file.name for file in entry.files] == ["m-refA.seg.score"]
    (systems,) = read_human_data(root, level="system")
    assert systems.system_scores == {"A": 1.5, "B": 3.0}
    with pytest.raises(UsageError, match=r"several human scores \(mqm, wmt\).*--gold"):
        read_human_data(root)
    with pytest.raises(UnknownNameError, match="unknown human scores of en-de 'mqn'"):
        read_human_data(root, gold="mqn")


def test_folders_of_a_metrics_task(tmp_path, caplog):
    rows = "LP DATA SYSTEM SID HUMAN\ncs-en news A.1 1 0.5\nen-cs news A.1 1 0.5\n"
    contents = {
        "DA-seglevel.csv": rows,
        "DA-syslevel.csv": "LP HUMAN SYSTEM\ncs-en 0.3 A.1\nen-cs 1 A.1\n",
        "references/news-csen-ref.en": "one\n",
        "sources/news-csen-src.cs": "jedna\n",
        "system-outputs/news/cs-en/news.A.1.cs-en": "a one\n",
    }
    root = write_files(tmp_path / "task", contents)
    assert read_one(root).scores.tolist() == [0.5]
    assert "en-cs has no system outputs; skipped" in caplog.text
    systems: dict[str, Any] = {e.lp: e for e in read_human_data(root, level="system")}
    assert systems["cs-en"].testset is not None
    assert systems["en-cs"].testset is None
    assert systems["en-cs"].system_scores == {"A.1": 1.0}
    assert read_one("task", data=tmp_path, lps=["cs-en"]).name == "task"


def test_names_of_sets(tmp_path):
    rows = {"lp": "de-en", "segment": "1", "system": "A", "hypothesis": "h", "score": 0.5}
    write_file(tmp_path / "da" / "mine" / "de-en.jsonl", json.dumps(rows) + "\n")
    (entry,) = read_human_data("da/mine/", data=tmp_path)
    assert (entry.name, entry.lp) == ("da/mine", "de-en")
    with pytest.raises(DataError, match="did you mean 'da/mine'"):
        read_human_data("da/mind", data=tmp_path)
    row = '{"mt": "a", "ref": "b", "score": 1}\n'
    files = [write_file(tmp_path / "my" / "set" / name, row) for name in ("x.jsonl", "de-en.jsonl")]
    read = read_sets_with_texts(files)
    assert [(one.name, one.lp) for one in read] == [("x", ""), ("my/set", "de-en")]
    assert TrainingSets(scores=[*read, read[0]]).sizes == {"x": 2, "my/set de-en": 1}
    assert language_pair_in_path("a/b/mine.tsv") == ""
    assert language_pair_in_path("x/en-de/chrf.zh-en.tsv") == "zh-en"


def test_gold_selects_a_score_column(tmp_path):
    row = {"segment": "1", "system": "A", "hypothesis": "h", "score": 3, "Fluency": 1, "spans": []}
    file = write_file(tmp_path / "da" / "mine" / "de-en.jsonl", json.dumps(row) + "\n")
    frame = pandas.DataFrame([row]).drop(columns="spans")
    for source in (file, "da/mine", frame):
        chosen = {g: read_human_data(source, gold=g, data=tmp_path)[0] for g in ("", "fluency")}
        assert chosen[""].segment_scores().values.tolist() == [[3]]
        assert chosen["fluency"].segment_scores().values.tolist() == [[1]]
        with pytest.raises(DataError, match="looked for adequacy; found segment"):
            read_human_data(
                source, gold="adequacy", data=tmp_path
            )  # gold is a column, not the annotated errors


def test_gold_raises_if_there_is_one_kind_of_scores(tmp_path):
    task = write_file(
        tmp_path / "task" / "DA-syslevel.csv", "LP HUMAN SYSTEM\ncs-en 0.3 A.1\n"
    ).parent
    plain = write_file(tmp_path / "de-en.mqm.seg.score", "A\t1\nA\t2\n")
    for source in (task, plain):
        with pytest.raises(UsageError, match=r"--gold esa: .* has only one kind of scores"):
            read_human_data(source, gold="esa")
    (read,) = read_human_data(plain)
    with pytest.raises(UsageError, match="gold='esa' needs a file or folder"):
        tertium.meta_evaluate(read, scores=plain, gold="esa")


def test_the_test_part_of_a_dataset_is_read(tmp_path):
    names = ("qe/x/de-en.train", "qe/x/de-en.test", "mqm/news.zh-en", "mqm/talks.zh-en")
    for name in names:
        row = {"segment": "1", "system": "A", "hypothesis": "h", "score": 0.5}
        write_file(tmp_path / f"{name}.jsonl", [row])
    assert [e.name for e in read_human_data("qe/x", data=tmp_path)] == ["qe/x test"]
    assert [e.name for e in read_human_data("mqm", data=tmp_path)] == ["mqm news", "mqm talks"]


def test_missing_files_and_judgments_raise(tmp_path, monkeypatch):
    monkeypatch.delenv("TERTIUM_DATA", raising=False)
    with pytest.raises(DataError, match="no such file or folder"):
        read_human_data("nowhere.tsv")
    write_file(tmp_path / "qe" / "x" / "de-en.test.jsonl", '{"mt": "a", "ref": "b", "score": 1}')
    for missing in ("nowhere.tsv", "./qe/y", str(tmp_path / "qe" / "y"), "out/de-en.jsonl.gz"):
        with pytest.raises(DataError, match=re.escape(f"{missing}: no such file or folder")):
            read_human_data(missing, data=tmp_path)
    with pytest.raises(DataError, match="unknown set 'qe/y': did you mean 'qe/x'"):
        read_human_data("qe/y", data=tmp_path)
    with pytest.raises(DataError, match="contains no judgments"):
        read_human_data(write_file(tmp_path / "empty.tsv", "item\tscore\n"))
    with pytest.raises(
        DataError, match="expected a folder of mt-metrics-eval, a WMT metrics task or"
    ):
        read_human_data(tmp_path)


def test_all_forms_share_the_same_interface(tmp_path):
    """Metric values are arranged in the same cells as human scores."""
    scored = write_file(
        tmp_path / "s.tsv", "item\tsystem\tscore\tmt\tref\n1\tA\t7\ta\tr\n1\tB\t5\tb\tr\n"
    )
    compared = write_file(
        tmp_path / "c.tsv",
        "segment\tsystem_a\tsystem_b\tpreference\thypothesis_a\thypothesis_b\tref\n"
        "1\tA\tB\ta\ta\tb\tr\n",
    )
    forms = [
        read_human_data(scored)[0],
        read_human_data(compared)[0],
        read_human_data(folder(tmp_path), gold="mqm")[0],
    ]
    for entry in forms:
        owners = [system for system, _, _ in entry.rows()]
        matrix = entry.to_score_matrix(np.arange(len(owners), dtype=float), "mine")
        judgment_set = entry.segment_scores()
        assert matrix.systems == judgment_set.systems == tuple(dict.fromkeys(owners))
        assert matrix.values.shape == judgment_set.values.shape
        assert {segment for _, _, segment in entry.rows()} == set(entry.texts().values())
    assert forms[1].segment_scores()["A"].tolist() == [1.0]
    with pytest.raises(UsageError, match="needs ratings with annotators"):
        standardize_ratings(forms[1])
