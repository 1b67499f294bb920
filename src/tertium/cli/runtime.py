"""Options for device, batches, precision and cache, and progress bars."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tertium.cli.judge import add_judge, judge_options
from tertium.cli.parser import CommandParser
from tertium.errors import UsageError
from tertium.execution import Advance, runtime
from tertium.metrics.judge.usage import current_usage, format_cost


def add_device(parser: CommandParser) -> None:
    """Add --device and --threads."""
    group = parser.groups["Runtime"]
    group.add_argument("--device", help="cpu, cuda, cuda:N, mps or auto (default: auto)")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: all cores)")


def add_runtime(parser: CommandParser, *, precision: bool = True, judge: bool = True) -> None:
    """Add --device, --batch-size and related options; --precision and those of judges if asked."""
    add_device(parser)
    group = parser.groups["Runtime"]
    group.add_argument(
        "--gpus", type=int, metavar="N", help="0: use the CPU, 1: use a GPU (default: --device)"
    )
    if precision:
        group.add_argument(
            "--precision",
            choices=("auto", "fp32", "bf16", "fp16", "int8"),
            help="precision of neural metrics; auto: the fastest on this device (default: int8 for "
            "tertium-small, -base and -multi, fp32 for published metrics)",
        )
    group.add_argument(
        "--batch-size", type=int, metavar="N", help="texts per batch (default: by text length)"
    )
    group.add_argument("--no-cache", action="store_true", help="do not read or write the cache")
    if judge:
        add_judge(parser)


def runtime_of(args: argparse.Namespace) -> AbstractContextManager[Any]:
    """Return a context manager that applies the runtime options."""
    changes = {
        "device": device_of(args),
        "batch_size": args.batch_size,
        "threads": args.threads,
        "cache": False if args.no_cache else None,
        "judge": judge_options(args) if hasattr(args, "judge_url") else None,
    }
    return runtime(**{key: value for key, value in changes.items() if value is not None})


def device_of(args: argparse.Namespace) -> str | None:
    """Return the device of --device or --gpus, if given."""
    if args.gpus is None:
        device: str | None = args.device
        return device
    if args.device is not None:
        raise UsageError("--device and --gpus both choose the device: give only one of them")
    if args.gpus not in (0, 1):
        raise UsageError(f"--gpus {args.gpus}: expected 0 or 1; choose a GPU with --device cuda:N")
    return "cuda" if args.gpus else "cpu"


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

    usage = current_usage()

    class CostColumn(ProgressColumn):
        """Cost of the requests to a judge, if there are any."""

        def render(self, task: Task) -> Text:
            cost = usage.cost_so_far
            return Text("" if not cost else f"cost {format_cost(cost)}")

    class RateColumn(ProgressColumn):
        """Steps per second."""

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
