"""Names are resolved late; a wrong one gets a suggestion and all that are known."""

from __future__ import annotations

import pytest

from tertium.errors import UnknownNameError
from tertium.metrics.base.loading import load_metric


@pytest.mark.parametrize(
    ("name", "message"), [("blue", "did you mean 'bleu'"), ("", "unknown metric")]
)
def test_a_wrong_name_is_explained(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        load_metric(name)


def test_unknown_names_carry_what_is_known() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_metric("nonsense-metric-name")
    assert "bleu" in caught.value.known
