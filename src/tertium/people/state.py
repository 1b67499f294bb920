"""The state of a campaign, computed from its events: tasks, answers and progress of each rater."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tertium.core.errors import DataError, UnknownNameError
from tertium.core.schema import read_dataclass
from tertium.people.annotation_store import MANAGER, Event
from tertium.people.campaign import Assignment, Campaign
from tertium.people.events import (
    ACTIONS_WITH_ANSWERS,
    ManagerEvent,
    OutputAnswer,
    RaterEvent,
    is_complete,
    parse_rater_event,
    to_answers,
)
from tertium.people.rater_answers import RaterAnswer


@dataclass(slots=True)
class TaskState:
    """The newest answer to a task, its working time and whether it is done.

    A change of a submitted answer counts at once if the answer is still complete.
    """

    outputs: tuple[OutputAnswer, ...] = ()
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

    def _apply_rater(self, rater: str, event: RaterEvent, received: float) -> None:
        own = self.raters[rater]
        own.last_received = received
        own.is_on_break = event.kind == "break"
        if event.task is None:
            return
        state = own.states.setdefault(event.task, TaskState())
        state.milliseconds += event.ms
        was_done = state.status == "done"
        if event.kind == "skip":
            state.status, state.reason = "skipped", event.reason
        elif event.kind in ACTIONS_WITH_ANSWERS:
            state.outputs, state.comment, state.reason = event.outputs, event.comment, ""
            is_done = event.kind == "submit" or was_done
            if is_done and is_complete(event, rater, own.tasks[event.task], self.campaign):
                state.status, state.received = "done", received
                state.revision += 1
            else:
                state.status = "open"
        elif state.status == "new":
            state.status = "open"

    def answers(self) -> list[RaterAnswer]:
        """Return the answers of all raters: done or skipped tasks, one answer per system."""
        answers = []
        for rater, own in self.raters.items():
            for number, state in sorted(own.states.items()):
                answers += self._task_answers(rater, own.tasks[number], state)
        return answers

    def _task_answers(self, rater: str, task: Assignment, state: TaskState) -> list[RaterAnswer]:
        if state.status not in ("done", "skipped"):
            return []
        is_skipped = state.status == "skipped"
        outputs = () if is_skipped else state.outputs
        event = RaterEvent(
            kind="submit",
            outputs=outputs or (OutputAnswer(),) * len(task.systems),
            comment=state.comment,
        )
        when = datetime.fromtimestamp(state.received, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return to_answers(
            event,
            rater,
            task,
            self.campaign,
            skipped=state.reason if is_skipped else "",
            seconds=round(state.milliseconds / 1000 / len(task.systems), 3),
            time=when if state.received else "",
            revision=max(1, state.revision),
        )

    def choose_tasks(self, rater: str, count: int) -> tuple[Assignment, ...]:
        """Choose further tasks for a rater: those of others that fewest raters have.

        A rater never judges the same output twice.
        """
        if rater not in self.raters:
            raise UnknownNameError("rater", rater, list(self.raters))
        if count < 1:
            raise DataError(f"{count} further tasks: expected one or more")
        own = self.raters[rater]
        seen = {(task.item, system) for task in own.tasks for system in task.systems}
        usage: Counter[tuple[str, frozenset[str]]] = Counter()
        first: dict[tuple[str, frozenset[str]], Assignment] = {}
        for other in self.raters.values():
            for task in other.tasks:
                key = task.item, frozenset(task.systems)
                usage[key] += 1
                first.setdefault(key, task)
        candidates = [
            task
            for key, task in first.items()
            if self.campaign.items_by_id[task.item].kind == "item"
            and not any((task.item, system) in seen for system in task.systems)
        ]
        chosen = sorted(candidates, key=lambda t: usage[t.item, frozenset(t.systems)])[:count]
        if not chosen:
            raise DataError(f"{rater!r} has all tasks of the campaign already")
        return tuple(chosen)


def blind_names(campaign: Campaign) -> Mapping[str, str]:
    """Return a neutral name for each system, in an order that does not depend on the file.

    The order is by a hash of the campaign's id and the name.
    """

    def key(system: str) -> str:
        return hashlib.sha256(f"{campaign.id}\0{system}".encode()).hexdigest()

    ordered: Sequence[str] = sorted(campaign.systems, key=key)
    return {system: f"system-{n}" for n, system in enumerate(ordered, start=1)}
