"""Laws of specs: every valid value of every field survives a round trip through the spec.

Example values are derived from the type of a field: booleans, literals, numbers, and texts with
characters that a spec must quote. A class may reject a value with a `TertiumError`.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Literal, Union

import numpy as np
from tests import gallery
from tests.laws.trial import Subject, Trial, require

from tertium.core.errors import TertiumError
from tertium.core.segment import Segment
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker

INTEGERS = (0, 1, 2, 3, 7, 10**6, 10**30, -1)
NAMED_FLOATS = (float("inf"), float("-inf"), float("nan"))
FLOATS = (0.0, 0.1, 1.0, 2.5, 1e-9, 1e9, 1e200, 1.7e308, 1 / 3, -0.5, *NAMED_FLOATS)
TEXTS = (
    *("", "a b", " a ", 'say "x"'),
    *"none true 1 a,b a=b back\\slash a+b [a] a:b x|y 日本".split(),
    *(texts[0] for texts in gallery.TEXTS.values()),
)


def example_values(kind: Any) -> Iterator[Any]:
    """Yield values of a type, including unusual ones."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        for part in args:
            yield from example_values(part)
    elif origin is Literal:
        yield from args
    elif origin is tuple:
        parts = list(example_values(args[0]))
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


def field_types(value: Any) -> dict[str, Any]:
    """Return the types of the constructor fields."""
    return _field_types(type(value))


@cache
def _field_types(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def every_field_round_trips(trial: Trial) -> int:
    """A spec rebuilds a metric or ranker with any valid value of any field."""
    loaded = trial.subject.loaded
    load = load_metric if trial.subject.kind == "metric" else load_ranker
    count = 0
    for name, kind in field_types(loaded).items():
        for value in example_values(kind):
            count += 1
            try:
                changed = dataclasses.replace(loaded, **{name: value})
            except TertiumError:
                continue
            _require_round_trip(load, changed, name, value)
            if isinstance(value, int | float) and not getattr(loaded, "model_ids", ("any",)):
                _require_scores(changed, f"{name}={value!r}")
    return count


def _require_scores(changed: Any, setting: str) -> None:
    """A metric without a network gives finite scores with every number that a field accepts."""
    segments = [Segment("a cat sat on the mat", references=("a cat is on a mat",))]
    try:
        with np.errstate(over="raise"):
            scores = changed.score(segments)
    except TertiumError:  # such as a missing language pack
        return
    require(bool(np.isfinite(scores.segments).all()), f"{setting} gives {scores.segments}")


def _require_round_trip(load: Any, changed: Any, name: str, value: Any) -> None:
    """The spec rebuilds it; missing folders raise an error only when they are read."""
    try:
        spec = changed.spec
        again = load(spec)
    except TertiumError:
        require(name in ("model", "folder"), f"{name}={value!r} is accepted, but its spec is not")
        return
    pairs = [(getattr(again, n), getattr(changed, n)) for n in field_types(changed)]
    require(all(values_equal(a, b) for a, b in pairs), f"{name}={value!r} comes back as {again!r}")
    require(again.spec == spec, f"{spec!r} comes back as {again.spec!r}")


def values_equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal; NaN equals NaN, and 2 equals 2.0."""
    alike = type(a) is type(b) or {type(a), type(b)} == {int, float}
    return alike and (a == b or (a != a and b != b))


def setting_variants(subject: Subject) -> list[Subject]:
    """Return variants of the subject with every other boolean and literal field value."""
    loaded, variants = subject.loaded, []
    for name, kind in field_types(loaded).items():
        chosen = typing.get_origin(kind) is Literal or bool in (kind, *typing.get_args(kind))
        for value in example_values(kind) if chosen else ():
            try:
                changed = dataclasses.replace(loaded, **{name: value})
                if changed != loaded:
                    variants.append(Subject(changed.spec, subject.kind))
            except TertiumError:
                continue
    return variants
