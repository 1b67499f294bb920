"""`tertium reproduce`: a paper's tables, published beside measured, in a checkout."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import tertium
from tertium.errors import MissingResourceError

# The tables of papers are not part of the package: they are for those who work on tertium or doubt
# its figures, and both have a checkout.
CHECKOUT = Path(tertium.__file__).parents[2]

HELP = "measure a paper's tables, published beside measured (in a checkout)"
DESCRIPTION = "Measure the tables of a paper, or one, and print them beside what it says."
EPILOG = ""  # the papers', where there is a checkout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command = _command()
    parser.epilog = command.EPILOG if command else None
    if command:
        command.add_arguments(parser)
    else:
        parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    command = _command()
    if command is None:
        raise MissingResourceError(
            "the tables of papers come with a checkout of tertium, not with the installed package: "
            "clone the repository and run `python -m papers` there"
        )
    code: int = command.run(args)
    return code


def _command() -> Any:
    """The module `papers.command` of the checkout that this code lies in, if it lies in one."""
    if not (CHECKOUT / "papers" / "command.py").is_file():
        return None
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    return importlib.import_module("papers.command")
