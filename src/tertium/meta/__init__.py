"""Agreement of metrics with human scores: statistics, tests and rankings on score matrices."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tertium import _read_public_names

_MODULE_BY_NAME = _read_public_names(__file__)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'tertium.meta' has no attribute {name!r}")
    return getattr(import_module(_MODULE_BY_NAME[name]), name)
