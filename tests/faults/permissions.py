"""Files and folders without permission: one-line errors, and scores without a cache.

Cases run in a child process without the privileges of root (`children.run`).
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import sys
from pathlib import Path

from tests.faults.children import Report, check_line, run
from tests.faults.kills import _two_models

from tertium.cli import main

CAPABILITY_VERSION = 0x20080522  # of the Linux system call, with 64 bits per set
ROW = json.dumps({"mt": "a cat", "ref": "the cat", "score": 1}) + "\n"


def drop_privileges() -> bool:
    """Give up the capabilities of root, so that file modes apply; return whether they do."""
    if os.geteuid() != 0:
        return True
    if sys.platform != "linux":
        return False
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    return bool(ctypes.CDLL(None).capset(header, sets) == 0)


SCORE = "score -t hyp.txt -r ref.txt -m"
# case: (file or folder whose mode changes, mode, command)
CASES: dict[str, tuple[str, int, str]] = {
    "unreadable text": ("hyp.txt", 0o000, f"{SCORE} chrf"),
    "unreadable input folder": ("rows", 0o000, "corpus rows -m chrf -o out"),
    # whose rows would be missing without notice
    "unreadable folder among inputs": ("rows/b", 0o000, "corpus rows -m chrf -o out"),
    "glob in unreadable folder": ("rows", 0o000, "corpus rows/*.jsonl -m chrf -o out"),
    "unreadable model folder": ("model", 0o000, f"{SCORE} ./model"),
    "unreadable weights": ("model/weights.safetensors", 0o000, f"{SCORE} ./model"),
    "unreadable config": ("model/config.json", 0o000, f"{SCORE} ./model"),
    "unreadable human scores": ("rows", 0o000, "meta --human rows -m chrf"),
    "unreadable models": ("models", 0o000, "list models"),
    "unreadable cache": ("cache", 0o000, "setup cache"),
    "unwritable scores": ("rows", 0o500, f"{SCORE} chrf -o rows/out.json"),
    "unwritable training": ("rows", 0o500, "train bleu-r --train rows/a.jsonl -o rows/model"),
    "unwritable report": (
        "rows",
        0o500,
        "report -t hyp.txt -r ref.txt -m chrf -o rows/page.html",
    ),
    "unwritable corpus": ("cache", 0o500, "corpus rows -m chrf -o cache/out"),
}


def try_command(name: str, home: Path) -> str:
    """Run a command that lacks a permission: it must fail with one line that says so."""
    for folder in ("rows/b", "cache", "models"):
        (home / folder).mkdir(parents=True)
    for file in ("rows/a.jsonl", "rows/b/b.jsonl"):
        (home / file).write_text(ROW)
    for file in ("hyp.txt", "ref.txt"):
        (home / file).write_text("a cat\n")
    _two_models()[0].save(home / "model")
    path, mode, command = CASES[name]
    (home / path).chmod(mode)

    def work(report: Report) -> None:
        os.chdir(home)
        os.environ |= {"TERTIUM_CACHE": str(home / "cache"), "TERTIUM_MODELS": str(home / "models")}
        if not drop_privileges():
            report("not possible here")
            return
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = main(command.split())
        report(json.dumps([code, errors.getvalue()]))

    try:
        answer = run(work).answer
    finally:
        for base, folders, _ in os.walk(home):  # reads a folder after its mode was restored
            for name in folders:
                Path(base, name).chmod(0o700)
    if answer == "not possible here":
        return answer
    code, errors = json.loads(answer)
    assert code == 2, errors
    check_line(errors.strip(), "ermission")
    return "refused"
