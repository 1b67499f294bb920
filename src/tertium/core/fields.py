"""Fields of dataclasses: declared once by types, read from texts, checked, and read from JSON.

A field is declared by its type, with a `Range` or another `Rule` in `Annotated`:

    beam: Annotated[int, Range(1)] = 4

**Specs** are a name and fields as text:

    spec   :=  name | name ":" field "=" value ("," field "=" value)*
    value  :=  word | '"' any text, with \\" and \\\\ escaped '"'
    list   :=  item ("+" item)*; an item that contains "+" is in brackets, with "]" doubled inside

`bertscore:encoder=minilm@4,idf=true` builds `BERTScore(encoder="minilm@4", idf=True)`, and
`pairwise:features=[chrf++]+bleu` a ranker with `features=("chrf++", "bleu")`. A formatted spec has
only the fields that differ from their defaults, in the order of the dataclass. Therefore
`parse(format(x)) == x`, and equal objects have equal specs. `registry` maps names to classes.

**JSON files** are read into dataclasses with `read_dataclass`. A missing or unknown key, a wrong
type or a value out of range raises a `ModelError` with the file, the key, the value and what was
expected. Dataclasses may contain other dataclasses, tuples, mappings, literals and `None`. Errors
raised by `__post_init__` are reported with the file and key.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union

from tertium.core.errors import ModelError, TertiumError, UnknownNameError, UsageError, short_repr

T = TypeVar("T")
MAX_SHOWN_CHARACTERS = 40  # of a value in an error message
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "1", "on"), True),
    **dict.fromkeys(("false", "no", "0", "off"), False),
}
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_NONE = re.compile(r"\\*none", re.IGNORECASE)  # none is None, \none is the text "none"
_UNQUOTED = re.compile(r'[^\s,"=]+')
_LIST_ITEM = re.compile(r"(?:\[((?:[^\]]|\]\])*)\]|([^+\[][^+]*))(\+|\Z)")
_FIELD = re.compile(r'\s*([A-Za-z_][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,|$)')


@dataclass(frozen=True)
class Rule:
    """A condition on a value of the right type, and its description for error messages."""

    is_satisfied: Callable[[Any], bool]
    description: str


@dataclass(frozen=True)
class Range:
    """The allowed numbers of a field, declared with its type: `beam: Annotated[int, Range(1)]`.

    `low` and `high` (None: no limit) are included; with `exclusive`, `low` is not. Infinity and NaN
    are never allowed.
    """

    low: float
    high: float | None = None
    exclusive: bool = False

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, int | float) or abs(value) > sys.float_info.max:
            return False  # infinity, and integers too large for a float
        if math.isnan(value) or value < self.low or (self.exclusive and value == self.low):
            return False
        return self.high is None or value <= self.high

    is_satisfied = __contains__

    @property
    def description(self) -> str:
        """The range in words."""
        if self.high is not None:
            return f"from {self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if self.exclusive else f"at least {self.low:g}"

    def __str__(self) -> str:
        return self.description


POSITIVE = Range(0, exclusive=True)
NON_NEGATIVE = Range(0)
Sha256 = Annotated[
    str, Rule(lambda v: len(v) == 64 and set(v) <= set("0123456789abcdef"), "a sha256")
]


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Split a spec into its name and the texts of its fields.

    >>> split_spec('bertscore:encoder=minilm@4,idf=true')
    ('bertscore', {'encoder': 'minilm@4', 'idf': 'true'})
    """
    name, _, field_text = spec.strip().partition(":")
    fields: dict[str, str] = {}
    position = 0
    while position < len(field_text):
        match = _FIELD.match(field_text, position)
        if match is None:
            raise UsageError(
                f"cannot read {field_text[position:]!r} in spec {spec!r}: "
                "expected field=value, separated by commas"
            )
        key, quoted, unquoted = match.groups()
        key = key.replace("-", "_")
        if key in fields:
            raise UsageError(f"field {key!r} is given twice in spec {spec!r}")
        fields[key] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else unquoted.strip()
        position = match.end()
    return name, fields


def build_dataclass(cls: type[Any], name: str, fields: Mapping[str, str]) -> Any:
    """Construct a dataclass from the texts of its fields."""
    return cls(**parse_fields(cls, name, fields))


def parse_fields(cls: type[Any], name: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Parse the texts of dataclass fields into values."""
    field_types = _field_types(cls)
    for key in fields:
        if key not in field_types:
            raise UnknownNameError(f"field of {name}", key, field_types)
    return {key: parse_value(text, field_types[key], key) for key, text in fields.items()}


def format_spec(name: str, value: Any) -> str:
    """Format the shortest spec that rebuilds a dataclass: only fields that are not default."""
    field_types = _field_types(type(value))
    parts = []
    for key, current in non_default_fields(value):
        kind = field_types[key]
        text = format_value(normalize_number(current, kind))
        if (
            isinstance(current, str)
            and type(None) in typing.get_args(kind)
            and _NONE.fullmatch(text)
        ):
            text = f"\\{text}"
        parts.append(f"{key}={_quote(text)}")
    return f"{name}:{','.join(parts)}" if parts else name


def normalize_number(value: Any, kind: Any) -> Any:
    """Convert a number to the type of its field, so that 2 and 2.0 have the same spec.

    >>> normalize_number(2.0, int | float), normalize_number(2, float)
    (2, 2.0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    kinds = typing.get_args(kind) or (kind,)
    if int in kinds:  # above 2^53 a float stands for several integers
        is_integral = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        return int(value) if is_integral else value
    return float(value) if float in kinds else value


def non_default_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each constructor field that differs from its default."""
    for field in dataclasses.fields(value):
        if not field.init:
            continue
        current = getattr(value, field.name)
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            default = dataclasses.MISSING
        are_numbers = {type(current), type(default)} == {int, float}  # not bool: True is not 1
        if current != default or (type(current) is not type(default) and not are_numbers):
            yield field.name, current


def parse_value(text: str, kind: Any, key: str) -> Any:
    """Parse a text by the type of its field.

    >>> parse_value("true", bool, "idf"), parse_value("4", int | None, "layer")
    (True, 4)
    """
    origin = typing.get_origin(kind)
    args = typing.get_args(kind)
    if origin in (Union, types.UnionType):
        if type(None) in args and text.lower() == "none":
            return None
        if type(None) in args and _NONE.fullmatch(text):
            text = text[1:]
        *first, last = [a for a in args if a is not type(None)]
        for other in first:
            with suppress(UsageError):
                return parse_value(text, other, key)
        return parse_value(text, last, key)
    if origin is Literal:
        if text not in args:
            raise UnknownNameError(f"value for {key}", text, [str(a) for a in args])
        return text
    if origin is tuple:
        return tuple(parse_value(item, args[0], key) for item in _split_list(text, key))
    if kind is bool:
        if text.lower() not in BOOLEANS:
            raise UsageError(f"{key}={text} is neither true nor false")
        return BOOLEANS[text.lower()]
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise UsageError(f"{key}={text} is not a number ({kind.__name__} expected)") from None
    if kind is str:
        return text
    raise UsageError(f"field {key} of type {kind} cannot be written in a spec")


def describe_fields(cls: Any) -> dict[str, str]:
    """Describe the allowed values of each field: its type or choices, and its range."""
    allowed = field_ranges(cls)
    return {
        name: format_type(kind) + (f", {allowed[name]}" if name in allowed else "")
        for name, kind in _field_types(cls).items()
    }


def format_type(kind: Any) -> str:
    """Describe the texts that `parse_value` accepts for a type.

    >>> format_type(Literal["best", "mean"]), format_type(float | None)
    ('best|mean', 'float|none')
    >>> format_type(tuple[str, ...])
    'str+str'
    """
    origin = typing.get_origin(kind)
    args = typing.get_args(kind)
    if origin is Literal:
        return "|".join(map(str, args))
    if origin is tuple:
        return "+".join([format_type(args[0])] * 2)
    if args:
        return "|".join(map(format_type, args))
    return "none" if kind is type(None) else str(getattr(kind, "__name__", kind))


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the choices of a Literal; other types have none.

    >>> choices(Literal["best", "mean"]), choices(tuple[int, ...])
    (('best', 'mean'), ())
    """
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def format_value(value: Any) -> str:
    """Format a value so that `parse_value` reads it back."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "+".join(_format_list_item(format_value(item)) for item in value)
    return str(value)


def _split_list(text: str, key: str) -> Iterator[str]:
    """Split a list into the texts of its items.

    >>> list(_split_list("minilm@4+[chrf++]", "features"))
    ['minilm@4', 'chrf++']
    """
    position = 0
    has_more = bool(text)
    while has_more:
        match = _LIST_ITEM.match(text, position)
        if match is None:
            raise UsageError(
                f"{key}={text} is not a list: expected items joined by +, with brackets around an "
                "item that contains +, such as [chrf++]+bleu"
            )
        bracketed, bare, plus = match.groups()
        yield bare if bracketed is None else bracketed.replace("]]", "]")
        position = match.end()
        has_more = bool(plus)


def _format_list_item(text: str) -> str:
    if text and "+" not in text and not text.startswith("["):
        return text
    return "[" + text.replace("]", "]]") + "]"


def _quote(text: str) -> str:
    if _UNQUOTED.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def check_ranges(cls: type[Any], fields: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a number outside the range of its field."""
    declared = field_ranges(cls)
    for name, value in fields.items():
        allowed = declared.get(name)
        if allowed is not None and isinstance(value, int | float) and value not in allowed:
            raise UsageError(f"{name} must be {allowed}, not {value!r}")


def check_types(cls: Any, fields: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a value that does not have the declared type of its field.

    Paths are accepted as texts. Types that a spec cannot express are not checked.
    """
    hints = type_hints(cls, with_ranges=False)
    for name, value in fields.items():
        kind = hints.get(name)
        is_union = typing.get_origin(kind) in (Union, types.UnionType)
        kinds = typing.get_args(kind) if is_union else (kind,)
        checkable = [
            k for k in kinds if k in TYPE_NAMES or typing.get_origin(k) in (Literal, tuple)
        ]
        if (value is None and type(None) in kinds) or len(checkable) < len({*kinds} - {type(None)}):
            continue
        if not any(_has_type(value, k) for k in checkable):
            expected = " or ".join(map(_describe_type, checkable))
            raise UsageError(f"{name}={short_repr(value)}: expected {expected}")


def _has_type(value: Any, kind: Any) -> bool:
    origin = typing.get_origin(kind)
    args = typing.get_args(kind)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin is tuple:
        return isinstance(value, tuple | list) and all(_has_type(item, args[0]) for item in value)
    if kind is bool:
        return isinstance(value, bool)
    if kind is str:
        return isinstance(value, str | os.PathLike)
    return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)


def _describe_type(kind: Any) -> str:
    args = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return f"a list, each item {_describe_type(args[0])}"
    if kind is bool:
        return "True or False"
    return " or ".join(map(repr, args)) if args else TYPE_NAMES[kind]


def check_unique_names(option: str, names: Sequence[str]) -> None:
    """Raise `UsageError` if an option lists a name twice."""
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"{option} {repeated} is given twice: name it once")


def field_ranges(cls: Any) -> dict[str, Range]:
    """Return the range of each field that declares one."""
    return {
        name: mark
        for name, kind in type_hints(cls).items()
        for mark in getattr(kind, "__metadata__", ())
        if isinstance(mark, Range)
    }


def _field_types(cls: Any) -> dict[str, Any]:
    hints = type_hints(cls, with_ranges=False)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


@lru_cache(maxsize=256)
def type_hints(cls: Any, *, with_ranges: bool = True) -> dict[str, Any]:
    """Evaluate the annotations of a class; cached, since this is slower than making a metric."""
    return typing.get_type_hints(cls, include_extras=with_ranges)


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
        hints = typing.get_type_hints(kind)
        properties = {name: json_schema(hint) for name, hint in hints.items()}
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
    return f"the number {short_repr(value)}"


def _convert(value: Any, kind: Any, location: Location) -> Any:
    origin = typing.get_origin(kind)
    args = typing.get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        converted = _convert(value, args[0], location)
        for rule in args[1:]:
            if isinstance(rule, Rule | Range) and not rule.is_satisfied(converted):
                location.reject(converted, rule.description)
        return converted
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        fields = _convert_fields(value, _constructor_fields(kind), location)
        return construct(kind, fields, location.file, location.key)
    if origin in (Union, types.UnionType):
        [other] = [arg for arg in args if arg is not type(None)]
        return None if value is None else _convert(value, other, location)
    if origin is Literal:
        is_known = _has_type(value, kind)
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


def _constructor_fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the declared type of each constructor field, and whether it has no default."""
    hints = type_hints(kind)
    return {
        f.name: (
            hints[f.name],
            f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
        )
        for f in dataclasses.fields(kind)
        if f.init
    }
