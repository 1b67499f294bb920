"""Command lines from functions: options from types, defaults and numpy docstrings.

All commands have the same option groups, strict checks and one-line errors. The scripts that
complete commands in a shell are generated, as the reference of all options is.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from textwrap import fill, indent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from tertium.cli import COMMANDS, format_command, read_removed
from tertium.core.errors import UsageError
from tertium.core.options import Display, LateOptions, Option, Output
from tertium.core.result import Listing, Table, View

ADDED = {"output": Output, "display": Display}  # parameters that every command has
METAVARS = {int: "N", float: "X", str: "NAME"}
EMPTY = inspect.Parameter.empty  # the default of required parameters
Command = Callable[..., Any]
Sections = dict[str, str]  # of a docstring, by title


def make_parser(name: str, function: Command, types: Mapping[str, Any]) -> CommandParser:
    """Build the parser of a command whose parameters have these types."""
    sections = describe_command(function, types)
    parser = CommandParser(
        prog=f"tertium {name}",
        description=sections[""],
        epilog=_make_epilog(name, sections),
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


def _make_epilog(name: str, sections: Sections) -> str:
    """Return the end of the help: examples, notes, and commands that begin with this one."""
    blocks = []
    if "Examples" in sections:
        blocks.append("examples:\n" + indent(sections["Examples"], "  "))
    if "Notes" in sections:
        blocks.append(sections["Notes"])
    longer = [format_command(form) for form in COMMANDS if form.startswith(f"{name} ")]
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
        dest = f"{owner}.{own.name}"
        text = texts.get(own.name, "")
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


COMMAND_GROUP = "Options of this command"
GROUPS = ("Input", "Metrics", COMMAND_GROUP, "Statistics", "Training", "Output", "Runtime")
TEXT = "TEXT"  # the metavar of values that may be empty
TEXT_OPTION = "--text"  # with it, options of files take texts, which may be empty


class OneLineErrorParser(argparse.ArgumentParser):
    """Raises `UsageError` with one line instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Writes the value of an option once, after all its names, and wraps paragraphs."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = []
        for block in text.split("\n\n"):
            is_list = "\n  " in block or block.startswith("  ")
            blocks.append(block if is_list else fill(" ".join(block.split()), width))
        return "\n\n".join(blocks)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = action.metavar or ",".join(map(str, action.choices or ()))
        ellipsis = " ..." if action.nargs in ("+", "*") else ""
        return f"{', '.join(action.option_strings)} {value}{ellipsis}"


class StoreOnce(argparse._StoreAction):
    """Stores one value; a second, different value is an error (argparse would keep the last)."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        first = parser.stored_values.setdefault(self.dest, values)
        if option is not None and first is not values and first != values:  # NaN != NaN
            raise argparse.ArgumentError(
                self, f"given twice, {first!r} and {values!r}; give it once"
            )
        super().__call__(parser, namespace, values, option)


class CommandParser(OneLineErrorParser):
    """Parses the arguments of one command.

    Every command has the option groups `GROUPS`. Options may be written with underscores
    (`--batch_size`), may not be given twice, and may not be empty (an unset shell variable).
    `files` says how the files of each option are used ("read", "write", "folder").
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.stored_values: dict[str, Any] = {}
        self.files: dict[str, str] = {}
        self.groups = {title: self.add_argument_group(title) for title in GROUPS}
        for action in (None, "store"):
            self.register("action", action, StoreOnce)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = replace_underscores(args or ())
        self.has_texts = TEXT_OPTION in words
        for option in (word.partition("=")[0] for word in words):
            if option.startswith("-") and option not in self._option_string_actions:
                self._check_removed(option)  # before argparse reads it as an abbreviation
        arguments, unknown = super().parse_known_args(words, namespace)
        if unknown:
            plural = "s" * (len(unknown) > 1)
            hint = self._suggest(unknown[0])
            self.error(f"unrecognized argument{plural}: {' '.join(unknown)}{hint}")
        return arguments, unknown

    def _check_removed(self, option: str) -> None:
        """Report an option, or an option with a value, that earlier versions had."""
        replacements = read_removed("options")
        for name in (f"{self.prog.removeprefix('tertium ')} {option}", option):
            if name in replacements:
                self.error(f"{option} was removed: {replacements[name]}")

    def _suggest(self, word: str) -> str:
        """Suggest an option for an unrecognized argument."""
        if close := get_close_matches(word, self._option_string_actions, n=2):
            return f"; did you mean {' or '.join(close)}?"
        if word.startswith("-") or word.replace(".", "").isdecimal():  # an option or a number
            return ""
        return "; give it after an option, or before all options"

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        may_be_empty = action.metavar == TEXT or action.default == text or self.has_texts
        if not text and not may_be_empty:
            raise argparse.ArgumentError(action, "the value is empty (an unset variable?)")
        try:
            value = super()._get_value(action, text)
        except UsageError as error:
            raise argparse.ArgumentError(action, str(error)) from None
        if action.type is int and value < 0:
            raise argparse.ArgumentError(action, f"{text}: expected 0 or more")
        return value


def replace_underscores(arguments: Sequence[str]) -> list[str]:
    """Write long options with dashes, as in `--batch-size`; values stay as they are.

    >>> replace_underscores(["--to_json", "a_b.json", "--batch_size=8", "--", "--a_b"])
    ['--to-json', 'a_b.json', '--batch-size=8', '--', '--a_b']
    """
    words = [*arguments]
    end = words.index("--") if "--" in words else len(words)
    options = [re.sub("^--[^=]+", lambda name: name[0].replace("_", "-"), w) for w in words[:end]]
    return options + words[end:]


def complete_shell(shell: Literal["bash", "zsh", "fish"], /) -> View:
    """Print a script that completes commands, options and their values in a shell.

    Parameters
    ----------
    shell
        The shell: bash, zsh or fish.

    Examples
    --------
    tertium setup completion bash > ~/.local/share/bash-completion/completions/tertium
    tertium setup completion zsh > ~/.tertium.zsh; echo "source ~/.tertium.zsh" >> ~/.zshrc
    tertium setup completion fish > ~/.config/fish/completions/tertium.fish
    """
    file = "completion.fish" if shell == "fish" else "completion.bash"
    script = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return View(result=Listing(table=Table.from_values({"script": [script]})), bare=script)
