"""Results as HTML: in a notebook, and as a page."""

from __future__ import annotations

from tertium.core.result import Result
from tertium.output import renderers


def render_result(result: Result) -> str:
    """Return a result for a notebook."""
    return renderers.render_html(result)
