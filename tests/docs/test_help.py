"""The help of every command has examples, and they parse."""

from __future__ import annotations

import argparse
import re

import pytest
from tests.docs.pages import split_comment
from tests.docs.workspace import parse_command

from tertium.cli import COMMANDS, make_parser


def help_of(command: str) -> str:
    parser = make_parser()
    if not command:
        return parser.format_help()
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    text: str = group.choices[command].format_help()
    return text


def examples_in(text: str) -> list[str]:
    """The commands under "examples:", with continued lines put together."""
    _, found, after = text.partition("examples:\n")
    assert found, "no examples"
    joined = re.sub(r"\\\n\s*", "", after)
    return [line.strip() for line in joined.splitlines() if line.strip().startswith("tertium ")]


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
