"""Command lines from functions: options from types, defaults and numpy docstrings.

All commands have the same option groups, strict checks and one-line errors. The command `setup
completion` prints a script that completes commands and options in a shell: `completion.bash` (also
for zsh) and `completion.fish` get a table of all words that may follow a command, and of the values
of options that have choices. Other words are file names.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path
from textwrap import fill, indent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from tertium.cli import COMMANDS, FIRST_WORDS, format_command, load_command
from tertium.core.errors import UsageError
from tertium.core.options import Display, LateOptions, Option, Output
from tertium.core.result import Column, Listing, Table, View

ADDED = {"output": Output, "display": Display}  # parameters that every command has
METAVARS = {int: "N", float: "X", str: "NAME"}
EMPTY = inspect.Parameter.empty  # the default of required parameters
Command = Callable[..., Any]
Sections = dict[str, str]  # of a docstring, by title


def make_parser(
    name: str, function: Command, types: Mapping[str, Any], forms: Sequence[str] = ()
) -> CommandParser:
    """Build the parser of a command whose parameters have these types.

    `forms` are other commands with the same first word.
    """
    sections = describe_command(function, types)
    parser = CommandParser(
        prog=f"tertium {name}",
        description=sections[""],
        epilog=_make_epilog(name, sections, forms),
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


def _make_epilog(name: str, sections: Sections, forms: Sequence[str]) -> str:
    """Return the end of the help: examples, notes, and commands that begin with this one."""
    blocks = []
    if "Examples" in sections:
        blocks.append("examples:\n" + indent(sections["Examples"], "  "))
    if "Notes" in sections:
        blocks.append(sections["Notes"])
    longer = [format_command(form) for form in forms if form.startswith(f"{name} ")]
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
        dest, text = f"{owner}.{own.name}", texts.get(own.name, "")
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
    "corpus --shards": "output files are Parquet; pandas.read_parquet(FOLDER) reads them",
    "corpus --longest": "use --max-length",
    "corpus --engine": "use --ray HOST:PORT, --ray auto or --ray local",
    "corpus --address": "use --ray HOST:PORT, --ray auto or --ray local",
    "corpus --worker-cpus": "leave it out: an actor has one CPU",
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
    "plan convert --protocol": "run campaigns of Pearmut in Pearmut; `agree` reads its answers",
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
    rows = [(words, " ".join(next_words)) for words, next_words in list_next_words().items()]
    file, pattern = "completion.bash", '    "{}") echo "{}" ;;'
    if shell == "fish":
        file, pattern = "completion.fish", "    case '{}'\n      echo '{}'"
    template = Path(__file__).with_name(file).read_text(encoding="utf-8")
    script = template.replace("CASES", "\n".join(pattern.format(*row) for row in rows))
    columns = [Column("words", itemgetter(0)), Column("next", itemgetter(1))]
    return View(result=Listing(table=Table(columns, rows)), bare=script)


def list_next_words() -> dict[str, list[str]]:
    """Return the words that may follow other words, each of which is preceded by a blank.

    Metrics follow `train`, because each has its own options.
    """
    from tertium.evaluation.training import trainable_classes

    next_words: dict[str, list[str]] = {"": [*FIRST_WORDS]}
    trainings = [f"train {cls.name}" for cls in trainable_classes()]
    for name in (*COMMANDS, *trainings):
        words = ""
        for word in name.split():
            if word not in next_words.setdefault(words, []):
                next_words[words].append(word)
            words += f" {word}"
        completions = next_words.setdefault(words, [])
        function = load_command("train" if name in trainings else name)
        types = parameter_types(function, name.split()[1:])
        for action in make_parser(name, function, types)._actions:
            choices = [str(choice) for choice in action.choices or ()]
            completions += action.option_strings or choices
            if choices:
                next_words |= {f"{words} {option}": choices for option in action.option_strings}
    return next_words
