"""The WMT23 span task as published: gold labels, training data and submissions.

Columns are those of the files in WMT-QE-Task/wmt-qe-2023-data; the sentences are ours.
"""

from __future__ import annotations

import pytest

from tertium.core.spans import Span, UnlocatedError
from tertium.data.formats.quality_estimation_tables import (
    read_quality_estimation_table,
)
from tertium.data.human_data_files import read_human_data
from tertium.data.judgments import JudgmentSet

GOLD = """\
lp\tgold\tsid\tmt\tstart_id\tend_id\terror
en-de\tgold\t0\tDer Hund schlief.\t-1\t-1\tno-error
en-de\tgold\t1\tDie Katze sass im Hut.\t18 10\t21 14\tmajor minor
en-de\tgold\t2\tGut.\t0 4\t0 4\tminor major
"""
TRAINING = """\
mt_system\tdoc_id\tseg_id\tannotator_id\tsource\ttarget\tstart_ids\tend_ids\terrors
MT1\td1\t0\tr1\tThe dog slept.\tDer Hund schlief.\t-1\t-1\tno-error
MT1\td1\t1\tr1\tThe cat sat in a hat.\tDie Katze sass im Hut.\t10\t14\tmajor
"""


def test_gold_labels(tmp_path):
    (tmp_path / "gold.tsv").write_text(GOLD)
    first, second, third = read_quality_estimation_table(tmp_path / "gold.tsv").judgments
    assert (first.item, first.lp, first.error_annotations.spans) == ("0", "en-de", ())
    assert second.error_annotations.spans == (
        Span(18, 21, severity="major"),
        Span(10, 14, severity="minor"),
    )
    # a span with equal start and end marks one character; the text has no character at its end
    assert third.error_annotations.spans == (Span(0, 1, severity="minor"),)
    assert third.error_annotations.missing == (UnlocatedError("major"),)


def test_training_data(tmp_path):
    (tmp_path / "train.tsv").write_text(TRAINING)
    _, second = read_quality_estimation_table(tmp_path / "train.tsv").judgments
    assert second.segment.source == "The cat sat in a hat."
    assert (second.system, second.annotator) == ("MT1", "r1")
    assert second.error_annotations.spans == (Span(10, 14, severity="major"),)


@pytest.mark.parametrize("text", [GOLD, TRAINING])
def test_files_without_header_are_read_alike(tmp_path, text):
    with_header, without = tmp_path / "a_en-de_x.tsv", tmp_path / "b_en-de_x.tsv"
    with_header.write_text(text)
    without.write_text(text.partition("\n")[2])
    (expected,), (result,) = read_human_data(with_header), read_human_data(without)
    assert isinstance(expected, JudgmentSet)
    assert isinstance(result, JudgmentSet)
    assert result.lp == expected.lp == "en-de"
    assert result.judgments == expected.judgments
