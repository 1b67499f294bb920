"""Names are strings resolved late: a table maps a name to "module:Class", imported when asked for.

Importing this module imports no metric. The tables hold tertium's own names, and those that other
packages register:

    [project.entry-points."tertium.metrics"]
    length-ratio = "my_package.ratio:LengthRatio"

A plugin is a name in an entry-point group, loaded when used. A name of tertium's own goes first.
Reading the groups imports nothing, so that a package which is broken, or shares a name with another
one, is met only by who asks for that name. Fields of what is named are read by `specs`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tertium.errors import PluginError, TertiumError, UnknownNameError, UsageError
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
    with explain_failure(entry, kind):
        loaded = entry.load()
    if kind != "encoder" and getattr(loaded, "name", None) != entry.name:
        raise PluginError(
            f"{said} of {package_of(entry)} is {entry.value}, which does not call itself "
            f"{entry.name!r}: a metric or ranker is a dataclass registered under its own name"
        )
    return loaded


@contextmanager
def explain_failure(entry: EntryPoint, kind: str) -> Iterator[None]:
    """Say in a line whose fault it is that what an entry stands for fails in the block."""
    said = f"{kind} {entry.name!r} of {package_of(entry)}"
    try:
        with explain_missing(said):
            yield
    except TertiumError:
        raise
    except Exception as error:  # a package that is not ours may fail in any way
        reason = str(error).partition("\n")[0]
        raise PluginError(
            f"{said} cannot be loaded from {entry.value}: "
            f"{type(error).__name__}: {reason}; mend that package or uninstall it"
        ) from error


METRICS = Names(
    "tertium.metrics",
    {
        "bertr": "tertium.metrics.embedding.bertr:BERTR",
        "bertscore": "tertium.metrics.embedding.bertscore:BERTScore",
        "bilstm": "tertium.metrics.heads.metric:BiLSTM",
        "bilstm-attention": "tertium.metrics.heads.metric:BiLSTMAttention",
        "bleu": "tertium.metrics.lexical.bleu:BLEU",
        "bleu-r": "tertium.metrics.regression.regressions:BLEUR",
        "chrf": "tertium.metrics.lexical.chrf:ChrF",
        "esim": "tertium.metrics.heads.metric:ESIM",
        "meteor": "tertium.metrics.lexical.meteor:METEOR",
        "meteor-r": "tertium.metrics.regression.regressions:METEORR",
        "mt-r": "tertium.metrics.regression.regressions:MTR",
        "mt-rte-r": "tertium.metrics.regression.regressions:MTRTER",
        "nist": "tertium.metrics.lexical.nist:NIST",
        "nist-r": "tertium.metrics.regression.regressions:NISTR",
        "rte-r": "tertium.metrics.regression.regressions:RTER",
        "sentsim": "tertium.metrics.embedding.sentsim:SentSim",
        "smd": "tertium.metrics.embedding.smd:SMD",
        "sss": "tertium.metrics.embedding.sss:SSS",
        "svr": "tertium.metrics.regression.svr:SVR",
        "ter": "tertium.metrics.lexical.ter:TER",
        "ter-r": "tertium.metrics.regression.regressions:TERR",
        "tertium-base": "tertium.metrics.flagship.base:TertiumBase",
        "tertium-multi": "tertium.metrics.flagship.multi:TertiumMulti",
        "tertium-small": "tertium.metrics.flagship.small:TertiumSmall",
        "wmd": "tertium.metrics.embedding.wmd:WMD",
        "wmdo": "tertium.metrics.embedding.wmdo:WMDO",
    },
)

ALIASES: Mapping[str, str] = {"chrf++": "chrf:word_order=2", "chrfpp": "chrf:word_order=2"}

RANKERS = Names("tertium.rankers", {"pairwise": "tertium.metrics.pairwise.ranker:Pairwise"})


def resolve(table: Mapping[str, str], name: str, kind: str) -> Any:
    """The object behind a name of a table.

    >>> resolve(METRICS, "bluu", "metric")
    Traceback (most recent call last):
        ...
    tertium.errors.UnknownNameError: unknown metric 'bluu': did you mean 'bleu'...
    """
    if name not in table:
        raise UnknownNameError(kind, name, table)
    if isinstance(table, Names) and name in table.plugins:
        return load_plugin(table.plugins[name], kind)
    module, _, attribute = table[name].partition(":")
    with explain_missing(f"{kind} {name}"):
        return getattr(importlib.import_module(module), attribute)


def resolve_scorer(name: str) -> Any:
    """The class of a metric or ranker, for those who do not care which of both it is."""
    if name not in METRICS and name not in RANKERS:
        raise UnknownNameError("metric", name, [*METRICS, *ALIASES, *RANKERS])
    return resolve(METRICS, name, "metric") if name in METRICS else resolve(RANKERS, name, "ranker")


def check_once(option: str, names: Sequence[str]) -> None:
    """Refuse a name that an option is given twice: it would be measured and shown twice."""
    repeated = next((name for name in names if list(names).count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"{option} {repeated} is given twice: name it once")
