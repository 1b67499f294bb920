"""The metrics task as published: a small copy and the full data."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from tests.builders import write_file, write_files

from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats.metrics_task import MetricsTask
from tertium.data.judgments import JudgmentSet
from tertium.data.metric_scores import read_metric_scores


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    contents = {
        "DA-seglevel.csv": "LP DATA SYSTEM SID HUMAN\ncs-en newstest A.1 2 0.5\n"
        "cs-en newstest A.1+B.2 1 -0.5\ncs-en newstest A.1 2 0.5\n"
        "cs-en newstest C.3 1 0.1\ncs-en newstest B.2 9 0.2\n",
        "DA-syslevel.csv": "LP HUMAN SYSTEM\ncs-en 0.3 A.1\ncs-en -0.1 B.2\nen-cs 1 A.1\n",
        "references/newstest-csen-ref.en": "ref one\nref two\n",
        "references/newstestB-csen-ref.en": "other one\nother two\n",
        "sources/newstest-csen-src.cs": "zdroj jedna\nzdroj dva\n",
        "system-outputs/newstest/cs-en/newstest.A.1.cs-en": "same\na two\n",
        "system-outputs/newstest/cs-en/newstest.B.2.cs-en": "same\nb two\n",
    }
    return write_files(tmp_path / "wmt99-metrics-task", contents)


def test_texts_and_scores_are_read(folder):
    task = MetricsTask.open(folder)
    assert task.lps == ("cs-en", "en-cs")
    assert task.with_outputs == ("cs-en",)
    texts = task.testset("cs-en")
    assert list(texts.systems) == ["A.1", "B.2"]
    assert texts.segments("B.2")[1] == Segment("b two", "zdroj dva", ("ref two",))
    assert dict(task.system_scores("cs-en").system_scores) == {"A.1": 0.3, "B.2": -0.1}


def test_judgments_without_text_and_duplicates_are_counted(folder):
    result = MetricsTask.open(folder).judgments("cs-en")
    assert [(j.system, j.item, j.score) for j in result.judgments] == [
        ("A.1", "2", 0.5),
        ("A.1+B.2", "1", -0.5),
    ]
    assert result.judgments[1].segment.hypothesis == "same"
    assert result.excluded_counts == {
        "duplicate row": 1,
        "unknown system": 1,
        "no matching segment": 1,
    }


def test_outputs_in_a_tar_file(folder):
    with tarfile.open(folder / "system-outputs-from-english.tar.xz", "w:xz") as tar:
        data = b"jedna\ndva\n"
        info = tarfile.TarInfo("en-cs/newstest.A.1.en-cs")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    write_file(folder / "references" / "newstest-encs-ref.cs", "x\ny\n")
    write_file(folder / "sources" / "newstest-encs-src.en", "x\ny\n")
    task = MetricsTask.open(folder)
    assert task.with_outputs == ("cs-en", "en-cs")
    assert task.testset("en-cs").systems["A.1"] == ("jedna", "dva")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("DA-syslevel.csv", "cs-en 0.3", "line 5: 2 fields, expected 'LP HUMAN SYSTEM'"),
        ("DA-syslevel.csv", "cs-en high A.1", "line 5: the score 'high' is not a number"),
        ("DA-syslevel.csv", "cs-en 0.9 A.1", "line 5: another score of system 'A.1'"),
        ("DA-seglevel.csv", "cs-en newstest A.1 2 x", "line 7: the score 'x' is not a number"),
    ],
)
def test_invalid_row_raises_with_file_and_line(folder, file, line, message):
    path = folder / file
    path.write_text(path.read_text() + line + "\n")
    task = MetricsTask.open(folder)
    with pytest.raises(DataError, match=message):
        _ = (task.system_scores("cs-en"), task.judgments("cs-en"))


def test_wrong_lengths_and_missing_files_raise(folder, tmp_path):
    task = MetricsTask.open(folder)
    with pytest.raises(UnknownNameError, match="language pair 'de-en'"):
        task.system_scores("de-en")
    with pytest.raises(DataError, match="no system outputs for en-cs"):
        task.testset("en-cs")
    with pytest.raises(DataError, match=r"expected DA-syslevel\.csv or DA-seglevel"):
        MetricsTask.open(tmp_path)
    outputs = folder / "system-outputs" / "newstest" / "cs-en" / "newstest.B.2.cs-en"
    outputs.write_text("only one\n")
    with pytest.raises(LengthError, match="must be parallel"):
        MetricsTask.open(folder).testset("cs-en")


def test_submission_is_read_as_a_matrix(tmp_path):
    rows = ["M\tcs-en\tnt\tA\t1\t0.5\tno\tyes", "M\tcs-en\tnt\tB\t1\tNone", "M\tcs-en\tnt\tA\t2\t1"]
    file = write_file(tmp_path / "M.seg.score", "\n".join(rows) + "\n")
    (scores,) = read_metric_scores(file)
    matrix = scores.segments
    assert (scores.metric, scores.lp) == ("M", "cs-en")
    np.testing.assert_array_equal(matrix.values, [[0.5, 1.0], [np.nan, np.nan]])
    systems = write_file(tmp_path / "M.sys.score", "M\tcs-en\tnt\tA\t0.5\nM\tcs-en\tnt\tB\t0.7\n")
    assert read_metric_scores(systems)[0].systems == {"A": 0.5, "B": 0.7}
    with pytest.raises(DataError, match=r"line 4: a second score of A 1"):
        read_metric_scores(write_file(file, "\n".join([*rows, rows[0]]) + "\n"))
    with pytest.raises(DataError, match=r"must contain the level, seg or sys.*METRIC\.seg\.score"):
        read_metric_scores(write_file(tmp_path / "M.score", "\n".join(rows) + "\n"))


@pytest.fixture(scope="module")
def datasets(human_data: Path) -> DatasetFolder:
    return DatasetFolder(human_data)


def as_mapping(judgment_set: JudgmentSet) -> dict[tuple[str, str], tuple[str, float]]:
    return {
        (j.item, j.system): (j.segment.hypothesis.strip(), j.score) for j in judgment_set.judgments
    }


@pytest.mark.parametrize("lp", ["en-zh", pytest.param("cs-en", marks=pytest.mark.slow)])
def test_wmt17_as_published_equals_the_converted_set(datasets, lp):
    published = datasets.metrics_task("wmt17-metrics-task").judgments(lp)
    converted = datasets.judgments("da/wmt17", lp)
    assert len(published) == 560
    assert published.excluded_counts == {}
    assert as_mapping(published) == as_mapping(converted)


def test_every_judged_system_of_wmt17_has_its_output(datasets):
    """The numbers of systems are those Mathur et al. 2019 print above tables 3 and 4."""
    task = datasets.metrics_task("wmt17-metrics-task")
    into_english = {"cs": 4, "de": 11, "fi": 6, "lv": 9, "ru": 9, "tr": 10, "zh": 16}
    from_english = {"cs": 14, "de": 16, "fi": 12, "lv": 17, "ru": 9, "tr": 8, "zh": 11}
    counts = {f"{language}-en": count for language, count in into_english.items()}
    counts |= {f"en-{language}": count for language, count in from_english.items()}
    assert set(task.with_outputs) == set(counts)
    assert {lp: len(task.system_scores(lp).system_scores) for lp in counts} == counts
    assert set(task.testset("en-tr").systems) == set(task.system_scores("en-tr").system_scores)
