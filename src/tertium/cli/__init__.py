"""The command line: one module per command parses, calls one public function and prints.

Results go to stdout, progress and warnings to stderr. A `TertiumError` prints one line and exits
with its code: 1 if inputs differ in length, 3 if the budget of a judge is reached or too few of its
answers are valid, 2 for any other user error. Other exceptions are bugs and keep their traceback.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from tertium.cli.parser import CommandParser, OneLineErrorParser
from tertium.errors import JudgeServerError, TertiumError, UnknownNameError
from tertium.extras import explain_missing
from tertium.metrics.judge.usage import track_usage
from tertium.version import __version__

COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Evaluate": ("score", "compare", "rank", "check", "explain", "report", "corpus"),
    "Decide": ("gate", "worst", "route"),
    "Metrics": ("list", "train", "models"),
    "Meta-evaluation": ("meta", "challenge", "analyse", "data", "reproduce"),
    "Human evaluation": ("plan", "annotate", "agree"),
    "Maintenance": ("cache", "cite"),
}
COMMANDS = tuple(command for group in COMMAND_GROUPS.values() for command in group)
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
MAX_MESSAGE = 2000  # characters
DESCRIPTION = "Evaluate machine translation: score, compare, train metrics and meta-evaluate them."
EPILOG = """\
examples:
  tertium score -t system.txt -r reference.txt -m bleu chrf
  tertium compare -t baseline.txt ours.txt -r reference.txt -m bleu chrf --paired-bs
  tertium list

`tertium COMMAND --help` shows the options of a command, with examples.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        code = _run_command(argv)
        sys.stdout.flush()
        return code
    except TertiumError as error:
        _print_error(str(error))
        return error.exit_code
    except BrokenPipeError:
        _discard_output()  # the reader, such as `head`, has exited
        return 0
    except PermissionError as error:
        place = error.filename or "a file"
        _print_error(f"{place}: no permission ({error.strerror})")
        return 2
    except OSError as error:
        if error.errno not in WRITE_ERRORS:
            raise
        _discard_output()
        print(f"tertium: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tertium: interrupted", file=sys.stderr)
        return 130


def _print_error(message: str) -> None:
    """Print an error as one line, without the middle of names of thousands of characters."""
    from tertium.reporting.tables.table import replace_control_characters

    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} ... {message[-MAX_MESSAGE // 2 :]}"
    line = replace_control_characters(message).replace("\n", "\N{SYMBOL FOR LINE FEED}")
    print(f"tertium: error: {line}", file=sys.stderr)


def _run_command(argv: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else [*argv]
    if arguments and arguments[0] not in COMMANDS and not arguments[0].startswith("-"):
        raise UnknownNameError("command", arguments[0], COMMANDS)
    args = make_parser(arguments[:1]).parse_args(arguments)
    logging.basicConfig(
        level=logging.ERROR if getattr(args, "quiet", False) else logging.WARNING,
        format="tertium: %(message)s",
        stream=sys.stderr,
    )
    with explain_missing(f"`tertium {args.command}`"), track_usage() as usage:
        try:
            code: int = args.run(args)
        except TertiumError as error:
            if usage.has_too_few_answers and not isinstance(error, JudgeServerError):
                _print_error(str(error))  # it may only follow from the missing answers
                usage.check_coverage()
            raise
        finally:
            if not usage.is_empty and not getattr(args, "quiet", False):
                print(f"tertium: judge: {usage.describe()}", file=sys.stderr)
    usage.check_coverage()
    return code


def _replace_closed_streams() -> None:
    """Open /dev/null for a closed stream (`>&-`): Python sets it to None, and print would fail."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _discard_output() -> None:
    """Redirect buffered output to /dev/null, or Python reports another error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser(first_arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Build the parser; if the arguments name a command, only that command is loaded."""
    requested = [command for command in COMMANDS if command in first_arguments]
    names = [] if "--version" in first_arguments else requested or COMMANDS
    modules = {name: importlib.import_module(f"tertium.cli.{name}") for name in names}
    parser = OneLineErrorParser(
        prog="tertium",
        usage="tertium COMMAND [OPTIONS]",
        description=f"{DESCRIPTION}\n\n{_describe_commands(modules)}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tertium {__version__}")
    subparsers = parser.add_subparsers(
        help=argparse.SUPPRESS,  # the description lists the commands by group
        metavar="COMMAND",
        required=True,
        dest="command",
        prog="tertium",
        parser_class=CommandParser,
    )
    for name, module in modules.items():
        command = subparsers.add_parser(
            name,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _describe_commands(modules: Mapping[str, ModuleType]) -> str:
    lines: list[str] = []
    for title, names in COMMAND_GROUPS.items():
        lines += [f"{title}:"]
        lines += [f"  {name:<11}{modules[name].HELP}" for name in names if name in modules]
    return "\n".join(lines)
