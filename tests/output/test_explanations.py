"""Explanations as HTML: alignments, transport plans, features and win probabilities."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tertium.core.charts import HeatMap
from tertium.core.result import Table
from tertium.core.segment import Segment
from tertium.metrics.base.explanation import (
    Contribution,
    Explanation,
    FeatureAttribution,
    WinProbabilities,
    WordMatch,
)
from tertium.metrics.base.loading import load_metric
from tertium.output.html import MAX_TOKENS, render_heat_map
from tertium.output.page.segment_browser import render_explanation

SEGMENT = Segment("the <cat> sat", "die Katze", ("the cat sat down", "a cat"))


def explain(spec: str, segment: Segment = SEGMENT) -> Explanation:
    return load_metric(spec).explain(segment)


def cells(html: str) -> list[str]:
    return re.findall(r"<td[^>]*>([^<]*)(?:<span[^>]*> best</span>)?</td>", html)


def test_a_heat_map_shows_every_cosine_and_frames_the_matches():
    actual = explain("bertscore:encoder=toy")
    first = actual.comparisons[0]
    pieces = len(first.hypothesis_pieces), len(first.other_pieces)
    assert (len(first.cosines), len(first.cosines[0])) == pieces
    best = {(link.hypothesis, link.other): link.similarity for link in first.links}
    assert all(first.cosines[i][j] == pytest.approx(s, abs=1e-4) for (i, j), s in best.items())
    html = render_explanation(actual)
    numbers = pieces[0] * pieces[1]
    rest = len(actual.comparisons[1].hypothesis_pieces) * len(actual.comparisons[1].other_pieces)
    assert len([c for c in cells(html) if c]) == numbers + rest
    assert html.count("framed") >= len(best)
    assert "&lt;" in html
    assert "<cat>" not in html


def test_matches_are_framed_and_empty_outputs_have_no_map():
    html = render_explanation(explain("bertr:encoder=toy", Segment("a b", None, ("b a c",))))
    assert html.count("framed") == 3
    html = render_explanation(explain("bertscore:encoder=toy", Segment("", None, ("x",))))
    assert "compared with the reference" in html
    assert "<table" not in html
    names = [f"w{n}" for n in range(MAX_TOKENS + 5)]
    values = np.zeros((len(names), len(names)))
    html = render_heat_map(HeatMap(title="long", rows=names, columns=names, values=values))
    assert f"long (first {MAX_TOKENS} tokens)" in html
    assert f"w{MAX_TOKENS}" not in html


def test_a_transport_plan_moves_all_mass_of_each_token():
    actual = explain("wmd:encoder=toy", Segment("a b c", None, ("c a b d",)))
    assert actual.comparisons[0].cosines == ()  # the plan is the explanation
    html = render_explanation(actual)
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", html)
    for row in rows:
        assert sum(float(value) for value in cells(row) if value) == pytest.approx(1, abs=0.03)
    assert "distance" in html


def test_attributions_show_entailment_issues_and_contributions():
    attribution = FeatureAttribution(
        hypothesis="cat",
        reference="down",
        perfect=0.9,
        groups={"alignment": -0.8, "numbers": 0.1},
        contributions=(
            Contribution(feature="forward.<x>", group="alignment", value=1.0, contribution=-0.8),
            Contribution(
                feature="idle", group="numbers", value=0.6, contribution=0.0, fired=("x",)
            ),
        ),
        alignment=(WordMatch(hypothesis="cat", reference="", relation="none", similarity=0),),
        follows={"forward": True, "backward": False},
        faults=("drops <b>'down'</b>",),
    )
    html = render_explanation(Explanation(metric="RTE", score=0.2, attribution=attribution))
    for text in (
        "RTE: +0.200 (the reference itself scores +0.900)",
        "does the reference entail the translation? yes",
        "does the translation entail the reference? no",
        "drops &lt;b&gt;",
        "forward.&lt;x&gt;",
        "compared with the reference &#x27;down&#x27;",
        '<span class="bar cost" style="--v:1.000"></span>',
        '<span class="bar gain" style="--v:0.125"></span>',
    ):
        assert text in html
    assert "strengths" not in html
    assert "idle" not in html  # it fired, but contributes nothing


def test_win_probabilities_and_maps_are_drawn():
    probabilities = WinProbabilities(names=("a", "b"), chances=((0.5, 0.7), (0.3, 0.5)))
    explanation = Explanation(metric="Pairwise", score=0.7, win_probabilities=probabilities)
    assert [c for c in cells(render_explanation(explanation)) if c] == [".70", ".30"]
    assert [row[1].text for row in explanation.tables()[0].cells()] == ["", "0.300"]
    explanation = explain("bertscore:encoder=toy", Segment("a b", None, ("b a c",)))
    [map_and_table] = [section for section in explanation.top_sections() if not section.title]
    assert [type(part) for part in map_and_table.contents[-2:]] == [HeatMap, Table]
    assert "direction" in str(explanation)
    assert "direction" not in render_explanation(explanation)


def test_explanations_are_written_and_cut_when_printed(tmp_path):
    explanation = Explanation(metric="x", score=0.5, reasons=("too short",))
    explanation.write(tmp_path / "x.json", tmp_path / "x.tsv")
    assert json.loads((tmp_path / "x.json").read_text())["reasons"] == ["too short"]
    assert (tmp_path / "x.tsv").read_text() == "metric\tscore\nx\t0.5\n"
    explanation = Explanation(metric="x", score=0.5, reasons=("why",) * 20)
    assert str(explanation).count("  - why") == 15
    assert str(explanation).endswith("  - and 5 more (-f json and as_dict() have all)")
