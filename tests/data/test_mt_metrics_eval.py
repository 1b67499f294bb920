"""Folders and score files of mt-metrics-eval."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.segment import Segment
from tertium.data.formats.mt_metrics_eval import EvalSet, find_eval_sets, read_score_file


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
    assert evalset.systems == ("refB", "sysX", "sysY")
    assert evalset.references == ("refA", "refB")
    assert evalset.human_scores == ("mqm.seg", "wmt-z.sys")
    assert evalset.metric_scores == ("BLEU-refA.seg",)


def test_missing_scores_are_nan_in_matrices(evalset: EvalSet) -> None:
    matrix = evalset.human("mqm.seg")
    assert matrix.systems == ("sysX", "sysY", "refB")
    np.testing.assert_array_equal(matrix.values, [[-1, np.nan], [-5, 0], [0, 0]])
    assert evalset.human("wmt-z.sys")["sysX"].tolist() == [0.1]


def test_selected_reference_is_not_a_system(evalset: EvalSet) -> None:
    assert list(evalset.testset("refA").systems) == ["refB", "sysX", "sysY"]
    assert evalset.testset("refA").segments("sysX")[0] == Segment("sysX 1", "one", ("eins",))
    both = evalset.testset()
    assert list(both.systems) == ["sysX", "sysY"]
    assert both.references[1] == ("zwei", "Zwei!")
    assert both.columns == {"domain": ("news", "news")}


def test_unknown_names_raise(evalset: EvalSet) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'mqm\.seg'"):
        evalset.human("mqm")
    with pytest.raises(UnknownNameError, match="reference"):
        evalset.testset("refZ")


def test_ragged_and_invalid_score_files_raise(tmp_path: Path) -> None:
    with pytest.raises(LengthError, match="1 scores for 'B', but 2 for 'A'"):
        read_score_file(write(tmp_path / "x.seg.score", "A\t1\nA\t2\nB\t1\n"))
    with pytest.raises(DataError, match=r"line 2: expected SYSTEM and SCORE, got 1 fields"):
        read_score_file(write(tmp_path / "y.seg.score", "A\t1\nA\n"))
    with pytest.raises(DataError, match=r"line 1: the score 'good' is not a number"):
        read_score_file(write(tmp_path / "z.seg.score", "A\tgood\n"))


def test_other_folder_has_no_eval_sets(tmp_path: Path) -> None:
    assert find_eval_sets(tmp_path) == ()
