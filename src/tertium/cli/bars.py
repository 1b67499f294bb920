"""Progress bars on stderr: the listener that the command line installs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from tertium.runtime import Advance, listening


def bars(quiet: bool) -> AbstractContextManager[None]:
    """Draw a bar for every task inside the block, unless quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    return _drawing()


@contextmanager
def _drawing() -> Iterator[None]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """Steps a second, as soon as there are some."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        @contextmanager
        def draw(description: str, total: int | None) -> Iterator[Advance]:
            bar = progress.add_task(description, total=total)
            try:
                yield lambda steps: progress.advance(bar, steps)
            finally:
                progress.remove_task(bar)

        with listening(draw):
            yield
