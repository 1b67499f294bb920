"""Values that show themselves in a notebook, by a function of `reporting` found when it is asked.

A value knows nothing of tables and pictures: `reporting.notebook` has a function for each kind.
"""

from __future__ import annotations

from importlib import import_module


class Displayed:
    """Gives a class that `notebook.show` knows its `_repr_html_`, which Jupyter calls."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        shown: str = import_module("tertium.reporting.notebook").show(self)
        return shown
