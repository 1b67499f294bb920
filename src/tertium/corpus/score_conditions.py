"""Conditions on scores: the option `--keep` of `tertium corpus`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tertium.arrays import BoolArray, FloatArray
from tertium.errors import TertiumError, UsageError, short_repr
from tertium.metrics.base.loading import load_metric

COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
EXPECTED = (
    "expected METRIC >= X (or >, <=, <), repeated if several have to hold; "
    "for other filters query the output with pyarrow or duckdb"
)
_CONDITION = re.compile(r"\s*(.+?)\s*([<>](?!=)|[<>]=)\s*(.+?)\s*")


@dataclass(frozen=True)
class ScoreCondition:
    """A bound for the scores of one metric; `metric` is its position in the run."""

    text: str
    metric: int
    comparison: str
    bound: float

    def mask(self, scores: FloatArray) -> BoolArray:
        """Return which scores meet the condition; a missing one (NaN) does not."""
        mask: BoolArray = COMPARISONS[self.comparison](scores, self.bound)
        return mask


def parse_condition(text: str, specs: Sequence[str]) -> ScoreCondition:
    """Parse a condition on one of the metrics, in any spelling of its spec.

    >>> parse_condition("chrf++ >= 40", ["bleu", "chrf:word_order=2"])
    ScoreCondition(text='chrf++ >= 40', metric=1, comparison='>=', bound=40.0)
    """
    option = f"--keep {short_repr(text, 80)}"
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(f"{option}: {EXPECTED}")
    spec, comparison, number = match.groups()
    bound = math.nan
    with suppress(ValueError):
        bound = float(number)
    if not math.isfinite(bound):
        raise UsageError(f"{option}: {short_repr(number)} is not a number; {EXPECTED}")
    if spec not in specs:
        with suppress(TertiumError, OSError):
            spec = load_metric(spec).spec
    if spec not in specs:
        reason = f"is not a metric of this run ({', '.join(specs)})"
        raise UsageError(f"{option}: {short_repr(spec)} {reason}; {EXPECTED}")
    return ScoreCondition(text, specs.index(spec), comparison, bound)
