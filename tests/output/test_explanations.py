"""Explanations as HTML: alignments, transport plans, features and win probabilities."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tertium.metrics.base.explanation import (
    Contribution,
    Explanation,
    FeatureAttribution,
    WinProbabilities,
    WordMatch,
)
from tertium.metrics.base.loading import load_metric
from tertium.output.page.explanations import (
    MAX_TOKENS,
    explanation_html,
    heat_map,
    win_probability_html,
)
from tertium.segment import Segment

SEGMENT = Segment("the <cat> sat", "die Katze", ("the cat sat down", "a cat"))


def explain(spec: str, segment: Segment = SEGMENT) -> Explanation:
    return load_metric(spec).explain(segment)


def cells(html: str) -> list[str]:
    return re.findall(r"<td[^>]*>([^<]*)(?:<span[^>]*> best</span>)?</td>", html)


def test_a_heat_map_shows_every_cosine_and_frames_the_matches() -> None:
    actual = explain("bertscore:encoder=toy")
    first = actual.comparisons[0]
    pieces = len(first.hypothesis_pieces), len(first.other_pieces)
    assert (len(first.cosines), len(first.cosines[0])) == pieces
    best = {(link.hypothesis, link.other): link.similarity for link in first.links}
    assert all(first.cosines[i][j] == pytest.approx(s, abs=1e-4) for (i, j), s in best.items())
    html = explanation_html(actual)
    numbers = pieces[0] * pieces[1]
    rest = len(actual.comparisons[1].hypothesis_pieces) * len(actual.comparisons[1].other_pieces)
    assert len([c for c in cells(html) if c]) == numbers + rest
    assert html.count("framed") >= len(best)
    assert "&lt;" in html
    assert "<cat>" not in html


def test_bertr_frames_the_match_of_each_reference_token() -> None:
    html = explanation_html(explain("bertr:encoder=toy", Segment("a b", None, ("b a c",))))
    assert html.count("framed") == 3


def test_a_transport_plan_moves_all_mass_of_each_token() -> None:
    actual = explain("wmd:encoder=toy", Segment("a b c", None, ("c a b d",)))
    assert actual.comparisons[0].cosines == ()  # the plan is the explanation
    html = explanation_html(actual)
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", html)
    for row in rows:
        assert sum(float(value) for value in cells(row) if value) == pytest.approx(1, abs=0.03)
    assert "distance" in html


def test_an_empty_output_has_values_but_no_map() -> None:
    html = explanation_html(explain("bertscore:encoder=toy", Segment("", None, ("x",))))
    assert "Compared with the reference" in html
    assert "<table" not in html


def test_long_texts_are_truncated_with_a_note_in_the_caption() -> None:
    names = [f"w{n}" for n in range(MAX_TOKENS + 5)]
    html = heat_map(names, names, np.zeros((len(names), len(names))), caption="long")
    assert f"long (first {MAX_TOKENS} tokens)" in html
    assert f"w{MAX_TOKENS}" not in html


def test_attributions_show_entailment_issues_and_contributions() -> None:
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
    html = explanation_html(Explanation(metric="RTE", score=0.2, attribution=attribution))
    assert 'The reference entails the translation: <b class="good">yes</b>' in html
    assert 'The translation entails the reference: <b class="bad">no</b>' in html
    assert "drops &lt;b&gt;" in html
    assert "Strengths" not in html
    assert "forward.&lt;x&gt;" in html
    assert "The 1 features with the largest contributions" in html
    assert "idle" not in html  # it fired, but contributes nothing
    assert "Word alignment" in html
    assert "Reference: <bdi>down</bdi>" in html


def test_win_probabilities_have_an_empty_diagonal() -> None:
    html = win_probability_html(
        WinProbabilities(names=("a", "b"), chances=((0.5, 0.7), (0.3, 0.5))), "Pairwise"
    )
    assert [c for c in cells(html) if c] == [".70", ".30"]
