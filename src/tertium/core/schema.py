"""Validation of JSON settings against the types of a dataclass.

    @dataclass(frozen=True, kw_only=True)
    class Shape:
        hidden: Annotated[int, POSITIVE]
        cost: Literal["logistic", "kendall"] = "logistic"

    read_dataclass(Shape, {"hidden": "300"}, "models/mine/config.json")
    -> models/mine/config.json: hidden is the text '300', expected a whole number

A missing or unknown key, a wrong type or a value out of range raises a `ModelError` with the file,
the key, the value and what was expected. Dataclasses may contain other dataclasses, tuples,
mappings, literals and `None`, and add a `Rule` to any type. Errors raised by `__post_init__` are
reported with the file and key.
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

from tertium.core.errors import ModelError, TertiumError

T = TypeVar("T")
MAX_SHOWN_CHARACTERS = 40  # of a value in an error message
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Rule:
    """A condition on a value of the right type, and its description for error messages."""

    is_satisfied: Callable[[Any], bool]
    description: str


POSITIVE = Rule(lambda value: value > 0, "more than 0")
NON_NEGATIVE = Rule(lambda value: value >= 0, "0 or more")
Sha256 = Annotated[
    str, Rule(lambda v: len(v) == 64 and set(v) <= set("0123456789abcdef"), "a sha256")
]


@dataclass(frozen=True)
class Location:
    """A file and a key in it."""

    file: str
    key: str = ""

    def __truediv__(self, key: str) -> Location:
        return Location(self.file, f"{self.key}.{key}" if self.key else key)

    def __str__(self) -> str:
        return f"{self.file}: {self.key}" if self.key else self.file

    def reject(self, value: object, expected: str) -> NoReturn:
        raise ModelError(f"{self} is {describe_json(value)}, expected {expected}")


def load_json(file: Path) -> Any:
    """Load a JSON file; raise `FileNotFoundError` if it does not exist."""
    try:
        return json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=reject_duplicate_keys)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read: {error}") from None


def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; raise `ValueError` for a repeated key, which `json` would accept."""
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated[:MAX_SHOWN_CHARACTERS]!r} occurs twice in one object")
    return result


def read_json_object(file: Path) -> dict[str, Any]:
    """Load a JSON file whose top level is an object."""
    value = load_json(file)
    if not isinstance(value, dict):
        raise ModelError(f"{file} is {describe_json(value)}, expected an object of settings")
    return value


def read_dataclass(kind: type[T], value: object, file: str | Path, key: str = "") -> T:
    """Build a dataclass from a JSON object; `key` is its position in the file.

    >>> @dataclass
    ... class Shape:
    ...     hidden: int
    >>> read_dataclass(Shape, {"hidden": 3}, "config.json")
    Shape(hidden=3)
    >>> read_dataclass(Shape, {"hiden": 3}, "a.json")
    Traceback (most recent call last):
        ...
    tertium.core.errors.ModelError: a.json has an unknown key 'hiden': did you mean 'hidden'
    """
    result: T = check_value(kind, value, file, key)
    return result


def check_value(kind: Any, value: object, file: str | Path, key: str) -> Any:
    """Convert a JSON value to a declared type, or raise `ModelError`.

    >>> check_value(tuple[int, ...], [1, True], "config.json", "layers")
    Traceback (most recent call last):
        ...
    tertium.core.errors.ModelError: config.json: layers.1 is true, expected a whole number
    """
    return _convert(value, kind, Location(str(file), key))


def check_fields(
    kind: Any, value: object, file: str | Path, key: str = "", *, without: str = ""
) -> dict[str, Any]:
    """Check the fields of a dataclass without constructing it; `without` leaves out one field."""
    declared = {name: f for name, f in _constructor_fields(kind).items() if name != without}
    return _convert_fields(value, declared, Location(str(file), key))


def construct(
    make: Callable[..., T], fields: Mapping[str, Any], file: str | Path, key: str = ""
) -> T:
    """Call a constructor with checked fields; add the file and key to its errors."""
    try:
        return make(**fields)
    except TertiumError as error:
        raise ModelError(f"{Location(str(file), key)}: {error}") from None


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a dataclass of texts, numbers, choices, tuples and dataclasses.

    >>> json_schema(tuple[str, ...])
    {'type': 'array', 'items': {'type': 'string'}}
    """
    if dataclasses.is_dataclass(kind):
        properties = {name: json_schema(hint) for name, hint in typing.get_type_hints(kind).items()}
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }
    args = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return {"type": "array", "items": json_schema(args[0])}
    if typing.get_origin(kind) is Literal:
        return {"type": "string", "enum": [*args]}
    return {"type": "number" if kind is float else "string"}


def describe_json(value: object) -> str:
    """Describe a JSON value for an error message.

    >>> describe_json("300"), describe_json([1, 2]), describe_json(None), describe_json(2.5)
    ("the text '300'", 'a list of 2', 'null', 'the number 2.5')
    """
    if isinstance(value, Mapping):
        return f"an object of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        is_long = len(value) > MAX_SHOWN_CHARACTERS
        return f"the text {value[:MAX_SHOWN_CHARACTERS]!r}" + ("..." if is_long else "")
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) >= 10**MAX_SHOWN_CHARACTERS:
        return f"a whole number of {value.bit_length()} bits"
    return f"the number {value}"


def _convert(value: Any, kind: Any, location: Location) -> Any:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        converted = _convert(value, args[0], location)
        for rule in args[1:]:
            if isinstance(rule, Rule) and not rule.is_satisfied(converted):
                location.reject(converted, rule.description)
        return converted
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        fields = _convert_fields(value, _constructor_fields(kind), location)
        return construct(kind, fields, location.file, location.key)
    if origin in (Union, types.UnionType):
        [other] = [arg for arg in args if arg is not type(None)]
        return None if value is None else _convert(value, other, location)
    if origin is Literal:
        is_known = isinstance(value, str) and value in args
        return value if is_known else location.reject(value, f"one of {', '.join(map(str, args))}")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            location.reject(value, "a list")
        return tuple(_convert(item, args[0], location / str(n)) for n, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            location.reject(value, "an object")
        return {key: _convert(item, args[1], location / key) for key, item in value.items()}
    return _convert_scalar(value, kind, location)


def _convert_scalar(value: Any, kind: type, location: Location) -> Any:
    """Check a text, number or boolean; an int is accepted as a float, a boolean is not."""
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        return number if math.isfinite(number) else location.reject(value, "a finite number")
    if type(value) is not kind:
        location.reject(value, TYPE_NAMES[kind])
    return value


def _convert_fields(
    value: Any, declared: Mapping[str, tuple[Any, bool]], location: Location
) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        location.reject(value, "an object")
    for key in value:
        if key not in declared:
            similar = difflib.get_close_matches(key, declared, n=1, cutoff=0.5)
            hint = f"did you mean {similar[0]!r}" if similar else f"known: {', '.join(declared)}"
            name = key[:MAX_SHOWN_CHARACTERS]
            raise ModelError(f"{location} has an unknown key {name!r}: {hint}")
    missing = [key for key, (_, required) in declared.items() if required and key not in value]
    if missing:
        raise ModelError(f"{location} has no {missing[0]!r}: the file is incomplete")
    return {
        key: _convert(value[key], kind, location / key)
        for key, (kind, _) in declared.items()
        if key in value
    }


@lru_cache(maxsize=64)
def _constructor_fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        f.name: (
            hints[f.name],
            f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
        )
        for f in dataclasses.fields(kind)
        if f.init
    }
