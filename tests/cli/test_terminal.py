"""Output on a terminal: every name and number is visible at any width."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

NEEDS = "needs a pseudo-terminal of Linux or macOS"
fcntl, pty, termios = (
    pytest.importorskip(name, reason=NEEDS) for name in ("fcntl", "pty", "termios")
)
EXAMPLES = Path(__file__).parents[2] / "examples"


def _plain_output(width: int, *arguments: str) -> str:
    """Return the output of a command on a terminal of this width, without colors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", _printed(width, *arguments, terminal="xterm"))


def _printed(width: int, *arguments: str, terminal: str) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    command = [sys.executable, "-m", "tertium", *arguments]
    environment = {**os.environ, "COLUMNS": str(width), "TERM": terminal}
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux raises it when the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    return b"".join(chunks).decode()


def test_dumb_terminal_gets_no_escape_codes() -> None:
    command = ("score", "-q", "-t", str(EXAMPLES / "examples.jsonl"), "-m", "chrf")
    assert "\x1b[1m" in _printed(80, *command, terminal="xterm")
    assert "\x1b" not in _printed(80, *command, terminal="dumb")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_narrow_terminal_shows_all_columns(width: int) -> None:
    text = _plain_output(
        width,
        "compare",
        "-q",
        "-t",
        str(EXAMPLES / "examples.jsonl"),
        "-m",
        "bleu",
        "chrf",
        "ter",
        "--paired-bs-n",
        "20",
    )
    for system in ("good (baseline)", "fair", "poor"):
        lines = [line for line in text.splitlines() if line.split("  ")[0].strip() == system]
        assert len(lines) == 3, "one line for each metric"
        for line in lines:
            assert "±" in line
            assert re.search(r"\s[123]$", line), "the rank"
            assert system.startswith("good") or re.search(r"0\.\d{4}", line), "the p-value"


@pytest.mark.parametrize("width", [40, 80])
def test_narrow_terminal_lists_all_metrics(width: int) -> None:
    from tertium.core.registry import METRICS

    text = _plain_output(width, "list", "all")
    for name in METRICS:
        assert re.search(rf"(?m)^ ?{name}\s", text), name
    assert {"references", "higher", "lower"} <= set(text.split())
