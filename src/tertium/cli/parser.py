"""The argument parser of every command: option groups, strict checks, one-line errors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from tertium.errors import UsageError

GROUPS = ("Input", "Metrics", "Statistics", "Training", "Output", "Runtime")
TEXT = "TEXT"  # the metavar of values that may be empty
# What to use instead of removed options (of one command: "rank --report") and of removed values.
REMOVED_OPTIONS = {
    "--as appraise": "use --as pearmut, or `tertium annotate`",
    "--as label-studio": "use --as pearmut, or `tertium annotate`",
    "--adapt layers": "use --adapt head (the default), which fits the last layer",
    "--agree": "leave it out, since no model has license terms to accept",
    "--top-layers": "use --adapt head (the default), which fits the last layer",
    "--choose informative": "use --choose stratified",
    "--curves": "reports show no learning curves",
    "plan --metrics": "segments are no longer chosen by metrics (--choose)",
    "plan -m": "segments are no longer chosen by metrics (--choose)",
    "rank --report": "use `tertium compare --report FILE` or -f json",
    "report --ranker": "use `tertium rank`",
    "--use-pooled": "judge at least 100 rows of the language pair and fit the route again",
    "--utility": "segments are chosen at random, by strata or by documents (--choose)",
}
AddOptions = Callable[["CommandParser", Sequence[str]], None]


class OneLineErrorParser(argparse.ArgumentParser):
    """Raises `UsageError` with one line instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")


class StoreOnce(argparse._StoreAction):
    """Stores one value; a second, different value is an error (argparse would keep the last)."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        first = parser.stored_values.setdefault(self.dest, values)
        if option is not None and first is not values and first != values:  # NaN != NaN
            raise argparse.ArgumentError(
                self, f"given twice, {first!r} and {values!r}; give it once"
            )
        super().__call__(parser, namespace, values, option)


class StoreWithName(StoreOnce):
    """Also stores the option string as `<dest>_option`, to tell aliases apart."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        super().__call__(parser, namespace, values, option)
        setattr(namespace, f"{self.dest}_option", option)


class CommandParser(OneLineErrorParser):
    """Parses the arguments of one command.

    Every command has the option groups `GROUPS`. Options may be written with underscores
    (`--batch_size`), may not be given twice, and may not be empty (an unset shell variable).
    `add_late_options` adds options when they are needed, so that other commands load faster.
    """

    add_late_options: AddOptions | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.stored_values: dict[str, Any] = {}
        self.groups = {title: self.add_argument_group(title) for title in GROUPS}
        for action in (None, "store"):
            self.register("action", action, StoreOnce)

    def add_all_options(self, arguments: Sequence[str] = ()) -> None:
        """Add the late options, once."""
        add_options, self.add_late_options = self.add_late_options, None
        if add_options is not None:
            add_options(self, arguments)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.add_all_options(args or ())
        self.stored_values = {}
        arguments, unknown = super().parse_known_args(replace_underscores(args or ()), namespace)
        if unknown:
            self._check_removed(unknown[0].partition("=")[0])
            plural = "s" * (len(unknown) > 1)
            words = " ".join(unknown)
            self.error(f"unrecognized argument{plural}: {words}{self._suggest(unknown[0])}")
        return arguments, unknown

    def _check_removed(self, option: str) -> None:
        """Report an option, or an option with a value, that earlier versions had."""
        for name in (option, f"{self.prog.removeprefix('tertium ')} {option}"):
            if name in REMOVED_OPTIONS:
                self.error(f"{option} was removed: {REMOVED_OPTIONS[name]}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        for name in action.option_strings:
            self._check_removed(f"{name} {value}")
        super()._check_value(action, value)

    def _suggest(self, word: str) -> str:
        """Suggest an option for an unrecognized argument."""
        if close := get_close_matches(word, self._option_string_actions, n=2):
            return f"; did you mean {' or '.join(close)}?"
        if word.startswith("-") or word.replace(".", "").isdecimal():  # an option or a number
            return ""
        for action in self._actions:
            if not action.option_strings and action.nargs in ("*", "+"):
                return f"; give all of {action.metavar} together, before any option"
        options = [
            next(name for name in action.option_strings if name.startswith("--"))
            for action in self._actions
            if action.option_strings and action.metavar in ("FILE", "METRIC")
        ]
        return f"; give it after an option ({', '.join(options)})" if options else ""

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        if not text and action.metavar != TEXT and action.default != text:
            raise argparse.ArgumentError(action, "the value is empty (an unset variable?)")
        return super()._get_value(action, text)

    def format_help(self) -> str:
        self.add_all_options()
        return super().format_help()


def replace_underscores(arguments: Sequence[str]) -> list[str]:
    """Write long options with dashes, as in `--batch-size`; values stay as they are.

    >>> replace_underscores(["--to_json", "a_b.json", "--batch_size=8", "--", "--a_b"])
    ['--to-json', 'a_b.json', '--batch-size=8', '--', '--a_b']
    """
    replaced: list[str] = []
    for argument in arguments:
        if argument.startswith("--") and "--" not in replaced:
            option, equals, value = argument.partition("=")
            argument = option.replace("_", "-") + equals + value
        replaced.append(argument)
    return replaced


def add_list(group: argparse._ActionsContainer, *options: str, **settings: Any) -> None:
    """Add an option that takes one or more values and may be repeated."""
    settings = {"default": [], **settings}
    group.add_argument(*options, nargs="+", action="extend", **settings)
