"""TER equals sacrebleu exactly on any input, and counts edits by kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.ter import TER as SacreTER

from tertium.core.segment import Segment
from tertium.metrics.lexical.ter_metric import TER

words = st.lists(
    st.sampled_from(["a", "b", "B", "c.", "1.5", "3-4", "it's", "&amp;", "漢", "カ", "。", "("]),
    max_size=9,
)
texts = words.map(" ".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
options = st.fixed_dictionaries(
    {name: st.booleans() for name in ("normalized", "no_punct", "asian_support", "case_sensitive")}
)


@st.composite
def corpora(draw: st.DrawFn) -> list[Segment]:
    # The mean of three equal lengths may differ in the last bit between Python versions.
    count = draw(st.sampled_from([1, 2, 4]))
    row = st.tuples(texts, st.lists(texts, min_size=count, max_size=count).map(tuple))
    return [Segment(h, None, r) for h, r in draw(st.lists(row, min_size=1, max_size=4))]


@settings(max_examples=60, deadline=None)
@given(corpora(), options)
def test_ter_equals_sacrebleu_exactly(segments: list[Segment], fields: dict[str, bool]) -> None:
    peer = SacreTER(**fields)
    scores = TER(**fields).score(segments)
    streams = [list(column) for column in zip(*(s.references for s in segments), strict=True)]
    assert scores.system == peer.corpus_score([s.hypothesis for s in segments], streams).score
    assert scores.segments.tolist() == [
        peer.sentence_score(s.hypothesis, list(s.references)).score for s in segments
    ]


@pytest.mark.parametrize(
    ("hypothesis", "references", "expected"),
    [  # sacrebleu's arithmetic, by hand
        ("", ("",), 0.0),
        ("a b", ("",), 100.0),
        ("", ("a b",), 100.0),
        ("a", ("", "a b c"), 100 * (1 / 1.5)),
        ("a b c d", ("a",), 300.0),
        ("x", ("x",), 0.0),
    ],
)
def test_empty_or_short_texts(
    hypothesis: str, references: tuple[str, ...], expected: float
) -> None:
    assert TER().sentence_score(hypothesis, references) == expected
    assert SacreTER().sentence_score(hypothesis, references).score == expected


def test_statistics_count_the_edits_of_the_first_best_reference() -> None:
    metric = TER()
    # The second reference needs one shift, the third one substitution: the second comes first.
    row = metric.statistics([Segment("a b c d", references=("x y", "b c d a", "a b c e"))])[0]
    assert dict(zip(metric.columns, row.tolist(), strict=True)) == {
        "edits": 1,
        "reference_length": 10 / 3,
        "insertions": 0,
        "deletions": 0,
        "substitutions": 0,
        "shifts": 1,
        "hypothesis_length": 4,
    }
