"""The result of a gate: tests, conditions, one verdict, and the verdict in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Literal

from tertium.core.findings import Case, Finding, Suite, Suites
from tertium.core.result import Column, Emphasis, Result, Section, Table, field_values
from tertium.evaluation.checking import CheckReport

Verdict = Literal["pass", "better", "worse", "fail", "undecided"]
EXIT_CODES: Mapping[str, int] = {"pass": 0, "better": 0, "worse": 1, "fail": 1, "undecided": 3}
EMPHASIS: Mapping[str, Emphasis] = {"pass": "good", "better": "good", "worse": "bad", "fail": "bad"}
P_VALUES = {"pass": "p_pass", "better": "p_better", "worse": "p_worse", "undecided": "p_pass"}
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
        return ", ".join(filter(None, (self.pair, f"{self.by} {self.slice}".strip())))

    def describe(self) -> str:
        """Return the difference and the margin in words."""
        where = f" in {self.place}" if self.place else ""
        if self.difference != self.difference:
            return f"no score of {self.name}{where}"
        change = f"{self.difference:+z.{self.decimals}f} {self.name}"
        return f"{change} (margin {self.margin:.{max(2, self.decimals)}g}){where}"

    def case(self, undecided: str) -> Case:
        """Return the test as a case of a suite; open slices are skipped, as they decide nothing."""
        name = f"{self.name} in {self.by} {self.slice}" if self.is_slice else self.name
        if self.verdict == "worse":
            return Case(name, "worse", f"worse by more than the margin: {self.describe()}")
        if self.verdict != "undecided":
            return Case(name)
        more = f"; about {self.more_segments:,} more segments" if self.more_segments else ""
        is_skipped = self.is_slice or undecided == "pass"
        return Case(name, "undecided", f"undecided: {self.describe()}{more}", is_skipped)


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
    is_check: bool = False

    def describe(self) -> str:
        """Return the observation and the bound in words."""
        observed = f"{self.name} {self.observed:.4g}"
        if self.is_check:
            observed = f"{self.name} in {self.observed:g} of {self.segments:,} segments"
        elif math.isnan(self.observed):
            observed = f"no score of {self.name}"
        extreme = "most" if self.rule == "max" else "least"
        where = f" in {self.pair}" if self.pair else ""
        return f"{observed} (at {extreme} {self.bound}){where}"

    @property
    def verdict(self) -> Verdict:
        """Pass or fail."""
        return "pass" if self.is_met else "fail"

    def case(self, undecided: str) -> Case:
        """Return the condition as a case of a suite; it is never undecided."""
        name = f"{self.rule} {self.name}"
        return Case(name) if self.is_met else Case(name, "condition", self.describe())


@dataclass(frozen=True, kw_only=True, eq=False)
class GateResult(Result):
    """The verdict on a candidate, as returned by `tertium.gate`.

    Attributes
    ----------
    tests, conditions
        The tests of metrics on sets and slices, and the conditions on checks and scores.
    baseline, candidate
        Names of the systems.
    alpha
        The largest probability of a wrong "pass", and of a wrong "worse", over all tests.
    checks
        The reports of checks by pair; empty without limits of checks.
    cautions
        What makes a metric unfit for the texts, segments without a score, and systems that equal
        the reference in too many segments.
    undecided
        "pass" or "fail" if an undecided gate is to have the exit code of this verdict.
    lacks_answers
        Whether a judge got too few valid answers, so that the gate is undecided.
    """

    tests: tuple[MetricTest, ...]
    conditions: tuple[Condition, ...]
    baseline: str
    candidate: str
    alpha: float = 0.05
    checks: Mapping[str, CheckReport] = field(default_factory=dict, repr=False)
    cautions: tuple[str, ...] = ()
    undecided: str = ""
    lacks_answers: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict on all tests and conditions; slices count only if they are worse."""
        verdicts = {test.verdict for test in self.tests if not test.is_slice}
        if any(test.verdict == "worse" for test in self.tests):
            return "worse"
        if not all(condition.is_met for condition in self.conditions):
            return "fail"
        return next((name for name in ("undecided", "better") if name in verdicts), "pass")

    @property
    def exit_code(self) -> int:
        """The exit code: 0 (pass, better), 1 (worse, fail), or 3 (undecided) unless it is set."""
        if self.lacks_answers:
            return EXIT_CODES["undecided"]
        is_replaced = self.undecided and self.verdict == "undecided"
        return EXIT_CODES[self.undecided if is_replaced else self.verdict]

    @property
    def sentence(self) -> str:
        """What to conclude in one sentence, then the slices that were not decided."""
        sentences = [f"{self.verdict.capitalize()}: {_conclude(self)}."]
        slices = [test for test in self.tests if test.is_slice and test.verdict == "undecided"]
        sizes = {test.place: test.segments for test in slices}
        if sizes:
            names = [f"{place} ({_count(size, 'segment')})" for place, size in sizes.items()]
            sentences.append(f"{_count(len(names), 'slice')} not decided: {_list(names)}.")
        return " ".join(sentences)

    def records(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "alpha": self.alpha,
            "tests": [field_values(test, "decimals") for test in self.tests],
            "conditions": [field_values(condition, "is_check") for condition in self.conditions],
            "cautions": list(self.cautions),
            "exit_code": self.exit_code,
        }

    def tables(self) -> list[Table]:
        """Return the table of tests and, if there are any, the table of conditions.

        The first one has the verdict above it.
        """
        tables = [self._test_table()] if self.tests else []
        if self.conditions:
            tables.append(self._condition_table())
        tables[0] = replace(tables[0], cautions=self.cautions, verdict=self.sentence)
        return tables

    def warning_lines(self) -> list[str]:
        """Return the cautions and the verdict."""
        return [*self.cautions, self.sentence]

    @property
    def page_title(self) -> str:
        """The systems."""
        return f"Gate: {self.candidate} against {self.baseline}"

    def sections(self) -> list[Section]:
        """Return the verdict, tests, conditions and findings of checks."""
        findings = [own.marked_table(pair) for pair, own in self.checks.items()]
        findings = [table for table in findings if table.rows]
        sections = [Section("Verdict", self.tables()), Section("Findings", findings)]
        return [section for section in sections if section.contents]

    def _test_table(self) -> Table:
        columns = _pair_columns(self.tests)
        if any(test.is_slice for test in self.tests):
            columns.append(Column("slice", _slice_name))
        decimals = attrgetter("decimals")
        columns += [
            Column("metric", "name"),
            Column("segments", decimals=0),
            Column("baseline", decimals=decimals),
            Column("candidate", decimals=decimals),
            Column("difference", decimals=decimals, text=_difference_text),
            Column("bounds", _bounds_text, 0),
            Column("low", decimals=0, show=False),
            Column("high", decimals=0, show=False),
            Column("margin", decimals=lambda test: max(2, test.decimals)),
            Column("p", lambda test: getattr(test, P_VALUES[test.verdict]), 4),
            Column("verdict", text=_verdict_text, mark=_mark),
        ]
        count = len(self.tests)
        rows = " in all rows" if count > 1 else ""
        adjusted = f", adjusted by Holm's method over {count} tests" if count > 1 else ""
        notes = [
            "difference: positive if the candidate is better; bounds: the true difference is "
            f"between them{rows} (alpha = {self.alpha:g} on each side)",
            f"p: of the verdict (of pass if undecided), jackknife test{adjusted}",
        ]
        return Table(columns, self.tests, notes=notes)

    def _condition_table(self) -> Table:
        columns = [
            *_pair_columns(self.conditions),
            Column("condition", "name"),
            Column(
                "observed",
                decimals=0,
                text=lambda own, _: "–" if math.isnan(own.observed) else f"{own.observed:.6g}",
            ),
            Column("bound", lambda own: f"{'≤' if own.rule == 'max' else '≥'} {own.bound}", 0),
            Column("verdict", mark=_mark),
        ]
        return Table(columns, self.conditions)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings of checks in the candidate."""
        for report in self.checks.values():
            yield from report.findings()

    def suites(self) -> Suites:
        """Return a suite for each language pair, with a case for each test and condition."""
        suites = []
        rows: list[MetricTest | Condition] = [*self.tests, *self.conditions]
        for pair in dict.fromkeys(row.pair for row in rows):
            cases = [row.case(self.undecided) for row in rows if row.pair == pair]
            suites.append(Suite(pair or "gate", cases, self.sentence, "\n".join(self.cautions)))
        return Suites(f"tertium gate: {self.verdict}", suites)


def _pair_columns(rows: Sequence[MetricTest | Condition]) -> list[Column]:
    return [Column("pair")] if any(row.pair for row in rows) else []


def _slice_name(test: MetricTest) -> str:
    return f"{test.by}: {test.slice}" if test.by else "all"


def _bounds_text(test: MetricTest) -> str:
    if math.isnan(test.p_pass):
        return "–"
    return f"{test.low:+z.{test.decimals}f} to {test.high:+z.{test.decimals}f}"


def _verdict_text(test: MetricTest, _: int) -> str:
    if test.more_segments is None:
        return test.verdict
    return f"{test.verdict} (about {test.more_segments:,} more segments)"


def _difference_text(test: MetricTest, decimals: int) -> str:
    return "–" if math.isnan(test.difference) else f"{test.difference:+z.{decimals}f}"


def _mark(row: MetricTest | Condition) -> Emphasis:
    return EMPHASIS.get(row.verdict, "")


def _conclude(result: GateResult) -> str:
    """Return what the verdict of a gate says about the candidate, without a period."""
    verdict = result.verdict
    candidate = result.candidate
    tests = [test for test in result.tests if test.verdict == verdict]
    tests.sort(key=attrgetter("is_slice"))
    if verdict != "worse":
        tests = [test for test in tests if not test.is_slice]
    listed = _list([test.describe() for test in tests])
    failures = _list([own.describe() for own in result.conditions if not own.is_met])
    is_worse = f"worse than {result.baseline} by more than the margin"
    if verdict == "fail":
        return f"{candidate} does not meet a condition: {failures}"
    if verdict == "better":
        has_pass = any(test.verdict == "pass" for test in result.tests)
        rest = " and within the margin otherwise" if has_pass else ""
        return f"{candidate} is better than {result.baseline}: {listed}{rest}"
    if verdict == "worse":
        better = [t.name for t in result.tests if t.verdict == "better" and not t.is_slice]
        names = _list(dict.fromkeys(better))
        advice = f"; {names} prefers it: have people judge a sample (`tertium plan`)"
        also = f"; also {failures}" if failures else ""
        return f"{candidate} is {is_worse}: {listed}{advice if better else ''}{also}"
    if verdict == "undecided":
        counts = [test.more_segments for test in tests]
        hint = (
            "the difference is at the margin, or too few segments are scored, to say how many more "
            "would decide"
        )
        if all(counts):
            hint = f"about {max(filter(None, counts)):,} more segments would decide"
        return f"the scores do not show whether {candidate} is {is_worse}: {listed}; {hint}"
    if not result.tests:
        return f"{candidate} meets all {len(result.conditions)} conditions"
    margins = _list(dict.fromkeys(f"{test.margin:.3g} {test.name}" for test in tests))
    pairs = len({test.pair for test in result.tests})
    where = f" in all {pairs} language pairs" if pairs > 1 else ""
    promise = f"error probability at most {100 * result.alpha:g} %"
    return f"{candidate} is not {is_worse} ({margins}){where} ({promise})"


def _list(texts: Iterable[str]) -> str:
    listed = list(texts)
    more = len(listed) - MAX_IN_SENTENCE
    return ", ".join(listed[:MAX_IN_SENTENCE]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
