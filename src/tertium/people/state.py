"""The state of a campaign, computed from its events: tasks, answers and progress of each rater."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tertium.core.errors import DataError, UnknownNameError
from tertium.core.fields import read_dataclass
from tertium.people.annotation_store import MANAGER, Event
from tertium.people.campaign import Assignment, Campaign
from tertium.people.events import (
    ACTIONS_WITH_ANSWERS,
    ManagerEvent,
    RaterEvent,
    parse_rater_event,
    read_task_answers,
)
from tertium.people.rater_answers import RaterAnswer


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
    revision: int = 0  # how many complete answers there were
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
        self.is_unblinded = False

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
        elif event.kind == "unblind":
            self.is_unblinded = True
        else:
            self.raters[event.rater].tasks += event.tasks

    def _apply_rater(self, name: str, event: RaterEvent, received: float) -> None:
        rater = self.raters[name]
        rater.last_received = received
        rater.is_on_break = event.kind == "break"
        if event.task is None:
            return
        task, state = rater.tasks[event.task], rater.states.setdefault(event.task, TaskState())
        state.milliseconds += event.ms
        if event.kind == "skip":
            state.status, state.reason = "skipped", event.reason
            fields: Any = {"rater": name, "item": task.item, "comment": state.comment}
            state.answers = [
                RaterAnswer(**fields, system=system, skipped=event.reason)
                for system in task.systems
            ]
        elif event.kind in ACTIONS_WITH_ANSWERS:
            should_count = event.kind == "submit" or state.status == "done"
            state.outputs, state.comment, state.reason = event.outputs, event.comment, ""
            state.answers = read_task_answers(event, name, task, self.campaign)
            state.status = "open"
            protocol = self.campaign.protocol
            if should_count and all(answer.is_complete(protocol) for answer in state.answers):
                state.status, state.received = "done", received
                state.revision += 1
        elif state.status == "new":
            state.status = "open"

    def answers(self) -> list[RaterAnswer]:
        """Return the answers of all raters: done or skipped tasks, one answer per system."""
        answers = []
        for rater in self.raters.values():
            for _, state in sorted(rater.states.items()):
                if state.status not in ("done", "skipped"):
                    continue
                when = datetime.fromtimestamp(state.received, UTC)
                fields: Any = {
                    "seconds": round(state.milliseconds / 1000 / len(state.answers), 3),
                    "time": when.strftime("%Y-%m-%dT%H:%M:%SZ") if state.received else "",
                    "revision": max(1, state.revision),
                }
                answers += [replace(answer, **fields) for answer in state.answers]
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


def blind_names(campaign: Campaign) -> Mapping[str, str]:
    """Return a neutral name for each system, in an order that does not depend on the file.

    The order is by a hash of the campaign's id and the name.
    """

    def key(system: str) -> str:
        return hashlib.sha256(f"{campaign.id}\0{system}".encode()).hexdigest()

    return {system: f"system-{n}" for n, system in enumerate(sorted(campaign.systems, key=key), 1)}
