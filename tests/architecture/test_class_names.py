"""One class name, one class: a reader who meets a name knows which is meant."""

from __future__ import annotations

import ast
from pathlib import Path

import tertium

PACKAGE = Path(tertium.__file__).parent
# `compat` answers to the names of other tools, some of which are ours as well
MIRRORS = {"compat"}


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] in MIRRORS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(place))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
