"""Rich display of results: HTML in notebooks, tables when printed.

Result classes derive from `Displayable`. The rendering functions belong to a higher layer, which
registers them here with `register_renderer`; they are loaded when a value is first displayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Renderer(Protocol):
    """An object or module with a function for each output format."""

    @property
    def render_html(self) -> Callable[[Any], str]: ...

    @property
    def render_text(self) -> Callable[[Any], str]: ...


_renderer_loaders: list[Callable[[], Renderer]] = []


def register_renderer(load: Callable[[], Renderer]) -> None:
    """Register the function that loads the renderer; the last one registered is used."""
    _renderer_loaders.append(load)


class Displayable:
    """Mixin that displays a value with the registered renderer."""

    __slots__ = ()

    def _repr_html_(self) -> str:  # called by Jupyter
        return _renderer_loaders[-1]().render_html(self)

    def __str__(self) -> str:
        return _renderer_loaders[-1]().render_text(self)
