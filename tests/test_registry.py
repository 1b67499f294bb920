"""Names are resolved on first use; unknown names get a suggestion and a list of known names."""

from __future__ import annotations

import pytest

from tertium.core.errors import UnknownNameError
from tertium.metrics.base.loading import load_metric


@pytest.mark.parametrize(
    ("name", "message"), [("blue", "did you mean 'bleu'"), ("", "unknown metric")]
)
def test_an_unknown_name_gets_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        load_metric(name)


def test_the_error_lists_known_names() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_metric("nonsense-metric-name")
    assert "bleu" in caught.value.known_names
