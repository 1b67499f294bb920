"""The argument parser of every command: option groups, strict checks, one-line errors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from textwrap import fill
from typing import Any, NoReturn

from tertium.core.errors import UsageError

COMMAND_GROUP = "Options of this command"
GROUPS = ("Input", "Metrics", COMMAND_GROUP, "Statistics", "Training", "Output", "Runtime")
TEXT = "TEXT"  # the metavar of values that may be empty
TEXT_OPTION = "--text"  # with it, options of files take texts, which may be empty
# What to use instead of removed options, of one command ("rank --report") or of all.
REMOVED_OPTIONS = {
    "explain --top": "use --count",
    "explain --translation-text": "use --text -t TEXT",
    "explain --source-text": "use --text -s TEXT",
    "explain --reference-text": "use --text -r TEXT",
    "explain --metric": "use -m",
    "rank --ranker": "use -m",
    "report --explain": "use --count",
    "meta --p-values": "use --pairs",
    "meta --diagnostics": "use `tertium meta diagnostics`",
    "meta --confidence-level": "intervals are those of 95 % (confidence_level= in Python)",
    "meta --threshold": "use threshold= in Python",
    "meta --tie-rate": "tie-aware scores are no longer computed",
    "meta --over": "leave it out: segments are resampled, and systems at system level",
    "meta disagreement --examples": "use --count",
    "meta disagreement --share": "use share= in Python",
    "meta disagreement --vocabulary": "use vocabulary= in Python",
    "meta challenge --phenomena": "use --select",
    "meta challenge --at-least": "read the mean accuracy from -f json",
    "corpus --longest": "use --max-length",
    "corpus --engine": "use --ray HOST:PORT, --ray auto or --ray local",
    "corpus --address": "use --ray HOST:PORT, --ray auto or --ray local",
    "corpus --worker-cpus": "use WorkerPool(cpus=...) in Python",
    "train --preferences": "use --train",
    "train --dev-preferences": "use --dev",
    "plan --name": "use --title",
    "route fit --allow-major": "leave it out: major errors are never allowed",
    "annotate --database": "use --answers",
    "annotate --host": "use --listen HOST:PORT",
    "annotate --port": "use --listen HOST:PORT",
    "worst --per-language": "use --per language=N",
    "worst --per-document": "use --per document=N",
    "list --all": "use `tertium list all`",
    "--to-json": "use -o FILE.json",
    "--to-xlsx": "use -o FILE.xlsx",
    "--to-spans": "use -o spans:FILE",
    "--report": "use -o FILE.html",
    "--plot": "use -o FILE.svg",
    "--junit": "use -o FILE.xml",
    "--sarif": "use -o FILE.sarif",
    "-f sarif": "use -o FILE.sarif",
    "--format sarif": "use -o FILE.sarif",
    "--markdown": "use -f md >> FILE",
    "--excel": "use -o FILE.xlsx, or -f csv",
    "--statistics": "give `gate --baseline` the translations, or -o FILE.json of neural metrics",
    "--list-checks": "use `tertium list checks`",
    "annotate --links": "use -o FILE.tsv",
    "meta --decisions": "use `tertium meta decisions --good-score X`",
    "meta --protocol": "use `tertium meta protocol NAME`",
    "meta --spans": "use `tertium meta spans FILES`",
    "meta --thresholds": "use `tertium meta thresholds`",
    "meta challenge --by": "use --rows",
    "plan --budget": "use --time",
    "plan --checks": "use --attention-checks",
    "plan --from": "use `tertium plan convert FILE`",
    "--as appraise": "use --as pearmut, or `tertium annotate`",
    "--as label-studio": "use --as pearmut, or `tertium annotate`",
    "--adapt layers": "use --adapt head (the default), which fits the last layer",
    "--agree": "leave it out, since no model has license terms to accept",
    "--top-layers": "use --adapt head (the default), which fits the last layer",
    "--choose informative": "use --choose stratified",
    "--curves": "reports show no learning curves",
    "plan --metrics": "segments are no longer chosen by metrics (--choose)",
    "plan -m": "segments are no longer chosen by metrics (--choose)",
    "rank --report": "use -o FILE.html",
    "rank --to-json": "use -o FILE.json, with -sl for the scores of segments",
    "rank --nbest": "use `tertium rank candidates FILE`",
    "check --list-checks": "use `tertium list checks`",
    "report --ranker": "use `tertium rank`",
    "--use-pooled": "judge at least 100 rows of the language pair and fit the route again",
    "--utility": "segments are chosen at random, by strata or by documents (--choose)",
}


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
        self.stored_values = {}
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
        for name in (f"{self.prog.removeprefix('tertium ')} {option}", option):
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
        may_be_empty = action.metavar == TEXT or action.default == text or self.has_texts
        if not text and not may_be_empty:
            raise argparse.ArgumentError(action, "the value is empty (an unset variable?)")
        try:
            return super()._get_value(action, text)
        except UsageError as error:
            raise argparse.ArgumentError(action, str(error)) from None


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
