"""Tables of metric and ranker names; a name maps to "module:Class" and is imported on first use.

Importing this module imports no metric. A table holds the built-in names and those that other
packages register (`plugins`); built-in names take precedence. The fields of a spec are read by
`specs`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from tertium.core.errors import UnknownNameError
from tertium.core.extras import explain_missing
from tertium.core.plugins import EntryPoints, list_plugins, load_plugin


class NameTable(Mapping[str, str]):
    """Names mapped to "module:attribute": built-in names, then plugins of an entry-point group."""

    def __init__(self, group: str, builtin: Mapping[str, str]) -> None:
        self.group, self.builtin = group, builtin

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


METRICS = NameTable(
    "tertium.metrics",
    {
        "bertr": "tertium.metrics.embedding.bertr:BERTR",
        "bertscore": "tertium.metrics.embedding.bertscore:BERTScore",
        "bilstm": "tertium.metrics.heads.head_metric:BiLSTM",
        "bilstm-attention": "tertium.metrics.heads.head_metric:BiLSTMAttention",
        "blend": "tertium.metrics.blend.blend_metric:Blend",
        "bleu": "tertium.metrics.lexical.bleu_metric:BLEU",
        "bleu-r": "tertium.metrics.regression.regression_metrics:BLEUR",
        "checks": "tertium.metrics.lexical.checks:Checks",
        "chrf": "tertium.metrics.lexical.chrf_metric:CHRF",
        "esim": "tertium.metrics.heads.head_metric:ESIM",
        "judge": "tertium.metrics.judge.judge_metric:Judge",
        "meteor": "tertium.metrics.lexical.meteor_metric:METEOR",
        "meteor-r": "tertium.metrics.regression.regression_metrics:METEORR",
        "mt-r": "tertium.metrics.regression.regression_metrics:MTR",
        "mt-rte-r": "tertium.metrics.regression.regression_metrics:MTRTER",
        "nist": "tertium.metrics.lexical.nist_metric:NIST",
        "nist-r": "tertium.metrics.regression.regression_metrics:NISTR",
        "rte-r": "tertium.metrics.regression.regression_metrics:RTER",
        "sentsim": "tertium.metrics.embedding.sentsim:SentSim",
        "smd": "tertium.metrics.embedding.smd:SMD",
        "sss": "tertium.metrics.embedding.sss:SSS",
        "svr": "tertium.metrics.regression.svr:SVR",
        "ter": "tertium.metrics.lexical.ter_metric:TER",
        "ter-r": "tertium.metrics.regression.regression_metrics:TERR",
        "tertium-base": "tertium.metrics.bundled.tertium_base:TertiumBase",
        "tertium-multi": "tertium.metrics.bundled.tertium_multi:TertiumMulti",
        "tertium-multi-adapted": "tertium.metrics.bundled.adapted_multi:AdaptedMulti",
        "tertium-small": "tertium.metrics.bundled.tertium_small:TertiumSmall",
        "wmd": "tertium.metrics.embedding.wmd:WMD",
        "wmdo": "tertium.metrics.embedding.wmdo:WMDO",
    },
)

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
    module, _, attribute = table[name].partition(":")
    with explain_missing(f"{kind} {name}"):
        return getattr(importlib.import_module(module), attribute)


def resolve_scorer(name: str) -> Any:
    """Import the class of a metric or a ranker."""
    if name not in METRICS and name not in RANKERS:
        raise UnknownNameError("metric", name, [*METRICS, *ALIASES, *RANKERS])
    return resolve(METRICS, name, "metric") if name in METRICS else resolve(RANKERS, name, "ranker")
