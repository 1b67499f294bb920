"""Report pages are written atomically, with clear errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tertium.core.errors import DataError
from tertium.data.testset import TestSet
from tertium.evaluation.scoring import score
from tertium.output.page.report import Report, report_results


@pytest.fixture(scope="module")
def report() -> Report:
    testset = TestSet(systems={"a": ("x",)}, references=(("x",),))
    return report_results(score(testset, "chrf"), title="A lone \ud800 sign")


def test_a_page_replaces_an_older_one(report: Report, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("old")
    report.write(target)
    assert "A lone \ufffd sign" in target.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_raises_and_leaves_no_file(report: Report, tmp_path: Path) -> None:
    folder = tmp_path / "page.html"
    folder.mkdir()
    with pytest.raises(DataError, match=r"page\.html is a directory"):
        report.write(folder)
    with pytest.raises(DataError, match=r"the folder .*none does not exist"):
        report.write(tmp_path / "none" / "page.html")
    assert list(tmp_path.iterdir()) == [folder]
