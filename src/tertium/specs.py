"""A spec is a name and the fields of a dataclass as a text, read and checked by their types.

    spec   :=  name | name ":" field "=" value ("," field "=" value)*
    value  :=  word | '"' any text, with \\" and \\\\ escaped '"'
    list   :=  part ("+" part)*, a part with a "+" of its own in brackets, "]" doubled inside them

`bertscore:encoder=minilm@4,idf=true` builds `BERTScore(encoder="minilm@4", idf=True)`, and
`pairwise:features=[chrf++]+bleu` a ranker with `features=("chrf++", "bleu")`. Specs print only
the fields that differ from their defaults, in the order of the dataclass, so that
`parse(print(x)) == x` and equal objects print the same spec. What a field may be is what its class
declares: a type, and a `Range` beside it. Which class a name stands for `registry` knows.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, Union

from tertium.errors import UnknownNameError, UsageError, one_line

_NONE = re.compile(r"\\*none", re.IGNORECASE)  # bare it is None, after a backslash a text
_PLAIN = re.compile(r'[^\s,"=]+')
_PART = re.compile(r"(?:\[((?:[^\]]|\]\])*)\]|([^+\[][^+]*))(\+|\Z)")
_ITEM = re.compile(r'\s*([A-Za-z_][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,|$)')


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Take a spec apart into its name and the texts of its fields.

    >>> split_spec('bertscore:encoder=minilm@4,idf=true')
    ('bertscore', {'encoder': 'minilm@4', 'idf': 'true'})
    """
    name, _, rest = spec.strip().partition(":")
    fields: dict[str, str] = {}
    position = 0
    while position < len(rest):
        item = _ITEM.match(rest, position)
        if item is None:
            raise UsageError(
                f"cannot read {rest[position:]!r} in spec {spec!r}: "
                "expected field=value, separated by commas"
            )
        key, quoted, plain = item.groups()
        key = key.replace("-", "_")
        if key in fields:
            raise UsageError(f"field {key!r} is given twice in spec {spec!r}")
        text = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain.strip()
        fields[key] = text
        position = item.end()
    return name, fields


def build(cls: type[Any], name: str, fields: Mapping[str, str]) -> Any:
    """Construct a frozen dataclass from the texts of its fields."""
    return cls(**read_fields(cls, name, fields))


def read_fields(cls: type[Any], name: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """The values that the texts of a dataclass's fields stand for."""
    types_of = _field_types(cls)
    for key in fields:
        if key not in types_of:
            raise UnknownNameError(f"field of {name}", key, types_of)
    return {key: read_value(text, types_of[key], key) for key, text in fields.items()}


def print_spec(name: str, value: Any) -> str:
    """The shortest spec that rebuilds a dataclass: its name and the fields that are not default."""
    types_of = _field_types(type(value))
    parts = []
    for key, current in non_default_fields(value):
        kind = types_of[key]
        parts.append(f"{key}={_quote(_escape(current, kind) + print_value(plain(current, kind)))}")
    return f"{name}:{','.join(parts)}" if parts else name


def plain(value: Any, kind: Any) -> Any:
    """A number as its field holds it: 2 and 2.0 are one setting, and print as one.

    >>> plain(2.0, int | float), plain(0.5, int | float), plain(2, float)
    (2, 0.5, 2.0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    kinds = typing.get_args(kind) or (kind,)
    if int in kinds:  # beyond 2^53 a float stands for many whole numbers
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        return int(value) if whole else value
    return float(value) if float in kinds else value


def _escape(value: Any, kind: Any) -> str:
    """The backslash before a text "none" in a field that may be None."""
    optional = type(None) in typing.get_args(kind)
    return "\\" if optional and isinstance(value, str) and _NONE.fullmatch(value) else ""


def non_default_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """The (name, value) of each constructor field that differs from its default."""
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
        numbers = {type(current), type(default)} == {int, float}  # not bool: True is no 1
        if current != default or (type(current) is not type(default) and not numbers):
            yield field.name, current


def read_value(text: str, kind: Any, key: str) -> Any:
    """The value a text stands for, given the type of its field.

    >>> read_value("true", bool, "idf"), read_value("4", int | None, "layer")
    (True, 4)
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        if type(None) in args and text.lower() == "none":
            return None
        if type(None) in args and _NONE.fullmatch(text):
            text = text[1:]
        return _read_union(text, [a for a in args if a is not type(None)], key)
    if origin is Literal:
        if text not in args:
            raise UnknownNameError(f"value for {key}", text, [str(a) for a in args])
        return text
    if origin is tuple:
        return tuple(read_value(part, args[0], key) for part in _parts(text, key))
    if kind is bool:
        return _read_bool(text, key)
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise UsageError(f"{key}={text} is not a number ({kind.__name__} expected)") from None
    if kind is str:
        return text
    raise UsageError(f"field {key} of type {kind} cannot be written in a spec")


def describe_fields(cls: Any) -> dict[str, str]:
    """What a spec may say of each field: its type or values, and its range."""
    allowed = ranges(cls)
    return {
        name: print_type(kind) + (f", {allowed[name]}" if name in allowed else "")
        for name, kind in _field_types(cls).items()
    }


def print_type(kind: Any) -> str:
    """The texts that `read_value` takes for a type.

    >>> print_type(Literal["best", "mean"]), print_type(float | None), print_type(tuple[str, ...])
    ('best|mean', 'float|none', 'str+str')
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return "|".join(map(str, args))
    if origin is tuple:
        return "+".join([print_type(args[0])] * 2)
    if args:
        return "|".join(map(print_type, args))
    return "none" if kind is type(None) else str(getattr(kind, "__name__", kind))


def print_value(value: Any) -> str:
    """The text that `read_value` reads back."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "+".join(_part(print_value(part)) for part in value)
    return str(value)


def _parts(text: str, key: str) -> Iterator[str]:
    """The texts of a list's parts.

    >>> list(_parts("minilm@4+[chrf++]", "features"))
    ['minilm@4', 'chrf++']
    """
    position, more = 0, bool(text)
    while more:
        found = _PART.match(text, position)
        if found is None:
            raise UsageError(
                f"{key}={text} is no list: expected parts joined by +, one that has a + of its own "
                "in brackets, such as [chrf++]+bleu"
            )
        bracketed, plain, plus = found.groups()
        yield plain if bracketed is None else bracketed.replace("]]", "]")
        position, more = found.end(), bool(plus)


def _part(text: str) -> str:
    """A part of a list as `_parts` reads it."""
    if text and "+" not in text and not text.startswith("["):
        return text
    return "[" + text.replace("]", "]]") + "]"


def _read_union(text: str, kinds: list[Any], key: str) -> Any:
    problem: UsageError | None = None
    for kind in kinds:
        try:
            return read_value(text, kind, key)
        except UsageError as error:
            problem = error
    assert problem is not None
    raise problem


def _read_bool(text: str, key: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "yes", "1", "on"):
        return True
    if lowered in ("false", "no", "0", "off"):
        return False
    raise UsageError(f"{key}={text} is neither true nor false")


def _quote(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclasses.dataclass(frozen=True)
class Range:
    """The numbers a field may have, written beside its type: `beam: Annotated[int, Range(1)]`.

    `low` and `high` (None: any) belong to it, unless it is `above` low; infinity and NaN never do.
    """

    low: float
    high: float | None = None
    above: bool = False

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, int | float) or abs(value) > sys.float_info.max:
            return False  # infinity, and whole numbers that no float holds
        if math.isnan(value) or value < self.low or (self.above and value == self.low):
            return False
        return self.high is None or value <= self.high

    def __str__(self) -> str:
        if self.high is not None:
            return f"from {self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if self.above else f"at least {self.low:g}"


def check_ranges(cls: type[Any], fields: Mapping[str, Any]) -> None:
    """Refuse a number outside its field's range; what is no number `check_types` refuses."""
    declared = ranges(cls)
    for name, value in fields.items():
        allowed = declared.get(name)
        if allowed is not None and isinstance(value, int | float) and value not in allowed:
            raise UsageError(f"{name} must be {allowed}, not {value!r}")


_SAYS = {  # numbers of numpy would print as such in a spec
    bool: "True or False",
    int: "a whole number (int)",
    float: "a number (float)",
    str: "a text",
}


def check_types(cls: Any, fields: Mapping[str, Any]) -> None:
    """Refuse a value of another type than its field declares: the text "no" would count as true.

    Paths are texts. What is not declared by the types that a spec can write is left alone.
    """
    types_of = _type_hints(cls, ranges=False)
    for name, value in fields.items():
        kind = types_of.get(name)
        union = typing.get_origin(kind) in (Union, types.UnionType)
        kinds = typing.get_args(kind) if union else (kind,)
        plain = [one for one in kinds if one in _SAYS or typing.get_origin(one) in (Literal, tuple)]
        if (value is None and type(None) in kinds) or len(plain) < len({*kinds} - {type(None)}):
            continue
        if not any(_is_of(value, one) for one in plain):
            expected = " or ".join(map(_describe_kind, plain))
            raise UsageError(f"{name}={one_line(value)}: expected {expected}")


def _is_of(value: Any, kind: Any) -> bool:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin is tuple:
        return isinstance(value, tuple | list) and all(_is_of(one, args[0]) for one in value)
    if kind is bool:
        return isinstance(value, bool)
    if kind is str:
        return isinstance(value, str | os.PathLike)
    return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)


def _describe_kind(kind: Any) -> str:
    args = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return f"a list, each of it {_describe_kind(args[0])}"
    return " or ".join(map(repr, args)) if args else _SAYS[kind]


def ranges(cls: Any) -> dict[str, Range]:
    """The range of each field that declares one."""
    hints = _type_hints(cls)
    return {
        name: mark
        for name, kind in hints.items()
        for mark in getattr(kind, "__metadata__", ())
        if isinstance(mark, Range)
    }


def _field_types(cls: Any) -> dict[str, Any]:
    hints = _type_hints(cls, ranges=False)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


@lru_cache(maxsize=256)
def _type_hints(cls: Any, *, ranges: bool = True) -> dict[str, Any]:
    """What `typing` makes of annotations; to evaluate them takes longer than to make a metric."""
    return typing.get_type_hints(cls, include_extras=ranges)
