"""A run of LLM judges: the server, the budget, what was used, and whether enough answers are valid.

Scores do not depend on these settings, so they are a context (`judge_server`), not fields of a
metric. Commands enter it with `JudgeConnection.applied`.

One budget for several processes: the parent keeps it, and its workers borrow over a connection.

A worker borrows for each request and returns the rest afterwards. If it is killed, its loans count
as spent.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import itemgetter
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Annotated, Any, ClassVar

from tertium.core.errors import TertiumError, UsageError, short_repr
from tertium.core.options import EarlyResult, Option
from tertium.core.result import Column, Result, Table
from tertium.data.testset import TestSet
from tertium.metrics.base.metric import Metric
from tertium.text.printable import replace_control_characters

Price = tuple[float, float]  # of a million input and output tokens
TOKENS_PER_PRICE = 1_000_000
MAX_CONCURRENCY = 1000
MAX_SHOWN_ANSWER = 200  # characters of a rejected answer in an error message

logger = logging.getLogger(__name__)


class JudgeServerError(TertiumError):
    """The server of an LLM judge refuses requests or does not answer; answers so far are cached."""


class BudgetError(JudgeServerError):
    """The next request to an LLM judge would exceed the budget; answers so far are cached."""

    exit_code = 3


class CoverageError(JudgeServerError):
    """An LLM judge gave valid answers for too few segments; answers so far are cached."""

    exit_code = 3


class Budget:
    """The amount that a run may still spend; each request borrows the most that it can cost.

    The cost of a request is known only after its answer. Loans of requests in progress count as
    spent, so that together they cannot exceed the limit, and neither can requests whose process was
    killed.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = math.inf if limit is None else limit
        self.cost = 0.0
        self.loans: dict[int, float] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def borrow(self, amount: float) -> int | None:
        """Return the number of a loan, or None while requests in progress may free enough.

        Raise `BudgetError` if there are none.
        """
        with self._lock:
            if self.cost + sum(self.loans.values()) + amount <= self.limit:
                number = next(self._numbers)
                self.loans[number] = amount
                return number
            if self.loans:
                return None
        raise BudgetError(
            f"judge: the budget of {self.limit:g} is reached: {self.cost:.6g} used, and the next "
            f"request may cost {amount:.3g}; answers so far are cached: run the same command with "
            "a new --budget to continue"
        )

    def settle(self, number: int, cost: float | None = None) -> None:
        """End a loan; if the cost is unknown, all of the loan is spent."""
        with self._lock:
            amount = self.loans.pop(number)
            self.cost += amount if cost is None else cost


@dataclass(kw_only=True)
class Usage:
    """What a run has used so far.

    `requests` were sent, including retries; `answers` are valid ones among their responses and
    `cached_answers` were read from the cache. `failures` counts questions without a valid answer by
    reason. `unreported` counts requests that a server may have charged without reporting tokens (a
    lost connection); `unreported_cost` is an upper bound of their cost. `answered` says for each
    judge, by spec and required share of answers, which distinct questions got one; `too_few` counts
    answers and questions of a set without a score. `rejected` is an answer that was not valid, and
    the reason.
    """

    requests: int = 0
    answers: int = 0
    cached_answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    unreported_cost: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    answered: dict[tuple[str, float], dict[int, bool]] = field(default_factory=dict)
    too_few: dict[tuple[str, float], tuple[int, int]] = field(default_factory=dict)
    rejected: tuple[str, str] | None = None

    def add(self, other: Usage) -> None:
        """Add the counts of another process."""
        for name, value in vars(other).items():
            if isinstance(value, int | float):
                setattr(self, name, getattr(self, name) + value)
        self.failures.update(other.failures)
        for judge, answers in other.answered.items():
            self.answered.setdefault(judge, {}).update(answers)
        self.too_few |= other.too_few
        self.rejected = self.rejected or other.rejected

    def count_failure(self, kind: str, content: str) -> None:
        """Count a question without a valid answer, and keep one rejected answer."""
        self.failures[kind] += 1
        if self.rejected is None or not self.rejected[1]:
            self.rejected = (kind, content)

    def shortfalls(self) -> list[str]:
        """Describe the judges that got too few valid answers."""
        lines = []
        for judge, answers in self.answered.items():
            spec, required = judge
            answered, total = self.too_few.get(judge, (sum(answers.values()), len(answers)))
            if not has_enough_answers(answered, total, required):
                lines.append(
                    f"{spec} for {answered:,} of {total:,} segments, expected {100 * required:g} % "
                    "(min_coverage)"
                )
        return lines

    def check_coverage(self) -> None:
        """Raise an error with one rejected answer if some judge got too few valid answers."""
        shortfalls = self.shortfalls()
        if not shortfalls:
            return
        kind, content = self.rejected or ("", "")
        example = f". One reason: {kind}" if kind else ""
        if content:
            example = f". One rejected answer: {short_repr(content, MAX_SHOWN_ANSWER)} ({kind})"
        raise CoverageError(
            f"judge: too few valid answers: {'; '.join(shortfalls)}{example}. Run the command "
            "again to ask for the missing answers only; a lower min_coverage accepts fewer answers"
        )

    def describe(self, price: Price | None = None) -> str:
        """Describe the usage in one line.

        >>> Usage(requests=3, answers=3, prompt_tokens=900, completion_tokens=60).describe()
        '3 requests, 3 answers; 900 input and 60 output tokens'
        """
        parts = [_count(self.requests, "request"), _count(self.answers, "answer")]
        if self.cached_answers:
            parts.append(f"{_count(self.cached_answers, 'answer')} from the cache")
        if self.failures:
            kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(self.failures.items()))
            parts.append(f"{self.failures.total():,} without a valid answer ({kinds})")
        line = ", ".join(parts)
        line += f"; {self.prompt_tokens:,} input and {self.completion_tokens:,} output tokens"
        if price:
            cost = token_cost(self.prompt_tokens, self.completion_tokens, price)
            line += f", cost {format_cost(cost)}"
        if self.unreported:
            bound = f" (at most {format_cost(self.unreported_cost)} more)" if price else ""
            line += f"; {_count(self.unreported, 'request')} without reported tokens{bound}"
        return line


def parse_price(text: str) -> Price:
    """Parse two prices.

    >>> parse_price("2,8")
    (2.0, 8.0)
    """
    try:
        price_in, price_out = map(float, text.split(","))
    except ValueError:
        raise UsageError(
            f"{text!r}: expected two numbers, such as 2,8 for a million input and output tokens"
        ) from None
    return price_in, price_out


@dataclass(frozen=True, kw_only=True)
class JudgeConnection:
    """The server of the metric judge, and what its answers may cost.

    Attributes
    ----------
    judge_url
        Server of the metric judge, such as http://localhost:8080/v1 (default: $OPENAI_BASE_URL;
        the key is $OPENAI_API_KEY).
    concurrency
        Requests to the server at the same time.
    request_timeout
        Seconds for one request to the server.
    price
        Prices of a million input and output tokens (default: unknown).
    budget
        Stop before the requests of this run cost more; needs --price (default: no limit).
    allow_http
        Send texts and key unencrypted to a server on another machine.
    use_proxy
        Connect to the server through the proxy of the environment.
    """

    group: ClassVar[str] = "Runtime"
    judge_url: Annotated[str, Option(metavar="URL")] = ""
    concurrency: int = 8
    request_timeout: float = 120
    price: Annotated[Price | None, Option(metavar="IN,OUT", type=parse_price)] = None
    budget: float | None = None
    allow_http: bool = False
    use_proxy: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise UsageError(
                f"concurrency={self.concurrency!r}: expected 1 to {MAX_CONCURRENCY} requests"
            )
        for name in ("request_timeout", "budget"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"{name}={value!r}: expected a number above 0")
        if self.price is not None and not all(0 <= value < math.inf for value in self.price):
            raise UsageError(f"price={self.price!r}: expected two numbers of at least 0")
        if self.budget is not None and self.price is None:
            raise UsageError("a budget needs the price of tokens: give --price IN,OUT (price=)")

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Send the requests of the block to the server; too few valid answers are an error."""
        with judge_server(self) as run:
            usage = run.usage
            try:
                yield
            except TertiumError as error:
                if usage.shortfalls() and not isinstance(error, JudgeServerError):
                    message = replace_control_characters(str(error))
                    logger.error("error: %s", message)  # it may only follow from missing answers
                    usage.check_coverage()
                raise
            finally:
                if usage.requests or usage.cached_answers or usage.failures:
                    logger.warning("judge: %s", usage.describe(self.price))
            usage.check_coverage()


@dataclass(frozen=True)
class JudgeRun:
    """The server of the requests inside a block, what they used, and what they may still cost.

    `budget` is the one of this process, or a stand-in for that of another (`RemoteBudget`).
    """

    server: JudgeConnection
    budget: Any
    usage: Usage = field(default_factory=Usage)


_current = ContextVar("judge_run", default=JudgeRun(JudgeConnection(), Budget()))  # noqa: B039


def current_run() -> JudgeRun:
    """Return the run of the surrounding `judge_server`; by default one without a budget."""
    return _current.get()


@contextmanager
def judge_server(server: JudgeConnection, budget: Any = None) -> Iterator[JudgeRun]:
    """Send the requests of judges inside the block to a server, and count what they use."""
    run = JudgeRun(server, budget or Budget(server.budget))
    token = _current.set(run)
    try:
        yield run
    finally:
        _current.reset(token)


def has_enough_answers(answered: int, total: int, required: float) -> bool:
    """Return whether a share of segments got an answer; without any answer, it is never enough.

    >>> has_enough_answers(19, 20, 0.95), has_enough_answers(18, 20, 0.95)
    (True, False)
    >>> has_enough_answers(0, 20, 0.0), has_enough_answers(0, 0, 0.95)
    (False, True)
    """
    return total == 0 or (answered > 0 and answered / total >= required)


def token_cost(prompt_tokens: float, completion_tokens: float, price: Price | None) -> float:
    """Compute the cost of tokens, 0 if prices are unknown.

    >>> token_cost(500_000, 10_000, (2.0, 8.0))
    1.08
    """
    price_in, price_out = price or (0.0, 0.0)
    return (prompt_tokens * price_in + completion_tokens * price_out) / TOKENS_PER_PRICE


def format_cost(cost: float) -> str:
    """Format a cost with two decimals, or more if it is small.

    >>> format_cost(12.3456), format_cost(0.001234), format_cost(0)
    ('12.35', '0.0012', '0.00')
    """
    decimals = 2 if cost == 0 or cost >= 1 else min(8, 1 - math.floor(math.log10(cost)))
    return f"{cost:,.{max(2, decimals)}f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


CHARACTERS_PER_TOKEN = 4  # of ASCII text; other characters count as one token each


@dataclass(frozen=True, kw_only=True)
class JudgeServer(JudgeConnection):
    """The server of the metric judge, for commands that can preview its requests.

    Attributes
    ----------
    dry_run
        Only print how many requests the metric judge would send, and what they may cost.
    """

    dry_run: bool = False

    def stop_dry_run(self, *sets: tuple[TestSet, Sequence[Metric]]) -> None:
        """End the command with the requests that it would send, if this is a dry run."""
        if self.dry_run:
            plans = [plan for testset, metrics in sets for plan in self._plan(testset, metrics)]
            raise EarlyResult(RequestPlans(plans, self.price))

    def _plan(self, testset: TestSet, metrics: Sequence[Metric]) -> Iterator[dict[str, Any]]:
        members: list[Any] = [member for m in metrics for member in getattr(m, "parts", (m,))]
        judges = [metric for metric in members if hasattr(metric, "plan")]
        if not judges:
            raise UsageError(
                "--dry-run is for the metric judge: give -m judge:model=NAME, or omit it"
            )
        segments = [segment for system in testset.systems for segment in testset.segments(system)]
        for judge in judges:
            yield judge.plan(segments)


@dataclass(frozen=True)
class RequestPlans(Result):
    """The requests that judges would send, with estimated tokens; cached answers cost nothing."""

    plans: Sequence[Mapping[str, Any]]
    price: Price | None = None

    def tables(self) -> list[Table]:
        """Return one row per judge, with its cost if prices are known."""
        name, *counts = self.plans[0]
        columns = [Column(name, itemgetter(name))]
        columns += [Column(count, itemgetter(count), 0) for count in counts]
        if self.price is not None:
            columns.append(Column("cost", self._cost, 4))
        notes = ["nothing was sent; tokens and cost are estimates, retries cost extra"]
        return [Table(columns, self.plans, notes=notes)]

    def _cost(self, plan: Mapping[str, Any]) -> float:
        return token_cost(plan["input tokens"], plan["output tokens"], self.price)

    def records(self) -> Any:
        """Return the requests of each judge; of a single one as a dictionary."""
        names = {"input tokens": "prompt_tokens", "output tokens": "completion_tokens"}
        rows = self.tables()[0].records()
        records = [{names.get(key, key): row[key] for key in row} for row in rows]
        return records[0] if len(records) == 1 else records


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text.

    >>> estimate_tokens("a short text"), estimate_tokens("短文")
    (3, 2)
    """
    other = sum(not character.isascii() for character in text)
    return math.ceil((len(text) - other) / CHARACTERS_PER_TOKEN) + other


BudgetAddress = tuple[str, int, str]  # host, port and a secret


class _BudgetServer(ThreadingTCPServer):
    """Accepts workers that know the secret."""

    daemon_threads = True
    budget: Budget
    secret: str


class _Lender(StreamRequestHandler):
    """Lends to one worker until it ends."""

    server: _BudgetServer

    def handle(self) -> None:
        loans: set[int] = set()
        with suppress(OSError):  # the worker was killed
            for line in self.rfile:
                secret, number, amount = json.loads(line)
                if secret != self.server.secret:
                    break
                reply: int | str | None = None
                if number is not None:
                    self.server.budget.settle(number, amount)
                    loans.remove(number)
                else:
                    try:
                        reply = self.server.budget.borrow(amount)
                    except BudgetError as error:
                        reply = str(error)
                if isinstance(reply, int):
                    loans.add(reply)
                self.wfile.write(json.dumps(reply).encode() + b"\n")
        for number in loans:
            self.server.budget.settle(number)


@contextmanager
def share_budget(budget: Budget, host: str = "127.0.0.1") -> Iterator[BudgetAddress]:
    """Lend a budget to other processes inside the block; yield the address for them."""
    with _BudgetServer((host, 0), _Lender) as server:
        server.budget = budget
        server.secret = secrets.token_hex()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield host, server.server_address[1], server.secret
        finally:
            server.shutdown()


class RemoteBudget:
    """The budget of another process."""

    def __init__(self, address: BudgetAddress) -> None:
        host, port, self._secret = address
        self._stream = socket.create_connection((host, port)).makefile("rw")

    def borrow(self, amount: float) -> int | None:
        """Return the number of a loan, or None while requests in progress may free enough."""
        reply: int | str | None = self._send(None, amount)
        if isinstance(reply, str):
            raise BudgetError(reply)
        return reply

    def settle(self, number: int, cost: float | None = None) -> None:
        """End a loan; if the cost is unknown, all of the loan is spent."""
        self._send(number, cost)

    def _send(self, number: int | None, amount: float | None) -> Any:
        print(json.dumps([self._secret, number, amount]), file=self._stream, flush=True)
        return json.loads(self._stream.readline())
