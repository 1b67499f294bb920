"""What pages send: actions of raters and of the manager, checked against the campaign.

A rater's event carries the whole answer to a task as it is after the action, so that each event
can be understood alone. Outputs are in the order in which they are shown; pages never learn the
names of systems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tertium.core.errors import DataError, TertiumError
from tertium.core.schema import NON_NEGATIVE, POSITIVE, Rule, read_dataclass
from tertium.core.spans import Severity, Side, Span, UnlocatedError
from tertium.people.campaign import (
    PROTOCOLS_WITH_SCORES,
    PROTOCOLS_WITH_SPANS,
    Assignment,
    Campaign,
)
from tertium.people.rater_answers import RaterAnswer, check_answer

RaterAction = Literal["open", "change", "submit", "skip", "leave", "break", "resume"]
ManagerAction = Literal["stop", "reopen", "extend", "unblind"]

ACTIONS_WITH_ANSWERS = frozenset({"change", "submit"})
MAX_TEXT = 20_000  # characters of a comment or an edited translation
MAX_MARKS = 2_000
MAX_MILLISECONDS = 24 * 3600 * 1000

SHORT_TEXT = Rule(lambda value: len(value) <= MAX_TEXT, f"at most {MAX_TEXT} characters")
DURATION = Rule(lambda value: 0 <= value <= MAX_MILLISECONDS, "milliseconds of at most a day")
_EVENT_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A marked error; without `start` it has no position. `prefilled`: marked before the rater."""

    start: int | None = None
    end: int | None = None
    side: Side = "hypothesis"
    severity: Severity
    category: str = ""
    prefilled: bool = False

    def to_error(self, marked_by: str = "") -> Span | UnlocatedError:
        """Convert to a span, or to an error without a position."""
        if self.start is None or self.end is None:
            return UnlocatedError(self.severity, self.category)
        message = f"prefilled by {marked_by}" if self.prefilled else ""
        return Span(self.start, self.end, self.side, self.severity, self.category, message=message)


@dataclass(frozen=True, kw_only=True)
class OutputAnswer:
    """What a rater has entered about one output so far."""

    score: Annotated[float, Rule(lambda v: 0 <= v <= 100, "a score from 0 to 100")] | None = None
    rank: Annotated[int, POSITIVE] | None = None
    marks: tuple[Mark, ...] = ()
    edited: Annotated[str, SHORT_TEXT] | None = None


@dataclass(frozen=True, kw_only=True)
class RaterEvent:
    """An action of a rater: `task` is the position in the rater's list of tasks.

    `detail` names the change, such as `mark` or `undo`. `ms` is the active time since the last
    event of the task. `reason` tells why a task was skipped.
    """

    kind: RaterAction
    task: Annotated[int, NON_NEGATIVE] | None = None
    outputs: tuple[OutputAnswer, ...] = ()
    comment: Annotated[str, SHORT_TEXT] = ""
    reason: Annotated[str, SHORT_TEXT] = ""
    detail: Annotated[str, SHORT_TEXT] = ""
    ms: Annotated[int, DURATION] = 0


@dataclass(frozen=True, kw_only=True)
class ManagerEvent:
    """An action of the manager; `extend` gives a rater more tasks."""

    kind: ManagerAction
    rater: str = ""
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
    if len(event.outputs) != len(task.systems):
        raise DataError(f"{len(event.outputs)} answers for {len(task.systems)} translations")
    for answer in to_answers(event, rater, task, campaign):
        check_answer(answer, campaign)
    if event.kind == "submit" and not is_complete(event, rater, task, campaign):
        raise DataError(f"the answer to item {task.item!r} is not complete")
    for output in event.outputs:
        _check_protocol(output, campaign)


def to_answers(
    event: RaterEvent,
    rater: str,
    task: Assignment,
    campaign: Campaign,
    **fields: Any,
) -> list[RaterAnswer]:
    """Convert the answer to a task to one per system; `fields` are those of `RaterAnswer`."""
    marked_by = campaign.options.suspicions or "the campaign"
    answers = []
    for system, output in zip(task.systems, event.outputs, strict=True):
        errors = [mark.to_error(marked_by) for mark in output.marks]
        answers.append(
            RaterAnswer(
                rater=rater,
                item=task.item,
                system=system,
                score=output.score,
                rank=output.rank,
                spans=tuple(error for error in errors if isinstance(error, Span)),
                missing=tuple(error for error in errors if isinstance(error, UnlocatedError)),
                edited=output.edited,
                comment=event.comment,
                **fields,
            )
        )
    return answers


def is_complete(event: RaterEvent, rater: str, task: Assignment, campaign: Campaign) -> bool:
    """Tell whether all outputs of a task have what the protocol asks for."""
    answers = to_answers(event, rater, task, campaign)
    return bool(answers) and all(
        answer.is_complete(campaign.protocol) and (answer.edited is None or answer.edited.strip())
        for answer in answers
    )


def _check_protocol(output: OutputAnswer, campaign: Campaign) -> None:
    """Raise an error if an answer has parts that its protocol does not ask for."""
    protocol = campaign.protocol
    unexpected = {
        "a score": output.score is not None and protocol not in PROTOCOLS_WITH_SCORES,
        "a rank": output.rank is not None and protocol != "ranking",
        "marked errors": bool(output.marks) and protocol not in PROTOCOLS_WITH_SPANS,
        "an edited text": output.edited is not None and protocol != "post-edit",
    }
    for name, is_unexpected in unexpected.items():
        if is_unexpected:
            raise DataError(f"an answer has {name}, which the protocol {protocol!r} does not have")
    if len(output.marks) > MAX_MARKS:
        raise DataError(f"{len(output.marks)} marked errors in one text: at most {MAX_MARKS}")


def describe_problem(error: TertiumError) -> str:
    """Return the message of a rejected event as one line."""
    return " ".join(str(error).split())
