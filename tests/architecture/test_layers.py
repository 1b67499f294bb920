"""Layers only look down: who may import whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tertium

PACKAGE = Path(tertium.__file__).parent

CORE = {
    "arrays",
    "atomic",
    "display",
    "errors",
    "execution",
    "extras",
    "frames",
    "plugins",
    "registry",
    "schema",
    "scores",
    "segment",
    "spans",
    "specs",
    "version",
}
BELOW_ENCODERS = CORE | {"cache", "text", "data"}
BELOW_METRICS = BELOW_ENCODERS | {"encoders", "linguistics", "models"}
FAMILIES = {"lexical", "embedding", "heads", "regression", "pairwise", "flagship"}
# A room may import itself and the rooms named here.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "version": set(),
    "display": set(),
    "arrays": {"errors"},
    "atomic": {"errors"},
    "extras": {"errors"},
    "specs": {"errors"},
    "plugins": {"errors", "extras"},
    "registry": {"errors", "extras", "plugins"},
    "frames": {"errors", "atomic", "extras"},
    "schema": {"errors"},
    "execution": {"errors"},
    "segment": {"errors", "spans"},
    "scores": {"arrays", "errors", "display", "frames"},
    "spans": {"errors"},
    "cache": CORE,
    "text": CORE,
    "data": CORE | {"text"},
    "encoders": BELOW_ENCODERS,
    "linguistics": BELOW_ENCODERS | {"encoders"},
    "models": BELOW_ENCODERS | {"encoders"},
    "metrics": BELOW_METRICS,
    "evaluation": BELOW_METRICS | {"metrics", "meta"},
    "meta": CORE | {"data"},
    "corpus": BELOW_METRICS | {"metrics", "evaluation"},
    "compat": BELOW_METRICS | {"metrics"},
    "testing": BELOW_METRICS | {"metrics"},
    "reporting": CORE | {"data", "meta", "evaluation", "metrics"},
}


def statements(node: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and not for_types and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from statements(child, for_types)


def modules_imported_by(path: Path, *, for_types: bool = True) -> set[str]:
    """What a module imports, early or late, also where only types ask for it unless told."""
    names: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), for_types):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.startswith("tertium.")}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def family_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE / "metrics").parts
    return parts[0] if len(parts) > 1 else ""


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if room_of(path) in ALLOWED)
METRIC_MODULES = sorted((PACKAGE / "metrics").rglob("*.py"))


def name_module(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_a_module_imports_only_lower_rooms(path: Path) -> None:
    rooms = {entry.stem for entry in PACKAGE.iterdir() if entry.suffix == ".py" or entry.is_dir()}
    room = room_of(path)
    imported = {name.split(".")[1] for name in modules_imported_by(path)}
    oriented_segments = (imported & rooms) - ALLOWED[room] - {room}
    assert not oriented_segments, f"{room} must not import {sorted(oriented_segments)}"


@pytest.mark.parametrize("path", METRIC_MODULES, ids=name_module)
def test_families_import_base_and_never_each_other(path: Path) -> None:
    """What one family needs of another goes through `load_metric`."""
    imported = {
        name.split(".")[2]
        for name in modules_imported_by(path)
        if name.startswith("tertium.metrics.") and name.count(".") >= 2
    }
    strangers = (imported & FAMILIES) - {family_of(path)}
    assert not strangers, f"{name_module(path)} must not import {sorted(strangers)}"


def module_graph() -> dict[str, set[str]]:
    """The modules that each module imports, early or late."""
    homes = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
        if path.stem != "__init__"
    }
    return {
        name: {*homes} & modules_imported_by(path, for_types=False) - {name}
        for name, path in homes.items()
    }


def test_no_modules_import_each_other() -> None:
    """Nor in a longer circle: what two share has a room below both."""
    TopologicalSorter(module_graph()).prepare()  # which names the modules of a circle


def test_no_folders_beside_each_other_import_each_other() -> None:
    """A folder of a room is a layer, too; what lies in one and in a folder of it is one thing."""
    folders: dict[str, set[str]] = {}
    for module, imported in module_graph().items():
        home = module.rpartition(".")[0]
        others = {name.rpartition(".")[0] for name in imported}
        beside = {folder for folder in others if folder.count(".") == home.count(".")}
        folders.setdefault(home, set()).update(beside - {home})
    TopologicalSorter(folders).prepare()


def test_every_room_and_family_has_its_place() -> None:
    rooms = {
        entry.stem
        for entry in PACKAGE.iterdir()
        if (entry.suffix == ".py" or any(entry.glob("*.py"))) and not entry.name.startswith("_")
    }
    assert rooms - set(ALLOWED) == {"cli"}
    families = {entry.name for entry in (PACKAGE / "metrics").iterdir() if any(entry.glob("*.py"))}
    assert families == FAMILIES | {"base"}
