"""`tertium reproduce`: published tables next to our measurements (in a source checkout)."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import tertium
from tertium.cli.parser import CommandParser
from tertium.errors import MissingResourceError

# The tables of papers are in the repository, not in the installed package.
CHECKOUT = Path(tertium.__file__).parents[2]

DESCRIPTION = "Measure the tables of a paper, and print them next to the published figures."
EPILOG = ""  # set from `papers.command`


def add_arguments(parser: CommandParser) -> None:
    command = _papers_command()
    parser.epilog = command.EPILOG if command else None
    if command:
        command.add_arguments(parser)
    else:
        parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    command = _papers_command()
    if command is None:
        raise MissingResourceError(
            "the tables of papers are not in the installed package: clone the repository and run "
            "`python -m papers` there"
        )
    code: int = command.run(args)
    return code


def _papers_command() -> Any:
    """Import `papers.command` of the checkout that contains this file, if there is one."""
    if not (CHECKOUT / "papers" / "command.py").is_file():
        return None
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    return importlib.import_module("papers.command")
