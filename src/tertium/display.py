"""Values that show themselves in a notebook or when they are printed, by functions of `reporting`.

A value knows nothing of tables and pictures: `reporting.notebook` has a function for each kind,
found when it is asked.
"""

from __future__ import annotations

from importlib import import_module


class Displayed:
    """Gives a class that `notebook` knows its `_repr_html_`, which Jupyter calls, and its text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        shown: str = import_module("tertium.reporting.notebook").show(self)
        return shown

    def __str__(self) -> str:
        told: str = import_module("tertium.reporting.notebook").tell(self)
        return told
