"""The help of every command: examples that parse, defaults, groups and the reference page."""

from __future__ import annotations

import argparse
import re

import pytest
from tests.docs.cli_reference import PAGE, command_parsers, make_completions, make_page
from tests.docs.pages import split_comment
from tests.docs.workspace import parse_command

from tertium.cli import COMMAND_GROUPS, COMMANDS, describe_commands
from tertium.cli.arguments import GROUPS, CommandParser

PARSERS = command_parsers()


@pytest.fixture(params=PARSERS)
def parser(request: pytest.FixtureRequest) -> CommandParser:
    return PARSERS[request.param]


def find_examples(text: str) -> list[str]:
    """Return the commands under "examples:", with continued lines joined."""
    _, separator, after = text.partition("examples:\n")
    assert separator, "no examples"
    joined = re.sub(r"\\\n\s*", "", after)
    return [line.strip() for line in joined.splitlines() if line.strip().startswith("tertium ")]


def test_numbers_show_their_default(parser: CommandParser) -> None:
    numbers = [a for a in parser._actions if a.type in (int, float) and a.default]
    for action in numbers:
        assert f"default: {action.default}" in (action.help or "").replace(",", ""), action.dest
    for action in parser._actions:
        if "--width" in action.option_strings:
            assert "(default: " in (action.help or "")


@pytest.mark.parametrize("command", ["", *PARSERS])
def test_help_has_examples_that_parse(command: str) -> None:
    text = PARSERS[command].format_help() if command else describe_commands()
    examples = find_examples(text)
    assert 1 <= len(examples) <= 5
    assert not command or any(f"{line} ".startswith(f"tertium {command} ") for line in examples)
    for example in examples:
        line, _ = split_comment(example)
        parse_command(line.replace("...", "x"))


def test_every_option_has_a_help_text_and_a_known_group(parser: CommandParser) -> None:
    for group in parser._action_groups:
        for action in group._group_actions:
            assert action.help, action.dest
            assert group.title in GROUPS or isinstance(action, argparse._HelpAction), action.dest


def test_list_options_can_be_repeated(parser: CommandParser) -> None:
    for action in parser._actions:
        if action.nargs == "+" and action.option_strings:
            assert isinstance(action, argparse._ExtendAction), action.option_strings


def test_help_lists_commands_by_group() -> None:
    text = describe_commands()
    positions = [text.index(f"\n{title}:\n") for title in COMMAND_GROUPS]
    assert positions == sorted(positions)
    for command in COMMANDS:
        assert re.search(rf"^  {command}  +[a-z]", text, re.MULTILINE), command


def test_option_sets_the_same_value_in_every_command() -> None:
    destinations: dict[str, set[str]] = {}
    for parser in PARSERS.values():
        for action in parser._actions:
            name = action.dest.rpartition(".")[2]  # of a field
            for option in action.option_strings:
                destinations.setdefault(option, set()).add(name)
    different = {option for option, dests in destinations.items() if len(dests) > 1}
    # one metric or several
    assert different == {"-m", "--metrics", "--model"}


def test_reference_page_is_up_to_date() -> None:
    message = "run `python -m tests.docs.cli_reference`"
    for path, text in {PAGE: make_page(), **make_completions()}.items():
        assert path.read_text(encoding="utf-8") == text, message
