"""The conditions of --keep: which rows they select, spellings of metrics, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import UsageError
from tertium.corpus.worker import parse_condition

SPECS = ["tertium-small", "chrf:word_order=2", "sss:lp=en-ja"]


@pytest.mark.parametrize(
    ("text", "metric", "expected"),
    [
        ("tertium-small>=0.7", 0, [1, 2]),
        ("tertium-small > 7e-1", 0, [2]),
        (" chrf++ <= .7 ", 1, [0, 1]),
        ("chrf:word_order=2 < 0.7", 1, [0]),
        ("sss:lp=en-ja < +0.7", 2, [0]),
        ("tertium-small >= -1", 0, [0, 1, 2]),  # not the row without a score
    ],
)
def test_conditions_select_scores(text: str, metric: int, expected: list[int]) -> None:
    condition = parse_condition(text, SPECS)
    assert condition.metric == metric
    mask = condition.mask(np.array([0.1, 0.7, 0.9, np.nan]))
    assert np.flatnonzero(mask).tolist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "chrf++",
        "chrf++ >=",
        "chrf++ == 50",
        "sss:lp=en-ja is null",
        "chrf++ >= fifty",
        "chrf++ >= nan",
        "chrf++ >= 40 and length(src) < 200",
        "5 <= chrf++",
        "length(src) < 200",
        "not chrf++ >= 5",
        "bleu >= 5",
        "chrf >= 5",
        "(" * 3000 + "a > 1",
    ],
)
def test_errors_show_the_form_and_where_to_filter_otherwise(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_condition(text, SPECS)
    message = str(caught.value)
    assert message.startswith(f"--keep '{text[:40]}")
    assert "expected METRIC >= X (or >, <=, <) with a number X" in message
    assert "a metric of this run (tertium-small, chrf:word_order=2, sss:lp=en-ja)" in message
    assert "pyarrow or duckdb" in message
    assert len(message) < 500
