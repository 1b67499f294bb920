"""HTTP client for OpenAI-compatible servers: concurrency, retries, rate limits and budget.

`ask` sends questions with at most `concurrency` requests at the same time and reports each outcome
as soon as it is known. Three kinds of problems are handled differently:

- The server is busy or the connection fails (429, 5xx, timeout): wait, longer each time, or as long
  as `Retry-After` says, and send the request again.
- The answer is not valid (not one JSON object, wrong keys, refusal): ask again with the reason, up
  to `retries` times. Then the question has no answer.
- The server refuses (401, 403, 404), does not answer at all, or the budget is reached: finish the
  requests in progress, then raise an error. Answers so far are cached.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

from tertium.core.errors import JudgeServerError, UsageError
from tertium.core.runtime import JudgeOptions
from tertium.metrics.judge.answer_store import StoredAnswer
from tertium.metrics.judge.budget import Budget, Reservation
from tertium.metrics.judge.judge_answers import InvalidAnswerError, parse_answer
from tertium.metrics.judge.prompts import escape_control_tokens
from tertium.metrics.judge.protocols import JudgeProtocol
from tertium.metrics.judge.replies import (
    Reply,
    RequestError,
    StatusError,
    parse_reply,
    parse_retry_after,
    read_body,
)
from tertium.metrics.judge.server_address import API_KEY, request_headers, server_url
from tertium.metrics.judge.usage import Usage, token_cost

if TYPE_CHECKING:
    import httpx

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between attempts, doubled each time
LONGEST_RETRY_AFTER = 600.0  # seconds; a server that asks for more ends the run
MAX_ATTEMPTS = 6  # of a request that fails
MAX_RATE_LIMITED = 60  # responses 429 to one request
MAX_FAILED_IN_A_ROW = 5  # requests that fail for good, without an answer in between
POOL_CONNECTIONS = 8  # per HTTP client
MAX_QUOTED_ANSWER = 4000  # characters of an invalid answer that are sent back
RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 507, 509, 520, 522, 524, 529})
FATAL_STATUSES = frozenset({401, 402, 407})
FATAL_BEFORE_ANSWERS = frozenset({403, 404, 405})  # later they concern single texts
# RequestParameters that some servers refuse, in the order in which they are given up.
OPTIONAL_PARAMETERS = ("response_format", "seed", "max_tokens", "temperature")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request to a judge; `key` identifies its answer in the cache."""

    key: str
    messages: tuple[Mapping[str, str], ...]
    seed: int


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A question without a valid answer; `kind` is the reason in a few words.

    `content` is the start of the last answer, if there was one.
    """

    kind: str
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class RequestParameters:
    """Model and sampling parameters of all requests."""

    model: str
    temperature: float
    max_tokens: int
    retries: int


Outcome = StoredAnswer | Failure
OnOutcome = Callable[[Question, Outcome], None]


def ask(
    questions: Sequence[Question],
    protocol: JudgeProtocol,
    parameters: RequestParameters,
    options: JudgeOptions,
    usage: Usage,
    on_outcome: OnOutcome,
) -> None:
    """Send questions to the server; `on_outcome` gets each answer or failure as it arrives."""
    client = JudgeClient(protocol, parameters, options, usage, on_outcome)
    usage.price = options.price
    _run(lambda: client.ask(questions))


def _run(start: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine; in a thread of its own if this one has an event loop (a notebook)."""

    async def main() -> None:
        await start()

    if not _has_event_loop():
        asyncio.run(main())
        return
    problems: list[BaseException] = []

    def run_in_thread() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            problems.append(error)

    thread = Thread(target=copy_context().run, args=(run_in_thread,), daemon=True)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


def _has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class JudgeClient:
    """One run of questions: state of rate limits, budget and refused parameters."""

    def __init__(
        self,
        protocol: JudgeProtocol,
        parameters: RequestParameters,
        options: JudgeOptions,
        usage: Usage,
        on_outcome: OnOutcome,
    ) -> None:
        self.protocol, self.parameters, self.options = protocol, parameters, options
        self.usage, self.on_outcome = usage, on_outcome
        self.url = _check_url(f"{server_url(options)}/chat/completions")
        self.headers = request_headers()
        self.dropped_parameters: set[str] = set()
        self.resume_at = 0.0  # no request is sent before this time
        self.failed_in_a_row = 0
        self.has_answers = False
        self.stop_error: JudgeServerError | None = None

    async def ask(self, questions: Iterable[Question]) -> None:
        """Ask all questions; raise the error that ended the run, if any."""
        self.budget = Budget(self.usage.open_ledger(self.options.ledger), self.options.budget)
        waiting = iter(questions)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(own) for own in self._http_clients()]
            workers = range(self.options.concurrency)
            await asyncio.gather(*(self._work(waiting, clients[n % len(clients)]) for n in workers))
        if self.stop_error is not None:
            raise self.stop_error

    def _http_clients(self) -> list[httpx.AsyncClient]:
        """Create clients of few connections each: a pool takes quadratic time in their number."""
        import httpx

        context = httpx.create_ssl_context(trust_env=self.options.use_proxy)
        count = -(-self.options.concurrency // POOL_CONNECTIONS)
        return [
            httpx.AsyncClient(
                timeout=self.options.timeout,
                verify=context,
                trust_env=self.options.use_proxy,
                follow_redirects=False,
                headers=self.headers,
            )
            for _ in range(count)
        ]

    async def _work(self, waiting: Iterator[Question], http: httpx.AsyncClient) -> None:
        """Answer questions until there are no more, or the run ends."""
        while self.stop_error is None:
            question = next(waiting, None)
            if question is None:
                return
            try:
                outcome = await self._answer(question, http)
            except JudgeServerError as error:
                self.stop_error = self.stop_error or error
                return
            if isinstance(outcome, Failure):
                self.usage.count_failure(outcome.kind, outcome.content)
            else:
                self.usage.answers += 1
            self.on_outcome(question, outcome)

    async def _answer(self, question: Question, http: httpx.AsyncClient) -> Outcome:
        """Ask until the answer is valid, at most `retries` times again."""
        messages, tokens = list(question.messages), (0, 0)
        failure = Failure(kind="")
        for _ in range(self.parameters.retries + 1):
            try:
                reply = await self._complete(messages, question, http)
            except RequestError as error:
                return self._fail(error)
            self.failed_in_a_row, self.has_answers = 0, True
            tokens = tuple(map(sum, zip(tokens, reply.tokens or (0, 0), strict=True)))  # type: ignore[assignment]
            try:
                if reply.problem:
                    raise InvalidAnswerError(reply.problem)
                parse_answer(reply.content, self.protocol)
            except InvalidAnswerError as error:
                failure = Failure(kind=error.kind, content=reply.content[:MAX_QUOTED_ANSWER])
                messages = [*question.messages, *_correction(reply.content, error)]
            else:
                return StoredAnswer(reply.content, reply.model, *tokens)
        return failure

    def _fail(self, error: RequestError) -> Failure:
        """Return a failure; end the run if no request succeeds any more."""
        is_refused = isinstance(error, StatusError) and error.status not in RETRY_STATUSES
        self.failed_in_a_row += not is_refused
        if self.failed_in_a_row >= MAX_FAILED_IN_A_ROW:
            raise JudgeServerError(
                f"judge: {self.url} fails ({error.kind}); answers so far are cached: run the same "
                "command again to continue"
            )
        return Failure(kind=error.kind)

    async def _complete(
        self, messages: Sequence[Mapping[str, str]], question: Question, http: httpx.AsyncClient
    ) -> Reply:
        """Send one request, again after a pause if the server is busy or the connection fails."""
        attempts = rate_limited = 0
        dropped = {*self.dropped_parameters}
        while True:
            payload = self._payload(messages, question.seed, dropped)
            try:
                reply = await self._send(payload, http)
                self.dropped_parameters |= dropped
                return reply
            except StatusError as error:
                if self._drop_parameter(error, payload, dropped):
                    continue
                self._check_fatal(error)
                if error.status not in RETRY_STATUSES:
                    raise
                rate_limited += error.status == 429
                attempts += error.status != 429
                pause = error.retry_after
                last: RequestError = error
            except RequestError as error:
                attempts += 1
                pause, last = None, error
            if attempts >= MAX_ATTEMPTS or rate_limited >= MAX_RATE_LIMITED:
                raise last
            wait = min(FIRST_WAIT * 2 ** min(attempts + rate_limited - 1, 10), LONGEST_WAIT)
            if pause is not None:
                self.resume_at = max(self.resume_at, time.monotonic() + pause)
                wait = 0.0
            jitter = zlib.crc32(question.key.encode()) % 256 / 512  # not all at the same time
            await asyncio.sleep(wait * (0.75 + jitter))

    def _payload(
        self, messages: Sequence[Mapping[str, str]], seed: int, dropped: set[str]
    ) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": self.parameters.model,
            "messages": list(messages),
            "temperature": self.parameters.temperature,
            "max_tokens": self.parameters.max_tokens,
            "seed": seed,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": f"{self.protocol.name}_answer",
                    "strict": True,
                    "schema": self.protocol.schema,
                },
            },
        }
        if "max_tokens" in dropped:  # the name for reasoning models
            payload["max_completion_tokens"] = self.parameters.max_tokens
        return {name: value for name, value in payload.items() if name not in dropped}

    def _drop_parameter(
        self, error: StatusError, payload: Mapping[str, Any], dropped: set[str]
    ) -> bool:
        """Add a parameter that the server may not support to `dropped`; return whether to retry.

        If the request then succeeds, later requests omit the parameter as well.
        """
        if error.status not in (400, 415, 422, 501):
            return False
        optional = [name for name in OPTIONAL_PARAMETERS if name in payload]
        in_message = [name for name in optional if name in error.text]
        choice = in_message or [name for name in optional if name == "response_format"]
        if choice:
            dropped.add(choice[0])
            logger.info("judge: the server refuses %s (%s)", choice[0], error.kind)
        return bool(choice)

    def _check_fatal(self, error: StatusError) -> None:
        if error.retry_after is not None and error.retry_after > LONGEST_RETRY_AFTER:
            raise JudgeServerError(
                f"judge: the server asks to wait {error.retry_after:,.0f} seconds; answers so far "
                "are cached: run the same command later to continue"
            )
        is_fatal = error.status in FATAL_STATUSES or 300 <= error.status < 400
        if not (is_fatal or (error.status in FATAL_BEFORE_ANSWERS and not self.has_answers)):
            return
        hints = {401: f" (check {API_KEY})", 404: " (check the URL and the name of the model)"}
        detail = self._hide_key(" ".join(error.text.split())[:300])
        raise JudgeServerError(
            f"judge: {self.url} refuses with status {error.status}"
            f"{hints.get(error.status, '')}: {detail or 'no message'}"
        )

    def _hide_key(self, text: str) -> str:
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return text.replace(key, "***") if key else text

    async def _send(self, payload: Mapping[str, Any], http: httpx.AsyncClient) -> Reply:
        """Send one request within the budget and count what it uses."""
        while (delay := self.resume_at - time.monotonic()) > 0:
            await asyncio.sleep(delay)
        data = json.dumps(payload, ensure_ascii=False).encode()
        async with self.budget.reserve(self._max_cost(data)) as reservation:
            self.usage.requests += 1
            try:
                reply = await self._post(data, http)
            except RequestError as error:
                if error.may_be_charged:
                    self._count_unreported(reservation)
                raise
            except BaseException:  # interrupted
                reservation.cost = reservation.bound
                raise
            if reply.tokens is None:
                self._count_unreported(reservation)
            else:
                reservation.cost = self.usage.count_tokens(*reply.tokens)
            return reply

    def _max_cost(self, data: bytes) -> float:
        """Return an upper bound: a token has at least one byte, an answer `max_tokens`."""
        price = self.options.price
        return token_cost(len(data), self.parameters.max_tokens, price) if price else 0.0

    def _count_unreported(self, reservation: Reservation) -> None:
        reservation.cost = reservation.bound
        self.usage.unreported += 1
        self.usage.unreported_cost += reservation.bound

    async def _post(self, data: bytes, http: httpx.AsyncClient) -> Reply:
        """Send one request and read the response, all within the timeout."""
        import httpx

        is_sent = False
        try:
            async with asyncio.timeout(self.options.timeout):
                headers = {"Content-Type": "application/json"}
                request = http.build_request("POST", self.url, content=data, headers=headers)
                is_sent = True
                response = await http.send(request, stream=True)
                try:
                    body = await read_body(response)
                finally:
                    await response.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise RequestError("no connection") from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise RequestError("timeout", may_be_charged=is_sent) from error
        except httpx.HTTPError as error:
            raise RequestError("connection lost", may_be_charged=is_sent) from error
        if response.status_code != 200:
            text = body[:2000].decode("utf-8", errors="replace")
            raise StatusError(
                response.status_code, text, parse_retry_after(response.headers.get("Retry-After"))
            )
        return parse_reply(body)


def _check_url(url: str) -> str:
    """Return a URL that the HTTP client accepts."""
    import httpx

    try:
        httpx.Request("POST", url)
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(f"judge: the URL of the server is not valid: {error}") from None
    return url


def _correction(content: str, error: InvalidAnswerError) -> list[dict[str, str]]:
    """Return messages that ask again, with the invalid answer and what is wrong with it."""
    request = f"This answer is not valid ({error}). Answer again with the JSON object only."
    quoted = escape_control_tokens(content[:MAX_QUOTED_ANSWER])  # it may repeat a text
    quoted = quoted.encode(errors="replace").decode()  # without lone surrogates
    answer = [{"role": "assistant", "content": quoted}] if content else []
    return [*answer, {"role": "user", "content": request}]
