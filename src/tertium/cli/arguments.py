"""Command lines from functions: options from types, defaults and numpy docstrings."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tertium.cli.argument_parser import COMMAND_GROUP, CommandParser
from tertium.core.options import Display, LateOptions, Option, Output

ADDED = {"output": Output, "display": Display}  # parameters that every command has
METAVARS = {int: "N", float: "X", str: "NAME"}
EMPTY = inspect.Parameter.empty  # the default of required parameters
Command = Callable[..., Any]
Sections = dict[str, str]  # of a docstring, by title


@dataclass(frozen=True)
class Argument:
    """An option or a positional argument of a command.

    `owner` is the parameter, `name` the field of its dataclass or the parameter itself. `names` are
    the option strings; a positional argument has none. `file` says how files are used.
    """

    owner: str
    name: str
    names: Sequence[str]
    group: str
    file: str
    is_list: bool
    settings: Mapping[str, Any]

    @property
    def dest(self) -> str:
        """The key of the value in the parsed arguments."""
        return f"{self.owner}.{self.name}"

    @property
    def usage(self) -> str:
        """How a positional argument is written in the usage line."""
        name = self.settings["metavar"] + " ..." * self.is_list
        return f"[{name}]" if "default" in self.settings else name

    def add_to(self, parser: CommandParser) -> None:
        """Add the argument to a parser."""
        group = parser.groups[self.group]
        if self.names:
            group.add_argument(*self.names, dest=self.dest, **self.settings)
        else:
            group.add_argument(self.dest, **self.settings)


def list_arguments(function: Command, types: Mapping[str, Any]) -> list[Argument]:
    """Return the arguments of a command whose parameters have these types."""
    texts = read_entries(function)
    parameters = inspect.signature(function).parameters
    arguments: list[Argument] = []
    for name, hint in types.items():
        if dataclasses.is_dataclass(hint):
            arguments += _list_fields(name, hint)  # type: ignore[arg-type]
            continue
        parameter = parameters[name]
        is_positional = parameter.kind is parameter.POSITIONAL_ONLY
        arguments.append(
            _make_argument(
                name,
                name,
                hint,
                parameter.default,
                texts.get(name, ""),
                group=COMMAND_GROUP,
                is_positional=is_positional,
            )
        )
    return arguments


def parameter_types(function: Command, words: Sequence[str] = ()) -> dict[str, Any]:
    """Return the types of the parameters; without parameters `output` and `display`, adds them.

    Late options are chosen by the words of the command line.
    """
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    for name, hint in hints.items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, LateOptions):
                hints[name] = extra.choose(words)
    return {**hints, **{name: kind for name, kind in ADDED.items() if name not in hints}}


def _list_fields(owner: str, kind: type[Any]) -> Iterator[Argument]:
    hints = get_type_hints(kind, include_extras=True)
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        texts |= read_entries(base)
    for own_field in dataclasses.fields(kind):
        default = EMPTY if own_field.default is dataclasses.MISSING else own_field.default
        name = own_field.name
        text = texts.get(name, "")
        yield _make_argument(owner, name, hints[name], default, text, group=kind.group)


def _make_argument(
    owner: str,
    name: str,
    hint: Any,
    default: Any,
    text: str,
    *,
    group: str,
    is_positional: bool = False,
) -> Argument:
    kind, values = _unwrap(hint)
    is_list = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    if is_list:
        kind, inner_values = _unwrap(get_args(kind)[0])
        values = inner_values | values
    option = f"--{'no-' * (default is True)}{name.replace('_', '-')}"
    names = values.pop("names", [option])
    group, file = values.pop("group", group), values.pop("file", "")
    settings: dict[str, Any] = {}
    if kind is bool:
        settings["action"] = "store_false" if default is True else "store_true"
    elif get_origin(kind) is Literal:
        settings["choices"] = get_args(kind)
    else:
        settings |= {"metavar": METAVARS.get(kind, "VALUE"), "type": kind}
    if default is not EMPTY and kind is not bool:
        settings["default"] = [*default] if is_list and default is not None else default
    if is_positional:
        names, group = (), "Input"
        many, one = ("+", None) if default is EMPTY else ("*", "?")
        settings |= {"metavar": name.upper(), "nargs": many if is_list else one}
    else:
        settings["required"] = default is EMPTY
        settings |= {"nargs": "+", "action": "extend"} if is_list else {}
    settings["help"] = _describe(text, settings.get("default"))
    return Argument(owner, name, names, group, file, is_list, settings | values)


def _describe(text: str, default: Any) -> str:
    """Return the help of an option, with its default."""
    if default not in (None, "", []) and "(default" not in text:
        value = " ".join(default) if isinstance(default, list) else default
        text += f" (default: {value})"
    return text.replace("%", "%%")


def _unwrap(hint: Any) -> tuple[Any, dict[str, Any]]:
    """Return a type without None and annotations, and the values of its `Option`s."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        kind, values = _unwrap(inner)
        for extra in extras:
            values |= extra.values if isinstance(extra, Option) else {}
        return kind, values
    if get_origin(hint) in (Union, UnionType):
        [inner] = [part for part in get_args(hint) if part is not NoneType]
        return _unwrap(inner)
    return hint, {}


def read_docstring(documented: Any) -> Sections:
    """Return the sections of a numpy docstring; the description has no title."""
    text = inspect.cleandoc(documented.__doc__ or "")
    head, *parts = re.split(r"^(\w+)\n-{3,}\n", text, flags=re.M)
    texts = [part.strip("\n") for part in parts[1::2]]
    return {"": head.strip(), **dict(zip(parts[::2], texts, strict=True))}


def read_entries(documented: Any) -> dict[str, str]:
    """Return the help of each parameter or attribute, from the docstring."""
    sections = read_docstring(documented)
    text = sections.get("Parameters", sections.get("Attributes", ""))
    entries = re.finditer(r"^(\w+)\n((?:    .*\n?|\n)+)", text, re.M)
    return {entry[1]: _to_help(entry[2]) for entry in entries}


def describe_command(function: Command, types: Mapping[str, Any]) -> Sections:
    """Read the docstring of a command; those of its dataclasses may have examples and notes."""
    sections = read_docstring(function)
    for kind in filter(dataclasses.is_dataclass, types.values()):
        more = read_docstring(kind)
        notes = [part["Notes"] for part in (more, sections) if "Notes" in part]
        sections |= {"Notes": "\n\n".join(notes)}
        sections |= {"Examples": more["Examples"]} if "Examples" in more else {}
    return sections


def _to_help(text: str) -> str:
    """Write a sentence as the help of an option: lower case, without a period."""
    line = " ".join(text.split()).removesuffix(".")
    return line[0].lower() + line[1:] if line[1:2].islower() or line[1:2] == " " else line


def make_epilog(sections: Sections) -> str:
    """Return the end of the help: examples and notes."""
    blocks = []
    if "Examples" in sections:
        blocks.append("examples:\n" + indent(sections["Examples"], "  "))
    return "\n\n".join([*blocks, *filter(None, [sections.get("Notes")])])


def build_values(
    types: Mapping[str, Any], arguments: Iterable[Argument], parsed: argparse.Namespace
) -> dict[str, Any]:
    """Return the values of parameters of these types, with dataclasses of options."""
    fields: dict[str, dict[str, Any]] = {}
    for argument in arguments:
        value = getattr(parsed, argument.dest)
        if argument.is_list and value is not None:
            value = tuple(value)
        fields.setdefault(argument.owner, {})[argument.name] = value
    return {
        owner: types[owner](**values) if dataclasses.is_dataclass(types[owner]) else values[owner]
        for owner, values in fields.items()
    }
