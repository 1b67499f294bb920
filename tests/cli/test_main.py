"""The command line as a whole: options that add up, streams that fail, an interruption."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tertium.cli import main, make_parser

EXAMPLES = Path(__file__).parents[2] / "examples"
SCORE = ["score", "-t", str(EXAMPLES / "examples.jsonl"), "-m", "chrf"]


def test_an_option_given_twice_adds_up() -> None:
    commands = next(
        action for action in make_parser()._actions if isinstance(action.choices, dict)
    ).choices
    assert isinstance(commands, dict)
    for name, parser in commands.items():
        for action in parser._actions:
            if action.nargs == "+" and action.option_strings:
                assert isinstance(action, argparse._ExtendAction), (name, action.option_strings)


def test_systems_of_two_options_are_both_scored(capsys: pytest.CaptureFixture[str]) -> None:
    good, fair = (str(EXAMPLES / f"system-{name}.en.txt") for name in ("good", "fair"))
    reference = str(EXAMPLES / "reference-a.en.txt")
    assert main(["score", "-t", good, "-t", fair, "-r", reference, "-m", "chrf", "-b"]) == 0
    assert len(capsys.readouterr().out.split()) == 2
