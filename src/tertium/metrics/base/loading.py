"""From names to metrics: specs, folders of trained ones, and other values of fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tertium.errors import PluginError, UnknownNameError, UsageError, one_line
from tertium.metrics.base.metric import Metric, Scorer
from tertium.registry import ALIASES, METRICS, RANKERS, resolve
from tertium.specs import build, read_fields, split_spec

Made = TypeVar("Made", bound=Scorer)


def load_metric(spec: str | Path | Metric, **fields: Any) -> Metric:
    """Build a metric from its spec, e.g. `load_metric("chrf:word_order=2")`.

    Keyword arguments are fields too: `load_metric("chrf", word_order=2)`. The path of a folder
    that a trained metric was saved to is a name as well; a registered one goes first, so write
    `./esim` for a folder of that name. A metric is itself, with other fields where they are given.
    """
    if isinstance(spec, Metric):
        return change_fields(spec, fields)
    if not isinstance(spec, str | Path):
        raise _no_name(spec)
    spec = str(spec)
    if is_folder(spec):
        from tertium.models.trained import load_folder

        found: Metric = load_folder(Path(spec), METRICS, "metric")
        return change_fields(found, fields)
    name, texts = split_spec(spec)
    if name in ALIASES:
        name, defaults = split_spec(ALIASES[name])
        texts = {**defaults, **texts}
    if is_folder(name):
        saved = load_metric(name)
        return change_fields(saved, {**read_fields(type(saved), saved.name, texts), **fields})
    if name not in METRICS:
        raise _unknown_name(name)
    cls = resolve(METRICS, name, "metric")
    if not (isinstance(cls, type) and issubclass(cls, Metric)):
        raise PluginError(f"{name} is {one_line(cls)}, and no class of metrics: mend its package")
    metric: Metric = build(cls, name, texts)
    return change_fields(metric, fields)


def change_fields(scorer: Made, fields: Mapping[str, Any]) -> Made:
    """A metric or ranker with other values of some fields."""
    known = [field.name for field in dataclasses.fields(scorer) if field.init]  # type: ignore[arg-type]
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        raise UnknownNameError(f"field of {scorer.name}", unknown, known)
    # numbers of numpy, which loops over its arrays give, would print as such in a spec
    own = {n: v.item() if isinstance(v, np.generic) else v for n, v in fields.items()}
    return dataclasses.replace(scorer, **own) if own else scorer  # type: ignore[type-var]


def load_metrics(metrics: str | Metric | Sequence[str | Metric]) -> list[Metric]:
    """Metrics from specs or metrics, one or several; a metric given twice is refused."""
    if not isinstance(metrics, Iterable | Metric):
        raise _no_name(metrics)
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not several:
        raise UsageError("no metric given; `tertium list` shows what there is")
    loaded = [load_metric(metric) for metric in several]
    specs = [metric.spec for metric in loaded]
    repeated = next((spec for spec in specs if specs.count(spec) > 1), None)
    if repeated:
        raise UsageError(f"metric {repeated!r} is given twice")
    return loaded


def _no_name(given: object) -> UsageError:
    if isinstance(given, type) and issubclass(given, Metric):
        return UsageError(f"{given.__name__} is a class: make a metric of it, {given.__name__}()")
    return UsageError(f"a metric is named by a text such as 'chrf', not by {one_line(given)}")


def _unknown_name(name: str) -> UsageError:
    if name in RANKERS:
        return UsageError(
            f"{name} is a ranker, which compares translations and scores none: "
            f"use it with `tertium rank -m {name}` or load_ranker({name!r})"
        )
    if "/" in name:
        return UsageError(f"{name}: no folder that a metric was saved to (no config.json there)")
    parts = name.split(",")
    if len(parts) > 1 and {*parts} <= {*METRICS, *ALIASES}:
        return UsageError(f"{name}: separate metrics by spaces, {' '.join(parts)}")
    return UnknownNameError("metric", name, [*METRICS, *ALIASES])


def is_folder(spec: str) -> bool:
    """Whether a spec is the path of a trained metric, not a name."""
    known = spec in METRICS or spec in ALIASES
    try:
        return not known and (Path(spec) / "config.json").is_file()
    except OSError:
        return False
