"""Meta-evaluation tasks: which statistic is computed on which judgments, and how it is tested.

`STATISTICS` lists the statistics with their levels, groupings and significance tests. A `Task`
checks that its options are compatible. `resolve_statistic` accepts the names that papers print.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from tertium.core.arrays import in_open_unit_interval
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.resampling import check_resamples
from tertium.meta.agreement import Grouping
from tertium.meta.pairwise import DARR_THRESHOLD

Level = Literal["segment", "system"]
Test = Literal["auto", "bootstrap", "perm-both", "williams", "pairs", "none"]


class StatisticKind(NamedTuple):
    """What a statistic reads and allows; the first entry of each tuple is the default.

    `reads_comparisons` is true for statistics of human comparisons rather than scores. `pools` is
    true if several sets are pooled into one value.
    """

    title: str
    levels: tuple[Level, ...] = ("segment",)
    reads_comparisons: bool = False
    groupings: tuple[Grouping, ...] = ("none",)
    tests: tuple[Test, ...] = ("bootstrap",)
    pools: bool = False


_LEVELS: tuple[Level, ...] = ("segment", "system")
_SYSTEM: tuple[Level, ...] = ("system",)
_ALL: tuple[Grouping, ...] = ("none", "item", "system")
_ITEM: tuple[Grouping, ...] = ("item", "none", "system")
_LINEAR: tuple[Test, ...] = ("perm-both", "williams", "bootstrap")
_PAIRS: tuple[Test, ...] = ("pairs", "bootstrap")

STATISTICS: Mapping[str, StatisticKind] = {
    "pearson": StatisticKind("Pearson r", _LEVELS, groupings=_ALL, tests=_LINEAR),
    "spearman": StatisticKind("Spearman rho", _LEVELS, groupings=_ALL),
    "kendall": StatisticKind("Kendall tau-b", _LEVELS, groupings=_ALL),
    "acc-eq": StatisticKind("acc_eq", groupings=_ITEM, tests=_PAIRS),
    "acc-eq*": StatisticKind("acc_eq*", groupings=_ITEM, tests=_PAIRS),
    "darr": StatisticKind("DARR tau (2018)"),
    "darr17": StatisticKind("DARR tau (2017)"),
    "tau-strict": StatisticKind("tau (WMT11, 12)", reads_comparisons=True),
    "tau13": StatisticKind("tau (WMT13)", reads_comparisons=True),
    "tau14": StatisticKind("tau (WMT14)", reads_comparisons=True),
    "consistency": StatisticKind("consistency", reads_comparisons=True),
    "accuracy": StatisticKind("system accuracy", _SYSTEM, tests=_PAIRS, pools=True),
    "spa": StatisticKind("SPA", _SYSTEM, tests=_PAIRS),
}

# Names in papers and other tools, in the spelling that `resolve_statistic` compares.
_ALIASES = {
    "pearson": "pearson-r r",
    "spearman": "spearman-rho rho",
    "kendall": "kendall-tau kendall-tau-b kendall-b tau-b",
    "acc-eq": "acceq",
    "acc-eq*": "acceq* acc*eq acc23",  # the last one in mt-metrics-eval
    "spa": "soft-pairwise-accuracy",
    "accuracy": "pairwise-accuracy system-accuracy",
    "darr": "tau-darr darr18",
    "tau-strict": "tau11 tau12",
}
STATISTIC_ALIASES = {alias: name for name, own in _ALIASES.items() for alias in own.split()}


def resolve_statistic(name: str) -> str:
    """Return the key in `STATISTICS` of a statistic, given by any of its names.

    >>> [resolve_statistic(name) for name in ("SPA", "acc_eq*", "Kendall tau-b")]
    ['spa', 'acc-eq*', 'kendall']
    """
    key = re.sub(r"[_\s]+", "-", str(name).strip().casefold())
    key = STATISTIC_ALIASES.get(key, key)
    if key not in STATISTICS:
        raise UnknownNameError("statistic", name, STATISTICS)
    return key


@dataclass(frozen=True, kw_only=True)
class Task:
    """One statistic on one or more judged sets, with one value for each metric.

    Parameters
    ----------
    sets
        Names of the judged sets; several only for a statistic that pools them.
    statistic
        Name in `STATISTICS` or an alias of it.
    level, grouping, test
        Empty (or "auto") for the default of the statistic. With `grouping` "item" or "system",
        the statistic is computed within each and averaged.
    resamples
        Number of resamples of the test and of the confidence interval, 0 for neither.
    confidence_level
        Level of the confidence interval.
    alpha
        Significance level.
    threshold
        Smallest difference of human scores that makes a DARR pair.

    >>> Task(sets=("de-en",)).name
    'de-en pearson segment none'
    >>> Task(sets=("de-en",), statistic="pearsn")
    Traceback (most recent call last):
        ...
    tertium.core.errors.UnknownNameError: unknown statistic 'pearsn': did you mean 'pearson' ...
    """

    sets: tuple[str, ...]
    statistic: str = "pearson"
    level: Level | Literal[""] = ""
    grouping: Grouping | Literal[""] | None = ""
    test: Test = "auto"
    resamples: int = 1000
    confidence_level: float = 0.95
    alpha: float = 0.05
    threshold: float = DARR_THRESHOLD

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistic", resolve_statistic(self.statistic))
        kind = self.kind
        self._set_default("level", kind.levels)
        system = self.level == "system"
        self._set_default("grouping", ("none",) if system else kind.groupings)
        self._set_default("test", (*self._tests, "none"))
        if not self.sets:
            raise UsageError("a task needs at least one judged set")
        if len(self.sets) > 1 and not self.kind.pools:
            raise UsageError(f"{self.statistic} is computed on one set at a time, not {self.label}")
        check_resamples(self.resamples, least=0)
        for name in ("confidence_level", "alpha"):
            if not in_open_unit_interval(value := getattr(self, name)):
                raise UsageError(f"{name} must be a number between 0 and 1, got {value!r}")
        if not 0 <= self.threshold < math.inf:
            raise UsageError(f"threshold must be a number of at least 0, got {self.threshold}")

    def _set_default(self, option: str, allowed: tuple[str, ...]) -> None:
        """Fill in the default of an option that was left open; reject an incompatible value."""
        value = getattr(self, option)
        if value in (None, "", "auto"):
            object.__setattr__(self, option, allowed[0])
        elif value not in allowed:
            raise UsageError(
                f"{self.statistic} at {self.level} level does not support {option}={value}: "
                f"choose {' or '.join(allowed)}"
            )

    @property
    def kind(self) -> StatisticKind:
        return STATISTICS[self.statistic]

    @property
    def _tests(self) -> tuple[Test, ...]:
        if self.statistic == "pearson" and self.grouping != "none":
            return ("bootstrap",)  # the others need pooled points
        return self.kind.tests

    @property
    def units(self) -> str:
        """What the bootstrap resamples: segments, or systems at system level."""
        return f"{self.level}s"

    @property
    def label(self) -> str:
        """The sets, as a column header."""
        return "+".join(self.sets) if len(self.sets) < 4 else f"{len(self.sets)} sets"

    @property
    def title(self) -> str:
        """The statistic, its level and its grouping, as the title of a table."""
        is_grouped = self.level != "system" and self.grouping != "none"
        grouping = f", averaged by {self.grouping}" if is_grouped else ""
        return f"{self.kind.title}, {self.level} level{grouping}"

    @property
    def required_data(self) -> str:
        """What human scores the statistic is defined for."""
        if self.statistic in ("darr", "darr17"):
            return (
                "translations of one segment whose human scores differ by "
                f"{self.threshold:g} or more"
            )
        return f"two or more {self.level}s with different human scores and different metric scores"

    @property
    def name(self) -> str:
        """Sets, statistic, level and grouping."""
        return f"{self.label} {self.statistic} {self.level} {self.grouping}"

    @property
    def seed_key(self) -> str:
        """The options that resamples depend on, as a text that seeds the generator.

        It leaves out the test and both levels, so an interval does not change with the test. The
        text must not change: published p-values depend on it.
        """
        return (
            f"Task(sets={self.sets!r}, statistic={self.statistic!r}, level={self.level!r}, "
            f"by={self.grouping!r}, test={self._tests[0]!r}, over={self.units!r}, "
            f"samples={self.resamples!r}, confidence=0.95, alpha=0.05, "
            f"threshold={self.threshold!r}, tie_rate=None)"
        )


def tasks_for(sets: Iterable[str], statistic: str, /, **options: object) -> list[Task]:
    """Make one task for each set, or one task on all sets if the statistic pools them."""
    names = tuple(sets)
    option_names = {field.name for field in fields(Task)} - {"sets", "statistic"}
    for option in options:
        if option not in option_names:
            raise UnknownNameError("option", option, option_names)
    pools = STATISTICS[resolve_statistic(statistic)].pools
    groups = [names] if pools else [(name,) for name in names]
    return [Task(sets=group, statistic=statistic, **options) for group in groups]  # type: ignore[arg-type]
