"""Metrics, rankers and encoders that other packages register as entry points.

    [project.entry-points."tertium.metrics"]
    length-ratio = "my_package.ratio:LengthRatio"

Entry points are only read for names that are not built in, and listing a group imports nothing. A
broken package, or one that repeats a name, therefore only affects users who request that name.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any

from tertium.core.errors import PluginError, TertiumError
from tertium.core.extras import explain_missing

logger = logging.getLogger(__name__)

EntryPoints = tuple[EntryPoint, ...]  # more than one if several packages use the same name


def list_plugins(group: str) -> Mapping[str, EntryPoints]:
    """Return the entry points of a group by name."""
    return _entry_points_by_name(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _entry_points_by_name(group: str, search_path: tuple[str, ...]) -> dict[str, EntryPoints]:
    try:
        entries = [*entry_points(group=group)]
    except Exception:  # a malformed file of any installed package
        entries = _readable_entry_points(group)
    by_name: dict[str, EntryPoints] = {}
    for entry in sorted(entries, key=lambda e: (e.name, describe_package(e))):
        by_name[entry.name] = (*by_name.get(entry.name, ()), entry)
    return by_name


def _readable_entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of all packages but those whose file is malformed."""
    entries: dict[str, list[EntryPoint]] = {}
    for package in distributions():
        name = str(package.metadata["Name"])
        try:
            # as `entry_points`: the first of two versions on the search path counts
            entries.setdefault(name, [*package.entry_points.select(group=group)])
        except Exception as error:
            reason = str(error).partition("\n")[0]
            logger.warning(
                "warning: plugins of the package %s are ignored: its entry_points.txt is malformed "
                "(%s); reinstall or remove that package",
                name,
                reason,
            )
    return [entry for own in entries.values() for entry in own]


def describe_package(entry: EntryPoint) -> str:
    """Return the name and version of the package that registers an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def load_plugin(entries: EntryPoints, kind: str) -> Any:
    """Load the object of an entry point; raise `PluginError` if that is impossible."""
    entry = entries[0]
    label = f"{kind} {entry.name!r}"
    if len(entries) > 1:
        packages = " and ".join(map(describe_package, entries))
        raise PluginError(f"{label} is registered by {packages}: uninstall all but one")
    with explain_plugin_failure(entry, kind):
        loaded = entry.load()
    if kind != "encoder" and getattr(loaded, "name", None) != entry.name:
        raise PluginError(
            f"{label} of {describe_package(entry)} is {entry.value}, which has another name: "
            f"expected a metric or ranker dataclass with name = {entry.name!r}"
        )
    return loaded


@contextmanager
def explain_plugin_failure(entry: EntryPoint, kind: str) -> Iterator[None]:
    """Turn exceptions of plugin code in the block into a `PluginError` that names the package."""
    label = f"{kind} {entry.name!r} of {describe_package(entry)}"
    try:
        with explain_missing(label):
            yield
    except TertiumError:
        raise
    except Exception as error:  # plugin code may fail in any way
        reason = str(error).partition("\n")[0]
        raise PluginError(
            f"{label} cannot be loaded from {entry.value}: "
            f"{type(error).__name__}: {reason}; fix that package or uninstall it"
        ) from error
