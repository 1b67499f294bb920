"""Child processes that may be killed, and the lines that they reported.

Children are forked from a process that has loaded everything, so that a kill hits the work and not
an import. Each child starts from the files on disk only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

Report = Callable[[str], None]
CHILD_TIMEOUT = 300.0  # seconds


@dataclass(frozen=True, kw_only=True)
class End:
    """The end of a child: whether it was killed, its status, reported lines and seconds."""

    killed: bool
    status: int
    lines: tuple[str, ...]
    seconds: float

    @property
    def answer(self) -> str:
        """The last reported line of a successful child."""
        assert (self.killed, self.status) == (False, 0), "\n".join(self.lines)
        return self.lines[-1]


def check_line(text: str, expected: str = "") -> None:
    """Check that an error message is one non-empty line with the expected text."""
    assert text.strip(), "an empty error message"
    assert "\n" not in text, f"more than one line: {text}"
    assert expected in text, text


def run(work: Callable[[Report], None], *, kill_after: float | None = None) -> End:
    """Fork a child; kill it after `kill_after` seconds unless it has ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    begin = time.monotonic()
    killed, output = False, b""
    limit = CHILD_TIMEOUT if kill_after is None else kill_after
    while True:
        left = begin + limit - time.monotonic()
        ready = select.select([reading], [], [], max(0.0, left))[0]
        if not ready:
            assert kill_after is not None, "a child took too long"
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            limit, kill_after = CHILD_TIMEOUT, CHILD_TIMEOUT
            continue
        block = os.read(reading, 1 << 16)
        if not block:
            break
        output += block
    os.close(reading)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    lines = output.decode("utf-8", "replace").split("\n")[
        :-1
    ]  # an incomplete last line was not reported
    return End(killed=killed, status=status, lines=tuple(lines), seconds=time.monotonic() - begin)


def _work(work: Callable[[Report], None], descriptor: int) -> None:
    status = 1
    try:
        work(lambda line: _report(descriptor, line))
        status = 0
    except BaseException:
        _report(descriptor, traceback.format_exc().replace("\n", " | "))
    finally:
        os._exit(status)


def _report(descriptor: int, line: str) -> None:
    os.write(descriptor, line.encode() + b"\n")
