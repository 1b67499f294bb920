"""Training options are checked on construction."""

from __future__ import annotations

from typing import Any

import pytest

from tertium.core.errors import UsageError
from tertium.metrics.pairwise.neural_ranker import PairwiseOptions
from tertium.metrics.regression.linear_metric import RegressionOptions
from tertium.models.training_options import TrainingOptions, warn_at_grid_edge


@pytest.mark.parametrize("field", ["epochs", "batch_size", "rate", "clip"])
def test_options_out_of_range_are_refused(field: str) -> None:
    with pytest.raises(UsageError, match=field):
        TrainingOptions(**{field: 0})


def test_negative_patience_is_refused() -> None:
    with pytest.raises(UsageError, match=r"patience=-1: expected at least 0"):
        TrainingOptions(patience=-1)
    with pytest.raises(UsageError, match=r"patience=-1: expected at least 0"):
        PairwiseOptions(patience=-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "bogus"}, "order='bogus': expected 'given' or 'random'"),
        ({"epochs": 2.5}, "epochs=2.5: expected a whole number"),
        ({"epochs": True}, "epochs=True: expected a whole number"),
    ],
)
def test_option_types_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PairwiseOptions(**options)
    with pytest.raises(UsageError, match="prior='no': expected True or False"):
        RegressionOptions(prior="no")  # was yes
    with pytest.raises(UsageError, match="expected a list, each item a number"):
        RegressionOptions(strengths=0.1)


def test_best_value_at_the_edge_of_a_grid_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    warn_at_grid_edge("svr", "c", 1.0, (0.1, 1.0, 10.0))
    warn_at_grid_edge("svr", "c", 1.0, (1.0,))  # no search
    warn_at_grid_edge("svr", "epsilon", 0.0, (0.0, 1.0))  # there are no smaller ones
    assert not caplog.messages
    warn_at_grid_edge("svr", "c", 0.1, (1.0, 0.1, 10.0))
    assert caplog.messages == [
        "svr: the best --c of the search, 0.1, is the smallest tried: try smaller ones, too "
        "(--c 0.01+0.1+1+10)"
    ]
