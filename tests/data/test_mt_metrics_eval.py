"""Folders and score files of mt-metrics-eval."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, LengthError
from tertium.data.formats.mt_metrics_eval import EvalSet, find_eval_sets, read_score_file
from tertium.data.human_data_files import read_human_data


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def evalset(tmp_path: Path) -> EvalSet:
    root = tmp_path / "wmt99"
    write(root / "sources" / "en-de.txt", "one\ntwo\n")
    write(root / "references" / "en-de.refA.txt", "eins\nzwei\n")
    write(root / "references" / "en-de.refB.txt", "Eins!\nZwei!\n")
    write(root / "documents" / "en-de.docs", "news\tdoc1\nnews\tdoc1\n")
    for system in ("sysX", "sysY", "refB"):
        write(root / "system-outputs" / "en-de" / f"{system}.txt", f"{system} 1\n{system} 2\n")
    scores = "sysX\t-1\nsysX\tNone\nsysY\t-5\nsysY\t0\nrefB\t0\nrefB\t0\n"
    write(root / "human-scores" / "en-de.mqm.seg.score", scores)
    write(root / "human-scores" / "en-de.wmt-z.sys.score", "sysX\t0.1\nsysY\tNone\n")
    write(root / "metric-scores" / "en-de" / "BLEU-refA.seg.score", "sysX\t1\nsysX\t2\n")
    (result,) = find_eval_sets(root)
    return result


def test_names_are_listed(evalset: EvalSet) -> None:
    assert evalset.lp == "en-de"
    assert list(evalset.references) == ["refA", "refB"]
    assert list(evalset.human_scores) == ["mqm.seg", "wmt-z.sys"]
    assert [file.name for file in evalset.score_files] == ["BLEU-refA.seg.score"]


def test_missing_scores_are_nan_in_matrices(evalset: EvalSet) -> None:
    matrix = read_score_file(evalset.human_scores["mqm.seg"])
    assert matrix.systems == ("sysX", "sysY", "refB")
    np.testing.assert_array_equal(matrix.values, [[-1, np.nan], [-5, 0], [0, 0]])
    (entry,) = read_human_data(evalset.folder, gold="mqm")
    np.testing.assert_array_equal(entry.segment_scores().values, matrix.values)
    (systems,) = read_human_data(evalset.folder, level="system")
    assert systems.system_scores == {"sysX": 0.1}


def test_references_are_not_systems(evalset: EvalSet) -> None:
    assert list(evalset.testset.systems) == ["sysX", "sysY"]
    assert evalset.testset.references[1] == ("zwei", "Zwei!")
    assert evalset.testset.columns == {"domain": ("news", "news")}


def test_ragged_and_invalid_score_files_raise(tmp_path: Path) -> None:
    with pytest.raises(LengthError, match="1 scores for 'B', but 2 for 'A'"):
        read_score_file(write(tmp_path / "x.seg.score", "A\t1\nA\t2\nB\t1\n"))
    with pytest.raises(DataError, match=r"line 2: expected SYSTEM and SCORE, got 1 fields"):
        read_score_file(write(tmp_path / "y.seg.score", "A\t1\nA\n"))
    with pytest.raises(DataError, match=r"line 1: the score 'good' is not a number"):
        read_score_file(write(tmp_path / "z.seg.score", "A\tgood\n"))


def test_other_folder_has_no_eval_sets(tmp_path: Path) -> None:
    assert find_eval_sets(tmp_path) == ()
