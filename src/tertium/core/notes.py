"""Warnings below tables."""

from __future__ import annotations

from collections.abc import Mapping


def resampling_warnings(tests: int, resamples: int, alpha: float) -> list[str]:
    """Warn if there are too few resamples for any of `tests` tests to be significant.

    >>> resampling_warnings(24, 1000, 0.05), resampling_warnings(60, 1000, 0.05)
    ([], ['warning: 60 tests with 1000 resamples: p cannot fall below 0.05; use 1200 or more'])
    >>> resampling_warnings(1, 9, 0.05)
    ['warning: 9 resamples: p cannot fall below 0.05; use 20 or more']
    """
    if tests / (resamples + 1) < alpha:
        return []
    needed = int(tests / alpha)
    setup = f"{tests} tests with {resamples} resamples" if tests > 1 else f"{resamples} resamples"
    return [f"warning: {setup}: p cannot fall below {alpha:g}; use {needed} or more"]


def format_warning_counts(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return one line per kind of warning with its count for each system.

    >>> format_warning_counts({"empty hypothesis": {"a": 2, "b": 1}})
    ['warning: empty hypothesis: a 2, b 1']
    """
    return [
        f"warning: {kind}: " + ", ".join(f"{system} {n}" for system, n in by_system.items())
        for kind, by_system in counts.items()
    ]
