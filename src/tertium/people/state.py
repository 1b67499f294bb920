"""The state of a campaign, computed from the events of its people, and the session that serves it.

What pages send: actions of raters and of the manager, checked against the campaign.

A rater's event carries the whole answer to a task as it is after the action, so that each event
can be understood alone. Outputs are in the order in which they are shown; pages never learn the
names of systems. An output has a `score`, `rank`, `marks` or `edited` text, as the protocol asks. A
mark has the fields of a span; without `start` it is an error without a position, and `prefilled`
says that it was marked before the rater saw it.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import os
import re
import secrets
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from tertium.core.atomic import PathLike, check_writable, create_private_file, lock_file
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.fields import NON_NEGATIVE, Rule, read_dataclass
from tertium.data.records import read_object_list
from tertium.people.annotation_store import MANAGER, Event, EventStore
from tertium.people.campaign import (
    PROTOCOLS_WITH_SCORES,
    PROTOCOLS_WITH_SPANS,
    Assignment,
    Campaign,
)
from tertium.people.rater_answers import SHORT_TEXT, RaterAnswer, check_answer


@dataclass(slots=True)
class TaskState:
    """The newest answer to a task, its working time and whether it is done.

    `outputs` are what the page sent. A change of a submitted answer counts at once if the answer is
    still complete.
    """

    outputs: tuple[Mapping[str, Any], ...] = ()
    answers: list[RaterAnswer] = field(default_factory=list)
    comment: str = ""
    status: str = "new"  # new, open, done or skipped
    reason: str = ""
    milliseconds: int = 0
    received: float = 0.0  # of the newest complete answer


@dataclass(slots=True)
class RaterState:
    """The tasks of a rater and their states."""

    tasks: list[Assignment]
    states: dict[int, TaskState] = field(default_factory=dict)
    is_on_break: bool = False
    last_received: float = math.nan

    def count(self, status: str) -> int:
        """Count tasks by status."""
        return sum(state.status == status for state in self.states.values())


class CampaignState:
    """Everything that the events of a campaign add up to."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.lock = threading.RLock()
        self.raters = {
            rater: RaterState(list(campaign.assignments.get(rater, ())))
            for rater in campaign.raters
        }
        self.is_stopped = False

    def apply(self, event: Event) -> None:
        """Add one event."""
        with self.lock:
            if event.person == MANAGER:
                self._apply_manager(read_dataclass(ManagerEvent, event.body, "event"))
            elif event.person in self.raters:
                self._apply_rater(event.person, parse_rater_event(event.body), event.received)

    def _apply_manager(self, event: ManagerEvent) -> None:
        if event.kind in ("stop", "reopen"):
            self.is_stopped = event.kind == "stop"
        elif event.kind == "extend":
            self.raters[event.rater].tasks += event.tasks

    def _apply_rater(self, name: str, event: RaterEvent, received: float) -> None:
        rater = self.raters[name]
        rater.last_received = received
        rater.is_on_break = event.kind == "break"
        if event.task is None:
            return
        task = rater.tasks[event.task]
        state = rater.states.setdefault(event.task, TaskState())
        state.milliseconds += event.ms
        if event.kind == "skip":
            state.status = "skipped"
            state.reason = event.reason
        elif event.kind in ACTIONS_WITH_ANSWERS:
            should_count = event.kind == "submit" or state.status == "done"
            state.outputs = event.outputs
            state.comment = event.comment
            state.reason = ""
            state.answers = read_task_answers(event, name, task, self.campaign)
            state.status = "open"
            protocol = self.campaign.protocol
            if should_count and all(answer.is_complete(protocol) for answer in state.answers):
                state.status = "done"
                state.received = received
        elif state.status == "new":
            state.status = "open"

    def answers(self) -> list[RaterAnswer]:
        """Return the answers of all raters to tasks that are done, one answer per system."""
        answers = []
        for rater in self.raters.values():
            for _, state in sorted(rater.states.items()):
                if state.status != "done":
                    continue
                seconds = round(state.milliseconds / 1000 / len(state.answers), 3)
                when = datetime.fromtimestamp(state.received, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                answers += [replace(a, seconds=seconds, time=when) for a in state.answers]
        return answers

    def choose_tasks(self, rater: str, count: int) -> tuple[Assignment, ...]:
        """Choose further tasks for a rater: those of others that fewest raters have.

        A rater never judges the same output twice.
        """
        if rater not in self.raters:
            raise UnknownNameError("rater", rater, list(self.raters))
        if count < 1:
            raise DataError(f"{count} further tasks: expected one or more")
        seen = {(task.item, name) for task in self.raters[rater].tasks for name in task.systems}
        usage: Counter[tuple[str, frozenset[str]]] = Counter()
        candidates: dict[tuple[str, frozenset[str]], Assignment] = {}
        for state in self.raters.values():
            for task in state.tasks:
                key = task.item, frozenset(task.systems)
                usage[key] += 1
                is_item = self.campaign.items_by_id[task.item].kind == "item"
                if is_item and seen.isdisjoint((task.item, name) for name in task.systems):
                    candidates.setdefault(key, task)
        if not candidates:
            raise DataError(f"{rater!r} has all tasks of the campaign already")
        chosen = sorted(candidates, key=lambda key: usage[key])[:count]
        return tuple(candidates[key] for key in chosen)


RaterAction = Literal["open", "change", "submit", "skip", "leave", "break", "resume"]
ManagerAction = Literal["stop", "reopen", "extend", "unblind"]  # the last in old logs only

ACTIONS_WITH_ANSWERS = frozenset({"change", "submit"})
ANSWER_FIELDS: Mapping[str, frozenset[str]] = {  # of an output, and their protocols
    "score": PROTOCOLS_WITH_SCORES,
    "rank": frozenset({"ranking"}),
    "marks": PROTOCOLS_WITH_SPANS,
    "edited": frozenset({"post-edit"}),
}
MAX_MARKS = 2_000
MAX_MILLISECONDS = 24 * 3600 * 1000

DURATION = Rule(lambda value: 0 <= value <= MAX_MILLISECONDS, "milliseconds of at most a day")
_EVENT_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class RaterEvent:
    """An action of a rater: `task` is the position in the rater's list of tasks.

    `detail` names the change, such as `mark` or `undo`. `ms` is the active time since the last
    event of the task. `reason` tells why a task was skipped.
    """

    kind: RaterAction
    task: Annotated[int, NON_NEGATIVE] | None = None
    outputs: tuple[Mapping[str, Any], ...] = ()
    comment: Annotated[str, SHORT_TEXT] = ""
    reason: Annotated[str, SHORT_TEXT] = ""
    detail: Annotated[str, SHORT_TEXT] = ""
    ms: Annotated[int, DURATION] = 0


@dataclass(frozen=True, kw_only=True)
class ManagerEvent:
    """An action of the manager; `extend` gives a rater more tasks.

    The page sends the `count` of tasks, the event log has the `tasks`.
    """

    kind: ManagerAction
    rater: str = ""
    count: int = 0
    tasks: tuple[Assignment, ...] = ()


def read_event_id(value: Any) -> str:
    """Return an id made by a page: 32 hexadecimal digits."""
    if not isinstance(value, str) or not _EVENT_ID.fullmatch(value):
        raise DataError("an event has no valid id: expected 32 hexadecimal digits")
    return value


def parse_rater_event(body: Mapping[str, Any]) -> RaterEvent:
    """Read the body of a stored or received event of a rater."""
    return read_dataclass(RaterEvent, body, "event")


def check_rater_event(
    event: RaterEvent, rater: str, tasks: Sequence[Assignment], campaign: Campaign
) -> None:
    """Raise `TertiumError` if an event does not fit the tasks of the rater."""
    if event.task is None:
        if event.kind not in ("break", "resume"):
            raise DataError(f"an event {event.kind!r} without a task")
        return
    if event.task >= len(tasks):
        raise DataError(f"task {event.task} does not exist: {rater!r} has {len(tasks)} tasks")
    if event.kind == "skip" and not event.reason.strip():
        raise DataError("a task was skipped without a reason")
    if event.kind not in ACTIONS_WITH_ANSWERS:
        return
    task = tasks[event.task]
    protocol = campaign.protocol
    if len(event.outputs) != len(task.systems):
        raise DataError(f"{len(event.outputs)} answers for {len(task.systems)} translations")
    for name in {name for output in event.outputs for name in output}:
        if protocol not in ANSWER_FIELDS.get(name, ()):
            raise DataError(f"an answer has {name!r}, which the protocol {protocol!r} has not")
    answers = read_task_answers(event, rater, task, campaign)
    for answer in answers:
        check_answer(answer, campaign)
        if len(answer.spans) + len(answer.missing) > MAX_MARKS:
            raise DataError(f"an answer has more than {MAX_MARKS} marked errors")
    if event.kind == "submit" and not all(answer.is_complete(protocol) for answer in answers):
        raise DataError(f"the answer to item {task.item!r} is not complete")


def read_task_answers(
    event: RaterEvent, rater: str, task: Assignment, campaign: Campaign
) -> list[RaterAnswer]:
    """Return what a rater has entered so far about each output of a task."""
    prefilled = f"prefilled by {campaign.options.suspicions or 'the campaign'}"
    answers = []
    for system, output in zip(task.systems, event.outputs, strict=True):
        spans = []
        missing = []
        for mark in read_object_list(output.get("marks") or [], "marks", "event"):
            error = {name: mark[name] for name in ("severity", "category") if name in mark}
            if mark.get("start") is None:
                missing.append(error)
                continue
            error |= {name: mark[name] for name in ("start", "end", "side") if name in mark}
            spans.append(error | ({"message": prefilled} if mark.get("prefilled") else {}))
        record = {
            **{name: output.get(name) for name in ("score", "rank", "edited")},
            "rater": rater,
            "item": task.item,
            "system": system,
            "spans": spans,
            "missing": missing,
            "comment": event.comment,
        }
        answers.append(read_dataclass(RaterAnswer, record, "event"))
    return answers


TOKEN_BYTES = 18  # 144 bits
MAX_BAD_TOKENS = 10  # per address and window
WINDOW_SECONDS = 60.0
MAX_ADDRESSES = 10_000
ANY_ADDRESS = ("0.0.0.0", "::")
DATABASE_SUFFIX = ".answers.db"


def default_database(campaign_file: PathLike) -> Path:
    """Return the database next to a campaign file: campaign.json -> campaign.answers.db."""
    return Path(campaign_file).with_suffix(DATABASE_SUFFIX)


class AnnotationSession:
    """An open campaign: its events on disk and the state that they add up to."""

    def __init__(self, campaign: Campaign, database: PathLike) -> None:
        self.campaign = campaign
        self.state = CampaignState(campaign)
        self.store = EventStore(Path(database), campaign.id, self.state.apply)

    def new_tokens(self, *, replace: bool = False) -> Mapping[str, str]:
        """Create tokens for everybody without one; `replace` creates all of them again."""
        owners = {*self.store.links().values()}
        persons = [MANAGER, *self.campaign.raters]
        tokens = {
            p: secrets.token_urlsafe(TOKEN_BYTES) for p in persons if replace or p not in owners
        }
        self.store.replace_links((hash_token(token), person) for person, token in tokens.items())
        return tokens

    def close(self) -> None:
        """Close the database."""
        self.store.close()


@contextmanager
def open_session(campaign: Campaign, database: PathLike) -> Iterator[AnnotationSession]:
    """Open a campaign for one server; another server on the same database is refused.

    The lock lies next to the file that a symbolic link names.
    """
    check_writable(database)
    path = Path(os.path.realpath(database))
    lock = path.with_name(f"{path.name}.lock")
    create_private_file(lock)
    with lock_file(lock) as is_locked:
        if not is_locked:
            raise UsageError(f"{database} is in use by another server: stop that one first")
        with closing(AnnotationSession(campaign, path)) as session:
            yield session


def bind_socket(host: str, port: int) -> socket.socket:
    """Open the socket of the server; port 0 chooses a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # browsers that are faster than the server wait
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {port} ({error.strerror}): give another "
            "--listen HOST:PORT (port 0 chooses a free one)"
        ) from None


def is_loopback(host: str) -> bool:
    """Tell whether a host can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def public_address(host: str) -> str:
    """Return the address for links: if the server listens on all, that of the default network."""
    if host not in ANY_ADDRESS:
        return host
    family = socket.AF_INET if host == "0.0.0.0" else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1" if family == socket.AF_INET else "2001:db8::1", 9))
            return str(probe.getsockname()[0])  # nothing was sent
        except OSError:
            return socket.gethostname()


def make_link(host: str, port: int, person: str, token: str) -> str:
    """Return the address for a person. The token is a fragment: browsers do not send it.

    >>> make_link("127.0.0.1", 8000, "anna", "secret")
    'http://127.0.0.1:8000/#secret'
    """
    name = f"[{host}]" if ":" in host else host
    page = "manager" if person == MANAGER else ""
    return f"http://{name}:{port}/{page}#{quote(token)}"


def hash_token(token: str) -> str:
    """Hash a token. Tokens are long and random, so that a plain hash cannot be guessed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def find_person(token: str, links: Mapping[str, str]) -> str | None:
    """Return the person of a token; None if it is unknown or was replaced.

    `links` has persons by hashed token. All hashes are compared, in constant time.
    """
    digest = hash_token(token)
    matches = [person for stored, person in links.items() if hmac.compare_digest(stored, digest)]
    return matches[0] if matches else None


class RateLimit:
    """Counts bad tokens per address. Good tokens are never refused: offices share addresses."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def is_exceeded(self, address: str) -> bool:
        """Record a bad token; return whether the address sent too many."""
        now = time.monotonic()
        if len(self._times) >= MAX_ADDRESSES:
            self._times.clear()
        times = self._times.setdefault(address, deque(maxlen=MAX_BAD_TOKENS + 1))
        times.append(now)
        return len(times) > MAX_BAD_TOKENS and now - times[0] < WINDOW_SECONDS
