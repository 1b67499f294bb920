"""All checks of single segments, in the order in which findings are listed."""

from __future__ import annotations

from tertium.checks import (
    language,
    length,
    markup,
    numbers,
    placeholders,
    punctuation,
    quantities,
    terminology,
)
from tertium.checks.check import Check

_MODULES = placeholders, markup, numbers, quantities, language, length, punctuation, terminology
CHECKS = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Check)
)
CHECKS_BY_ID = {check.id: check for check in CHECKS}
RULES = (*(check.rule for check in CHECKS), terminology.CONSISTENCY_RULE)
