"""Functions have few parameters, comprehensions at most two loops; type hints are read at home."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import tertium

PACKAGE = Path(tertium.__file__).parent
HINTS_HOMES = {"core/fields.py", "cli/arguments.py"}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Return all nodes of the code with their files."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        found += [(name, node) for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    return found


def test_type_hints_are_read_at_home() -> None:
    readers = {
        file
        for file, node in nodes()
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr)
        in ("get_type_hints", "get_origin", "get_args")
    }
    assert readers <= HINTS_HOMES
