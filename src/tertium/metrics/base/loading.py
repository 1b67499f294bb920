"""Load metrics from specs, names or folders of trained models, and replace fields."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tertium.core.errors import PluginError, UnknownNameError, UsageError, short_repr
from tertium.core.fields import build_dataclass, parse_fields, split_spec
from tertium.core.registry import ALIASES, METRICS, RANKERS, resolve
from tertium.core.runtime import Runtime
from tertium.core.segment import check_surrogates
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import Scorer

ScorerT = TypeVar("ScorerT", bound=Scorer)
# Unbabel/wmt22-comet-da, wmt20-comet-qe-da, XCOMET-XL and the like
COMET_NAME = re.compile(r"unbabel/.*|(?=.*-)[\w-]*comet[\w-]*", re.IGNORECASE)
RUNTIME_OPTIONS = frozenset(field.name for field in dataclasses.fields(Runtime))


def load_metric(spec: str | Path | Metric, **fields: Any) -> Metric:
    """Build a metric from its spec.

    `spec` is a name with optional fields, the path of a folder with a trained metric, or a metric.
    Registered names take precedence over folders: write `./esim` for a folder of that name.
    Keyword arguments replace fields.

    >>> load_metric("chrf:word_order=2") == load_metric("chrf", word_order=2)
    True

    Device and threads are chosen for all metrics at once, not per metric:

        with tertium.runtime(device="cuda"):
            scores = tertium.load_metric("bertscore").score(segments)
    """
    if isinstance(spec, Metric):
        return replace_fields(spec, fields)
    if not isinstance(spec, str | Path):
        raise _not_a_spec(spec)
    spec = str(spec)
    check_surrogates(spec, f"the metric {spec!r}")
    if is_model_folder(spec):
        from tertium.models.trained_model import load_folder

        trained: Metric = load_folder(Path(spec), METRICS, "metric")
        return replace_fields(trained, fields)
    name, texts = split_spec(spec)
    if name in ALIASES:
        name, defaults = split_spec(ALIASES[name])
        texts = {**defaults, **texts}
    if is_model_folder(name):
        saved = load_metric(name)
        _check_field_names(type(saved), saved.name, texts)
        return replace_fields(saved, {**parse_fields(type(saved), saved.name, texts), **fields})
    if name not in METRICS:
        raise _unknown_name(name)
    cls = resolve(METRICS, name, "metric")
    if not (isinstance(cls, type) and issubclass(cls, Metric)):
        raise PluginError(
            f"metric {name!r} is {short_repr(cls)}: expected a subclass of Metric; fix the plugin"
        )
    _check_field_names(cls, name, texts)
    metric: Metric = build_dataclass(cls, name, texts)
    return replace_fields(metric, fields)


def replace_fields(scorer: ScorerT, fields: Mapping[str, Any]) -> ScorerT:
    """Return a copy of a metric or ranker with some fields replaced."""
    _check_field_names(type(scorer), scorer.name, fields)
    # numpy scalars would be printed as np.float64(...) in specs
    plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in fields.items()}
    return dataclasses.replace(scorer, **plain) if plain else scorer  # type: ignore[type-var]


def _check_field_names(cls: Any, name: str, fields: Iterable[str]) -> None:
    """Raise for an unknown field; say where runtime options such as the device are chosen."""
    field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    unknown = next((field for field in fields if field not in field_names), None)
    if unknown in RUNTIME_OPTIONS:
        example = '"cuda"' if unknown == "device" else "..."
        raise UsageError(
            f"{unknown} is not a field of {name}: it is chosen for all metrics at once, in Python "
            f"`with tertium.runtime({unknown}={example}):`, on the command line "
            f"--{unknown.replace('_', '-')}"
        )
    if unknown is not None:
        raise UnknownNameError(f"field of {name}", unknown, field_names)


def load_metrics(metrics: str | Metric | Sequence[str | Metric]) -> list[Metric]:
    """Load one or several metrics from specs or metric objects; duplicates are refused."""
    if not isinstance(metrics, Iterable | Metric):
        raise _not_a_spec(metrics)
    specs_or_metrics = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not specs_or_metrics:
        raise UsageError("no metric given: choose one or several (`tertium list` shows all)")
    loaded = [load_metric(metric) for metric in specs_or_metrics]
    specs = [metric.spec for metric in loaded]
    repeated = next((spec for spec in specs if specs.count(spec) > 1), None)
    if repeated:
        raise UsageError(f"metric {repeated!r} is given twice")
    return loaded


def _not_a_spec(value: object) -> UsageError:
    if isinstance(value, type) and issubclass(value, Metric):
        return UsageError(f"{value.__name__} is a class: create a metric with {value.__name__}()")
    return UsageError(f"expected a metric or a spec such as 'chrf', got {short_repr(value)}")


def _unknown_name(name: str) -> UsageError:
    if name in RANKERS:
        return UsageError(
            f"{name} is a ranker, not a metric: use it with `tertium rank -m {name}` or "
            f"load_ranker({name!r})"
        )
    if comet := find_comet_error(name):
        return comet
    if "/" in name:
        reason = explain_missing_config(name)
        return UsageError(f"{name} is not a folder with a trained model: {reason}")
    parts = name.split(",")
    if len(parts) > 1 and {*parts} <= {*METRICS, *ALIASES}:
        return UsageError(f"{name}: separate metrics with spaces, not commas: {' '.join(parts)}")
    return UnknownNameError("metric", name, [*METRICS, *ALIASES])


def find_comet_error(name: str) -> UsageError | None:
    """Return the error for a COMET checkpoint used as a metric, or None for another name.

    >>> print(find_comet_error("Unbabel/wmt22-comet-da"))
    'Unbabel/wmt22-comet-da' is a COMET checkpoint, and tertium does not include these: ...
    """
    if _has_file(name, "hparams.yaml"):
        return UsageError(f"{name} is a COMET checkpoint: write comet:model={name}")
    if not COMET_NAME.fullmatch(name):
        return None
    return UsageError(
        f"{name!r} is a COMET checkpoint, and tertium does not include these: choose one of "
        "tertium's metrics, such as tertium-multi, tertium-small or esim (`tertium list`), or give "
        "the folder of a checkpoint on this machine as comet:model=FOLDER"
    )


def is_model_folder(spec: str) -> bool:
    """Whether a spec is the path of a trained model and not a registered name."""
    return _has_file(spec, "config.json") and spec not in ALIASES and spec not in METRICS


def explain_missing_config(folder: str) -> str:
    """Say why a folder cannot be loaded as a trained model."""
    is_closed = Path(folder).is_dir() and not os.access(folder, os.R_OK | os.X_OK)
    return "no permission to read it" if is_closed else "it has no config.json"


def _has_file(folder: str, name: str) -> bool:
    try:
        return Path(folder, name).is_file()
    except OSError:  # the name is too long for a file
        return False
