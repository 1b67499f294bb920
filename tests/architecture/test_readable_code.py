"""Functions have few parameters, comprehensions at most two loops; type hints are read at home."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tertium

PACKAGE = Path(tertium.__file__).parent
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MAX_PARAMETERS = 10
# Signatures of other tools, and the shape of a network.
EXEMPT = ("compat/", "metrics/bundled/joint_network.py")
HINTS_HOMES = {"core/fields.py", "cli/arguments.py"}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Return all nodes of the code with their files."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        found += [(name, node) for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    return found


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if argument.arg not in ("self", "cls"):
            yield argument.arg


def test_functions_have_few_parameters() -> None:
    long = [
        f"{file}:{node.lineno} {node.name}"
        for file, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len([*parameters(node)]) > MAX_PARAMETERS
        and not file.startswith(EXEMPT)
    ]
    assert long == [], "group parameters in a dataclass"


def test_comprehensions_have_at_most_two_loops() -> None:
    nested = [
        f"{file}:{node.lineno}"
        for file, node in nodes()
        if isinstance(node, COMPREHENSIONS) and len(node.generators) > 2
    ]
    assert nested == [], "write a loop or a helper"


def test_type_hints_are_read_at_home() -> None:
    readers = {
        file
        for file, node in nodes()
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr)
        in ("get_type_hints", "get_origin", "get_args")
    }
    assert readers <= HINTS_HOMES
