"""Systems that equal the reference: which are named, and which are not."""

from __future__ import annotations

import pytest

import tertium
from tertium.evaluation.system_scores import find_reference_copies
from tertium.output.html import render_page
from tertium.output.page.report import report_results
from tertium.output.text import render_table

REFERENCES = [f"the {n} train to the coast leaves at {n} in the morning" for n in range(60)]


def equal_in(count: int, mark: str = "late") -> list[str]:
    return REFERENCES[:count] + [f"{text} {mark}" for text in REFERENCES[count:]]


@pytest.mark.parametrize(
    ("systems", "named"),
    [
        ({"old": 0, "new": 60}, ["new"]),
        ({"old": 1, "new": 15}, ["new"]),
        ({"old": 0, "new": 14}, []),  # fewer than a quarter
        ({"old": 0, "new": 3}, []),
        ({"old": 14, "new": 30}, []),  # short segments: others equal the reference too
        ({"old": 60, "new": 60}, ["old", "new"]),
        ({"one": 0, "two": 2, "three": 20}, ["three"]),
        ({"only": 29}, []),
        ({"only": 30}, ["only"]),
    ],
)
def test_which_systems_are_named(systems, named):
    outputs = {name: equal_in(count) for name, count in systems.items()}
    testset = tertium.TestSet.from_lists(outputs, references=REFERENCES)
    assert [*find_reference_copies(testset)] == named


def test_few_segments_and_empty_texts_are_not_named():
    few = tertium.TestSet.from_lists({"new": REFERENCES[:9]}, references=REFERENCES[:9])
    assert find_reference_copies(few) == {}
    empty = tertium.TestSet.from_lists({"new": [""] * 60}, references=[""] * 60)
    assert find_reference_copies(empty) == {}


def test_every_output_of_a_comparison_names_a_copy_of_the_reference():
    systems = {"old": equal_in(0), "new": [f" {text} " for text in REFERENCES]}
    compared = tertium.compare(systems, "chrf", references=REFERENCES, resamples=50)
    caution = "60 of 60 translations of new equal the reference"
    assert compared.verdict.startswith(caution)
    for style in ("text", "md"):
        assert render_table(compared.comparison_table(), style).count(caution) == 1
    assert "equal the reference" in render_page(report_results(compared))
    old, new = compared.records()
    assert "cautions" not in old
    assert new["cautions"][0].startswith(caution)
