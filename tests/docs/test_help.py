"""The help of every command has examples, and they parse."""

from __future__ import annotations

import argparse
import re

import pytest
from tests.docs.pages import split_comment
from tests.docs.workspace import parse_command

from tertium.cli import COMMANDS, make_parser


def help_of(command: str) -> str:
    return parser_of(command).format_help() if command else make_parser().format_help()


def parser_of(command: str) -> argparse.ArgumentParser:
    actions = make_parser()._actions
    (group,) = (a for a in actions if isinstance(a, argparse._SubParsersAction))
    parser: argparse.ArgumentParser = group.choices[command]
    return parser


def examples_in(text: str) -> list[str]:
    """The commands under "examples:", with continued lines put together."""
    _, found, after = text.partition("examples:\n")
    assert found, "no examples"
    joined = re.sub(r"\\\n\s*", "", after)
    return [line.strip() for line in joined.splitlines() if line.strip().startswith("tertium ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_how_many_decimals_there_are(command: str) -> None:
    parser = parser_of(command)
    found = [action for action in parser._actions if action.dest == "width"]
    for action in found:
        default = "by metric" if action.default is None else action.default
        assert f"(default: {default})" in (action.help or "")
    # chances to win and agreement are no scores: no metric says how to print them
    assert bool(found and found[0].default is None) == (command in ("score", "compare"))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_what_numbers_are_unless_they_are_given(command: str) -> None:
    numbers = [a for a in parser_of(command)._actions if a.type in (int, float) and a.default]
    for action in numbers:
        assert f"default: {action.default}" in (action.help or "").replace(",", ""), action.dest


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_examples_that_parse(command: str) -> None:
    examples = examples_in(help_of(command))
    assert examples
    for example in examples:
        line, _ = split_comment(example)
        parse_command(line.replace("...", "x"))
        if command:
            assert line.split()[1] in (command, "score", "rank")
    if command:
        assert any(example.split()[1] == command for example in examples)
