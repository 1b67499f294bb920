"""The metrics task as published: a small copy and the full data."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats.metrics_task import MetricsTask
from tertium.data.judgments import JudgmentSet
from tertium.data.metric_scores import read_metric_scores


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "wmt99-metrics-task"
    write(
        root / "DA-seglevel.csv",
        "LP DATA SYSTEM SID HUMAN\ncs-en newstest A.1 2 0.5\ncs-en newstest A.1+B.2 1 -0.5\n"
        "cs-en newstest A.1 2 0.5\ncs-en newstest C.3 1 0.1\ncs-en newstest B.2 9 0.2\n",
    )
    write(root / "DA-syslevel.csv", "LP HUMAN SYSTEM\ncs-en 0.3 A.1\ncs-en -0.1 B.2\nen-cs 1 A.1\n")
    write(root / "references" / "newstest-csen-ref.en", "ref one\nref two\n")
    write(root / "references" / "newstestB-csen-ref.en", "other one\nother two\n")
    write(root / "sources" / "newstest-csen-src.cs", "zdroj jedna\nzdroj dva\n")
    outputs = root / "system-outputs" / "newstest" / "cs-en"
    write(outputs / "newstest.A.1.cs-en", "same\na two\n")
    write(outputs / "newstest.B.2.cs-en", "same\nb two\n")
    return root


def test_texts_and_scores_are_read(folder: Path) -> None:
    task = MetricsTask.open(folder)
    assert task.lps == ("cs-en", "en-cs")
    assert task.with_outputs == ("cs-en",)
    texts = task.testset("cs-en")
    assert list(texts.systems) == ["A.1", "B.2"]
    assert texts.segments("B.2")[1] == Segment("b two", "zdroj dva", ("ref two",))
    assert dict(task.system_scores("cs-en").system_scores) == {"A.1": 0.3, "B.2": -0.1}


def test_judgments_without_text_and_duplicates_are_counted(folder: Path) -> None:
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


def test_outputs_in_a_tar_file(folder: Path) -> None:
    with tarfile.open(folder / "system-outputs-from-english.tar.xz", "w:xz") as tar:
        data = b"jedna\ndva\n"
        info = tarfile.TarInfo("en-cs/newstest.A.1.en-cs")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    write(folder / "references" / "newstest-encs-ref.cs", "x\ny\n")
    write(folder / "sources" / "newstest-encs-src.en", "x\ny\n")
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
def test_invalid_row_raises_with_file_and_line(
    folder: Path, file: str, line: str, message: str
) -> None:
    path = folder / file
    path.write_text(path.read_text() + line + "\n")
    task = MetricsTask.open(folder)
    with pytest.raises(DataError, match=message):
        _ = (task.system_scores("cs-en"), task.judgments("cs-en"))


def test_outputs_of_another_length_raise(folder: Path) -> None:
    outputs = folder / "system-outputs" / "newstest" / "cs-en" / "newstest.B.2.cs-en"
    outputs.write_text("only one\n")
    with pytest.raises(LengthError, match="must be parallel"):
        MetricsTask.open(folder).testset("cs-en")


def test_missing_files_raise_with_their_name(folder: Path, tmp_path: Path) -> None:
    task = MetricsTask.open(folder)
    with pytest.raises(UnknownNameError, match="language pair 'de-en'"):
        task.system_scores("de-en")
    with pytest.raises(DataError, match="no system outputs for en-cs"):
        task.testset("en-cs")
    with pytest.raises(DataError, match=r"expected DA-syslevel\.csv or DA-seglevel"):
        MetricsTask.open(tmp_path)


def test_submission_is_read_as_a_matrix(tmp_path: Path) -> None:
    rows = ["M\tcs-en\tnt\tA\t1\t0.5\tno\tyes", "M\tcs-en\tnt\tB\t1\tNone", "M\tcs-en\tnt\tA\t2\t1"]
    file = write(tmp_path / "M.seg.score", "\n".join(rows) + "\n")
    (scores,) = read_metric_scores(file)
    matrix = scores.segments
    assert (scores.metric, scores.lp) == ("M", "cs-en")
    assert matrix is not None
    np.testing.assert_array_equal(matrix.values, [[0.5, 1.0], [np.nan, np.nan]])
    systems = write(tmp_path / "M.sys.score", "M\tcs-en\tnt\tA\t0.5\nM\tcs-en\tnt\tB\t0.7\n")
    assert read_metric_scores(systems)[0].systems == {"A": 0.5, "B": 0.7}
    with pytest.raises(DataError, match=r"line 4: a second score of A 1"):
        read_metric_scores(write(file, "\n".join([*rows, rows[0]]) + "\n"))
    with pytest.raises(DataError, match=r"must contain the level, seg or sys.*METRIC\.seg\.score"):
        read_metric_scores(write(tmp_path / "M.score", "\n".join(rows) + "\n"))


@pytest.fixture(scope="module")
def datasets(human_data: Path) -> DatasetFolder:
    return DatasetFolder(human_data)


def as_mapping(judgment_set: JudgmentSet) -> dict[tuple[str, str], tuple[str, float]]:
    return {
        (j.item, j.system): (j.segment.hypothesis.strip(), j.score) for j in judgment_set.judgments
    }


@pytest.mark.parametrize("lp", ["cs-en", "en-zh"])
def test_wmt17_as_published_equals_the_converted_set(datasets: DatasetFolder, lp: str) -> None:
    published = datasets.metrics_task("wmt17-metrics-task").judgments(lp)
    converted = datasets.judgments("da/wmt17", lp)
    assert len(published) == 560
    assert published.excluded_counts == {}
    assert as_mapping(published) == as_mapping(converted)


def test_every_judged_system_of_wmt17_has_its_output(datasets: DatasetFolder) -> None:
    """The numbers of systems are those Mathur et al. 2019 print above tables 3 and 4."""
    task = datasets.metrics_task("wmt17-metrics-task")
    counts = {
        "cs-en": 4,
        "de-en": 11,
        "fi-en": 6,
        "lv-en": 9,
        "ru-en": 9,
        "tr-en": 10,
        "zh-en": 16,
        "en-cs": 14,
        "en-de": 16,
        "en-fi": 12,
        "en-lv": 17,
        "en-ru": 9,
        "en-tr": 8,
        "en-zh": 11,
    }
    assert set(task.with_outputs) == set(counts)
    for lp, count in counts.items():
        assert len(task.system_scores(lp).system_scores) == count
    assert set(task.testset("en-tr").systems) == set(task.system_scores("en-tr").system_scores)
