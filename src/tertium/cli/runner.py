"""Run a command: parse options, check files, call its function, then write and print the result.

On a terminal, progress bars are shown meanwhile.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import os
import shutil
import sys
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from tertium.cli.arguments import Command, CommandParser, build_values, make_parser, parameter_types
from tertium.core.atomic import check_writable
from tertium.core.errors import UsageError
from tertium.core.fields import type_hints
from tertium.core.options import Display, EarlyResult, split_kind
from tertium.core.result import Table, View
from tertium.core.runtime import Advance, runtime
from tertium.output.text import render_contents
from tertium.text.printable import replace_control_characters

FORMATS_WITH_NOTES = ("text", "md", "latex")  # in others, warnings are printed to stderr


def run_command(name: str, function: Command, words: Sequence[str]) -> int:
    """Run a command with the words of the command line, and return its exit code."""
    types = parameter_types(function, words)
    parser = make_parser(name, function, types)
    parsed = parser.parse_args(words)
    values = build_values(types, parsed)
    display: Display = values["display"]
    logging.basicConfig(
        level=logging.ERROR if display.quiet else logging.WARNING,
        format="tertium: %(message)s",
        stream=sys.stderr,
    )
    check_files(parser, parsed)
    signature = inspect.signature(function)
    paths: Sequence[str] = ()
    returned = type_hints(function)["return"]
    kinds = getattr(returned, "__metadata__", ())  # the result of a view
    if "output" not in signature.parameters:
        paths = values["output"].paths(*(kinds or [returned]))
    arguments = {name: values[name] for name in signature.parameters}
    call = inspect.BoundArguments(signature, OrderedDict(arguments))
    with ExitStack() as settings:
        for value in values.values():
            if hasattr(value, "applied"):
                settings.enter_context(value.applied())
        try:
            with progress_bars(display.quiet):
                result = function(*call.args, **call.kwargs)
        except EarlyResult as early:
            result = early.result
            paths = ()
        view = result if isinstance(result, View) else View(result=result)
        written = view.result if kinds else result
        for part, path in [*((written, path) for path in paths), *view.files]:
            part.write(path)
            if Path(path).suffix == ".html" and not display.quiet:
                size = Path(path).stat().st_size / 1e6
                print(f"tertium: wrote {path} ({size:.1f} MB)", file=sys.stderr)
        show(view, display)
        if view.then is not None:
            sys.stdout.flush()
            view.then()
    return view.exit_code


def show(view: View, display: Display) -> None:
    """Print a result, on a terminal in its width and with color."""
    has_notes = display.format in FORMATS_WITH_NOTES and not view.warns_aside
    if view.bare is not None:
        sys.stdout.write(view.bare)
        has_notes = not view.warns_aside
    elif display.format == "json":
        from tertium.data.record_files import to_json

        sys.stdout.write(to_json(view.records()))
    elif display.format == "csv":
        from tertium.data.tables import csv_lines

        sys.stdout.writelines(csv_lines(view.file_table(".csv").values()))
    elif display.format == "tsv":
        sys.stdout.write(render_contents([view.file_table(".tsv")], "tsv"))
    else:
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if is_terminal else None
        color = is_terminal and display.format == "text" and os.environ.get("TERM") != "dumb"
        hidden = view.warning_lines() if display.quiet else ()
        contents = [_adapt(part, display, hidden) for part in view.contents()]
        sys.stdout.write(render_contents(contents, display.format, width=width, color=color))
    if not has_notes and not display.quiet:
        for line in view.warning_lines():
            print(replace_control_characters(f"tertium: {line}"), file=sys.stderr)


def _adapt(part: Any, display: Display, hidden: Collection[str]) -> Any:
    """Return a table with the requested decimals, and without warnings if quiet."""
    if not isinstance(part, Table):
        return part
    table = part.with_decimals(display.width)
    if not display.quiet:
        return table
    notes = [note for note in table.notes if note not in hidden]
    return replace(table, cautions=(), notes=notes)


def check_files(parser: CommandParser, parsed: argparse.Namespace) -> None:
    """Check before the work that output files can be written and replace no other file."""
    inputs: list[str] = []
    outputs: list[tuple[str, str]] = []
    for action in parser._actions:
        role = parser.files.get(action.dest)
        value = getattr(parsed, action.dest) if role else ()
        for path in [value] if isinstance(value, str) else value or ():
            if role == "read":
                inputs += [path, path.partition("=")[2]]  # --by NAME=FILE
                continue
            option = action.option_strings[0]
            file = split_kind(path)[1]
            if path == "-":
                raise UsageError(f"{option} -: expected a file name; use /dev/stdout for stdout")
            if role != "folder" or not Path(file).is_dir():
                check_writable(file)
            outputs.append((option, file))
    for (option, path), (other_option, other_path) in combinations(outputs, 2):
        if _is_same_file(path, other_path):
            raise UsageError(f"{option} and {other_option} both write {path}: give two files")
    for option, path in outputs:
        if any(_is_same_file(path, name) for name in inputs if name):
            raise UsageError(f"{option} {path} is also an input file: give another name")


def _is_same_file(first: str, second: str) -> bool:
    """Whether two paths are the same regular file, existing or not; devices do not count."""
    try:
        return Path(first).samefile(second) and Path(first).is_file()
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def progress_bars(quiet: bool) -> AbstractContextManager[None]:
    """Show progress bars inside the block, unless quiet or stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    return _show_progress()


@contextmanager
def _show_progress() -> Iterator[None]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:

        @contextmanager
        def show_task(description: str, total: int | None) -> Iterator[Advance]:
            bar = progress.add_task(description, total=total)
            try:
                yield lambda steps: progress.advance(bar, steps)
            finally:
                progress.remove_task(bar)

        with runtime(progress=show_task):
            yield
