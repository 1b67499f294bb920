"""The help of every command: examples that parse, defaults, groups and the reference page."""

from __future__ import annotations

import argparse
import re

import pytest
from tests.docs.cli_reference import PAGE, command_parsers, make_page
from tests.docs.pages import split_comment
from tests.docs.workspace import parse_command

from tertium.cli import COMMAND_GROUPS, COMMANDS, make_parser
from tertium.cli.parser import GROUPS, CommandParser


def find_parser(command: str) -> CommandParser:
    actions = make_parser()._actions
    (group,) = (a for a in actions if isinstance(a, argparse._SubParsersAction))
    parser: CommandParser = group.choices[command]
    return parser


def format_help(command: str) -> str:
    return find_parser(command).format_help() if command else make_parser().format_help()


def find_examples(text: str) -> list[str]:
    """Return the commands under "examples:", with continued lines joined."""
    _, separator, after = text.partition("examples:\n")
    assert separator, "no examples"
    joined = re.sub(r"\\\n\s*", "", after)
    return [line.strip() for line in joined.splitlines() if line.strip().startswith("tertium ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_width_option_shows_its_default(command: str) -> None:
    parser = find_parser(command)
    widths = [action for action in parser._actions if action.dest == "width"]
    for action in widths:
        default = "by metric" if action.default is None else action.default
        assert f"(default: {default})" in (action.help or "")
    # win probabilities and agreement are not scores: no metric sets their decimals
    assert bool(widths and widths[0].default is None) == (command in ("score", "compare"))


@pytest.mark.parametrize("command", COMMANDS)
def test_numbers_show_their_default(command: str) -> None:
    numbers = [a for a in find_parser(command)._actions if a.type in (int, float) and a.default]
    for action in numbers:
        assert f"default: {action.default}" in (action.help or "").replace(",", ""), action.dest


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_two_to_four_examples_that_parse(command: str) -> None:
    examples = find_examples(format_help(command))
    assert 2 <= len(examples) <= 4
    for example in examples:
        line, _ = split_comment(example)
        parse_command(line.replace("...", "x"))
        if command:
            assert line.split()[1] in (command, "score", "rank")
    if command:
        assert any(example.split()[1] == command for example in examples)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_help_text_and_a_known_group(command: str) -> None:
    parser = find_parser(command)
    parser.add_all_options()
    for group in parser._action_groups:
        for action in group._group_actions:
            assert action.help, action.dest
            assert group.title in GROUPS or isinstance(action, argparse._HelpAction), action.dest


def test_help_lists_commands_by_group() -> None:
    text = format_help("")
    positions = [text.index(f"\n{title}:\n") for title in COMMAND_GROUPS]
    assert positions == sorted(positions)
    for command in COMMANDS:
        assert f"\n  {command} " in text


def test_option_sets_the_same_value_in_every_command() -> None:
    destinations: dict[str, set[str]] = {}
    for parser in command_parsers().values():
        for action in parser._actions:
            for option in action.option_strings:
                destinations.setdefault(option, set()).add(action.dest)
    different = {option for option, dests in destinations.items() if len(dests) > 1}
    assert different == {"-m", "--model"}  # metrics, one metric, or a ranker


def test_reference_page_is_up_to_date() -> None:
    message = "run `python -m tests.docs.cli_reference`"
    assert PAGE.read_text(encoding="utf-8") == make_page(), message
