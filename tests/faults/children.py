"""Work done in a child process that may be killed, and what it told before it died.

Children are forked from a process that has loaded everything, so that a kill lands in the work and
not in an import; each does its work from the state that the disk has, and nothing else.
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

Tell = Callable[[str], None]
LONGEST = 300.0  # seconds a child may take


@dataclass(frozen=True, kw_only=True)
class End:
    """How a child ended: killed or by itself, the lines it told, and after how many seconds."""

    killed: bool
    status: int
    lines: tuple[str, ...]
    seconds: float

    @property
    def answer(self) -> str:
        """The last line of a child that ended well."""
        assert (self.killed, self.status) == (False, 0), "\n".join(self.lines)
        return self.lines[-1]


def check_line(text: str, holds: str = "") -> None:
    """An error is one line, not empty, and says what it should."""
    assert text.strip(), "an error without a word"
    assert "\n" not in text, f"more than one line: {text}"
    assert holds in text, text


def run(work: Callable[[Tell], None], *, kill_after: float | None = None) -> End:
    """Fork, work, and kill -9 after so many seconds of work, unless it is done before."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    begin = time.monotonic()
    killed, told = False, b""
    limit = LONGEST if kill_after is None else kill_after
    while True:
        left = begin + limit - time.monotonic()
        ready = select.select([reading], [], [], max(0.0, left))[0]
        if not ready:
            assert kill_after is not None, "a child took too long"
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            limit, kill_after = LONGEST, LONGEST
            continue
        block = os.read(reading, 1 << 16)
        if not block:
            break
        told += block
    os.close(reading)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    lines = told.decode("utf-8", "replace").split("\n")[:-1]  # a torn last line was not told
    return End(killed=killed, status=status, lines=tuple(lines), seconds=time.monotonic() - begin)


def _work(work: Callable[[Tell], None], descriptor: int) -> None:
    status = 1
    try:
        work(lambda line: _tell(descriptor, line))
        status = 0
    except BaseException:
        _tell(descriptor, traceback.format_exc().replace("\n", " | "))
    finally:
        os._exit(status)


def _tell(descriptor: int, line: str) -> None:
    os.write(descriptor, line.encode() + b"\n")
