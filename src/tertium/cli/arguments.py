"""Command lines from functions: options from types, defaults and numpy docstrings."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import indent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tertium.cli import format_command
from tertium.cli.argument_parser import COMMAND_GROUP, CommandParser, HelpFormatter
from tertium.core.options import Display, LateOptions, Option, Output

ADDED = {"output": Output, "display": Display}  # parameters that every command has
METAVARS = {int: "N", float: "X", str: "NAME"}
EMPTY = inspect.Parameter.empty  # the default of required parameters
Command = Callable[..., Any]
Sections = dict[str, str]  # of a docstring, by title


def make_parser(
    name: str, function: Command, types: Mapping[str, Any], forms: Sequence[str] = ()
) -> CommandParser:
    """Build the parser of a command whose parameters have these types.

    `forms` are other commands with the same first word.
    """
    sections = describe_command(function, types)
    parser = CommandParser(
        prog=f"tertium {name}",
        description=sections[""],
        epilog=_make_epilog(name, sections, forms),
        formatter_class=HelpFormatter,
    )
    texts = read_entries(function)
    parameters = inspect.signature(function).parameters
    for owner, hint in types.items():
        if dataclasses.is_dataclass(hint):
            _add_fields(parser, owner, hint)  # type: ignore[arg-type]
            continue
        parameter = parameters[owner]
        group = "" if parameter.kind is parameter.POSITIONAL_ONLY else COMMAND_GROUP
        _add_argument(parser, owner, hint, parameter.default, texts.get(owner, ""), group)
    positional = map(_describe_positional, parser._get_positional_actions())
    parser.usage = " ".join([parser.prog, *positional, "[OPTIONS]"])
    return parser


def _make_epilog(name: str, sections: Sections, forms: Sequence[str]) -> str:
    """Return the end of the help: examples, notes, and commands that begin with this one."""
    blocks = []
    if "Examples" in sections:
        blocks.append("examples:\n" + indent(sections["Examples"], "  "))
    if "Notes" in sections:
        blocks.append(sections["Notes"])
    longer = [format_command(form) for form in forms if form.startswith(f"{name} ")]
    if longer:
        blocks.append("\n".join(["more commands:", *longer]))
    return "\n\n".join(blocks)


def _describe_positional(action: argparse.Action) -> str:
    """Return how a positional argument is written in the usage line."""
    ellipsis = " ..." if action.nargs in ("+", "*") else ""
    return f"{action.metavar}{ellipsis}" if action.required else f"[{action.metavar}{ellipsis}]"


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


def _add_fields(parser: CommandParser, owner: str, kind: type[Any]) -> None:
    """Add the options of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        texts |= read_entries(base)
    for own in dataclasses.fields(kind):
        default = EMPTY if own.default is dataclasses.MISSING else own.default
        dest, text = f"{owner}.{own.name}", texts.get(own.name, "")
        _add_argument(parser, dest, hints[own.name], default, text, kind.group)


def _add_argument(
    parser: CommandParser, dest: str, hint: Any, default: Any, text: str, group: str
) -> None:
    """Add an option to a group; without a group, a positional argument."""
    kind, values = _unwrap(hint)
    is_list = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    if is_list:
        kind, inner_values = _unwrap(get_args(kind)[0])
        values = inner_values | values
    name = dest.rpartition(".")[2]
    prefix = "--no-" if default is True else "--"
    names = values.pop("names", [prefix + name.replace("_", "-")])
    chosen_group = values.pop("group", group)
    parser.files[dest] = values.pop("file", "")
    settings: dict[str, Any] = {}
    if kind is bool:
        settings["action"] = "store_false" if default is True else "store_true"
    elif get_origin(kind) is Literal:
        settings["choices"] = get_args(kind)
    else:
        settings |= {"metavar": METAVARS.get(kind, "VALUE"), "type": kind}
    if default is not EMPTY and kind is not bool:
        settings["default"] = [*default] if is_list and default is not None else default
    settings["help"] = _describe(text, settings.get("default"))
    if group:
        settings["required"] = default is EMPTY
        settings["dest"] = dest
        if is_list:
            settings |= {"nargs": "+", "action": "extend"}
        parser.groups[chosen_group].add_argument(*names, **settings | values)
    else:
        many, one = ("+", None) if default is EMPTY else ("*", "?")
        settings |= {"metavar": name.upper(), "nargs": many if is_list else one}
        parser.groups["Input"].add_argument(dest, **settings | values)


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
        if notes:
            sections["Notes"] = "\n\n".join(notes)
        if "Examples" in more:
            sections["Examples"] = more["Examples"]
    return sections


def _to_help(text: str) -> str:
    """Write a sentence as the help of an option: lower case, without a period."""
    line = " ".join(text.split()).removesuffix(".")
    return line[0].lower() + line[1:] if line[1:2].islower() or line[1:2] == " " else line


def build_values(types: Mapping[str, Any], parsed: argparse.Namespace) -> dict[str, Any]:
    """Return the values of parameters of these types, with dataclasses of options."""
    values: dict[str, Any] = {}
    for dest, value in vars(parsed).items():
        owner, _, name = dest.partition(".")
        plain = tuple(value) if isinstance(value, list) else value
        if name:
            values.setdefault(owner, {})[name] = plain
        else:
            values[owner] = plain
    return {
        owner: types[owner](**value) if dataclasses.is_dataclass(types[owner]) else value
        for owner, value in values.items()
    }
