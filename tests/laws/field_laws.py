"""The laws of settings: every field of every class takes values of its type and round-trips.

Values come from the type of a field: both booleans, every literal, numbers, texts with all that a
spec has to quote. A class may refuse a value, in its own words; what it takes must come back.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Literal, Union

from tests import gallery
from tests.laws.trial import Subject, Trial, hold

from tertium.errors import TertiumError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker

INTEGERS = (0, 1, 2, 3, 7, 10**6, -1)
FLOATS = (0.0, 0.1, 1.0, 2.5, 1e-9, 1e9, 1 / 3, -0.5, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    "none",
    "true",
    "1",
    "a,b",
    "a=b",
    'say "x"',
    "back\\slash",
    "a+b",
    "[a]",
    "a b",
    " a ",
    "a:b",
    "x|y",
    "日本",
    *(texts[0] for texts in gallery.TEXTS.values()),
)


def values_of(kind: Any) -> Iterator[Any]:
    """Yield values of a type, including unusual ones."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        for part in args:
            yield from values_of(part)
    elif origin is Literal:
        yield from args
    elif origin is tuple:
        parts = list(values_of(args[0]))
        yield ()
        yield from ((part,) for part in parts)
        yield from pairwise(parts)
    else:
        yield from {
            bool: (False, True),
            int: INTEGERS,
            float: FLOATS,
            str: TEXTS,
            type(None): (None,),
        }[kind]


def fields_of(value: Any) -> dict[str, Any]:
    """Return the types of the constructor fields."""
    return _fields_of(type(value))


@cache
def _fields_of(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def every_field_round_trips(trial: Trial) -> int:
    """A spec rebuilds a metric or ranker with any valid value of any field."""
    loaded = trial.subject.loaded
    load = load_metric if trial.subject.kind == "metric" else load_ranker
    count = 0
    for name, kind in fields_of(loaded).items():
        for value in values_of(kind):
            count += 1
            try:
                changed = dataclasses.replace(loaded, **{name: value})
            except TertiumError:
                continue
            _hold_round_trip(load, changed, name, value)
    return count


def _hold_round_trip(load: Any, changed: Any, name: str, value: Any) -> None:
    """The spec rebuilds it; missing folders raise an error only when they are read."""
    try:
        spec = changed.spec
        again = load(spec)
    except TertiumError:
        hold(name in ("model", "folder"), f"{name}={value!r} is accepted, but its spec is not")
        return
    pairs = [(getattr(again, n), getattr(changed, n)) for n in fields_of(changed)]
    hold(all(same(a, b) for a, b in pairs), f"{name}={value!r} comes back as {again!r}")
    hold(again.spec == spec, f"{spec!r} comes back as {again.spec!r}")


def same(a: Any, b: Any) -> bool:
    """Return whether two values are equal; NaN equals NaN, and 2 equals 2.0."""
    alike = type(a) is type(b) or {type(a), type(b)} == {int, float}
    return alike and (a == b or (a != a and b != b))


def settings_of(subject: Subject) -> list[Subject]:
    """Return variants of the subject with every other boolean and literal field value."""
    loaded, variants = subject.loaded, []
    for name, kind in fields_of(loaded).items():
        chosen = typing.get_origin(kind) is Literal or bool in (kind, *typing.get_args(kind))
        for value in values_of(kind) if chosen else ():
            try:
                changed = dataclasses.replace(loaded, **{name: value})
                if changed != loaded:
                    variants.append(Subject(changed.spec, subject.kind))
            except TertiumError:
                continue
    return variants
