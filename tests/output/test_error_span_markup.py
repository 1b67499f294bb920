"""Error spans as HTML: marks nest, are escaped, and can be read back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import write_file
from tests.output.marking_metric import Suspicious

import tertium
from tertium.cli import main
from tertium.core.errors import DataError
from tertium.core.registry import METRICS
from tertium.core.spans import Span
from tertium.data.human_data_files import read_human_data
from tertium.evaluation.error_marking import MarkedErrors, MarkedTranslations, mark_errors
from tertium.evaluation.paired_tests import SignificanceTests
from tertium.metrics.base.explanation import Explanation, MarkedText
from tertium.output.html import render_page
from tertium.output.markup_builder import mark_error_spans
from tertium.output.page.report import Report, report_results

FIELDS = ("side", "severity", "category", "rater", "chance")
HOME = "tests.output.marking_metric:Suspicious"
NASTY = '<b>"cat" & 猫</b>\u202e𝒜\n<script>alert(1)</script>'


def test_text_is_escaped_and_places_are_checked():
    displayed = mark_error_spans(NASTY, [Span(3, 8, severity="major", category='"><script>')])
    assert "<script" not in displayed
    assert displayed.count("<mark ") == 1
    spans = [Span(0, 2), Span(0, 3, "source", "minor")]
    assert read_error_spans(mark_error_spans("abc", spans, "source")) == ("abc", (spans[1],))
    with pytest.raises(DataError, match="ends at 2"):
        mark_error_spans("a", spans)


def read_error_spans(markup: str) -> tuple[str, tuple[Span, ...]]:
    """Return the text and the spans of the output of `mark_error_spans`."""
    reader = SpanReader()
    reader.feed(markup)
    reader.close()
    return reader.finish()


class SpanReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.length = 0
        self.open: list[tuple[str, Mapping[str, str | None], int]] = []
        self.span_fields: dict[str, dict[str, Any]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "mark":
            attributes = dict(attrs)
            self.open.append((attributes.get("data-span") or "", attributes, self.length))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        self.length += len(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "mark" and self.open:
            number, attributes, start = self.open.pop()
            values = {name: attributes.get(f"data-{name}") for name in FIELDS}
            fields = {name: value for name, value in values.items() if value is not None}
            span = self.span_fields.setdefault(number, {**fields, "start": start})
            span["end"] = self.length

    def finish(self) -> tuple[str, tuple[Span, ...]]:
        spans = []
        for fields in self.span_fields.values():
            chance = fields.pop("chance", None)
            spans.append(Span(**fields, chance=None if chance is None else float(chance)))
        return "".join(self.texts), tuple(sorted(spans, key=lambda s: (s.start, -s.end)))


def test_spans_can_be_read_back():
    """Overlapping, nested, equal and neighboring spans, at random."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        spans = []
        for n in range(int(rng.integers(0, 5))):
            start = int(rng.integers(0, len(NASTY) - 1))
            end = int(rng.integers(start + 1, len(NASTY) + 1))
            severity = ("minor", "major", "critical", "bad", "neutral")[n]
            spans.append(Span(start, end, "hypothesis", severity, "A/b", "r1", 0.1 * n))
        expected = tuple(sorted(spans, key=lambda s: (s.start, -s.end)))
        assert read_error_spans(mark_error_spans(NASTY, spans)) == (NASTY, expected)


TESTSET = tertium.TestSet(
    systems={"A": ("a cat sat", "a dog sat"), "B": ("<cat>", "catcat cat")},
    references=(("x",), ("y",)),
    sources=("eine Katze", "ein Hund"),
)


def render_marked(entries: list[MarkedTranslations]) -> str:
    return render_page(MarkedErrors(entries))


def test_the_worst_translations_come_first():
    metrics = [tertium.load_metric("chrf"), Suspicious()]
    (marked,) = mark_errors(tertium.score(TESTSET, metrics), metrics)
    assert marked.counts() == {"major": 3}
    assert [(e.system, e.item) for e in marked.worst(9)] == [("A", 1), ("B", 1), ("B", 2)]
    first = MarkedErrors([marked]).file_table().records()[0]
    assert [*first.values()][1:6] == ["A", 1, "hypothesis", 2, 5]
    html = render_marked([marked])
    assert "&lt;<mark" in html
    assert "3 major in 4 translations." in html
    assert "the worst 3 translations" in html


def test_ties_in_error_weight_are_ordered_by_score(monkeypatch):
    """Otherwise a large test set would list translations of its first system only."""
    values = np.array([0.9, 0.0, 0.5, np.nan])  # A 1, A 2 (no error), B 1, B 2
    monkeypatch.setattr(
        Suspicious, "segment_scores", lambda self, segments: values[: len(segments)]
    )
    (marked,) = mark_errors(tertium.score(TESTSET, [Suspicious()]), [Suspicious()])
    assert [(e.system, e.item) for e in marked.worst(9)] == [("B", 1), ("A", 1), ("B", 2)]
    html = render_marked([marked])  # rounded as in tables
    displayed = re.findall(r'<td class="number" data-value="[^"]*">([^<]*)</td>', html)
    assert displayed == ["0.5000", "0.9000", "–"]
    monkeypatch.setattr(Suspicious, "higher_is_better", False)
    assert [(e.system, e.item) for e in marked.worst(2)] == [("A", 1), ("B", 1)]


def report_lone(text: str, metric: Suspicious) -> str:
    lone = tertium.TestSet(systems={"A": (text,)}, references=(("x",),), sources=("y",))
    return render_page(report_results(tertium.score(lone, [metric]), [metric]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a cat", "1 major in 1 translation."), ("a dog", "no errors marked in 1 translation.")],
)
def test_counts_are_worded_correctly_with_a_note_of_what_is_left_out(text, expected):
    @dataclass(frozen=True, kw_only=True)
    class Quiet(Suspicious):
        @property
        def span_note(self) -> str:
            return "only certain errors are shown"

    assert expected in report_lone(text, Suspicious())
    page = report_lone(text, Quiet())
    assert expected.rstrip(".") in page
    assert "only certain errors are shown" in page
    count = 1 if text == "a cat" else "none"
    explained = str(tertium.explain(tertium.Segment(text), metric=Quiet()))
    assert f"suspected errors: {count}" in explained
    assert explained.splitlines()[-1].strip() == "only certain errors are shown"


def test_pages_count_explanations_and_omit_marks_of_metrics_without_them():
    page = render_page(tertium.report(TESTSET, "bertscore:encoder=toy", explain=1))
    assert "Explanations are available for 1 segment where" in page
    assert "<h2>Error spans</h2>" not in page


def report(testset: tertium.TestSet, human: Path) -> Report:
    tests = SignificanceTests(resamples=20)
    return tertium.report(testset, "chrf", human=human, tests=tests, explain=0)


def find_judged_labels(testset: tertium.TestSet, human: Path) -> set[str]:
    """Return the labels of the items of a report that have human scores."""
    grid = report(testset, human).grid
    return {grid.items[n].label for n in grid.item_indices[np.isfinite(grid.human)]}


NUMBERED_PER_DOCUMENT = tertium.TestSet(  # two documents with segment 1 each
    systems={"A": ("a cat", "a dog"), "B": ("the hat", "the log")},
    references=(("the cat",), ("the dog",)),
    documents=("x", "y"),
    columns={"segment": ("1", "1")},
)


def test_annotations_are_matched_by_document(tmp_path):
    about = {"document": "y", "segment": 1}
    rows = [
        {**about, "system": s, "mt": NUMBERED_PER_DOCUMENT.systems[s][1], "score": n}
        for n, s in enumerate("AB")
    ]
    file = write_file(tmp_path / "mqm.jsonl", rows)
    assert find_judged_labels(NUMBERED_PER_DOCUMENT, file) == {"y:1"}
    compared = "doc,item,system_a,system_b,preference\ny,1,A,B,a\n"
    file = write_file(tmp_path / "compared.csv", compared)
    assert find_judged_labels(NUMBERED_PER_DOCUMENT, file) == {"y:1"}


def test_annotations_of_one_document_are_not_matched_to_another(tmp_path):
    testset = tertium.TestSet(
        systems={"A": ("a cat", "a dog", "a cow"), "B": ("the hat", "the log", "the bow")},
        references=(("the cat",), ("the dog",), ("the cow",)),
        documents=("x", "y", "y"),
    )
    rows = [f"y,{item},{system},{item}\n" for item in (1, 2) for system in "AB"]
    file = write_file(tmp_path / "rated.csv", "doc,item,system,score\n" + "".join(rows))
    assert find_judged_labels(testset, file) == {"2"}


def test_explanations_show_error_spans():
    explained = tertium.explain(TESTSET.segments("A")[0], metric=Suspicious())
    assert explained.marked_text == MarkedText(
        hypothesis="a cat sat", source="eine Katze", spans=(Span(2, 5, severity="major"),)
    )
    assert explained.as_dict()["spans"] == [
        {"start": 2, "end": 5, "side": "hypothesis", "severity": "major"}
    ]
    assert '<mark class="major"' in explained._repr_html_()
    assert "marked" not in Explanation(metric="x", score=1.0).as_dict()


def test_score_writes_predicted_error_spans(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(METRICS.builtin, "suspicious", HOME)
    TESTSET.write(tmp_path / "set.jsonl")
    argv = ["score", "-t", str(tmp_path / "set.jsonl"), "-q", "-m", "chrf"]
    lines, table = tmp_path / "errors.jsonl", tmp_path / "errors.tsv"
    assert main([*argv, "suspicious", "-o", f"spans:{lines}"]) == 0
    (actual,) = read_human_data(lines)
    assert actual.error_annotations()["B", "1"].spans == (Span(1, 4, severity="major"),)
    assert main([*argv, "suspicious", "-o", f"spans:{table}"]) == 0
    header, *rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()]
    assert header[:3] == ["metric", "system", "segment"]
    assert rows[0] == ["suspicious", "A", "1", "hypothesis", "2", "5", "major", "", "", "cat"]
    capsys.readouterr()
    assert main([*argv, "-o", f"spans:{lines}"]) == 2
    assert "chrf cannot mark error spans; add a metric that can" in capsys.readouterr().err
    for kind in ("spans:", ""):
        # no name of a pipe says which kind of table is meant
        for file in (str(tmp_path / "errors.txt"), "/dev/stdout"):
            assert main([*argv, "suspicious", "-o", f"{kind}{file}"]) == 2
            assert f"{file}: expected a name that ends in .json" in capsys.readouterr().err


def test_marks_without_a_score_are_written_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(METRICS.builtin, "suspicious", HOME)
    values = np.array([np.nan, np.inf, -np.inf, 0.0])
    monkeypatch.setattr(
        Suspicious, "segment_scores", lambda self, segments: values[: len(segments)]
    )
    TESTSET.write(tmp_path / "set.jsonl")
    lines, page = tmp_path / "errors.jsonl", tmp_path / "page.html"
    options = ["-t", str(tmp_path / "set.jsonl"), "-q", "-m", "suspicious"]
    records = tmp_path / "scores.json"
    assert main(["score", *options, "-o", f"spans:{lines}", str(records)]) == 0
    for text in (*lines.read_text(encoding="utf-8").splitlines(), records.read_text()):
        json.loads(text, parse_constant=pytest.fail)  # JSON has neither NaN nor Infinity
    assert main(["report", *options, "-o", str(page)]) == 0
    assert '">–</td>' in page.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["explain", "--text", "-m", "suspicious", "-t", "a cat", "-r", "x"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("suspicious: –\n")
    assert printed.err == "tertium: warning: score is not a number\n"


def test_marks_name_segments_as_their_file_does():
    ids = {"id": ("talk-7", "talk-9")}
    testset = tertium.TestSet(systems={"A": ("a dog", "a cat")}, columns=ids)
    results = mark_errors(tertium.score(testset, [Suspicious()]), [Suspicious()])
    assert [record["segment"] for record in results.records()] == ["talk-7", "talk-9"]
    assert results.file_table().values()["segment"] == ["talk-9"]
    [marked] = results
    assert '<th scope="row"><bdi>talk-9</bdi></th>' in render_marked([marked])


@pytest.mark.parametrize(
    ("text", "span", "displayed"),
    [
        ("Three cats sleep.", Span(6, 9), "[cat]s"),
        ("Three cats sleep.", Span(8, 15), "ca[ts slee]p"),
        ("Three cats sleep.", Span(6, 16), "cats sleep"),
        ("Three cats sleep.", Span(5, 16), " cats sleep"),  # a space and whole words
        ("Kočky spí.", Span(0, 4), "[Kočk]y"),
        ("ICE 578", Span(5, 7), "5[78]"),
        ("猫在垫子上睡觉。", Span(2, 4), "垫子"),  # no word boundaries
    ],
)
def test_spans_inside_words_are_shown_with_the_word(text, span, displayed):
    marked_text = MarkedText(hypothesis=text, source=None, spans=(span,))
    [table] = Explanation(metric="x", score=0.0, marked_text=marked_text).tables()
    [row] = table.cells()
    assert row[0].text == displayed
    assert row[4].text == f"{span.start}-{span.end}"  # positions of the span
