"""Options for the server of an LLM judge and its cost, and the preview of a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tertium.core.errors import JudgeServerError, TertiumError, UsageError
from tertium.core.options import EarlyResult, Option
from tertium.core.result import Column, Result, Table, field_values
from tertium.core.runtime import JudgeOptions, runtime
from tertium.data.testset import TestSet
from tertium.metrics.base.metric import Metric
from tertium.metrics.judge.usage import Price, RequestPlan, Usage, track_usage
from tertium.text.control_characters import replace_control_characters

logger = logging.getLogger(__name__)


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
        Requests to the server at the same time (default: 8).
    request_timeout
        Seconds for one request to the server (default: 120).
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

    @contextmanager
    def applied(self) -> Iterator[Usage]:
        """Send the requests of the block to the server; too few valid answers are an error."""
        values = field_values(self, "judge_url", "request_timeout", "dry_run")
        server = JudgeOptions(url=self.judge_url, timeout=self.request_timeout, **values)
        with runtime(judge=server), track_usage() as usage:
            try:
                yield usage
            except TertiumError as error:
                if usage.has_too_few_answers and not isinstance(error, JudgeServerError):
                    message = replace_control_characters(str(error))
                    logger.error("error: %s", message)  # it may only follow from missing answers
                    usage.check_coverage()
                raise
            finally:
                if not usage.is_empty:
                    logger.warning("judge: %s", usage.describe())
            usage.check_coverage()


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
            raise EarlyResult(RequestPlans(tuple(plans), self.price))

    def _plan(
        self, testset: TestSet, metrics: Sequence[Metric]
    ) -> Iterator[tuple[str, RequestPlan]]:
        from tertium.metrics.judge.judge_metric import Judge

        members = [member for m in metrics for member in getattr(m, "parts", (m,))]
        judges = [metric for metric in members if isinstance(metric, Judge)]
        if not judges:
            raise UsageError(
                "--dry-run is for the metric judge: give -m judge:model=NAME, or omit it"
            )
        segments = [segment for system in testset.systems for segment in testset.segments(system)]
        for judge in judges:
            yield judge.spec, judge.plan(segments)


@dataclass(frozen=True)
class RequestPlans(Result):
    """The requests that judges would send, by metric."""

    plans: tuple[tuple[str, RequestPlan], ...]
    price: Price | None = None

    def tables(self) -> list[Table]:
        """Return one row per judge, with its cost if prices are known."""
        price = self.price
        columns = [
            Column("metric", lambda row: row[0]),
            Column("answers", lambda row: row[1].questions, 0),
            Column("cached", lambda row: row[1].questions - row[1].requests, 0),
            Column("requests", lambda row: row[1].requests, 0),
            Column("input tokens", lambda row: row[1].prompt_tokens, 0),
            Column("output tokens", lambda row: row[1].completion_tokens, 0),
        ]
        if price is not None:
            columns.append(Column("cost", lambda row: row[1].cost(price), 4))
        notes = ["nothing was sent; tokens and cost are estimates, retries cost extra"]
        return [Table(columns, self.plans, notes=notes)]

    def records(self) -> Any:
        """Return the requests of each judge; of a single one as a dictionary."""
        names = {"input tokens": "prompt_tokens", "output tokens": "completion_tokens"}
        rows = self.tables()[0].records()
        records = [{names.get(key, key): row[key] for key in row} for row in rows]
        return records[0] if len(records) == 1 else records
