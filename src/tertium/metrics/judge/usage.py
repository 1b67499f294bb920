"""Count requests, tokens, cost and valid answers of LLM judges, and estimate a run before it.

A judge that got valid answers for too few segments has no system score, and the command that used
it ends with an error: see `Coverage`.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tertium.core.errors import CoverageError, short_repr
from tertium.core.runtime import current_runtime, runtime

if TYPE_CHECKING:
    from tertium.metrics.judge.budget import CostLedger

Price = tuple[float, float]  # of a million input and output tokens
TOKENS_PER_PRICE = 1_000_000
CHARACTERS_PER_TOKEN = 4  # of ASCII text; other characters count as one token each
MAX_SHOWN_ANSWER = 200  # characters of a rejected answer in an error message


@dataclass(kw_only=True)
class Coverage:
    """Which segments of a run got a valid answer of one judge, and whether these are enough.

    `required` is the share that needs one. `answered` tells it for each distinct segment, by a hash
    of what was asked. `too_few` has the numbers of segments with an answer, and of all, in a set
    (such as a system) that has no score for this reason.
    """

    required: float
    answered: dict[int, bool] = field(default_factory=dict)
    too_few: tuple[int, int] | None = None

    def add(self, other: Coverage) -> None:
        """Add the segments of another process."""
        self.answered |= other.answered
        self.too_few = self.too_few or other.too_few

    def find_shortfall(self) -> tuple[int, int] | None:
        """Return how many of how many segments have an answer if these are too few."""
        if self.too_few is not None:
            return self.too_few
        count, total = sum(self.answered.values()), len(self.answered)
        return None if has_enough_answers(count, total, self.required) else (count, total)


@dataclass(kw_only=True)
class Usage:
    """What a run has used so far.

    `requests` were sent, including retries; `answers` are valid ones among their responses and
    `cached_answers` were read from the cache. `failures` is the number of questions without a valid
    answer after all retries. `unreported` counts requests that a server may have charged without
    reporting tokens (a lost connection); `unreported_cost` is an upper bound of their cost.
    `coverage` is kept for each judge, by its spec. `rejected` is one answer that was not valid, and
    the reason.
    """

    requests: int = 0
    answers: int = 0
    cached_answers: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    unreported_cost: float = 0.0
    price: Price | None = None
    failure_kinds: dict[str, int] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict, repr=False)
    rejected: tuple[str, str] | None = field(default=None, repr=False)
    ledger: CostLedger | None = field(default=None, repr=False, compare=False)

    @property
    def is_empty(self) -> bool:
        return not (self.requests or self.cached_answers or self.failures)

    @property
    def cost(self) -> float | None:
        """Cost of the reported tokens, None without a price."""
        if self.price is None:
            return None
        return token_cost(self.prompt_tokens, self.completion_tokens, self.price)

    def count_tokens(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Count the tokens of an answer; return their cost, 0 without a price."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        return token_cost(prompt_tokens, completion_tokens, self.price or (0.0, 0.0))

    def open_ledger(self, path: str = "") -> CostLedger:
        """Return the ledger of the budget: in memory, or in a file that processes share."""
        from tertium.metrics.judge.budget import CostLedger

        if self.ledger is None:
            self.ledger = CostLedger(path)
        return self.ledger

    def add(self, other: Usage) -> None:
        """Add the counts of another process."""
        for name in (part.name for part in fields(self)):
            value = getattr(other, name)
            if name == "failure_kinds":
                self.failure_kinds = dict(Counter(self.failure_kinds) + Counter(value))
            elif name == "coverage":
                for judge, coverage in value.items():
                    self.coverage_of(judge, coverage.required).add(coverage)
            elif name in ("price", "rejected"):
                setattr(self, name, getattr(self, name) or value)
            elif name != "ledger":
                setattr(self, name, getattr(self, name) + value)

    @property
    def cost_so_far(self) -> float | None:
        """Cost of all processes, None without a price; lost answers count with their maximum."""
        return None if self.price is None or self.ledger is None else self.ledger.cost

    def count_failure(self, kind: str, content: str = "") -> None:
        """Count a question without a valid answer, and keep one rejected answer."""
        self.failures += 1
        self.failure_kinds[kind] = self.failure_kinds.get(kind, 0) + 1
        if self.rejected is None or (content and not self.rejected[1]):
            self.rejected = (kind, content)

    def coverage_of(self, judge: str, required: float) -> Coverage:
        """Return the coverage of a judge, by its spec."""
        return self.coverage.setdefault(judge, Coverage(required=required))

    @property
    def has_too_few_answers(self) -> bool:
        """Whether some judge got too few valid answers."""
        return any(coverage.find_shortfall() for coverage in self.coverage.values())

    def check_coverage(self) -> None:
        """Raise an error with one rejected answer if some judge got too few valid answers."""
        shortfalls = []
        for judge, coverage in self.coverage.items():
            shortfall = coverage.find_shortfall()
            if shortfall is not None:
                answered, total = shortfall
                required = f"expected {100 * coverage.required:g} % (min_coverage)"
                shortfalls.append(f"{judge} for {answered:,} of {total:,} segments, {required}")
        if not shortfalls:
            return
        message = f"too few valid answers: {'; '.join(shortfalls)}"
        if self.rejected is not None:
            kind, content = self.rejected
            answer = short_repr(content, MAX_SHOWN_ANSWER)
            message += (
                f". One rejected answer: {answer} ({kind})" if content else f". One reason: {kind}"
            )
        raise CoverageError(
            f"judge: {message}. Run the command again to ask for the missing answers only; a lower "
            "min_coverage accepts fewer answers"
        )

    def as_dict(self) -> dict[str, object]:
        """Convert to a dictionary for JSON, with the cost."""
        internal = ("coverage", "rejected", "ledger")
        names = [part.name for part in fields(self) if part.name not in internal]
        values = {name: getattr(self, name) for name in names}
        return {**values, "cost": self.cost}

    def describe(self) -> str:
        """Describe the usage in one line.

        >>> Usage(requests=3, answers=3, prompt_tokens=900, completion_tokens=60).describe()
        '3 requests, 3 answers; 900 input and 60 output tokens'
        """
        parts = [_count(self.requests, "request"), _count(self.answers, "answer")]
        if self.cached_answers:
            parts.append(f"{_count(self.cached_answers, 'answer')} from the cache")
        if self.failures:
            kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(self.failure_kinds.items()))
            parts.append(f"{self.failures:,} without a valid answer ({kinds})")
        line = ", ".join(parts)
        line += f"; {self.prompt_tokens:,} input and {self.completion_tokens:,} output tokens"
        if self.cost is not None:
            line += f", cost {format_cost(self.cost)}"
        if self.unreported:
            bound = f" (at most {format_cost(self.unreported_cost)} more)" if self.price else ""
            line += f"; {_count(self.unreported, 'request')} without reported tokens{bound}"
        return line


@dataclass(frozen=True, kw_only=True)
class RequestPlan:
    """Requests that scoring would send, with estimated tokens; cached answers cost nothing."""

    questions: int
    requests: int
    prompt_tokens: int
    completion_tokens: int

    def cost(self, price: tuple[float, float]) -> float:
        """Return the estimated cost."""
        return token_cost(self.prompt_tokens, self.completion_tokens, price)


def has_enough_answers(answered: int, total: int, required: float) -> bool:
    """Return whether a share of segments got an answer; without any answer, it is never enough.

    >>> has_enough_answers(19, 20, 0.95), has_enough_answers(18, 20, 0.95)
    (True, False)
    >>> has_enough_answers(0, 20, 0.0), has_enough_answers(0, 0, 0.95)
    (False, True)
    """
    return total == 0 or (answered > 0 and answered / total >= required)


def token_cost(prompt_tokens: float, completion_tokens: float, price: Price) -> float:
    """Compute the cost of tokens.

    >>> token_cost(500_000, 10_000, (2.0, 8.0))
    1.08
    """
    return (prompt_tokens * price[0] + completion_tokens * price[1]) / TOKENS_PER_PRICE


def format_cost(cost: float) -> str:
    """Format a cost with two decimals, or more if it is small.

    >>> format_cost(12.3456), format_cost(0.001234), format_cost(0)
    ('12.35', '0.0012', '0.00')
    """
    decimals = 2 if cost == 0 or cost >= 1 else min(8, 1 - math.floor(math.log10(cost)))
    return f"{cost:,.{max(2, decimals)}f}"


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text.

    >>> estimate_tokens("a short text"), estimate_tokens("短文")
    (3, 2)
    """
    other = sum(not character.isascii() for character in text)
    return math.ceil((len(text) - other) / CHARACTERS_PER_TOKEN) + other


_current_usage: ContextVar[Usage | None] = ContextVar("judge_usage", default=None)
_usage_by_options: dict[int, Usage] = {}  # by identity, as long as the options live


def current_usage() -> Usage:
    """Return the counts of the surrounding `track_usage`, else those of the current options.

    A budget therefore applies to all calls with the same `JudgeOptions` object.
    """
    if (usage := _current_usage.get()) is not None:
        return usage
    options = current_runtime().judge
    if id(options) not in _usage_by_options:
        _usage_by_options[id(options)] = Usage()
        weakref.finalize(options, _usage_by_options.pop, id(options), None)
    return _usage_by_options[id(options)]


def count_segments(judge: str, required: float, answered: Mapping[int, bool]) -> None:
    """Note which segments have a valid answer, inside `track_usage`, which ends at some time."""
    if (usage := _current_usage.get()) is not None:
        usage.coverage_of(judge, required).answered |= answered


def check_set(judge: str, required: float, answered: int, total: int) -> bool:
    """Return whether enough segments of a set have an answer to give it a score, and note it."""
    is_enough = has_enough_answers(answered, total, required)
    usage = _current_usage.get()
    if usage is not None and not is_enough:
        usage.coverage_of(judge, required).too_few = (answered, total)
    return is_enough


@contextmanager
def track_usage() -> Iterator[Usage]:
    """Count what the calls inside the block use; a budget applies to all of them together."""
    usage = Usage()
    token = _current_usage.set(usage)
    try:
        yield usage
    finally:
        _current_usage.reset(token)


@contextmanager
def share_usage() -> Iterator[Usage]:
    """Count the requests of all processes of a run; with a price they share a ledger of costs."""
    usage, options = current_usage(), current_runtime().judge
    token = _current_usage.set(usage)
    try:
        if options.price is None:
            yield usage
        else:
            usage.price = options.price
            with _ledger_file(usage) as path, runtime(judge=replace(options, ledger=path)):
                yield usage
    finally:
        _current_usage.reset(token)


@contextmanager
def _ledger_file(usage: Usage) -> Iterator[str]:
    """Keep the ledger in a temporary file during the block; yield its path."""
    from tertium.metrics.judge.budget import CostLedger

    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = str(Path(folder, "ledger.sqlite"))
        usage.ledger = ledger = CostLedger(path, usage.cost_so_far or 0.0)
        try:
            yield path
        finally:
            usage.ledger = CostLedger(cost=ledger.cost)
            ledger.close()


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
