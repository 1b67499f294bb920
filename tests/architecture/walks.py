"""Which files of the package a walk passes: `python -m tests.architecture.walks score` lists them.

A file counts when a function of it runs between the first call and the result. Importing it does
not, whatever tables its body makes, nor do the modules of `cli`, all of which the parser asks for
their options.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import tertium
from tertium.segment import Judgment, Segment

ROOT = str(Path(tertium.__file__).parent) + os.sep
PAIR = Segment("A dog sat on a mat.", "x", ("The cat sat on the mat.",))
ROWS = [
    {"mt": f"the cat sat {n}", "ref": f"a cat sat {n}", "score": n % 4, "system": "ab"[n % 2]}
    for n in range(24)
]


def score() -> None:
    """A hypothesis to its score."""
    _ = tertium.load_metric("bertscore").score([PAIR]).system


def default() -> None:
    """A hypothesis to its score by the metric that the command line chooses where it can."""
    from tertium.cli import main

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        texts, references = Path(folder, "texts"), Path(folder, "references")
        texts.write_text("a cat sat\n", encoding="utf-8")
        references.write_text("the cat sat\n", encoding="utf-8")
        assert main(["score", "-r", str(references), "-t", str(texts), "-q"]) == 0


def train() -> None:
    """A training row to its weights."""
    judged = [Judgment(Segment(r["mt"], "x", (r["ref"],)), float(r["score"])) for r in ROWS]
    tertium.train("esim:encoder=toy,hidden=4", judged, epochs=1)


def meta() -> None:
    """A judgment to its table."""
    from tertium.cli import main

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder, "judgments.jsonl")
        lines = [json.dumps({**row, "item": n // 2}) for n, row in enumerate(ROWS)]
        file.write_text("\n".join(lines), encoding="utf-8")
        assert main(["meta", "--human", str(file), "-m", "chrf", "-q"]) == 0


def explain() -> None:
    """A pair to its explanation."""
    tertium.load_metric("mt-rte-r").explain(PAIR)


WALKS: Mapping[str, Callable[[], None]] = {
    walk.__name__: walk for walk in (score, default, train, meta, explain)
}


def files_passed(walk: Callable[[], None]) -> list[str]:
    """The files whose functions a walk runs, on any thread."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code  # a function's, not the body of a module or class
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            name = code.co_filename
            if name.startswith(ROOT) and name not in found and not _importing(frame):
                found.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = (name.removeprefix(ROOT) for name in found if name.startswith(ROOT))
    return sorted(name for name in inside if not name.startswith("cli"))


def _importing(frame: FrameType | None) -> bool:
    """Whether the body of one of our modules is what calls."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(ROOT):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        os.environ["TERTIUM_CACHE"] = cache  # an empty one: what is kept would shorten the walk
        print("\n".join(files_passed(WALKS[sys.argv[1]])))
