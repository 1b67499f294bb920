"""The command line: a table of commands, each a function that a runner calls with its options.

Results go to stdout, progress and warnings to stderr. A `TertiumError` prints one line and exits
with its code: 3 if the budget of a judge is reached or too few of its answers are valid, 2 for any
other user error. Other exceptions are bugs and keep their traceback.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from tertium.core.errors import TertiumError, UnknownNameError, UsageError
from tertium.core.extras import explain_missing
from tertium.version import __version__

# By group: the function of each command, and one line of help.
COMMAND_TABLE = """
Evaluate
  score evaluation.score_command:score_files
    score translations
  compare evaluation.score_command:compare_files
    compare systems with significance tests
  rank evaluation.ranking:rank_files
    rank systems by pairwise comparison
  rank candidates evaluation.ranking:rank_candidates
    rank lists of candidate translations
  check evaluation.checking:check_files
    find errors without a model: placeholders, tags, numbers
  explain evaluation.explaining:explain_texts
    explain the score of a translation
  report output.page.report:report_files
    write an HTML report about systems and metrics
  corpus corpus.corpus_run:score_corpus_files
    score large files, locally or on a cluster

Decide
  gate decide.gate:gate_files
    decide if a system may replace another, for CI
  gate calibrate decide.gate:calibrate_gate
    suggest margins from two runs of one system
  worst decide.worst:worst_of_files
    list the translations most in need of attention
  route fit decide.routing:fit_route_to_files
    fit thresholds with a promised precision
  route apply decide.routing:apply_route_to_files
    decide what to publish, post-edit or translate again

Metrics
  list metrics.list_commands:list_metrics
    list metrics and rankers
  list models metrics.list_commands:list_models
    list encoders and dictionaries
  list data data.dataset_folder:list_datasets
    list sets of human judgments
  list checks evaluation.checking:list_checks
    list the checks of `check`
  list citations metrics.list_commands:list_citations
    print BibTeX entries of metrics
  train evaluation.training:train_on_files
    train a metric on human judgments

Meta-evaluation
  meta studies.meta_evaluation:evaluate_metrics
    measure how well metrics agree with human judgments
  meta diagnostics studies.meta_evaluation:diagnose_metrics
    run diagnostics: baselines, bad outputs, references, length
  meta protocol studies.meta_evaluation:rank_by_protocol
    rank metrics by the rules of a shared task
  meta decisions studies.meta_evaluation:evaluate_metric_decisions
    measure how well metrics find good translations
  meta thresholds studies.meta_evaluation:fit_metric_thresholds
    measure which score differences humans confirm
  meta spans studies.meta_evaluation:compare_metric_spans
    compare error spans with those of annotators
  meta disagreement studies.meta_evaluation:find_metric_disagreement
    see where two metrics disagree on good translations
  meta challenge studies.challenge:challenge_metrics
    test metrics on a challenge set

Human evaluation
  plan people.plan_commands:plan_evaluation
    plan a human evaluation: segments, raters, campaign
  plan convert people.plan_commands:convert_campaign
    convert a campaign to another tool
  annotate people.server:annotate_campaign
    judge translations in the browser, with several raters
  agree people.rater_agreement:agree_on_files
    measure agreement between raters, rank systems by them

Maintenance
  setup metrics.list_commands:show_setup
    show what is installed
  setup install metrics.list_commands:install_models
    install models
  setup cache encoders.vector_cache:show_cache
    show the cache
  setup cache clear encoders.vector_cache:clear_cache
    clear the cache
  setup cache limit encoders.vector_cache:limit_cache
    shrink the cache
  setup completion cli.arguments:complete_shell
    complete commands in a shell
"""


def read_commands(table: str) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Return the function and the help of each command by name, for each group."""
    groups: dict[str, dict[str, tuple[str, str]]] = {}
    for block in table.strip().split("\n\n"):
        title, *lines = map(str.strip, block.splitlines())
        groups[title] = {}
        for command, description in zip(lines[::2], lines[1::2], strict=True):
            name, _, function = command.rpartition(" ")
            groups[title][name] = (function, description)
    return groups


COMMAND_GROUPS = read_commands(COMMAND_TABLE)
COMMANDS = {name: command for group in COMMAND_GROUPS.values() for name, command in group.items()}
FIRST_WORDS = tuple(dict.fromkeys(name.split()[0] for name in COMMANDS))
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
MAX_MESSAGE = 2000  # characters
DESCRIPTION = "Evaluate machine translation: score, compare, train metrics and meta-evaluate them."
EPILOG = """\
examples:
  tertium score -t system.txt -r reference.txt -m bleu chrf
  tertium compare -t baseline.txt ours.txt -r reference.txt -m bleu chrf --paired-bs
  tertium list

`tertium COMMAND --help` shows the options of a command, with examples."""


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
    from tertium.text.printable import replace_control_characters

    if len(message) > MAX_MESSAGE:
        message = f"{message[: MAX_MESSAGE // 2]} ... {message[-MAX_MESSAGE // 2 :]}"
    line = replace_control_characters(message).replace("\n", "\N{SYMBOL FOR LINE FEED}")
    print(f"tertium: error: {line}", file=sys.stderr)


def _run_command(argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else [*argv]
    if words[:1] in (["-h"], ["--help"]):
        print(describe_commands())
        return 0
    if words[:1] == ["--version"]:
        print(f"tertium {__version__}")
        return 0
    if len(words) == 2 and words[0] not in COMMANDS and words[1] in ("-h", "--help"):
        forms = related_commands(words[0])
        print("\n".join(["commands:", *map(format_command, forms)]))
        return 0
    name = find_command(words)
    from tertium.cli.runner import run_command

    with explain_missing(f"`tertium {name}`"):
        arguments = words[len(name.split()) :]
        return run_command(name, load_command(name), arguments)


def find_command(words: Sequence[str]) -> str:
    """Return the longest name of a command with which these words begin, or raise an error."""
    for length in (3, 2, 1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return name
    if not words:
        raise UsageError("no command: write `tertium COMMAND [OPTIONS]` (see `tertium --help`)")
    if replacement := read_removed("commands").get(words[0]):
        raise UsageError(f"`tertium {words[0]}` was removed: {replacement}")
    if words[0] not in FIRST_WORDS:
        raise UnknownNameError("command", words[0], FIRST_WORDS)
    forms = related_commands(words[0])
    if words[1:] and not words[1].startswith("-"):
        raise UnknownNameError("command", " ".join(words[:2]), forms)
    listing = " or ".join(f"`tertium {form}`" for form in forms)
    raise UsageError(f"`tertium {words[0]}` is not a command: give {listing}")


def read_removed(kind: str) -> dict[str, str]:
    """Return what to use instead of removed "commands" or "options".

    An option may be preceded by the only command that had it, and followed by a value.
    """
    import json

    text = Path(__file__).with_name("removed.json").read_text(encoding="utf-8")
    replacements: dict[str, str] = json.loads(text)[kind]
    return replacements


def load_command(name: str) -> Callable[..., Any]:
    """Import the function of a command."""
    command: Callable[..., Any] = resolve_name(f"tertium.{COMMANDS[name][0]}")
    return command


def related_commands(name: str) -> list[str]:
    """Return the other commands whose first word is the same."""
    word = name.partition(" ")[0]
    return [other for other in COMMANDS if other.split()[0] == word and other != name]


def describe_commands() -> str:
    """Return the help: all commands by group."""
    lines = ["usage: tertium COMMAND [OPTIONS]", "", DESCRIPTION]
    for title, commands in COMMAND_GROUPS.items():
        lines += ["", f"{title}:"]
        lines += map(format_command, commands)
    return "\n".join([*lines, "", EPILOG])


def format_command(name: str) -> str:
    """Return a command with its line of help."""
    return f"  {name:<19}{COMMANDS[name][1]}"


def _replace_closed_streams() -> None:
    """Open /dev/null for a closed stream (`>&-`): Python sets it to None, and print would fail."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _discard_output() -> None:
    """Redirect buffered output to /dev/null, or Python reports another error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
