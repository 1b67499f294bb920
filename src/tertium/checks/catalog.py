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

CHECKS = (
    *placeholders.CHECKS,
    *markup.CHECKS,
    *numbers.CHECKS,
    *quantities.CHECKS,
    *language.CHECKS,
    *length.CHECKS,
    *punctuation.CHECKS,
    *terminology.CHECKS,
)
CHECKS_BY_ID = {check.id: check for check in CHECKS}
RULES = (*(check.rule for check in CHECKS), terminology.CONSISTENCY_RULE)
