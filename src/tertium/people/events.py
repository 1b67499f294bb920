"""What pages send: actions of raters and of the manager, checked against the campaign.

A rater's event carries the whole answer to a task as it is after the action, so that each event
can be understood alone. Outputs are in the order in which they are shown; pages never learn the
names of systems. An output has a `score`, `rank`, `marks` or `edited` text, as the protocol asks. A
mark has the fields of a span; without `start` it is an error without a position, and `prefilled`
says that it was marked before the rater saw it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tertium.core.errors import DataError
from tertium.core.fields import NON_NEGATIVE, Rule, read_dataclass
from tertium.data.records import read_object_list
from tertium.people.campaign import (
    PROTOCOLS_WITH_SCORES,
    PROTOCOLS_WITH_SPANS,
    Assignment,
    Campaign,
)
from tertium.people.rater_answers import SHORT_TEXT, RaterAnswer, check_answer

RaterAction = Literal["open", "change", "submit", "skip", "leave", "break", "resume"]
ManagerAction = Literal["stop", "reopen", "extend", "unblind"]

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
    task, protocol = tasks[event.task], campaign.protocol
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
        spans, missing = [], []
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
