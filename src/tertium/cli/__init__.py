"""The command line: one module per command parses, calls one public function and prints.

Results go to stdout, progress and warnings to stderr. A `TertiumError` prints one line and exits
with its code: 3 if the budget of a judge is reached or too few of its answers are valid, 2 for any
other user error. Other exceptions are bugs and keep their traceback.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tertium.cli.parser import CommandParser, OneLineErrorParser
from tertium.errors import JudgeServerError, TertiumError, UnknownNameError, UsageError
from tertium.extras import explain_missing
from tertium.version import __version__

FUNCTIONS: Mapping[str, str] = {
    "score": "tertium.evaluation.score_commands:score_files",
    "compare": "tertium.evaluation.score_commands:compare_files",
    "check": "tertium.evaluation.check_command:check_files",
    "gate": "tertium.decisions.gate_commands:gate_files",
    "gate calibrate": "tertium.decisions.gate_commands:calibrate_gate",
    "report": "tertium.output.page.report_command:report_files",
    "worst": "tertium.decisions.worst_command:worst_of_files",
    "route fit": "tertium.decisions.route_commands:fit_route_to_files",
    "route apply": "tertium.decisions.route_commands:apply_route_to_files",
    "rank": "tertium.evaluation.rank_commands:rank_files",
    "rank candidates": "tertium.evaluation.rank_commands:rank_candidates",
    "explain": "tertium.evaluation.explain_command:explain_texts",
    "corpus": "tertium.corpus.corpus_command:score_corpus_files",
    "train": "tertium.evaluation.train_command:train_on_files",
    "list": "tertium.metrics.list_commands:list_metrics",
    "list models": "tertium.metrics.setup_commands:list_models",
    "list data": "tertium.data.datasets_command:list_datasets",
    "list checks": "tertium.evaluation.check_command:list_checks",
    "list citations": "tertium.metrics.list_commands:list_citations",
    "setup": "tertium.metrics.setup_commands:show_setup",
    "setup install": "tertium.metrics.setup_commands:install_models",
    "setup cache": "tertium.encoders.cache_commands:show_cache",
    "setup cache clear": "tertium.encoders.cache_commands:clear_cache",
    "setup cache limit": "tertium.encoders.cache_commands:limit_cache",
    "setup completion": "tertium.cli.completion:complete_shell",
    "meta": "tertium.evaluation.meta_commands:evaluate_metrics",
    "meta protocol": "tertium.evaluation.meta_commands:rank_by_protocol",
    "meta decisions": "tertium.evaluation.meta_commands:evaluate_metric_decisions",
    "meta thresholds": "tertium.evaluation.meta_commands:fit_metric_thresholds",
    "meta spans": "tertium.evaluation.meta_commands:compare_metric_spans",
    "meta disagreement": "tertium.evaluation.meta_commands:find_metric_disagreement",
    "meta challenge": "tertium.evaluation.challenge_command:challenge_metrics",
    "plan": "tertium.evaluation.plan_commands:plan_evaluation",
    "plan convert": "tertium.evaluation.plan_commands:convert_campaign",
    "annotate": "tertium.annotation.annotate_command:annotate_campaign",
    "agree": "tertium.annotation.agree_command:agree_on_files",
}
COMMAND_GROUPS: Mapping[str, Mapping[str, str]] = {  # one line of help for each command
    "Evaluate": {
        "score": "score translations",
        "compare": "compare systems with significance tests",
        "rank": "rank systems or candidate lists by pairwise comparison",
        "check": "find errors without a model: placeholders, tags, numbers",
        "explain": "explain the score of a translation",
        "report": "write an HTML report about systems and metrics",
        "corpus": "score large files, locally or on a cluster",
    },
    "Decide": {
        "gate": "decide if a system may replace another, for CI",
        "worst": "list the translations most in need of attention",
        "route": "decide which translations to publish, post-edit or redo",
    },
    "Metrics": {
        "list": "list metrics, models, checks, data or citations",
        "train": "train a metric on human judgments",
    },
    "Meta-evaluation": {
        "meta": "measure how well metrics agree with human judgments",
    },
    "Human evaluation": {
        "plan": "plan a human evaluation: segments, raters, campaign",
        "annotate": "judge translations in the browser, with several raters",
        "agree": "measure agreement between raters, rank systems by them",
    },
    "Maintenance": {
        "setup": "show and install models, manage the cache, complete commands",
    },
}
COMMANDS = tuple(command for group in COMMAND_GROUPS.values() for command in group)
REMOVED_COMMANDS = {
    "reproduce": "run `python -m papers` in a checkout of the repository, with the same options",
    "models": "use `tertium list models`, or `tertium setup install NAME` to install a model",
    "data": "use `tertium list data`",
    "cite": "use `tertium list citations METRIC`",
    "cache": "use `tertium setup cache`, `setup cache clear` or `setup cache limit SIZE`",
    "analyse": "use `tertium meta disagreement --human FILES`",
    "challenge": "use `tertium meta challenge SET`, with --rows instead of --by",
}
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
    from tertium.text.control_characters import replace_control_characters

    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} ... {message[-MAX_MESSAGE // 2 :]}"
    line = replace_control_characters(message).replace("\n", "\N{SYMBOL FOR LINE FEED}")
    print(f"tertium: error: {line}", file=sys.stderr)


def _run_command(argv: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else [*argv]
    if arguments and arguments[0] not in COMMANDS and not arguments[0].startswith("-"):
        if arguments[0] in REMOVED_COMMANDS:
            advice = REMOVED_COMMANDS[arguments[0]]
            raise UsageError(f"`tertium {arguments[0]}` was removed: {advice}")
        raise UnknownNameError("command", arguments[0], COMMANDS)
    for length in (3, 2, 1):
        name = " ".join(arguments[:length])
        if name in FUNCTIONS:
            return _run_function(name, arguments[length:])
    if arguments and (forms := related_commands(arguments[0])):
        return _explain_forms(arguments[0], forms, arguments[1:])
    if arguments and arguments[0] in COMMANDS:
        commands: Sequence[str] = arguments[:1]
    else:
        commands = () if arguments[:1] in ([], ["-h"], ["--help"], ["--version"]) else COMMANDS
    args = make_parser(commands).parse_args(arguments)
    logging.basicConfig(
        level=logging.ERROR if getattr(args, "quiet", False) else logging.WARNING,
        format="tertium: %(message)s",
        stream=sys.stderr,
    )
    from tertium.metrics.judge.usage import track_usage

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


def _run_function(name: str, arguments: Sequence[str]) -> int:
    """Import and run a command."""
    from tertium.cli.run import run_command

    with explain_missing(f"`tertium {name}`"):
        return run_command(name, load_command(name), arguments, related_commands(name))


def load_command(name: str) -> Callable[..., Any]:
    """Import the function of a command."""
    module, _, function = FUNCTIONS[name].partition(":")
    command: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return command


def related_commands(name: str) -> list[str]:
    """Return the other commands whose first word is the same."""
    word = name.split()[0]
    return [other for other in FUNCTIONS if other.split()[0] == word and other != name]


def _explain_forms(command: str, forms: Sequence[str], arguments: Sequence[str]) -> int:
    """Print the commands that begin with a word; without --help, a missing word is an error."""
    listing = " or ".join(f"`tertium {form}`" for form in forms)
    if arguments[:1] in (["-h"], ["--help"]):
        lines = [f"  tertium {form}" for form in forms]
        print("\n".join([f"usage: tertium {command} COMMAND [OPTIONS]", "", "commands:", *lines]))
        return 0
    for form in forms:
        if form.split()[1] in arguments:
            raise UsageError(f"write `tertium {form}` first, then its options")
    if arguments and not arguments[0].startswith("-"):
        raise UnknownNameError("command", f"{command} {arguments[0]}", forms)
    raise UsageError(f"`tertium {command}` is not a command: give {listing}")


def _replace_closed_streams() -> None:
    """Open /dev/null for a closed stream (`>&-`): Python sets it to None, and print would fail."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _discard_output() -> None:
    """Redirect buffered output to /dev/null, or Python reports another error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Build the parser of these commands; only their modules are imported."""
    parser = OneLineErrorParser(
        prog="tertium",
        usage="tertium COMMAND [OPTIONS]",
        description=f"{DESCRIPTION}\n\n{_describe_commands()}",
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
    for name in commands:
        if any(function.split()[0] == name for function in FUNCTIONS):
            continue
        module = importlib.import_module(f"tertium.cli.{name}")
        command = subparsers.add_parser(
            name,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _describe_commands() -> str:
    lines: list[str] = []
    for title, commands in COMMAND_GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {name:<11}{purpose}" for name, purpose in commands.items()]
    return "\n".join(lines)
