"""Floors: a package imports only packages of lower floors, and no name of a file repeats."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tertium

PACKAGE = Path(tertium.__file__).parent

# Packages from the lowest floor to the highest. A package imports itself and lower floors, never
# a package of its own floor. `meta` works on matrices and reads only the packages named here.
FLOORS = (
    {"version"},
    {"core"},
    {"text"},
    {"data"},
    {"files", "meta"},
    {"checks"},
    {"encoders"},
    {"models"},
    {"metrics"},
    {"compat", "testing"},
    {"evaluation"},
    {"studies", "people", "decide", "corpus"},
    {"output"},
    {"cli"},
)
# Folders of `metrics` besides these, `base` and `linguistics`, serve several families.
FAMILIES = {"lexical", "blend", "embedding", "heads", "regression", "pairwise", "bundled", "judge"}
BELOW_META = {"core", "data", "version"}
# Words of single features, which the names in `core` must not have.
FEATURES = {"judge", "budget", "ledger", "comet", "localization", "gate", "corpus", "blend"}
# A human judge of a `Preference`, and the tokens of a forward pass.
NO_FEATURES = {"judge": "segment", "budget": "runtime"}
ENTRANCES = {"__init__", "__main__"}  # list public names of all packages


def statements(node: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    """Yield the statements in a node; expressions, which hold no imports, are skipped."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and not for_types and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from statements(child, for_types)


@cache
def modules_imported_by(path: Path, *, for_types: bool = True) -> frozenset[str]:
    """Return all modules that a file imports; `for_types=False` skips `TYPE_CHECKING` blocks."""
    names: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), for_types):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(name for name in names if name.startswith("tertium."))


def package_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def family_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE / "metrics").parts
    return parts[0] if len(parts) > 1 else ""


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if package_of(path) not in ENTRANCES)
# The package itself lists the classes of all families, which it loads on first use.
METRIC_MODULES = sorted({*(PACKAGE / "metrics").rglob("*.py")} - {PACKAGE / "metrics/__init__.py"})


def name_module(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def lower_packages(package: str) -> set[str]:
    """Return the packages on the floors below that of a package."""
    if package == "meta":
        return BELOW_META
    lower: set[str] = set()
    for floor in FLOORS:
        if package in floor:
            return lower
        lower |= floor
    raise AssertionError(f"{package} needs a floor")


@pytest.mark.parametrize("path", MODULES, ids=name_module)
def test_a_module_imports_only_lower_floors(path: Path) -> None:
    package = package_of(path)
    packages = set().union(*FLOORS)
    imported = {name.split(".")[1] for name in modules_imported_by(path)} & packages
    forbidden = imported - lower_packages(package) - {package}
    assert not forbidden, f"{package} must not import {sorted(forbidden)}"


@pytest.mark.parametrize("path", METRIC_MODULES, ids=name_module)
def test_families_import_base_and_never_each_other(path: Path) -> None:
    """A family uses another one only through `load_metric`."""
    imported = {
        name.split(".")[2]
        for name in modules_imported_by(path)
        if name.startswith("tertium.metrics.") and name.count(".") >= 2
    }
    forbidden = (imported & FAMILIES) - {family_of(path)}
    assert not forbidden, f"{name_module(path)} must not import {sorted(forbidden)}"


def test_nothing_outside_metrics_imports_a_family() -> None:
    """Metrics are loaded by name; what commands say to a server of judges is in `base`."""
    imports = {
        (name_module(path), name)
        for path in MODULES
        if package_of(path) != "metrics"
        for name in modules_imported_by(path)
        if name.startswith("tertium.metrics.")
        and name.count(".") >= 3
        and name.split(".")[2] in FAMILIES | {"linguistics"}
    }
    assert not imports


def module_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports anywhere."""
    paths = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
        if path.stem != "__init__"
    }
    return {
        name: {*paths} & modules_imported_by(path, for_types=False) - {name}
        for name, path in paths.items()
    }


def test_no_modules_import_each_other() -> None:
    """Nor in a longer cycle: shared code belongs to a layer below both."""
    TopologicalSorter(module_graph()).prepare()  # raises an error with the cycle


def test_no_sibling_folders_import_each_other() -> None:
    """Sibling folders of a package are layers, too; a folder and its subfolders are one unit."""
    folders: dict[str, set[str]] = {}
    for module, imported in module_graph().items():
        folder = module.rpartition(".")[0]
        targets = {name.rpartition(".")[0] for name in imported}
        siblings = {other for other in targets if other.count(".") == folder.count(".")}
        folders.setdefault(folder, set()).update(siblings - {folder})
    TopologicalSorter(folders).prepare()


def test_every_package_and_family_has_a_floor() -> None:
    packages = {
        entry.stem
        for entry in PACKAGE.iterdir()
        if (entry.suffix == ".py" or any(entry.glob("*.py"))) and entry.stem not in ENTRANCES
    }
    assert packages == set().union(*FLOORS)
    families = {entry.name for entry in (PACKAGE / "metrics").iterdir() if any(entry.glob("*.py"))}
    assert families == FAMILIES | {"base", "linguistics"}


@pytest.mark.parametrize("path", sorted((PACKAGE / "core").glob("*.py")), ids=name_module)
def test_core_has_no_names_of_features(path: Path) -> None:
    """Tables of names may list them, since they are resolved late; code may not."""
    with path.open("rb") as stream:
        names = {t.string for t in tokenize.tokenize(stream.readline) if t.type == tokenize.NAME}
    words = {word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    features = {word for word in words & FEATURES if NO_FEATURES.get(word) != path.stem}
    assert not features, f"{name_module(path)} must not name {sorted(features)}"
