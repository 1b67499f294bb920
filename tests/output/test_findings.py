"""Findings as a page with filters and as a workbook."""

from __future__ import annotations

from typing import Any

import pytest

import tertium
from tertium.data.record_files import read_records
from tertium.evaluation.checking import CheckReport
from tertium.output import html
from tertium.output.html import render_page

SOURCES = ["You have {count} files.", "In 1947", "Hello <b>you</b>"]
BAD = ["Sie haben Dateien.", "Im  Jahr 1974", "<script>alert(1)</script>"]
GOOD = ["Sie haben {count} Dateien.", "Im Jahr 1947", "Hallo <b>du</b>"]


COLUMNS = tuple("system segment check severity side start end text message file line".split())


@pytest.fixture
def report() -> CheckReport:
    return tertium.check({"bad": BAD, "good": GOOD}, sources=SOURCES, target_language="de")


def test_a_workbook_has_a_row_per_finding_with_the_marked_place(report, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "f.xlsx"
    report.write(path)
    rows = [*openpyxl.load_workbook(path, rich_text=True).active.iter_rows(values_only=True)]
    assert rows[0] == (*COLUMNS, "source", "translation")
    assert rows[1][:4] == ("bad", 1, "placeholders", "critical")
    before, marked, after = rows[1][11]
    assert (before, str(marked), after) == ("You have ", "{count}", " files.")
    assert marked.font.b
    assert str(rows[1][12]) == "Sie haben Dateien."
    assert len(rows) == 1 + len([*report.findings()])


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_every_table_has_offsets_and_both_texts(report, suffix, tmp_path):
    path = tmp_path / f"findings{suffix}"
    report.write(path)
    record = next(record for _, record in read_records(str(path)))
    assert [*record] == [*COLUMNS, "source", "translation"]
    assert record["source"][int(record["start"]) : int(record["end"])] == record["text"]
    assert record["translation"] == "Sie haben Dateien."


def test_the_page_filters_findings_and_runs_no_script_of_texts(report, browser, tmp_path):
    path = tmp_path / "f.html"
    report.write(path)
    browser.open(path)
    count = "document.querySelector('form + [role=status]').textContent"
    total = len([*report.findings()])
    assert browser.evaluate(count) == f"{total} rows"
    lists = "[...document.querySelectorAll('form select')].map((n) => n.labels[0].firstChild.data)"
    assert browser.evaluate(lists) == ["Check", "Severity"]
    browser.choose("form label:nth-of-type(2) select", "numbers")
    assert browser.evaluate(count) == f"1 of {total} rows"
    row = "document.querySelector('table[data-filters] tbody tr:not([hidden])')"
    assert browser.evaluate(f"{row}.querySelector('mark').textContent") == "1974"
    browser.choose("form input", "nowhere")
    assert browser.evaluate(count) == f"0 of {total} rows"
    assert browser.problems == []


def test_a_long_page_is_cut_and_an_empty_one_says_so(report, monkeypatch):
    assert "placeholders" in str(report)
    assert "clean segments (%)" in report._repr_html_()
    assert "The first" not in render_page(report)
    monkeypatch.setattr(html, "MAX_PAGE_ROWS", 3)
    page = render_page(report)
    assert f"The first 3 of {len([*report.findings()])} rows; files have all." in page
    clean = tertium.check(GOOD, sources=SOURCES, target_language="de")
    assert "No findings." in render_page(clean)


def test_a_report_has_a_section_of_findings():
    texts = {"bad": BAD, "good": GOOD}
    options: dict[str, Any] = {"sources": SOURCES, "references": GOOD, "explain": 0}
    findings = tertium.check(texts, sources=SOURCES)
    page = render_page(tertium.report(texts, "chrf", more=[findings], **options))
    assert "<h2>Checks</h2>" in page
    assert "placeholder {count} is missing in the translation" in page
    assert "<h2>Checks</h2>" not in render_page(tertium.report(texts, "chrf", **options))
