"""Record golden files again, and print what changed.

python -m tests.golden.record [NAME...]

Runs the tests that use golden files, or those whose names contain a NAME, in a mode in which they
write the files. A test fails for a golden file that belongs to no test.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.golden import store

TESTS = ("tests/golden", "tests/docs/test_pages.py")
RECORDED = ("scores", "commands", "pages")  # folders
MAX_LINES = 60  # of differences, for each file


def read_files() -> dict[Path, str]:
    """Return the text of every recorded file."""
    paths = [p for name in RECORDED for p in sorted((store.FOLDER / name).rglob("*.*"))]
    return {path: store.read_file(path) for path in paths if path.is_file()}


def print_differences(before: dict[Path, str], after: dict[Path, str]) -> None:
    """Print the changed lines of each file."""
    for path in sorted({*before, *after}):
        old, new = before.get(path, ""), after.get(path, "")
        if old == new:
            continue
        change = "new" if path not in before else "removed" if path not in after else "changed"
        print(f"{change}: {path.relative_to(store.FOLDER)}")
        if change == "changed":
            lines = [*difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)]
            print("\n".join(lines[2 : MAX_LINES + 2]))
            if len(lines) > MAX_LINES + 2:
                print(f"... {len(lines) - MAX_LINES - 2} more lines")


def main(names: Sequence[str]) -> int:
    """Record, print differences and return the exit code of pytest."""
    machine = store.describe_machine()
    if store.MACHINE.is_file() and not store.is_recording_machine():
        print("Another kind of machine recorded these files: values of tertium-* are kept where")
        print(f"they match within {store.INT8_TOLERANCE}. Remove {store.MACHINE} to replace them.")
    elif not store.MACHINE.is_file():
        store.MACHINE.write_text(json.dumps(machine, indent=1) + "\n", encoding="utf-8")
    before = read_files()
    os.environ[store.RECORDING] = "1"
    selection = ["-k", " or ".join(names)] if names else []
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-m", "", *selection, *TESTS])
    print_differences(before, read_files())
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
