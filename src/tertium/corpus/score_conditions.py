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
    match = _CONDITION.fullmatch(text)
    spec, comparison, number = match.groups() if match else ("", "", "")
    with suppress(TertiumError, OSError):
        spec = spec if spec in specs else load_metric(spec).spec
    bound = math.nan
    with suppress(ValueError):
        bound = float(number)
    if spec not in specs or not math.isfinite(bound):
        listed = ", ".join(specs)
        raise UsageError(
            f"--keep {short_repr(text, 80)}: expected METRIC >= X (or >, <=, <) with a number X "
            f"and a metric of this run ({listed}); repeat --keep if several have to hold; "
            "for other filters query the output with pyarrow or duckdb"
        )
    return ScoreCondition(text, specs.index(spec), comparison, bound)
