"""Run a command: parse options, check files, call its function, then write and print the result."""

from __future__ import annotations

import argparse
import inspect
import logging
import os
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from tertium.cli import format_command, load_command
from tertium.cli.argument_parser import CommandParser, HelpFormatter
from tertium.cli.arguments import (
    Argument,
    Command,
    Docstring,
    build_values,
    describe_command,
    list_arguments,
    make_epilog,
    parameter_types,
)
from tertium.cli.progress import progress_bars
from tertium.core.atomic import check_writable
from tertium.core.errors import UsageError
from tertium.core.options import Display, EarlyResult, split_kind
from tertium.core.result import Result, Table, View
from tertium.data.record_files import to_json
from tertium.data.tables import csv_lines
from tertium.output.render import render_contents
from tertium.text.control_characters import replace_control_characters

FORMATS_WITH_NOTES = ("text", "md", "latex")  # in others, warnings are printed to stderr


def make_parser(
    name: str, docstring: Docstring, arguments: Sequence[Argument], forms: Sequence[str] = ()
) -> CommandParser:
    """Build the parser of a command; `forms` are other commands with the same first word."""
    positional = [argument.usage for argument in arguments if argument.is_positional]
    epilog = make_epilog(docstring)
    longer = [form for form in forms if form.startswith(f"{name} ")]
    if longer:
        epilog += "\n\nmore commands:\n" + "\n".join(map(format_command, longer))
    parser = CommandParser(
        prog=f"tertium {name}",
        usage=" ".join([f"tertium {name}", *positional, "[OPTIONS]"]),
        description=docstring.description,
        epilog=epilog,
        formatter_class=HelpFormatter,
    )
    parser.describe_unknown = partial(describe_owner, forms=forms)
    for argument in sorted(arguments, key=lambda argument: not argument.is_positional):
        argument.add_to(parser)
    return parser


def describe_owner(word: str, forms: Sequence[str]) -> str:
    """Return a hint if a word is an option, or the second word, of one of these commands."""
    for form in forms:
        if word == form.split()[-1]:
            return f"; write `tertium {form}` first"
        function = load_command(form)
        arguments = list_arguments(function, parameter_types(function, ()))
        if any(word in argument.names() for argument in arguments):
            return f"; it is an option of `tertium {form}`"
    return ""


def run_command(
    name: str, function: Command, words: Sequence[str], forms: Sequence[str] = ()
) -> int:
    """Run a command with the words of the command line, and return its exit code."""
    types = parameter_types(function, words)
    arguments = list_arguments(function, types)
    parser = make_parser(name, describe_command(function, types), arguments, forms)
    parsed = parser.parse_args(words)
    values = build_values(types, arguments, parsed)
    display: Display = values["display"]
    logging.basicConfig(
        level=logging.ERROR if display.quiet else logging.WARNING,
        format="tertium: %(message)s",
        stream=sys.stderr,
    )
    check_files(arguments, parsed)
    paths: list[str] = []
    if "output" not in inspect.signature(function).parameters:
        paths = values["output"].paths(get_type_hints(function)["return"])
    with ExitStack() as settings:
        for value in values.values():
            if hasattr(value, "applied"):
                settings.enter_context(value.applied())
        try:
            with progress_bars(display.quiet):
                result = call(function, values)
        except EarlyResult as early:
            show(early.result, display)
            return 0
        files = [(result, path) for path in paths]
        if isinstance(result, View):
            files += result.files
        for part, path in files:
            part.write(path)
            if Path(path).suffix == ".html" and not display.quiet:
                size = Path(path).stat().st_size / 1e6
                print(f"tertium: wrote {path} ({size:.1f} MB)", file=sys.stderr)
        show(result, display)
        if isinstance(result, View) and result.then is not None:
            sys.stdout.flush()
            result.then()
    return result.exit_code


def call(function: Command, values: Mapping[str, Any]) -> Result:
    """Call a function with the values of its parameters."""
    positional, options = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(values[name])
        else:
            options[name] = values[name]
    result: Result = function(*positional, **options)
    return result


def show(result: Result, display: Display) -> None:
    """Print a result, on a terminal in its width and with color."""
    has_notes = display.format in FORMATS_WITH_NOTES
    if isinstance(result, View) and result.bare is not None:
        sys.stdout.write(result.bare)
        has_notes = not result.warns_aside
    elif display.format == "json":
        sys.stdout.write(to_json(result.records()))
    elif display.format == "csv":
        sys.stdout.writelines(csv_lines(result.file_table(".csv").values()))
    elif display.format == "tsv":
        sys.stdout.write(render_contents([result.file_table(".tsv")], "tsv"))
    else:
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if is_terminal else None
        color = is_terminal and display.format == "text" and os.environ.get("TERM") != "dumb"
        contents = [_adapt(part, display) for part in result.contents()]
        sys.stdout.write(render_contents(contents, display.format, width=width, color=color))
        has_notes = not (isinstance(result, View) and result.warns_aside)
    if not has_notes and not display.quiet:
        for line in result.warning_lines():
            print(replace_control_characters(f"tertium: {line}"), file=sys.stderr)


def _adapt(part: Any, display: Display) -> Any:
    """Return a table with the requested decimals, and without cautions if quiet."""
    if not isinstance(part, Table):
        return part
    table = part.with_decimals(display.width)
    return replace(table, cautions=()) if display.quiet else table


def check_files(arguments: Sequence[Argument], parsed: argparse.Namespace) -> None:
    """Check before the work that output files can be written and replace no other file."""
    inputs: list[str] = []
    outputs: list[tuple[str, str]] = []
    for argument in arguments:
        role = argument.option["file"]
        for option, path in argument.files(getattr(parsed, argument.dest)) if role else ():
            if role == "read":
                inputs += [path, path.partition("=")[2]]  # --by NAME=FILE
                continue
            if path == "-":
                raise UsageError(f"{option} -: expected a file name; use /dev/stdout for stdout")
            file = split_kind(path)[1]
            if role != "folder" or not Path(file).is_dir():
                check_writable(file)
            outputs.append((option, file))
    for n, (option, path) in enumerate(outputs):
        for other_option, other_path in outputs[n + 1 :]:
            if _is_same_file(path, other_path):
                raise UsageError(f"{option} and {other_option} both write {path}: give two files")
        if any(_is_same_file(path, name) for name in inputs if name):
            raise UsageError(f"{option} {path} is also an input file: give another name")


def _is_same_file(first: str, second: str) -> bool:
    """Whether two paths are the same regular file, existing or not; devices do not count."""
    with suppress(OSError):
        stats = [Path(name).stat() for name in (first, second)]
        return os.path.samestat(*stats) and stat.S_ISREG(stats[0].st_mode)
    return os.path.realpath(first) == os.path.realpath(second)
