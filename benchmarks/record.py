"""Record benchmark outputs next to the page that shows them.

`docs/benchmarks.json` holds the last output of each benchmark, or of each named part (`corpora
ray`), with its arguments, machine, package versions and commit. The part of `docs/benchmarks.md`
between two markers is generated from it, so single benchmarks can be run again.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from papers.provenance import code_version

from tertium.core.atomic import write_text

START, END = "<!-- measured -->", "<!-- end -->"
PACKAGES = (
    "numpy",
    "torch",
    "transformers",
    "sacrebleu",
    "bert-score",
    "POT",
    "scikit-learn",
    "pyarrow",
    "ray",
)


class RecordingStream(io.TextIOBase):
    """A stream that forwards to another one and keeps a copy."""

    def __init__(self, other: TextIO) -> None:
        self.other, self.load_runs = other, io.StringIO()

    def write(self, text: str) -> int:
        self.load_runs.write(text)
        return self.other.write(text)

    def flush(self) -> None:
        self.other.flush()


def record_run(
    name: str, description: str, arguments: Sequence[str], run: Callable[[], Any]
) -> dict[str, Any]:
    """Run a benchmark, show its output, and return the entry for the page."""
    tee = RecordingStream(sys.stdout)
    part = itertools.takewhile(lambda argument: not argument.startswith("-"), arguments)
    started = time.perf_counter()
    with contextlib.redirect_stdout(tee):
        run()
    return {
        "name": " ".join([name, *part]),
        "benchmark": name,
        "description": " ".join(description.split("\n\n")[0].split()),
        "arguments": list(arguments),
        "output": tee.load_runs.getvalue().strip().splitlines(),
        "seconds": round(time.perf_counter() - started, 1),
        "machine": describe_machine(),
        "versions": package_versions(),
        "code": code_version(),
    }


def add_run(page: Path, entry: Mapping[str, Any]) -> None:
    """Store one benchmark in the file next to the page and regenerate the page."""
    entries = {**load_runs(page), entry["name"]: entry}
    text = json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    write_text(page.with_suffix(".json"), text)
    write_page(page)


def load_runs(page: Path) -> dict[str, Any]:
    """Return the recorded benchmarks of a page, by name."""
    file = page.with_suffix(".json")
    if not file.is_file():
        return {}
    entries: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return entries


def write_page(page: Path) -> None:
    """Regenerate the part of a page between its markers; the other text stays."""
    text = page.read_text(encoding="utf-8") if page.is_file() else "# Benchmarks\n"
    if START not in text or END not in text:
        text = f"{text.rstrip()}\n\n{START}\n{END}\n"
    rows = "".join(format_run(entry) for _, entry in sorted(load_runs(page).items()))
    header = "| run | command | machine and code |\n| --- | --- | --- |\n"
    pattern = re.compile(re.escape(START) + ".*?" + re.escape(END), re.DOTALL)
    write_text(page, pattern.sub(lambda _: f"{START}\n{header}{rows}{END}", text, count=1))


def format_run(entry: Mapping[str, Any]) -> str:
    """Return the table row of one run, with the anchor that the page links to."""
    command = " ".join(["python -m benchmarks", entry["benchmark"], *entry["arguments"]])
    anchor = f'<a id="{entry["name"].replace(" ", "-")}"></a>{entry["name"]}'
    about = f"{entry['description']}<br>`{command}`, {entry['seconds']:g} s"
    return f"| {anchor} | {about} | {entry['machine']}; {entry['code']} |\n"


def describe_machine() -> str:
    """Return the processor, its cores and the current load."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"{describe_processor()}, {os.cpu_count()} cores, load {load:.1f} at the end"


def describe_processor() -> str:
    """Return the processor model, if the system reports it."""
    try:
        completed = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return platform.machine()
    match = re.search(r"^Model name:\s*(.+)$", completed.stdout, re.MULTILINE)
    return f"{match[1].strip()} ({platform.machine()})" if match else platform.machine()


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of installed packages that affect results."""
    match = {"Python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            match[name] = importlib.metadata.version(name)
    return match
