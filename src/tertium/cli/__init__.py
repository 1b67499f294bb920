"""The command line: one module per command; each parses, calls one public function and prints.

stdout is data, stderr is progress and logging. A `TertiumError` prints one line and exits with its
code (1 for inputs of different length, 2 for everything else a user can mend); anything else is a
bug and keeps its traceback.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from tertium.errors import TertiumError, UnknownNameError, UsageError
from tertium.extras import explain_missing
from tertium.version import __version__

COMMANDS = (
    "score compare rank corpus explain report meta challenge list data reproduce train analyse "
    "models cache cite"
).split()

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
DESCRIPTION = "Judge machine translation: score, compare, learn, and measure agreement with people."
EPILOG = """\
examples:
  tertium score -t system.txt -r reference.txt -m bleu chrf
  tertium compare -t baseline.txt ours.txt -r reference.txt -m bleu chrf --paired-bs
  tertium list

`tertium COMMAND --help` explains each command, with examples of its own.
"""


TEXT = "TEXT"  # the name of values in help that may be empty
Late = Callable[[argparse.ArgumentParser, Sequence[str]], None]


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with a call as everything else is said, without a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `{self.prog} --help` shows what there is")


class StoreOnce(argparse._StoreAction):
    """Takes one value; another one for the same is refused, where argparse takes the last."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        first = parser.given.setdefault(self.dest, values)
        if option is not None and first is not values and first != values:  # NaN is not itself
            raise argparse.ArgumentError(self, f"given twice, {first!r} and {values!r}; keep one")
        super().__call__(parser, namespace, values, option)


class LateParser(OneLineParser):
    """Learns its options when it is used, so that other commands need not load them.

    `late` is called once, with the arguments it is given, before it parses or explains itself.
    An option is given once, and no value is empty, as that of a shell's unset variable is.
    """

    late: Late | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.given: dict[str, Any] = {}  # the value of each option so far
        for action in (None, "store"):
            self.register("action", action, StoreOnce)

    def complete(self, arguments: Sequence[str] = ()) -> None:
        late, self.late = self.late, None
        if late is not None:
            late(self, arguments)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.complete(args or ())
        self.given = {}
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            close = get_close_matches(rest[0], self._option_string_actions, n=2)
            hint = f", did you mean {' or '.join(close)}?" if close else ""
            if not hint and not rest[0].startswith("-"):
                hint = self._hint_of_word()
            self.error(f"nothing is known of {' '.join(rest)}{hint}")
        return known, rest

    def _hint_of_word(self) -> str:
        """Where a word could go that nothing took."""
        for action in self._actions:
            if not action.option_strings and action.nargs in ("*", "+"):
                return f": words for {action.metavar} stand together, before any option"
        takers = [
            action.option_strings[-1]
            for action in self._actions
            if action.option_strings and action.metavar in ("FILE", "METRIC")
        ]
        return f": name the option that it is for ({', '.join(takers)})" if takers else ""

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        if not text and action.metavar != TEXT and action.default != text:
            raise argparse.ArgumentError(action, "the value is empty (a variable that is not set?)")
        return super()._get_value(action, text)

    def format_help(self) -> str:
        self.complete()
        return super().format_help()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # tables have arrows, texts any script
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except TertiumError as error:
        from tertium.reporting.tables.table import show_controls

        print(show_controls(f"tertium: error: {error}"), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        _close_output()  # the reader (`head`, say) has gone
        return 0
    except OSError as error:
        if error.errno not in FULL:
            raise
        _close_output()
        print(f"tertium: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tertium: interrupted", file=sys.stderr)
        return 130


def _run(argv: Sequence[str] | None) -> int:
    given = sys.argv[1:] if argv is None else [*argv]  # `list` is a command here
    if given and given[0] not in COMMANDS and not given[0].startswith("-"):
        raise UnknownNameError("command", given[0], COMMANDS)
    args = make_parser(given[:1]).parse_args(given)
    logging.basicConfig(
        level=logging.ERROR if getattr(args, "quiet", False) else logging.WARNING,
        format="tertium: %(message)s",
        stream=sys.stderr,
    )
    with explain_missing(f"`tertium {args.command}`"):
        code: int = args.run(args)
    return code


def _open_closed_streams() -> None:
    """Let what is printed to a stream that was closed (`>&-`) go nowhere.

    Python has None for it, and `print` would send an error to stdout in its place.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _close_output() -> None:
    """Let what is still to be printed go nowhere, or Python would complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser(asked: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The whole command line; where one command is asked for, that alone: others stay unread."""
    parser = OneLineParser(
        prog="tertium",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tertium {__version__}")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, dest="command", parser_class=LateParser
    )
    commands = [] if "--version" in asked else [c for c in COMMANDS if c in asked] or COMMANDS
    for name in commands:
        module = importlib.import_module(f"tertium.cli.{name}")
        command = subparsers.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
