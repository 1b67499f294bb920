"""Metrics, rankers and encoders of other packages: names in an entry-point group, loaded when used.

    [project.entry-points."tertium.metrics"]
    length-ratio = "my_package.ratio:LengthRatio"

A name of tertium's own goes first. Reading the groups imports nothing, so that a package which is
broken, or shares a name with another one, is met only by who asks for that name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tertium.errors import PluginError, TertiumError
from tertium.extras import explain_missing


class Names(Mapping[str, str]):
    """Names and where they lie, as "module:attribute": the built-in ones, then those of `group`."""

    def __init__(self, group: str, builtin: Mapping[str, str]) -> None:
        self.group, self.builtin = group, builtin

    @property
    def plugins(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        """What other packages register under names that are not built in."""
        registered = _entries_of(self.group, tuple(sys.path))
        return {name: found for name, found in registered.items() if name not in self.builtin}

    def __getitem__(self, name: str) -> str:
        return self.builtin[name] if name in self.builtin else self.plugins[name][0].value

    def __contains__(self, name: object) -> bool:  # most names are ours: no package is looked at
        return name in self.builtin or name in self.plugins

    def __iter__(self) -> Iterator[str]:
        yield from self.builtin
        yield from self.plugins

    def __len__(self) -> int:
        return len(self.builtin) + len(self.plugins)


@lru_cache(maxsize=16)
def _entries_of(group: str, path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    """The entries of a group by name; read once for a search path."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in sorted(entry_points(group=group), key=lambda e: (e.name, package_of(e))):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def package_of(entry: EntryPoint) -> str:
    """The distribution that registers an entry, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def load_plugin(entries: tuple[EntryPoint, ...], kind: str) -> Any:
    """What an entry stands for; one clear line where it cannot be used."""
    entry = entries[0]
    said = f"{kind} {entry.name!r}"
    if len(entries) > 1:
        both = " and ".join(map(package_of, entries))
        raise PluginError(f"{said} is registered by {both}: uninstall all but one")
    try:
        with explain_missing(f"{said} of {package_of(entry)}"):
            loaded = entry.load()
    except TertiumError:
        raise
    except Exception as error:  # a package that is not ours may fail in any way
        reason = str(error).partition("\n")[0]
        raise PluginError(
            f"{said} of {package_of(entry)} cannot be loaded from {entry.value}: "
            f"{type(error).__name__}: {reason}; mend that package or uninstall it"
        ) from error
    if kind != "encoder" and getattr(loaded, "name", None) != entry.name:
        raise PluginError(
            f"{said} of {package_of(entry)} is {entry.value}, which does not call itself "
            f"{entry.name!r}: a metric or ranker is a dataclass registered under its own name"
        )
    return loaded
