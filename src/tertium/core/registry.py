"""Tables of metric and ranker names; a name maps to "module:Class" and is imported on first use.

Importing this module imports no metric. A table holds the built-in names and those that other
packages register as entry points:

    [project.entry-points."tertium.metrics"]
    length-ratio = "my_package.ratio:LengthRatio"

Built-in names take precedence. Entry points are only read for names that are not built in, and
listing a group imports nothing. A broken package, or one that repeats a name, therefore only
affects users who request that name.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, distributions, entry_points
from pkgutil import resolve_name
from typing import Any

from tertium.core.errors import PluginError, TertiumError, UnknownNameError
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


class NameTable(Mapping[str, str]):
    """Names mapped to "module:attribute": built-in names, then plugins of an entry-point group."""

    def __init__(self, group: str, builtin: Mapping[str, str]) -> None:
        self.group = group
        self.builtin = builtin

    @property
    def plugins(self) -> Mapping[str, EntryPoints]:
        """The entry points whose names are not built in."""
        registered = list_plugins(self.group)
        return {name: entries for name, entries in registered.items() if name not in self.builtin}

    def __getitem__(self, name: str) -> str:
        return self.builtin[name] if name in self.builtin else self.plugins[name][0].value

    def __contains__(self, name: object) -> bool:  # avoids listing plugins for built-in names
        return name in self.builtin or name in self.plugins

    def __iter__(self) -> Iterator[str]:
        yield from self.builtin
        yield from self.plugins

    def __len__(self) -> int:
        return len(self.builtin) + len(self.plugins)


BUILTIN_METRICS = """
bertr tertium.metrics.embedding.bertscore:BERTR
bertscore tertium.metrics.embedding.bertscore:BERTScore
bilstm tertium.metrics.heads.head_metric:BiLSTM
bilstm-attention tertium.metrics.heads.head_metric:BiLSTMAttention
blend tertium.metrics.blend.blend_metric:Blend
bleu tertium.metrics.lexical.bleu_metric:BLEU
bleu-r tertium.metrics.regression.regression_metrics:BLEUR
checks tertium.metrics.lexical.checks:Checks
chrf tertium.metrics.lexical.chrf_metric:CHRF
esim tertium.metrics.heads.head_metric:ESIM
judge tertium.metrics.judge.judge_metric:Judge
meteor tertium.metrics.lexical.meteor_metric:METEOR
meteor-r tertium.metrics.regression.regression_metrics:METEORR
mt-r tertium.metrics.regression.regression_metrics:MTR
mt-rte-r tertium.metrics.regression.regression_metrics:MTRTER
nist tertium.metrics.lexical.nist_metric:NIST
nist-r tertium.metrics.regression.regression_metrics:NISTR
rte-r tertium.metrics.regression.regression_metrics:RTER
sentsim tertium.metrics.embedding.sentsim:SentSim
smd tertium.metrics.embedding.optimal_transport:SMD
sss tertium.metrics.embedding.sentsim:SSS
svr tertium.metrics.regression.svr:SVR
ter tertium.metrics.lexical.ter_metric:TER
ter-r tertium.metrics.regression.regression_metrics:TERR
tertium-base tertium.metrics.bundled.tertium_base:TertiumBase
tertium-multi tertium.metrics.bundled.tertium_multi:TertiumMulti
tertium-multi-adapted tertium.metrics.bundled.adapted_multi:AdaptedMulti
tertium-small tertium.metrics.bundled.tertium_small:TertiumSmall
wmd tertium.metrics.embedding.optimal_transport:WMD
wmdo tertium.metrics.embedding.optimal_transport:WMDO
"""
METRICS = NameTable("tertium.metrics", dict(re.findall("(.+) (.+)", BUILTIN_METRICS)))

ALIASES: Mapping[str, str] = {"chrf++": "chrf:word_order=2", "chrfpp": "chrf:word_order=2"}

# Metrics whose training gives another metric.
TRAINED_AS: Mapping[str, str] = {"tertium-multi": "tertium-multi-adapted"}

RANKERS = NameTable(
    "tertium.rankers", {"pairwise": "tertium.metrics.pairwise.neural_ranker:Pairwise"}
)


def resolve(table: Mapping[str, str], name: str, kind: str) -> Any:
    """Import the object behind a name; raise `UnknownNameError` if the table lacks the name.

    >>> resolve(METRICS, "bluu", "metric")
    Traceback (most recent call last):
        ...
    tertium.core.errors.UnknownNameError: unknown metric 'bluu': did you mean 'bleu'...
    """
    if name not in table:
        raise UnknownNameError(kind, name, table)
    if isinstance(table, NameTable) and name not in table.builtin:
        return load_plugin(table.plugins[name], kind)
    with explain_missing(f"{kind} {name}"):
        return resolve_name(table[name])


def resolve_scorer(name: str) -> Any:
    """Import the class of a metric or a ranker."""
    if name not in METRICS and name not in RANKERS:
        raise UnknownNameError("metric", name, [*METRICS, *ALIASES, *RANKERS])
    return resolve(METRICS, name, "metric") if name in METRICS else resolve(RANKERS, name, "ranker")
