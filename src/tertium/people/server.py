"""The web server of the command `annotate`: pages, answers of raters, and the manager's view.

    GET  /, /manager, /static/NAME      pages and scripts; nothing secret
    GET  /api/tasks, /api/states        tasks and answers of the rater
    POST /api/events                    actions of the rater; answered when they are on disk
    GET  /api/progress, /api/export     for the manager: progress, and judgments as JSONL
    POST /api/manage                    actions of the manager

A token in the header `Authorization: Bearer TOKEN` names the person. There are no cookies, so that
other sites cannot act for a user.

The manager's view: progress, speed, attention checks and agreement of each rater.
"""

from __future__ import annotations

import json
import logging
import math
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tertium.core.atomic import OWNER_ONLY, PathLike, write_text
from tertium.core.errors import DataError, TertiumError, UsageError, WriteError
from tertium.core.extras import require_modules
from tertium.core.fields import read_dataclass
from tertium.core.options import InFile, Option
from tertium.core.result import Column, Result, Table, View, field_values
from tertium.core.segment import check_surrogates
from tertium.core.spans import Span
from tertium.people.annotation_store import MANAGER, Event
from tertium.people.campaign import (
    ESA_SEVERITIES,
    MQM_SEVERITIES,
    PROTOCOLS_WITH_SPANS,
    Assignment,
    Campaign,
    Neighbor,
    read_campaign,
    to_json,
)
from tertium.people.rater_answers import ScoredAnswers
from tertium.people.reliability import (
    RaterQuality,
    Ratings,
    describe_raters,
    krippendorff_alpha,
    median,
)
from tertium.people.state import (
    AnnotationSession,
    CampaignState,
    ManagerEvent,
    RateLimit,
    RaterState,
    bind_socket,
    check_rater_event,
    default_database,
    find_person,
    is_loopback,
    make_link,
    open_session,
    parse_rater_event,
    public_address,
    read_event_id,
)

MAX_BODY_BYTES = 4_000_000
MAX_EVENTS = 200
SHUTDOWN_SECONDS = 3
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
PAGE_BY_PATH = {"/": "rater.html", "/manager": "manager.html"}
UNKNOWN_LINK = (
    "this link is not valid for this campaign, or was replaced by a newer one: ask the manager for "
    "your link"
)
FOR_MANAGER = "this page is for the manager: use the manager's link"
FOR_RATERS = "this is the manager's link: open it with /manager before the #"
SHARED_FILES = ("charts.css", "script/theme.js", "script/elements.js")  # of the report


NO_ANSWER: Mapping[str, Any] = {"score": None, "rank": None, "marks": [], "edited": None}
# ISO 639 codes of languages that are written from right to left
RIGHT_TO_LEFT = frozenset("ar arc ckb dv fa ha-arab he ks ps sd ug ur yi".split())

logger = logging.getLogger(__name__)


class AnnotationServer:
    """Serves one campaign. `app` is the ASGI application."""

    def __init__(self, session: AnnotationSession) -> None:
        self.campaign = session.campaign
        self.store = session.store
        self.state = session.state
        self._links = session.store.links()
        self._limit = RateLimit()
        self._manage_lock = threading.Lock()
        self._files = _load_files()
        routes = [
            *(Route(path, self._file) for path in (*PAGE_BY_PATH, "/static/{name}")),
            Route("/api/tasks", self._tasks),
            Route("/api/states", self._states),
            Route("/api/events", self._events, methods=["POST"]),
            Route("/api/progress", self._progress),
            Route("/api/export", self._export),
            Route("/api/manage", self._manage, methods=["POST"]),
        ]
        handlers: Any = {HTTPException: _describe_error, TertiumError: _describe_error}
        self.app = Starlette(routes=routes, exception_handlers=handlers)

    async def _file(self, request: Request) -> Response:
        name = PAGE_BY_PATH.get(request.url.path) or request.path_params["name"]
        if name not in self._files:
            raise HTTPException(404, "there is no such file")
        content, kind = self._files[name]
        return Response(content, media_type=kind)

    def _person(self, request: Request, *, is_manager: bool = False) -> str:
        """Return the person of the token: a rater, or the manager on pages of the manager."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        person = find_person(token.strip(), self._links) if scheme.lower() == "bearer" else None
        if person is None:
            address = request.client.host if request.client else ""
            if self._limit.is_exceeded(address):
                raise HTTPException(429, "too many links that are not valid: wait a minute")
            raise HTTPException(401, UNKNOWN_LINK)
        if is_manager != (person == MANAGER):
            raise HTTPException(403, FOR_MANAGER if is_manager else FOR_RATERS)
        return person

    def _tasks(self, request: Request) -> Response:
        rater = self._person(request)
        with self.state.lock:
            content = {
                "campaign": describe_campaign(self.campaign),
                "rater": rater,
                "tasks": [describe_task(t, self.campaign) for t in self.state.raters[rater].tasks],
                **describe_states(self.state, rater),
            }
        return JSONResponse(content)

    def _states(self, request: Request) -> Response:
        rater = self._person(request)
        with self.state.lock:
            content = describe_states(self.state, rater)
        return JSONResponse(content)

    async def _events(self, request: Request) -> Response:
        """Store events; events that are not valid are reported and do not hold up the others."""
        rater = self._person(request)
        entries = (await _read_json(request)).get("events")
        if not isinstance(entries, list) or len(entries) > MAX_EVENTS:
            raise HTTPException(400, f"expected a list of at most {MAX_EVENTS} events")
        events: list[Event] = []
        rejected: list[dict[str, str]] = []
        for entry in entries:
            name = str(entry.get("id", "")) if isinstance(entry, Mapping) else ""
            try:
                events.append(self._read_event(entry, rater))
            except TertiumError as error:
                rejected.append({"id": name, "message": _in_one_line(error)})
        refused = await run_in_threadpool(self.store.append, events)
        message = "the id of an event was used for another answer"
        rejected += [{"id": name, "message": message} for name in refused]
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

    def _progress(self, request: Request) -> Response:
        self._person(request, is_manager=True)
        return JSONResponse(describe_progress(self.state))

    def _export(self, request: Request) -> Response:
        self._person(request, is_manager=True)
        with self.state.lock:
            scored = ScoredAnswers(self.campaign, self.state.answers())
        headers = {"content-disposition": 'attachment; filename="judgments.jsonl"'}
        lines = "".join(scored.lines())
        return Response(lines, media_type="application/jsonl", headers=headers)

    async def _manage(self, request: Request) -> Response:
        self._person(request, is_manager=True)
        entry = await _read_json(request)
        await run_in_threadpool(self._apply_management, entry)
        return JSONResponse(await run_in_threadpool(describe_progress, self.state))

    def _apply_management(self, entry: Mapping[str, Any]) -> None:
        name = read_event_id(entry.get("id"))
        fields = {key: value for key, value in entry.items() if key != "id"}
        action = read_dataclass(ManagerEvent, fields, "event")
        body: dict[str, Any] = {"kind": action.kind}
        with self._manage_lock:
            if action.kind == "extend":
                with self.state.lock:
                    tasks = self.state.choose_tasks(action.rater, action.count)
                body |= {"rater": action.rater, "tasks": to_json(tasks)}
            self.store.append([Event(name, MANAGER, body)])


def make_server(session: AnnotationSession) -> uvicorn.Server:
    """Return a server of a campaign, which adds the security headers to every response."""
    config = uvicorn.Config(
        AnnotationServer(session).app,
        headers=[*HEADERS.items()],
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    return uvicorn.Server(config)


def serve(session: AnnotationSession, listener: socket.socket) -> None:
    """Answer requests on a bound socket until the process is interrupted."""
    with suppress(KeyboardInterrupt):  # uvicorn raises it again after an orderly end
        make_server(session).run(sockets=[listener])


async def _describe_error(_: Request, error: Exception) -> Response:
    """Answer an error with one line of JSON."""
    status = 507 if isinstance(error, WriteError) else 400  # 507: the page sends its answers again
    message = _in_one_line(error)
    if isinstance(error, HTTPException):
        status = error.status_code
        message = error.detail
    return JSONResponse({"error": message}, status)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


async def _read_json(request: Request) -> Mapping[str, Any]:
    """Read the body of a request, an object of limited size."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise HTTPException(413, f"a request has more than {MAX_BODY_BYTES} bytes")
        value = json.loads(body)
    except ClientDisconnect:
        raise HTTPException(400, "the connection was closed") from None
    except (ValueError, RecursionError):
        raise HTTPException(400, "the request is not valid JSON") from None
    if not isinstance(value, Mapping):
        raise HTTPException(400, "the request is not a JSON object")
    return value


def _load_files() -> dict[str, tuple[bytes, str]]:
    """Load the files of the pages by name, with their content types."""
    folder = files("tertium.people") / "page"
    shared = files("tertium.output") / "page"
    entries = [*folder.iterdir(), *(folder / "languages").iterdir()]
    entries += [shared / name for name in SHARED_FILES]
    loaded = {
        entry.name: (entry.read_bytes(), CONTENT_TYPES[suffix])
        for entry in entries
        if (suffix := entry.name.rpartition(".")[2]) in CONTENT_TYPES
    }
    opening, kind = loaded.pop(OPENING)
    for name, values in PAGES.items():
        start = opening.decode("utf-8").format(**values)
        loaded[name] = (start.encode("utf-8") + loaded[name][0], kind)
    return loaded


def describe_campaign(campaign: Campaign) -> dict[str, Any]:
    """Return what the page shows of a campaign besides its tasks."""
    severities: tuple[str, ...] = ()
    if campaign.protocol in PROTOCOLS_WITH_SPANS:
        severities = MQM_SEVERITIES if campaign.protocol == "mqm" else ESA_SEVERITIES
    return {
        "id": campaign.id,
        "name": campaign.name,
        "protocol": campaign.protocol,
        "source": _text_settings(campaign.source_language),
        "target": _text_settings(campaign.target_language),
        "instructions": campaign.instructions,
        "severities": severities,
        "typology": to_json(campaign.typology) if campaign.protocol == "mqm" else [],
        "glossary": to_json(campaign.glossary),
    }


def describe_task(task: Assignment, campaign: Campaign) -> dict[str, Any]:
    """Return one task; attention checks look like any other task."""
    item = campaign.items_by_id[task.item]
    options = campaign.options
    first = max(0, len(item.before) - options.context_size)
    suspected = item.suspected if campaign.protocol in PROTOCOLS_WITH_SPANS else {}

    def describe_neighbors(neighbors: Sequence[Neighbor]) -> list[dict[str, Any]]:
        return [
            {"source": n.source, "outputs": [n.outputs.get(system) for system in task.systems]}
            for n in neighbors
        ]

    return {
        "kind": "tutorial" if item.kind == "tutorial" else "item",
        "document": item.document,
        "source": item.source,
        "reference": item.reference if options.show_reference or item.source is None else None,
        "notes": item.notes,
        "outputs": [{"text": item.outputs[system]} for system in task.systems],
        "suspected": [
            [_prefilled_mark(span) for span in suspected.get(system, ())] for system in task.systems
        ],
        "before": describe_neighbors(item.before[first:]),
        "after": describe_neighbors(item.after[: options.context_size]),
    }


def describe_states(state: CampaignState, rater: str) -> dict[str, Any]:
    """Return the newest answers of a rater, one entry per task, and whether work is stopped."""
    states: list[dict[str, Any] | None] = [None] * len(state.raters[rater].tasks)
    for number, task in state.raters[rater].states.items():
        outputs = [{**NO_ANSWER, **output} for output in task.outputs]
        values = field_values(task, "answers", "milliseconds", "received")
        states[number] = {**values, "outputs": outputs}
    return {"states": states, "is_stopped": state.is_stopped}


def _prefilled_mark(span: Span) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "side": span.side,
        "severity": span.severity if span.severity in MQM_SEVERITIES else "minor",
        "category": span.category,
        "prefilled": True,
    }


def _text_settings(language: str) -> dict[str, str]:
    """Return the language tag and the direction of texts; `auto` if the language is unknown."""
    tag = language.replace("_", "-")
    codes = {tag.lower(), tag.partition("-")[0].lower()}
    direction = "rtl" if codes & RIGHT_TO_LEFT else "ltr"
    return {"language": tag, "direction": direction if tag else "auto"}


MIN_ANSWERS = 5  # before a rater is called suspicious
MIN_OVERLAP = 5  # common answers for a correlation
FAST_SHARE = 1 / 3  # of the median time of all raters
MIN_SPREAD = 1.0  # standard deviation of scores
MIN_CORRELATION = 0.1


def describe_progress(state: CampaignState) -> dict[str, Any]:
    """Return the progress of a campaign as JSON."""
    campaign = state.campaign
    with state.lock:
        scored = ScoredAnswers(campaign, state.answers())
        checks = scored.count_checks()
        rows = {
            rater: _describe_rater(rater, own, *checks.get(rater, (0, 0)))
            for rater, own in state.raters.items()
        }
    alpha = None
    if scored.answers:
        ratings = Ratings.from_judgments(scored.judgments(), seconds=scored.seconds())
        usual = median(ratings.seconds)
        for quality in describe_raters(ratings, min_shared=MIN_OVERLAP):
            row = rows[quality.rater]
            row["seconds"] = _rounded(quality.seconds, 1)
            row["agreement"] = _rounded(quality.agreement, 3)
            row["suspicions"] += _suspicions(row, quality, usual)
        alpha = _rounded(krippendorff_alpha(ratings.matrix), 3)
    return {
        "name": campaign.name,
        "protocol": campaign.protocol,
        "is_stopped": state.is_stopped,
        "raters": [*rows.values()],
        "alpha": alpha,
    }


def _describe_rater(rater: str, own: RaterState, passed: int, checks: int) -> dict[str, Any]:
    has_started = not math.isnan(own.last_received)
    failed = checks - passed
    row: dict[str, Any] = {
        "rater": rater,
        "tasks": len(own.tasks),
        "is_on_break": own.is_on_break,
        "idle_seconds": max(0, round(time.time() - own.last_received)) if has_started else None,
        "checks": {"passed": passed, "failed": failed},
        "seconds": None,
        "agreement": None,
        "suspicions": [],
    }
    for status in ("done", "skipped", "open"):
        row[status] = own.count(status)
    if failed and failed >= passed:
        row["suspicions"].append(f"failed {failed} of {checks} attention checks")
    return row


def _rounded(value: float, decimals: int) -> float | None:
    return round(value, decimals) if math.isfinite(value) else None


def _suspicions(row: dict[str, Any], quality: RaterQuality, usual: float) -> list[str]:
    """Return reasons to look at the answers of a rater."""
    if row["done"] < MIN_ANSWERS:
        return []
    reasons = {
        "much faster than the others": quality.seconds < FAST_SHARE * usual,
        "almost always the same score": quality.judgments >= MIN_ANSWERS
        and quality.deviation < MIN_SPREAD,
        "does not agree with the others": quality.agreement < MIN_CORRELATION,
        "skips most tasks": row["skipped"] > row["done"],
    }
    return [reason for reason, is_met in reasons.items() if is_met]


DEFAULT_PORT = 8000
MAX_PORT = 65535


@dataclass(frozen=True)
class Links(Result):
    """New links by person. They are passwords, so that only their owner can read a file of them."""

    links: Mapping[str, str]

    def contents(self) -> list[str]:
        """Return aligned lines, for terminals of any width."""
        width = max(map(len, self.links), default=0)
        return [f"{name:<{width}}  {link}" for name, link in self.links.items()]

    def tables(self) -> list[Table]:
        """Return one row per person."""
        columns = [Column("name", lambda row: row[0]), Column("link", lambda row: row[1])]
        return [Table(columns, [*self.links.items()])]

    @classmethod
    def suffixes(cls) -> list[str]:
        """Return the only suffix."""
        return [".tsv"]

    def write(self, *paths: PathLike) -> None:
        """Write files for the owner alone; a restart without new links keeps files as they are."""
        text = "".join(f"{name}\t{link}\n" for name, link in self.links.items())
        for path in paths if self.links else ():
            write_text(path, text, private=True)
            Path(path).chmod(OWNER_ONLY)  # also of a file that existed


def annotate_campaign(
    campaign: InFile,
    /,
    *,
    answers: Annotated[InFile | None, Option(group="Input")] = None,
    new_links: Annotated[bool, Option(group="Output")] = False,
    listen: Annotated[str, Option(group="Runtime", metavar="HOST:PORT")] = "127.0.0.1:8000",
) -> Annotated[View, Links]:
    """Serve a campaign: raters judge translations in their browsers.

    Parameters
    ----------
    campaign
        Campaign file of `tertium plan`.
    answers
        Database of the answers (default: the campaign file, ending in .answers.db).
    new_links
        Replace all links; the old ones stop working.
    listen
        Address and port to listen on; 127.0.0.1 is this machine only, port 0 a free one.

    Examples
    --------
    tertium annotate campaign.json
    tertium annotate campaign.json --listen 0.0.0.0:8000 -o links.tsv

    Notes
    -----
    The first start prints a link for each rater and one for the manager, and -o FILE.tsv writes
    them. The links stay valid after a restart; --new-links replaces them. Every action is on disk
    before the page says "Saved". `tertium agree CAMPAIGN -o judgments.jsonl` writes the judgments
    so far, also while the server is running.
    """
    content = read_campaign(campaign)
    host, port = parse_address(listen)
    require_modules("starlette", "uvicorn", purpose="`tertium annotate`")
    path = answers or default_database(campaign)
    with ExitStack() as opened:
        listener = opened.enter_context(bind_socket(host, port))
        session = opened.enter_context(open_session(content, path))
        port = int(listener.getsockname()[1])
        links = {}
        tokens = session.new_tokens(replace=new_links)
        for person, token in tokens.items():
            links[person or "manager"] = make_link(public_address(host), port, person, token)
        resources = opened.pop_all()
    lines = []
    if len(tokens) <= len(content.raters):
        lines.append(
            f"serving on port {port}; links printed earlier stay valid (--new-links replaces them)"
        )
    if not is_loopback(host):
        lines.append(
            "warning: other machines can connect, without encryption: use a trusted network or a "
            "proxy with TLS"
        )

    def run_server() -> None:
        with resources:
            serve(session, listener)
            count = len(session.state.answers())
        logger.warning("stopped; %d answers in %s", count, path)

    return View(
        result=Links(links),
        warnings=[*lines, "press Ctrl+C to stop"],
        warns_aside=True,
        then=run_server,
    )


def parse_address(text: str) -> tuple[str, int]:
    """Split the value of --listen into a host and a port.

    >>> parse_address("0.0.0.0:80"), parse_address("0.0.0.0")
    (('0.0.0.0', 80), ('0.0.0.0', 8000))
    """
    host, _, port = (text if ":" in text else f"{text}:{DEFAULT_PORT}").rpartition(":")
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise UsageError(f"--listen {text}: expected HOST:PORT with a port from 0 to {MAX_PORT}")
    return host, int(port)
