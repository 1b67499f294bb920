"""The web server: pages, answers of raters, and the manager's view.

    GET  /, /manager, /static/NAME      pages and scripts; nothing secret
    GET  /api/tasks, /api/states        tasks and answers of the rater
    POST /api/events                    actions of the rater; answered when they are on disk
    GET  /api/progress, /api/export     for the manager: progress, and judgments as JSONL
    POST /api/manage                    actions of the manager

A token in the header `Authorization: Bearer TOKEN` names the person. There are no cookies, so that
other sites cannot act for a user.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertium.core.errors import DataError, TertiumError, WriteError
from tertium.core.schema import read_dataclass
from tertium.core.segment import check_surrogates
from tertium.people.access import RateLimit, TokenTable
from tertium.people.annotation_store import MANAGER, Event, EventStore
from tertium.people.campaign import Campaign, to_json
from tertium.people.campaign_progress import describe_progress
from tertium.people.events import (
    ManagerEvent,
    check_rater_event,
    describe_problem,
    parse_rater_event,
    read_event_id,
)
from tertium.people.rater_answers import ScoredAnswers
from tertium.people.state import CampaignState, blind_names
from tertium.people.views import describe_campaign, describe_states, describe_task

MAX_BODY_BYTES = 4_000_000
MAX_EVENTS = 200
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
}
OPENING = "opening.html"  # of both pages
PAGES = {
    "rater.html": {"title": "tertium", "role": "rater", "contents": "task"},
    "manager.html": {"title": "Campaign", "role": "manager", "contents": "results"},
}
SHARED_FILES = ("charts.css", "script/theme.js", "script/elements.js")  # of the report

Handler = Callable[[Request], Awaitable[Response]]


class RejectedRequest(Exception):
    """A request that is answered with an error of one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class AnnotationServer:
    """Serves one campaign. `app` is the ASGI application."""

    def __init__(self, campaign: Campaign, store: EventStore, state: CampaignState) -> None:
        self.campaign, self.store, self.state = campaign, store, state
        self._tokens = TokenTable(store.links())
        self._limit = RateLimit()
        self._manage_lock = threading.Lock()
        self._files = _load_files()
        routes = [
            Route("/", self._serve_file("rater.html")),
            Route("/manager", self._serve_file("manager.html")),
            Route("/static/{name}", self._static_file),
            Route("/api/tasks", _guard(self._tasks)),
            Route("/api/states", _guard(self._states)),
            Route("/api/events", _guard(self._events), methods=["POST"]),
            Route("/api/progress", _guard(self._progress)),
            Route("/api/export", _guard(self._export)),
            Route("/api/manage", _guard(self._manage), methods=["POST"]),
        ]
        self.app: ASGIApp = _with_headers(Starlette(routes=routes))

    def _serve_file(self, name: str) -> Handler:
        async def serve(request: Request) -> Response:
            content, kind = self._files[name]
            return Response(content, media_type=kind)

        return serve

    async def _static_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return JSONResponse({"error": "there is no such file"}, 404)
        return await self._serve_file(name)(request)

    def _person(self, request: Request) -> str:
        """Return the person of the token, or raise an error."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        entry = self._tokens.find(token.strip()) if scheme.lower() == "bearer" else None
        if entry is not None and entry[1]:
            return entry[0]
        address = request.client.host if request.client else ""
        if self._limit.is_exceeded(address):
            raise RejectedRequest(429, "too many links that are not valid: wait a minute")
        if entry is not None:
            raise RejectedRequest(
                401, "this link was replaced by a newer one: ask the manager for your new link"
            )
        raise RejectedRequest(
            401, "this link is not valid for this campaign: ask the manager for your link"
        )

    def _rater(self, request: Request) -> str:
        person = self._person(request)
        if person == MANAGER:
            raise RejectedRequest(
                403, "this is the manager's link: open it with /manager before the #"
            )
        return person

    def _require_manager(self, request: Request) -> None:
        if self._person(request) != MANAGER:
            raise RejectedRequest(403, "this page is for the manager: use the manager's link")

    async def _tasks(self, request: Request) -> Response:
        rater = self._rater(request)
        with self.state.lock:
            tasks = [describe_task(t, self.campaign) for t in self.state.raters[rater].tasks]
            content = {
                "campaign": describe_campaign(self.campaign),
                "rater": rater,
                "tasks": tasks,
                "states": describe_states(self.state, rater),
                "is_stopped": self.state.is_stopped,
            }
        return JSONResponse(content)

    async def _states(self, request: Request) -> Response:
        rater = self._rater(request)
        with self.state.lock:
            states = describe_states(self.state, rater)
            return JSONResponse(
                {
                    "states": states,
                    "count": len(states),
                    "is_stopped": self.state.is_stopped,
                }
            )

    async def _events(self, request: Request) -> Response:
        """Store events; events that are not valid are reported and do not hold up the others."""
        rater = self._rater(request)
        entries = (await _read_json(request)).get("events")
        if not isinstance(entries, list) or len(entries) > MAX_EVENTS:
            raise RejectedRequest(400, f"expected a list of at most {MAX_EVENTS} events")
        events: list[Event] = []
        rejected: list[dict[str, str]] = []
        for entry in entries:
            name = str(entry.get("id", "")) if isinstance(entry, Mapping) else ""
            try:
                events.append(self._read_event(entry, rater))
            except TertiumError as error:
                rejected.append({"id": name, "message": describe_problem(error)})
        refused = await run_in_threadpool(self.store.append, events)
        rejected += [
            {"id": name, "message": "the id of an event was used for another answer"}
            for name in refused
        ]
        saved = [event.id for event in events if event.id not in refused]
        content = {"saved": saved, "rejected": rejected, "is_stopped": self.state.is_stopped}
        return JSONResponse(content)

    def _read_event(self, entry: Any, rater: str) -> Event:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("body"), dict):
            raise DataError("an event is not an object with id and body")
        event = Event(read_event_id(entry.get("id")), rater, entry["body"])
        check_surrogates(json.dumps(event.body, ensure_ascii=False), "an answer")
        tasks = self.state.raters[rater].tasks
        check_rater_event(parse_rater_event(event.body), rater, tasks, self.campaign)
        return event

    async def _progress(self, request: Request) -> Response:
        self._require_manager(request)
        return JSONResponse(await run_in_threadpool(describe_progress, self.state))

    async def _export(self, request: Request) -> Response:
        self._require_manager(request)
        lines = await run_in_threadpool(self._export_lines)
        headers = {"content-disposition": 'attachment; filename="judgments.jsonl"'}
        return Response(lines, media_type="application/jsonl", headers=headers)

    def _export_lines(self) -> str:
        with self.state.lock:
            answers = self.state.answers()
        rows = [*ScoredAnswers(self.campaign, answers).rows()]
        if not self.state.is_unblinded:
            names = blind_names(self.campaign)
            rows = [{**row, "system": names[row["system"]]} for row in rows]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    async def _manage(self, request: Request) -> Response:
        self._require_manager(request)
        entry = await _read_json(request)
        await run_in_threadpool(self._apply_management, entry)
        return JSONResponse(await run_in_threadpool(describe_progress, self.state))

    def _apply_management(self, entry: Mapping[str, Any]) -> None:
        name = read_event_id(entry.get("id"))
        kind, rater = entry.get("kind"), entry.get("rater", "")
        with self._manage_lock:
            if self.store.has(name):  # sent twice
                return
            body: dict[str, Any] = {"kind": kind}
            if kind == "extend":
                count = entry.get("count")
                if not isinstance(count, int) or isinstance(count, bool):
                    raise DataError("the number of further tasks is missing")
                with self.state.lock:
                    tasks = self.state.choose_tasks(str(rater), count)
                body |= {"rater": rater, "tasks": to_json(tasks)}
            read_dataclass(ManagerEvent, body, "event")
            self.store.append([Event(name, MANAGER, body)])


def _guard(handler: Handler) -> Handler:
    """Answer errors of users with one line of JSON."""

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except RejectedRequest as error:
            return JSONResponse({"error": str(error)}, error.status)
        except WriteError as error:  # a full disk: the page keeps its answers and tries again
            return JSONResponse({"error": describe_problem(error)}, 507)
        except TertiumError as error:
            return JSONResponse({"error": describe_problem(error)}, 400)

    return guarded


async def _read_json(request: Request) -> Mapping[str, Any]:
    """Read the body of a request, an object of limited size."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise RejectedRequest(413, f"a request has more than {MAX_BODY_BYTES} bytes")
        value = json.loads(body)
    except ClientDisconnect:
        raise RejectedRequest(400, "the connection was closed") from None
    except (ValueError, RecursionError):
        raise RejectedRequest(400, "the request is not valid JSON") from None
    if not isinstance(value, Mapping):
        raise RejectedRequest(400, "the request is not a JSON object")
    return value


def _load_files() -> dict[str, tuple[bytes, str]]:
    """Load the files of the pages by name, with their content types."""
    own = files("tertium.people") / "page"
    shared = files("tertium.output") / "page"
    entries = [*own.iterdir(), *(own / "languages").iterdir(), *(shared / n for n in SHARED_FILES)]
    loaded = {
        entry.name: (entry.read_bytes(), CONTENT_TYPES[entry.name.rpartition(".")[2]])
        for entry in entries
        if entry.is_file() and entry.name.rpartition(".")[2] in CONTENT_TYPES
    }
    opening, kind = loaded.pop(OPENING)
    for name, values in PAGES.items():
        start = opening.decode("utf-8").format(**values)
        loaded[name] = (start.encode("utf-8") + loaded[name][0], kind)
    return loaded


def _with_headers(app: ASGIApp) -> ASGIApp:
    """Add the security headers to every response."""
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await app(scope, receive, send_with_headers)

    return wrapped
