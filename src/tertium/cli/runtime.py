"""How a command computes, device, batches, precision and the cache, and the bars it draws."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tertium.errors import UsageError
from tertium.runtime import Advance, listening, runtime


def add_runtime(parser: argparse.ArgumentParser, *, precision: bool = True) -> None:
    """Add --device, --batch-size and what goes with them, --precision where it can be chosen."""
    group = parser.add_argument_group("computation (neural metrics)")
    group.add_argument("--device", help="cpu, cuda, cuda:N, mps or auto (default: auto)")
    group.add_argument("--gpus", type=int, metavar="N", help="0: stay on the CPU; 1: use a GPU")
    if precision:
        group.add_argument("--precision", choices=("fp32", "bf16", "fp16"), help="default: fp32")
    group.add_argument("--batch-size", "--batch_size", type=int, metavar="N", help="texts at once")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads")
    group.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")


def runtime_of(args: argparse.Namespace) -> AbstractContextManager[Any]:
    """The runtime choices that the options describe, in force inside the block."""
    changes = {
        "device": _device(args),
        "batch_size": args.batch_size,
        "threads": args.threads,
        "cache": False if args.no_cache else None,
    }
    return runtime(**{key: value for key, value in changes.items() if value is not None})


def _device(args: argparse.Namespace) -> str | None:
    if args.gpus is None:
        device: str | None = args.device
        return device
    if args.device is not None:
        raise UsageError("--device and --gpus say the same thing; give one of them")
    if args.gpus not in (0, 1):
        raise UsageError(f"--gpus {args.gpus}: one GPU at most; choose it with --device cuda:N")
    return "cuda" if args.gpus else "cpu"


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
