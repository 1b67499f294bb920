"""Suites of cases that pass, fail or are skipped, as plain values for JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A case; one that fails or is skipped has a message, and the kind of its failure."""

    name: str
    failure: str = ""
    message: str = ""
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases, and what is to be said about all of them: `output`, and cautions in `errors`."""

    name: str
    cases: Sequence[Case]
    output: str = ""
    errors: str = ""


@dataclass(frozen=True, slots=True)
class Suites:
    """All suites of a result."""

    name: str
    suites: Sequence[Suite]
