"""A library of a file format is imported in few files, so that each format has one reader."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tertium

PACKAGE = Path(tertium.__file__).parent
HOMES = {
    "safetensors": {"models/checkpoint.py", "encoders/weight_files.py"},
    # The cache, locks of files, and the event log of people (for durability, not speed).
    "sqlite3": {"core/store.py", "core/atomic.py", "people/annotation_store.py"},
}


def imported_libraries(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_imported_only_at_home(library: str) -> None:
    files = [path for path in PACKAGE.rglob("*.py") if library in path.read_text("utf-8")]
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in files
        if library in imported_libraries(path)
    }
    assert users <= HOMES[library]
