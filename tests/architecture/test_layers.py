"""Layers only look down: who may import whom."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tertium

PACKAGE = Path(tertium.__file__).parent

# A room may import itself and the rooms named here.
CORE = {
    "errors", "atomic", "extras", "version", "segment", "scores", "progress", "display", "frames",
    "randomness",
}  # fmt: skip
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "atomic": {"errors"},
    "extras": {"errors"},
    "version": set(),
    "segment": {"errors"},
    "progress": set(),
    "display": set(),
    "frames": {"errors", "atomic", "extras"},
    "randomness": {"errors"},
    "scores": {"errors", "display", "frames"},
    "resampling": CORE,
    "registry": {"errors", "extras"},
    "text": CORE | {"registry"},
    "data": CORE | {"registry", "text"},
    "encoders": CORE | {"registry", "text", "data"},
    "linguistics": CORE | {"registry", "text", "data", "encoders"},
    "features": CORE | {"registry", "text", "data", "encoders", "linguistics"},
    "learning": CORE | {"registry", "text", "data", "encoders", "linguistics", "features"},
    "metrics": CORE
    | {"registry", "text", "data", "encoders", "linguistics", "features", "learning"},
    "meta": CORE | {"data"},
    "scoring": CORE | {"resampling", "data", "metrics"},
    "comparison": CORE | {"resampling", "data", "metrics", "scoring"},
    "compat": CORE | {"metrics", "encoders"},
    "report": CORE | {"data", "meta", "scoring", "comparison", "resampling"},
    "reproduce": CORE
    | {"text", "metrics", "meta", "data", "scoring", "encoders", "registry", "report"},
}


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("tertium.")}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if room_of(path) in ALLOWED)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_lower_rooms(path: Path) -> None:
    rooms = {entry.stem for entry in PACKAGE.iterdir() if entry.suffix == ".py" or entry.is_dir()}
    room = room_of(path)
    upward = (imports_of(path) & rooms) - ALLOWED[room] - {room}
    assert not upward, f"{room} must not import {sorted(upward)}"


def test_every_room_has_its_place() -> None:
    rooms = {
        entry.stem
        for entry in PACKAGE.iterdir()
        if (entry.suffix == ".py" or any(entry.glob("*.py"))) and not entry.name.startswith("_")
    }
    assert rooms - set(ALLOWED) == {"cli"}
