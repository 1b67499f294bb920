"""The option --dry-run: the requests that judges would send, and what they may cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from tertium.core.errors import UsageError
from tertium.core.options import EarlyResult
from tertium.core.result import Column, Result, Table
from tertium.data.testset import TestSet
from tertium.metrics.base.judge_run import JudgeConnection, Price, token_cost
from tertium.metrics.base.metric import Metric

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
