"""Progress bars of commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from tertium.core.runtime import Advance, runtime


def progress_bars(quiet: bool) -> AbstractContextManager[None]:
    """Show progress bars inside the block, unless quiet or stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    return _show_progress()


@contextmanager
def _show_progress() -> Iterator[None]:
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

    from tertium.metrics.base.judge_run import current_run, format_cost

    budget = current_run().budget

    class CostColumn(ProgressColumn):
        """Cost of the requests to a judge, if there are any."""

        def render(self, task: Task) -> Text:
            return Text(f"cost {format_cost(budget.cost)}" if budget.cost else "")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        CostColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        @contextmanager
        def show_task(description: str, total: int | None) -> Iterator[Advance]:
            bar = progress.add_task(description, total=total)
            try:
                yield lambda steps: progress.advance(bar, steps)
            finally:
                progress.remove_task(bar)

        with runtime(progress=show_task):
            yield
