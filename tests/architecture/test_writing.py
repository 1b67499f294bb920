"""`tertium.core.atomic` is the only way the package writes a file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tertium

PACKAGE = Path(tertium.__file__).parent

# functions that make or move files by themselves, and where a folder is moved as a whole
WRITERS = {"mkstemp", "NamedTemporaryFile", "TemporaryFile", "write_bytes", "save_file", "touch"}
MOVERS = {"rename", "replace", "copy", "copyfile", "move"}
WITH_PATH = {"os", "shutil"}
# unpacks a model, then moves its folder
FOLDERS = {"encoders/install.py"}
# other modules are not parsed
ANY_CALL = re.compile(rf"\b({'|'.join(sorted(WRITERS | MOVERS | {'open', 'write_text'}))})\(")


def writes_of(path: Path) -> list[str]:
    """The calls of a module that write a file past `tertium.core.atomic`."""
    text = path.read_text("utf-8")
    if not ANY_CALL.search(text):
        return []
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [f"line {call.lineno}" for call in calls if _writes(call)]


def _writes(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name == "open":
        given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
        modes = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        return any(len(mode) < 4 and set(mode) & set("wxa+") for mode in modes)
    if name in MOVERS:
        holder = getattr(getattr(function, "value", None), "id", "")
        return holder in WITH_PATH or (name == "rename" and len(call.args) == 1)
    if name == "write_text":  # a method of paths; ours is a function
        return isinstance(function, ast.Attribute)
    return name in WRITERS


MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.name != "atomic.py" and path.relative_to(PACKAGE).as_posix() not in FOLDERS
)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_writes_no_file_by_itself(path: Path) -> None:
    assert writes_of(path) == []


def test_what_writes_is_recognized(tmp_path: Path) -> None:
    file = tmp_path / "writes.py"
    file.write_text(
        "open(a, 'w')\npath.open('wb')\nopen(a, mode='x')\npath.write_text(b)\nos.replace(a, b)\n"
        "tempfile.mkstemp()\nsave_file(a, b)\nopen(a)\npath.open('rb')\ntext.replace(a, b)\n"
        "write_text(a, b)\ndataclasses.replace(a)\n"
    )
    assert writes_of(file) == [f"line {n}" for n in range(1, 8)]
