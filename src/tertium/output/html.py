"""Results as HTML: in a notebook, and as a page."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tertium.atomic import PathLike, write_text
from tertium.core.result import Result
from tertium.errors import UsageError
from tertium.output import renderers

# The function that returns the page of a result, by class.
PAGES = {
    "CheckReport": "tertium.output.page.findings_page:findings_page",
    "GateResult": "tertium.output.page.gate_page:gate_page",
    "WorstSegments": "tertium.output.page.worst_page:worst_page",
}


def write(result: Result, path: PathLike) -> None:
    """Write the page of a result."""
    name = type(result).__name__
    if name not in PAGES:
        raise UsageError(f"{path}: a {name} has no page; give another suffix")
    module, _, function = PAGES[name].partition(":")
    make_page: Callable[[Any], str] = getattr(import_module(module), function)
    write_text(path, make_page(result))


def render_result(result: Result) -> str:
    """Return a result for a notebook."""
    return renderers.render_html(result)
