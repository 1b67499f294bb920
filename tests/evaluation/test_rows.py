"""One function scores rows: by language pair and system, with warnings and spans of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tertium.core.arrays import FloatArray
from tertium.core.errors import MissingInputError
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.evaluation.rows import Row, score_rows
from tertium.evaluation.scoring import score
from tertium.metrics.base.metric import NO_SCORE, SegmentMetric

sizes: list[int] = []  # of the sets that get scores of their own


@dataclass(frozen=True, kw_only=True)
class Overlap(SegmentMetric):
    """The share of reference words in the hypothesis."""

    name: ClassVar[str] = "overlap"
    title: ClassVar[str] = "Overlap"

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        words = [({*s.hypothesis.split()}, {*s.references[0].split()}) for s in segments]
        return np.array([len(own & wanted) / len(wanted) for own, wanted in words])

    def adjust_scores(self, scores: Scores, segments: Sequence[Segment]) -> Scores:
        sizes.append(len(segments))
        return scores


def make_row(hypothesis: str, reference: str = "a b", system: str = "x", lp: str = "") -> Row:
    references = (reference,) if reference else ()
    return Row(segment=Segment(hypothesis, None, references), system=system, lp=lp)


def test_rows_without_inputs_have_no_score():
    [scored] = score_rows([make_row("a"), make_row("b", ""), make_row("a b")], [Overlap()])
    assert scored.values.tolist() == pytest.approx([0.5, np.nan, 1.0], nan_ok=True)
    assert scored.warnings == [(), (NO_SCORE,), ()]
    assert scored.is_reliable.tolist() == [True, False, True]
    with pytest.raises(MissingInputError, match="reference"):
        score_rows([make_row("b", "")], [Overlap()])


def test_scores_of_systems_and_pairs_are_those_of_their_rows():
    rows = [
        make_row("a", system="x", lp="en-de"),
        make_row("", system="y", lp="en-de"),
        make_row("a b", system="x", lp="en-fr"),
        make_row("b", system="x", lp="en-de"),
    ]
    [scored] = score_rows(rows, [Overlap()])
    assert {key: own.system for key, own in scored.parts.items()} == {
        ("en-de", "x"): 0.5,
        ("en-de", "y"): 0.0,
        ("en-fr", "x"): 1.0,
    }
    assert scored.flags["empty hypothesis"].tolist() == [False, True, False, False]
    assert [*scored.signatures] == ["en-de", "en-fr"]


@pytest.mark.parametrize(("is_batch", "expected"), [(True, []), (False, [2, 1])])
def test_only_complete_sets_get_scores_of_their_own(is_batch, expected):
    """A judge decides by its sets whether it has enough answers: batches are not sets."""
    sizes.clear()
    rows = [make_row("a"), make_row("b"), make_row("a b", system="y")]
    [scored] = score_rows(rows, [Overlap()], is_batch=is_batch)
    assert sizes == expected
    assert scored.values.tolist() == [0.5, 0.5, 1.0]
    assert bool(scored.parts) == bool(expected)


def test_warnings_of_rows_are_those_of_scores():
    evaluation = score({"x": ["a", ""], "y": ["", "b ."]}, Overlap(), references=["a b", "b"])
    rows = [make_row("a"), make_row("", "b"), make_row("", system="y"), make_row("b .", "b", "y")]
    [scored] = score_rows(rows, [Overlap()])
    for kind, mask in scored.flags.items():
        masks = [
            evaluation[system]["overlap"].flags.get(kind, np.zeros(2, dtype=np.bool_))
            for system in evaluation
        ]
        assert mask.tolist() == np.concatenate(masks).tolist()
