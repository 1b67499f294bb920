"""Command lines from functions: options from types, defaults and numpy docstrings."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tertium.cli.argument_parser import COMMAND_GROUP, CommandParser
from tertium.core.errors import UsageError
from tertium.core.options import Display, LateOptions, Option, Output

ADDED = {"output": Output, "display": Display}  # parameters that every command has
METAVARS = {int: "N", float: "X", str: "NAME"}
Command = Callable[..., Any]


@dataclass(frozen=True)
class Argument:
    """An option or a positional argument of a command.

    `owner` is the parameter, `name` the field of its dataclass or the parameter itself. `kind` is
    the type of one value.
    """

    owner: str
    name: str
    kind: Any
    default: Any
    help: str
    group: str
    is_list: bool = False
    is_positional: bool = False
    choices: tuple[Any, ...] | None = None
    option: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dest(self) -> str:
        """The key of the value in the parsed arguments."""
        return f"{self.owner}.{self.name}"

    @property
    def is_required(self) -> bool:
        """Whether the argument has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def usage(self) -> str:
        """How a positional argument is written in the usage line."""
        name = self.option["metavar"] or self.name.upper()
        name += " ..." * self.is_list
        return name if self.is_required else f"[{name}]"

    def names(self) -> list[str]:
        """Return the option strings."""
        prefix = "no-" if self.kind is bool and self.default is True else ""
        return [*self.option["names"]] or [f"--{prefix}{self.name.replace('_', '-')}"]

    def add_to(self, parser: CommandParser) -> None:
        """Add the argument to a parser."""
        settings: dict[str, Any] = {"help": self._help()}
        if self.kind is bool:
            settings["action"] = "store_false" if self.default is True else "store_true"
        else:
            settings |= self._value_settings()
        group = parser.groups[self.group]
        if self.is_positional:
            if self.is_list:
                settings["nargs"] = "+" if self.is_required else "*"
            elif not self.is_required:
                settings["nargs"] = "?"
            group.add_argument(self.dest, **{**settings, **self.settings})
            return
        if self.is_list:
            settings |= {"nargs": "+", "action": "extend"}
        if self.is_required:
            settings["required"] = True
        group.add_argument(*self.names(), dest=self.dest, **{**settings, **self.settings})

    def _value_settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        if not self.is_required:
            is_copied = self.is_list and self.default is not None
            settings["default"] = [*self.default] if is_copied else self.default
        parse = self.option["parse"]
        if self.choices is not None:
            name = {"metavar": self.name.upper()} if self.is_positional else {}
            return {**settings, "choices": self.choices, **name}
        metavar = self.option["metavar"] or METAVARS.get(self.kind, "VALUE")
        return {
            **settings,
            "metavar": metavar,
            "type": _report_errors(parse) if parse else self.kind,
        }

    def _help(self) -> str:
        text = self.help.replace("%", "%%")
        has_value = not self.is_required and self.kind is not bool
        if has_value and self.default not in (None, "", ()) and "(default" not in text:
            default = " ".join(self.default) if self.is_list else self.default
            text += f" (default: {default})"
        return text

    def files(self, values: Any) -> Iterator[tuple[str, str]]:
        """Yield the option and the name of each file to be read or written."""
        for value in [values] if isinstance(values, str) else values or []:
            yield self.names()[0], value


def _report_errors(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse_argument(text: str) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_argument


def list_arguments(function: Command, types: Mapping[str, Any]) -> list[Argument]:
    """Return the arguments of a command whose parameters have these types."""
    texts = read_docstring(function).entries
    parameters = inspect.signature(function).parameters
    arguments: list[Argument] = []
    for name, hint in types.items():
        if dataclasses.is_dataclass(hint):
            arguments += _list_fields(name, hint)  # type: ignore[arg-type]
        else:
            parameter = parameters[name]
            is_positional = parameter.kind is parameter.POSITIONAL_ONLY
            own = (name, name, hint, parameter.default, texts)
            arguments.append(_make_argument(*own, is_positional=is_positional))
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
        texts |= read_docstring(base).entries
    for own_field in dataclasses.fields(kind):
        default = own_field.default
        if default is dataclasses.MISSING:
            default = inspect.Parameter.empty
        name = own_field.name
        yield _make_argument(owner, name, hints[name], default, texts, group=kind.group)


def _make_argument(
    owner: str,
    name: str,
    hint: Any,
    default: Any,
    texts: Mapping[str, str],
    *,
    group: str = COMMAND_GROUP,
    is_positional: bool = False,
) -> Argument:
    kind, options = _unwrap(hint)
    is_list = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    if is_list:
        kind, more = _unwrap(get_args(kind)[0])
        options = [*more, *options]
    choices = get_args(kind) if get_origin(kind) is Literal else None
    values: dict[str, Any] = dict.fromkeys(("names", "metavar", "group", "file", "parse"))
    settings: dict[str, Any] = {}
    for option in options:
        values |= {key: value for key, value in option.values.items() if value}
        settings |= option.settings
    return Argument(
        owner=owner,
        name=name,
        kind=kind,
        default=default,
        help=texts.get(name, ""),
        group="Input" if is_positional else values["group"] or group,
        is_list=is_list,
        is_positional=is_positional,
        choices=choices,
        option={**values, "names": values["names"] or ()},
        settings=settings,
    )


def _unwrap(hint: Any) -> tuple[Any, list[Option]]:
    """Return a type without None and annotations, and the options of the annotations."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        kind, options = _unwrap(inner)
        return kind, [*options, *(extra for extra in extras if isinstance(extra, Option))]
    if get_origin(hint) in (Union, UnionType):
        [inner] = [part for part in get_args(hint) if part is not NoneType]
        return _unwrap(inner)
    return hint, []


@dataclass(frozen=True)
class Docstring:
    """A numpy docstring: a description, the entries of its parameters or attributes, examples."""

    description: str
    entries: Mapping[str, str]
    examples: str = ""
    notes: str = ""


def read_docstring(documented: Any) -> Docstring:
    """Read the docstring of a function or a class."""
    head, *parts = re.split(
        r"^(\w+)\n-{3,}\n", inspect.cleandoc(documented.__doc__ or ""), flags=re.M
    )
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    entries: dict[str, str] = {}
    for title in ("Parameters", "Attributes"):
        for match in re.finditer(r"^(\w+)\n((?:    .*\n?|\n)+)", sections.get(title, ""), re.M):
            entries[match[1]] = _to_help(match[2])
    notes, examples = (sections.get(title, "").strip("\n") for title in ("Notes", "Examples"))
    return Docstring(head.strip(), entries, examples, notes)


def describe_command(function: Command, types: Mapping[str, Any]) -> Docstring:
    """Read the docstring of a command; those of its dataclasses may have examples and notes."""
    docstring = read_docstring(function)
    for kind in filter(dataclasses.is_dataclass, types.values()):
        more = read_docstring(kind)
        examples = more.examples or docstring.examples
        notes = "\n\n".join(filter(None, [more.notes, docstring.notes]))
        docstring = replace(docstring, examples=examples, notes=notes)
    return docstring


def _to_help(text: str) -> str:
    """Write a sentence as the help of an option: lower case, without a period."""
    line = " ".join(text.split()).removesuffix(".")
    return line[0].lower() + line[1:] if line[1:2].islower() or line[1:2] == " " else line


def make_epilog(docstring: Docstring) -> str:
    """Return the end of the help: examples and notes."""
    blocks = []
    if docstring.examples:
        lines = (f"  {line}".rstrip() for line in inspect.cleandoc(docstring.examples).splitlines())
        blocks.append("examples:\n" + "\n".join(lines))
    if docstring.notes:
        blocks.append(docstring.notes)
    return "\n\n".join(blocks)


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
