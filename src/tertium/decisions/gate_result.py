"""The result of a gate: tests, conditions, one verdict, and the verdict in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tertium.decisions.gate_rules import Limit
from tertium.display import Displayable
from tertium.evaluation.checking import CheckReport

Verdict = Literal["pass", "better", "worse", "fail", "undecided"]
EXIT_CODES: Mapping[str, int] = {"pass": 0, "better": 0, "worse": 1, "fail": 1, "undecided": 3}
MAX_MORE_SEGMENTS = 1_000_000  # more are not worth a suggestion
MAX_IN_SENTENCE = 3  # rows that the sentence lists


@dataclass(frozen=True, kw_only=True)
class MetricTest:
    """A non-inferiority test of one metric on a set or on a slice of it.

    Differences are positive if the candidate is better. `low` and `high` are simultaneous bounds.
    p-values are adjusted by Holm's method: `p_pass` of "worse by less than the margin", `p_worse`
    of "worse by more than the margin", `p_better` of "better".
    """

    pair: str
    metric: str
    name: str
    by: str = ""
    slice: str = ""
    segments: int
    baseline: float
    candidate: float
    difference: float
    low: float
    high: float
    margin: float
    p_pass: float
    p_worse: float
    p_better: float
    verdict: Verdict
    more_segments: int | None = None
    decimals: int = field(default=4, compare=False)

    @property
    def is_slice(self) -> bool:
        """Whether the test is about a part of the set."""
        return bool(self.by)

    @property
    def place(self) -> str:
        """The pair and the slice, as far as there are any."""
        return ", ".join(filter(None, (self.pair, f"{self.by} {self.slice}" if self.by else "")))

    def describe(self) -> str:
        """Return the difference and the margin in words."""
        where = f" in {self.place}" if self.place else ""
        if self.difference != self.difference:
            return f"no score of {self.name}{where}"
        change = f"{self.difference:+z.{self.decimals}f} {self.name}"
        return f"{change} (margin {self.margin:.{max(2, self.decimals)}g}){where}"

    def record(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        names = (
            "pair metric name by slice segments baseline candidate difference low high margin "
            "p_pass p_worse p_better verdict more_segments"
        )
        return {name: getattr(self, name) for name in names.split()}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A limit of findings of a check, or a bound of the score of a metric."""

    pair: str
    name: str
    rule: Literal["max", "min"]
    bound: str
    observed: float
    segments: int
    is_met: bool
    limit: Limit | None = None

    def describe(self) -> str:
        """Return the observation and the bound in words."""
        where = f" in {self.pair}" if self.pair else ""
        bound = f"at {'most' if self.rule == 'max' else 'least'} {self.bound}"
        if self.limit is None and self.observed != self.observed:
            return f"no score of {self.name} ({bound}){where}"
        if self.limit is None:
            return f"{self.name} {self.observed:.4g} ({bound}){where}"
        return f"{self.name} in {self.observed:g} of {self.segments:,} segments ({bound}){where}"

    def record(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        names = "pair name rule bound observed segments is_met"
        return {name: getattr(self, name) for name in names.split()}


@dataclass(frozen=True, kw_only=True, eq=False)
class GateResult(Displayable):
    """The verdict on a candidate, as returned by `tertium.gate`.

    Attributes
    ----------
    tests, conditions
        The tests of metrics on sets and slices, and the conditions on checks and scores.
    baseline, candidate
        Names of the systems.
    alpha
        The largest probability of a wrong "pass", and of a wrong "worse", over all tests.
    findings
        The findings of checks by pair; empty without limits of checks.
    cautions
        What makes a metric unfit for the texts, and segments without a score.
    reference_copies
        A sentence about each system that equals the reference in too many segments.
    people_segments
        How many segments people should judge if metrics disagree.
    """

    tests: tuple[MetricTest, ...]
    conditions: tuple[Condition, ...]
    baseline: str
    candidate: str
    alpha: float = 0.05
    findings: Mapping[str, CheckReport] = field(default_factory=dict, repr=False)
    cautions: tuple[str, ...] = ()
    reference_copies: tuple[str, ...] = ()
    people_segments: float = math.inf

    @property
    def verdict(self) -> Verdict:
        """The verdict on all tests and conditions; slices count only if they are worse."""
        verdicts = {test.verdict for test in self.tests if not test.is_slice}
        if any(test.verdict == "worse" for test in self.tests):
            return "worse"
        if not all(condition.is_met for condition in self.conditions):
            return "fail"
        for verdict in ("undecided", "better"):
            if verdict in verdicts:
                return verdict
        return "pass"

    def exit_code(self, undecided: str = "") -> int:
        """Return 0 (pass, better), 1 (worse, fail) or 3 (undecided).

        `undecided` is "pass" or "fail" to return 0 or 1 instead of 3.
        """
        if self.verdict == "undecided" and undecided:
            return EXIT_CODES[undecided]
        return EXIT_CODES[self.verdict]

    @property
    def sentence(self) -> str:
        """What to conclude in one sentence, then what was not decided or makes it doubtful."""
        notes = [*_describe_open_slices(self), *(f"{text}." for text in self.reference_copies)]
        return " ".join([_SENTENCES[self.verdict](self), *notes])

    def records(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "alpha": self.alpha,
            "tests": [test.record() for test in self.tests],
            "conditions": [condition.record() for condition in self.conditions],
            "cautions": [*self.cautions, *self.reference_copies],
        }

    def _with_verdict(self, *verdicts: str) -> list[MetricTest]:
        return [test for test in self.tests if test.verdict in verdicts]


def _describe_pass(result: GateResult) -> str:
    if not result.tests:
        return f"Pass: {result.candidate} meets all {len(result.conditions)} conditions."
    margins = _list({f"{t.margin:.3g} {t.name}": None for t in result.tests if not t.is_slice})
    where = _count_pairs(result)
    return (
        f"Pass: {result.candidate} is not worse than {result.baseline} by more than the margin "
        f"({margins}){where} (error probability at most {100 * result.alpha:g} %)."
    )


def _describe_better(result: GateResult) -> str:
    better = [test for test in result._with_verdict("better") if not test.is_slice]
    rest = " and within the margin otherwise" if result._with_verdict("pass") else ""
    return (
        f"Better: {result.candidate} is better than {result.baseline}: "
        f"{_list([test.describe() for test in better])}{rest}."
    )


def _describe_worse(result: GateResult) -> str:
    worse = sorted(result._with_verdict("worse"), key=lambda test: test.is_slice)
    better = [test for test in result._with_verdict("better") if not test.is_slice]
    failed = [condition.describe() for condition in result.conditions if not condition.is_met]
    text = (
        f"Worse: {result.candidate} is worse than {result.baseline} by more than the margin: "
        f"{_list([test.describe() for test in worse])}"
    )
    if better:
        names = _list(dict.fromkeys(test.name for test in better))
        count = result.people_segments
        sample = f"about {count:,.0f} segments" if count < MAX_MORE_SEGMENTS else "a sample"
        text += f"; {names} prefers it: have people judge {sample} (`tertium plan`)"
    return f"{text}{'; also ' + _list(failed) if failed else ''}."


def _describe_fail(result: GateResult) -> str:
    failed = [condition.describe() for condition in result.conditions if not condition.is_met]
    return f"Fail: {result.candidate} does not meet a condition: {_list(failed)}."


def _describe_open_slices(result: GateResult) -> list[str]:
    """Return a sentence that names the slices in which a metric has no verdict."""
    sizes = {
        test.place: test.segments for test in result._with_verdict("undecided") if test.is_slice
    }
    if not sizes:
        return []
    names = [f"{place} ({count:,} segment{'s' * (count != 1)})" for place, count in sizes.items()]
    count = len(names)
    return [f"{count} slice{'s' * (count != 1)} not decided: {_list(names)}."]


def _describe_undecided(result: GateResult) -> str:
    open_tests = [test for test in result._with_verdict("undecided") if not test.is_slice]
    counts = [test.more_segments for test in open_tests]
    needed = math.inf if None in counts else max(count or 0 for count in counts)
    more = (
        f"about {needed:,} more segments would decide"
        if needed < MAX_MORE_SEGMENTS
        else "the difference is at the margin, or too few segments are scored, to say how many more"
        " would decide"
    )
    return (
        f"Undecided: the scores do not show whether {result.candidate} is worse than "
        f"{result.baseline} by more than the margin: "
        f"{_list([test.describe() for test in open_tests])}; {more}."
    )


_SENTENCES = {
    "pass": _describe_pass,
    "better": _describe_better,
    "worse": _describe_worse,
    "fail": _describe_fail,
    "undecided": _describe_undecided,
}


def _list(texts: Any) -> str:
    listed: Sequence[str] = list(texts)
    more = len(listed) - MAX_IN_SENTENCE
    return ", ".join(listed[:MAX_IN_SENTENCE]) + (f" and {more} more" if more > 0 else "")


def _count_pairs(result: GateResult) -> str:
    count = len({test.pair for test in result.tests})
    return f" in all {count} language pairs" if count > 1 else ""
