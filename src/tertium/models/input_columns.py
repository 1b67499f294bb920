"""Which texts a model compares a hypothesis with: the reference, the source, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tertium.core.errors import UsageError

Against = Literal["reference", "source", "both"]
REQUIRED_INPUTS: Mapping[str, frozenset[str]] = {
    "reference": frozenset({"references"}),
    "source": frozenset({"source"}),
    "both": frozenset({"references", "source"}),
}


def check_against(against: str) -> None:
    """Raise unless `against` is reference, source or both."""
    if against not in REQUIRED_INPUTS:
        raise UsageError(f"against={against}: expected reference, source or both")
