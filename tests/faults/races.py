"""Models that other processes replace while they are read."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.faults.kills import _two_models

from tertium.errors import ModelError
from tertium.models.checkpoint import read_checkpoint

READS = 60


@contextlib.contextmanager
def saving_processes(folder: Path, count: int) -> Iterator[None]:
    """Let processes save one of two models after the other in a folder, until the block ends."""
    writers = []
    for first in range(count):
        writers.append(os.fork())
        if writers[-1] == 0:
            number = first
            while True:
                _two_models()[number % 2].save(folder)
                number += 1
    try:
        yield
    finally:
        for writer in writers:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)


def read_while_saving(folder: Path, *, writers: int) -> str:
    """Read a model that is being saved: it is one of the two, and with one writer never refused."""
    hashes = {model.weights_hash for model in _two_models()}
    _two_models()[0].save(folder)
    refused = 0
    with saving_processes(folder, writers):
        for _ in range(READS):
            try:
                assert read_checkpoint(folder).hash in hashes, "weights of one, config of the other"
            except ModelError:
                refused += 1
    assert not refused or writers > 1, f"{refused} of {READS} reads were refused"
    _two_models()[0].save(folder)
    assert read_checkpoint(folder).hash == _two_models()[0].weights_hash
    return "passed"
