"""Settings from a file, checked against their declaration: the types of a dataclass.

    @dataclass(frozen=True, kw_only=True)
    class Shape:
        hidden: Annotated[int, POSITIVE]
        cost: Literal["logistic", "kendall"] = "logistic"

    read(Shape, {"hidden": "300"}, "models/mine/config.json")
    -> models/mine/config.json: hidden is the text '300', expected a whole number

What is missing, unknown, of another type or out of range is one line that names the file, the key,
what was found and what was expected. A declaration may nest dataclasses, tuples, mappings,
literals and `None`, and narrow any type by a `Rule`; what a `__post_init__` refuses is refused here
with the place it came from.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union

from tertium.errors import ModelError, TertiumError

T = TypeVar("T")
SHOWN = 40  # characters of a value that an error repeats
NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Rule:
    """What a value of the right type must fulfil besides, and how to say it."""

    holds: Callable[[Any], bool]
    says: str


POSITIVE = Rule(lambda value: value > 0, "more than 0")
NOT_NEGATIVE = Rule(lambda value: value >= 0, "0 or more")
Sha256 = Annotated[
    str, Rule(lambda v: len(v) == 64 and set(v) <= set("0123456789abcdef"), "a sha256")
]


@dataclass(frozen=True)
class Place:
    """A file and a key in it."""

    file: str
    key: str = ""

    def __truediv__(self, key: str) -> Place:
        return Place(self.file, f"{self.key}.{key}" if self.key else key)

    def __str__(self) -> str:
        return f"{self.file}: {self.key}" if self.key else self.file

    def refuse(self, found: object, expected: str) -> NoReturn:
        raise ModelError(f"{self} is {describe(found)}, expected {expected}")


def load_json(file: Path) -> Any:
    """What a JSON file holds; its absence is left to the caller."""
    try:
        return json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=distinct_keys)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read: {error}") from None


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of a key that stands twice, Python would keep the last in silence."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated[:40]!r} stands twice in one object")
    return found


def read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file; its absence is left to the caller."""
    found = load_json(file)
    if not isinstance(found, dict):
        raise ModelError(f"{file} is {describe(found)}, not an object of settings")
    return found


def read(kind: type[T], value: object, file: str | Path, key: str = "") -> T:
    """The dataclass that an object of a file stands for; `key` is where in the file it lies.

    >>> @dataclass
    ... class Shape:
    ...     hidden: int
    >>> read(Shape, {"hidden": 3}, "config.json")
    Shape(hidden=3)
    >>> read(Shape, {"hiden": 3}, "config.json", "config")
    Traceback (most recent call last):
        ...
    tertium.errors.ModelError: config.json: config has an unknown key 'hiden': did you mean 'hidden'
    """
    found: T = read_value(kind, value, file, key)
    return found


def read_value(kind: Any, value: object, file: str | Path, key: str) -> Any:
    """The value of a key, checked against any declared type.

    >>> read_value(tuple[int, ...], [1, True], "config.json", "layers")
    Traceback (most recent call last):
        ...
    tertium.errors.ModelError: config.json: layers.1 is true, expected a whole number
    """
    return _conform(value, kind, Place(str(file), key))


def read_fields(
    kind: Any, value: object, file: str | Path, key: str = "", *, without: str = ""
) -> dict[str, Any]:
    """The checked fields of a dataclass, for a caller who constructs it with more of them."""
    declared = {name: f for name, f in _fields(kind).items() if name != without}
    return _entries(value, declared, Place(str(file), key))


def construct(
    make: Callable[..., T], fields: Mapping[str, Any], file: str | Path, key: str = ""
) -> T:
    """What a constructor makes of checked fields; what it refuses is said with its place."""
    try:
        return make(**fields)
    except TertiumError as error:
        raise ModelError(f"{Place(str(file), key)}: {error}") from None


def describe(value: object) -> str:
    """A value of a JSON file in words.

    >>> describe("300"), describe([1, 2]), describe(None), describe(2.5)
    ("the text '300'", 'a list of 2', 'null', 'the number 2.5')
    """
    if isinstance(value, Mapping):
        return f"an object of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        return f"the text {value[:SHOWN]!r}" + ("..." if len(value) > SHOWN else "")
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) >= 10**SHOWN:
        return f"a whole number of {value.bit_length()} bits"
    return f"the number {value}"


def _conform(value: Any, kind: Any, place: Place) -> Any:
    """A value of a file as the declared type, or an error."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        return _check_rules(_conform(value, args[0], place), args, place)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        fields = _entries(value, _fields(kind), place)
        return construct(kind, fields, place.file, place.key)
    if origin in (Union, types.UnionType):
        [other] = [arg for arg in args if arg is not type(None)]
        return None if value is None else _conform(value, other, place)
    if origin is Literal:
        known = isinstance(value, str) and value in args
        return value if known else place.refuse(value, f"one of {', '.join(map(str, args))}")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            place.refuse(value, "a list")
        return tuple(_conform(one, args[0], place / str(n)) for n, one in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            place.refuse(value, "an object")
        return {key: _conform(one, args[1], place / key) for key, one in value.items()}
    return _plain(value, kind, place)


def _plain(value: Any, kind: type, place: Place) -> Any:
    """A text, a number or a truth value; whole numbers are numbers, truth values are not."""
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        return number if math.isfinite(number) else place.refuse(value, "a finite number")
    if type(value) is not kind:
        place.refuse(value, NOUNS[kind])
    return value


def _check_rules(value: Any, args: tuple[Any, ...], place: Place) -> Any:
    for rule in args[1:]:
        if isinstance(rule, Rule) and not rule.holds(value):
            place.refuse(value, rule.says)
    return value


def _entries(value: Any, declared: Mapping[str, tuple[Any, bool]], place: Place) -> dict[str, Any]:
    """The values of an object under declared keys, checked one by one."""
    if not isinstance(value, Mapping):
        place.refuse(value, "an object")
    for key in value:
        if key not in declared:
            close = difflib.get_close_matches(key, declared, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}" if close else f"known are {', '.join(declared)}"
            raise ModelError(f"{place} has an unknown key {key[:SHOWN]!r}: {hint}")
    missing = [key for key, (_, required) in declared.items() if required and key not in value]
    if missing:
        raise ModelError(f"{place} has no {missing[0]!r}: it is incomplete")
    return {
        key: _conform(value[key], kind, place / key)
        for key, (kind, _) in declared.items()
        if key in value
    }


@lru_cache(maxsize=64)
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The type of each constructor field, and whether it must be given."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        f.name: (
            hints[f.name],
            f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
        )
        for f in dataclasses.fields(kind)
        if f.init
    }
