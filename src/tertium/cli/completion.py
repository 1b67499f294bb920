"""The command `setup completion`: a script that completes commands and options in a shell.

The scripts `completion.bash` (also for zsh) and `completion.fish` get a table of all words that
may follow a command, and of the values of options that have choices. Other words are file names.
"""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Literal

from tertium.cli import COMMANDS, FIRST_WORDS, load_command
from tertium.cli.arguments import make_parser, parameter_types
from tertium.core.result import Column, Listing, Table, View
from tertium.evaluation.training import trainable_classes


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
