"""A task is a question to judged sets, one flat row of choices.

It says which judgments, at which level, which statistic, which test. `STATISTICS` says of each
statistic what it reads, how it may be grouped and how its differences are tested; a task of what
does not go together is refused when it is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from tertium.arrays import is_inner_share, is_whole
from tertium.errors import UnknownNameError, UsageError
from tertium.meta.agreement import Grouping
from tertium.meta.pairwise import DARR_THRESHOLD

Level = Literal["segment", "system"]
Over = Literal["segments", "systems"]
Test = Literal["auto", "bootstrap", "perm-both", "williams", "pairs", "none"]


@dataclass(frozen=True)
class StatisticKind:
    """What a statistic reads and allows; the first of each tuple is the default.

    `reads` is "scores" (a matrix of human scores), "comparisons", or "systems" (scores of whole
    systems); `units` are what the bootstrap may draw at segment level; `pools` says that several
    sets make one figure.
    """

    title: str
    levels: tuple[Level, ...] = ("segment",)
    reads: Literal["scores", "comparisons", "systems"] = "scores"
    groupings: tuple[Grouping, ...] = ("none",)
    tests: tuple[Test, ...] = ("bootstrap",)
    units: tuple[Over, ...] = ("segments",)
    pools: bool = False


_EITHER: tuple[Level, ...] = ("segment", "system")
_SYSTEM: tuple[Level, ...] = ("system",)
_ALL: tuple[Grouping, ...] = ("none", "item", "system")
_BY_ITEM: tuple[Grouping, ...] = ("item", "none", "system")
_BOTH: tuple[Over, ...] = ("segments", "systems")
_LINEAR: tuple[Test, ...] = ("perm-both", "williams", "bootstrap")
_DRAWN: tuple[Test, ...] = ("bootstrap", "perm-both")
_PAIRED: tuple[Test, ...] = ("pairs", "bootstrap")
_ANY: tuple[Test, ...] = (*_PAIRED, "perm-both")

STATISTICS: Mapping[str, StatisticKind] = {
    "pearson": StatisticKind("Pearson r", _EITHER, groupings=_ALL, units=_BOTH, tests=_LINEAR),
    "spearman": StatisticKind("Spearman rho", _EITHER, groupings=_ALL, units=_BOTH, tests=_DRAWN),
    "kendall": StatisticKind("Kendall tau-b", _EITHER, groupings=_ALL, units=_BOTH, tests=_DRAWN),
    "acc-eq": StatisticKind("acc_eq", groupings=_BY_ITEM, units=_BOTH, tests=_ANY),
    "acc-eq*": StatisticKind("acc_eq*", groupings=_BY_ITEM, units=_BOTH, tests=_ANY),
    "darr": StatisticKind("DARR tau (2018)", tests=_DRAWN),
    "darr17": StatisticKind("DARR tau (2017)", tests=_DRAWN),
    "tau-strict": StatisticKind("tau (WMT11, 12)", reads="comparisons"),
    "tau13": StatisticKind("tau (WMT13)", reads="comparisons"),
    "tau14": StatisticKind("tau (WMT14)", reads="comparisons"),
    "consistency": StatisticKind("consistency", reads="comparisons"),
    "accuracy": StatisticKind(
        "system accuracy", _SYSTEM, reads="systems", tests=_PAIRED, pools=True
    ),
    "spa": StatisticKind("SPA", _SYSTEM, tests=_PAIRED),
    "tie-aware": StatisticKind("tie-aware rho", _SYSTEM, reads="systems"),
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """One figure for each metric.

    `sets` names the judged sets (several only for a statistic that pools them). `level`, `by`,
    `test` and `over` may stay open for the statistic's default. `over` says what the bootstrap
    draws: segments, or systems (always systems at system level). `samples` are those of the test
    and of the intervals, 0 for neither; `threshold` is DARR's, `tie_rate` that of tie-aware
    prediction, which needs one.

    >>> Task(sets=("de-en",)).name
    'de-en pearson segment none'
    >>> Task(sets=("de-en",), statistic="pearsn")
    Traceback (most recent call last):
        ...
    tertium.errors.UnknownNameError: unknown statistic 'pearsn': did you mean 'pearson' ...
    """

    sets: tuple[str, ...]
    statistic: str = "pearson"
    level: Level | Literal[""] = ""
    by: Grouping | Literal[""] = ""
    test: Test = "auto"
    over: Over | Literal[""] = ""
    samples: int = 1000
    confidence: float = 0.95
    alpha: float = 0.05
    threshold: float = DARR_THRESHOLD
    tie_rate: float | None = None

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise UnknownNameError("statistic", self.statistic, STATISTICS)
        kind = self.kind
        self._settle("level", kind.levels)
        system = self.level == "system"
        self._settle("by", ("none",) if system else kind.groupings)
        tests = kind.tests
        if self.statistic == "pearson" and self.by != "none":
            tests = ("bootstrap", "perm-both")  # the fast form and Williams need pooled points
        self._settle("test", (*tests, "none"))
        self._settle("over", ("systems",) if system else kind.units)
        self._check_numbers()

    def _settle(self, choice: str, allowed: tuple[str, ...]) -> None:
        """Fill in the default of a choice that was left open; refuse one that does not fit."""
        value = getattr(self, choice)
        if value in ("", "auto"):
            object.__setattr__(self, choice, allowed[0])
        elif value not in allowed:
            raise UsageError(
                f"{self.statistic} at {self.level} level does not go with {choice}={value}: "
                f"choose {' or '.join(allowed)}"
            )

    @property
    def kind(self) -> StatisticKind:
        return STATISTICS[self.statistic]

    @property
    def label(self) -> str:
        """The sets, for the head of a column."""
        return "+".join(self.sets) if len(self.sets) < 4 else f"{len(self.sets)} sets"

    @property
    def name(self) -> str:
        """All that tells tasks apart, in words."""
        return " ".join([self.label, self.statistic, self.level, self.by])

    @property
    def drawn_by(self) -> str:
        """All that its draws depend on, in words: not how they are read, by a test or at a level.

        So an interval is the same beside any test, and a p-value at any level of significance.
        """
        usual = replace(self, test="auto", confidence=Task.confidence, alpha=Task.alpha)
        return repr(usual)

    def _check_numbers(self) -> None:
        if not self.sets:
            raise UsageError("a task needs at least one judged set")
        if len(self.sets) > 1 and not self.kind.pools:
            raise UsageError(f"{self.statistic} is computed on one set at a time, not {self.label}")
        if not is_whole(self.samples, 0):
            raise UsageError(f"samples must be zero or more, got {self.samples!r}")
        for name in ("confidence", "alpha"):
            if not is_inner_share(getattr(self, name)):
                given = getattr(self, name)
                raise UsageError(f"{name} is a number between 0 and 1, not {given!r}")
        if self.statistic == "tie-aware" and self.tie_rate is None:
            raise UsageError(
                "tie-aware prediction needs the share of tied first places: "
                "--tie-rate SHARE, or tie_rate= in Python"
            )
        if not 0 <= self.threshold < math.inf:
            raise UsageError(f"a threshold is a number from 0 on, got {self.threshold}")


def tasks_for(sets: Iterable[str], statistic: str, /, **choices: object) -> list[Task]:
    """The same task on each set; one task on all of them where the statistic pools."""
    names = tuple(sets)
    known = {field.name for field in fields(Task)} - {"sets", "statistic"}
    for choice in choices:
        if choice not in known:
            raise UnknownNameError("choice", choice, known)
    if statistic in STATISTICS and STATISTICS[statistic].pools:
        return [Task(sets=names, statistic=statistic, **choices)]  # type: ignore[arg-type]
    return [Task(sets=(name,), statistic=statistic, **choices) for name in names]  # type: ignore[arg-type]
