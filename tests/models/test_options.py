"""Options are checked wherever they are made."""

from __future__ import annotations

import pytest

from tertium.errors import UsageError
from tertium.metrics.pairwise.training import PairwiseOptions
from tertium.models.options import TrainingOptions


@pytest.mark.parametrize("field", ["epochs", "batch_size", "rate", "clip"])
def test_options_that_make_no_sense_are_refused(field: str) -> None:
    with pytest.raises(UsageError, match=field):
        TrainingOptions(**{field: 0})


def test_negative_patience_is_refused() -> None:
    with pytest.raises(UsageError, match=r"patience=-1: expected at least 0"):
        TrainingOptions(patience=-1)
    with pytest.raises(UsageError, match=r"patience=-1: expected at least 0"):
        PairwiseOptions(patience=-1)
