"""What benchmarks printed, kept beside the page that shows it, so that single ones can be run anew.

`docs/benchmarks.json` holds for each benchmark, or each part that can be named behind it (`corpora
ray`), its last output, with the arguments, the machine, the versions and the commit it was made
with; the part of `docs/benchmarks.md` between two marks is written from it.
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

from tertium.atomic import write_text

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


class Tee(io.TextIOBase):
    """A stream that writes to another one and remembers."""

    def __init__(self, other: TextIO) -> None:
        self.other, self.kept = other, io.StringIO()

    def write(self, text: str) -> int:
        self.kept.write(text)
        return self.other.write(text)

    def flush(self) -> None:
        self.other.flush()


def record(
    name: str, description: str, arguments: Sequence[str], run: Callable[[], Any]
) -> dict[str, Any]:
    """Run a benchmark, showing what it prints, and give what belongs on the page."""
    tee = Tee(sys.stdout)
    part = itertools.takewhile(lambda argument: not argument.startswith("-"), arguments)
    started = time.perf_counter()
    with contextlib.redirect_stdout(tee):
        run()
    return {
        "name": " ".join([name, *part]),
        "benchmark": name,
        "description": " ".join(description.split("\n\n")[0].split()),
        "arguments": list(arguments),
        "output": tee.kept.getvalue().strip().splitlines(),
        "seconds": round(time.perf_counter() - started, 1),
        "machine": machine(),
        "versions": versions(),
        "code": code_version(),
    }


def keep(page: Path, entry: Mapping[str, Any]) -> None:
    """Put one benchmark into the file beside the page, and write the page."""
    entries = {**kept(page), entry["name"]: entry}
    text = json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    write_text(page.with_suffix(".json"), text)
    write_page(page)


def kept(page: Path) -> dict[str, Any]:
    """The benchmarks beside a page, by name."""
    file = page.with_suffix(".json")
    if not file.is_file():
        return {}
    entries: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return entries


def write_page(page: Path) -> None:
    """Fill the part of a page between its marks; what is written by hand stays."""
    text = page.read_text(encoding="utf-8") if page.is_file() else "# Benchmarks\n"
    if START not in text or END not in text:
        text = f"{text.rstrip()}\n\n{START}\n{END}\n"
    sections = "\n".join(section(entry) for _, entry in sorted(kept(page).items()))
    pattern = re.compile(re.escape(START) + ".*?" + re.escape(END), re.DOTALL)
    write_text(page, pattern.sub(lambda _: f"{START}\n{sections}{END}", text, count=1))


def section(entry: Mapping[str, Any]) -> str:
    """One benchmark as Markdown."""
    command = " ".join(["python -m benchmarks", entry["benchmark"], *entry["arguments"]])
    versions_ = ", ".join(f"{name} {number}" for name, number in entry["versions"].items())
    return "\n".join(
        [
            f"## {entry['name']}",
            f"{entry['description']}",
            "",
            "```text",
            *entry["output"],
            "```",
            "",
            f"`{command}`, {entry['seconds']:g} s in all. {entry['machine']}; {versions_}; "
            f"{entry['code']}.",
            "",
            "",
        ]
    )


def machine() -> str:
    """The processor, its cores, and how busy it is with other work."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"{processor()}, {os.cpu_count()} cores, load {load:.1f} at the end"


def processor() -> str:
    """The model of the processor, as far as the system tells."""
    try:
        done = subprocess.run(["lscpu"], capture_output=True, text=True, check=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return platform.machine()
    found = re.search(r"^Model name:\s*(.+)$", done.stdout, re.MULTILINE)
    return f"{found[1].strip()} ({platform.machine()})" if found else platform.machine()


def versions() -> dict[str, str]:
    """Python and the packages that decide a benchmark, where they are installed."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
