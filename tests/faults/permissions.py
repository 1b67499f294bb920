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
from collections.abc import Callable
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


def _close(*paths: Path) -> None:
    for path in paths:
        path.chmod(0o000)


def unreadable_text(home: Path) -> list[str]:
    _close(home / "hyp.txt")
    return ["score", "-t", "hyp.txt", "-r", "ref.txt", "-m", "chrf"]


def unreadable_input_folder(home: Path) -> list[str]:
    _close(home / "rows")
    return ["corpus", "rows", "-m", "chrf", "-o", "out"]


def unreadable_folder_among_inputs(home: Path) -> list[str]:
    """Its rows would be missing without notice."""
    _close(home / "rows" / "b")
    return ["corpus", "rows", "-m", "chrf", "-o", "out"]


def glob_in_unreadable_folder(home: Path) -> list[str]:
    _close(home / "rows")
    return ["corpus", "rows/*.jsonl", "-m", "chrf", "-o", "out"]


def unreadable_model_folder(home: Path) -> list[str]:
    _close(home / "model")
    return ["score", "-t", "hyp.txt", "-r", "ref.txt", "-m", "./model"]


def unreadable_weights(home: Path) -> list[str]:
    _close(home / "model" / "weights.safetensors")
    return ["score", "-t", "hyp.txt", "-r", "ref.txt", "-m", "./model"]


def unreadable_config(home: Path) -> list[str]:
    _close(home / "model" / "config.json")
    return ["score", "-t", "hyp.txt", "-r", "ref.txt", "-m", "./model"]


def unreadable_human_scores(home: Path) -> list[str]:
    _close(home / "rows")
    return ["meta", "--human", "rows", "-m", "chrf"]


def unreadable_models(home: Path) -> list[str]:
    _close(home / "models")
    return ["list", "models"]


def unreadable_cache(home: Path) -> list[str]:
    _close(home / "cache")
    return ["setup", "cache"]


def unwritable_scores(home: Path) -> list[str]:
    (home / "rows").chmod(0o500)
    return ["score", "-t", "hyp.txt", "-r", "ref.txt", "-m", "chrf", "-o", "rows/out.json"]


def unwritable_training(home: Path) -> list[str]:
    (home / "rows").chmod(0o500)
    return ["train", "bleu-r", "--train", "rows/a.jsonl", "-o", "rows/model"]


def unwritable_report(home: Path) -> list[str]:
    (home / "rows").chmod(0o500)
    return ["report", "-t", "hyp.txt", "-r", "ref.txt", "-m", "chrf", "-o", "rows/page.html"]


def unwritable_corpus(home: Path) -> list[str]:
    (home / "cache").chmod(0o500)
    return ["corpus", "rows", "-m", "chrf", "-o", "cache/out"]


CASES: tuple[Callable[[Path], list[str]], ...] = (
    unreadable_text,
    unreadable_input_folder,
    unreadable_folder_among_inputs,
    glob_in_unreadable_folder,
    unreadable_model_folder,
    unreadable_weights,
    unreadable_config,
    unreadable_human_scores,
    unreadable_models,
    unreadable_cache,
    unwritable_scores,
    unwritable_training,
    unwritable_report,
    unwritable_corpus,
)


def try_command(make: Callable[[Path], list[str]], home: Path) -> str:
    """Run a command that lacks a permission: it must fail with one line that says so."""
    for folder in ("rows/b", "cache", "models"):
        (home / folder).mkdir(parents=True)
    for file in ("rows/a.jsonl", "rows/b/b.jsonl"):
        (home / file).write_text(ROW)
    for file in ("hyp.txt", "ref.txt"):
        (home / file).write_text("a cat\n")
    _two_models()[0].save(home / "model")
    arguments = make(home)

    def work(report: Report) -> None:
        os.chdir(home)
        os.environ |= {"TERTIUM_CACHE": str(home / "cache"), "TERTIUM_MODELS": str(home / "models")}
        if not drop_privileges():
            report("not possible here")
            return
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = main(arguments)
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
