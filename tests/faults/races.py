"""Models and text files that other processes replace while they are read."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults.kills import _two_models

from tertium.core.errors import ModelError, TertiumError
from tertium.corpus.corpus_run import score_corpus
from tertium.data.human_data_files import read_human_data
from tertium.data.text_files import read_lines
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
    """Read a model that is being saved: it is one of the two, or refused, never a mixture."""
    hashes = {model.weights_hash for model in _two_models()}
    _two_models()[0].save(folder)
    refused = 0
    with saving_processes(folder, writers):
        for _ in range(READS):
            try:
                assert read_checkpoint(folder).hash in hashes, "weights of one, config of the other"
            except ModelError:
                refused += 1
    assert refused < READS, "every read was refused"
    _two_models()[0].save(folder)
    assert read_checkpoint(folder).hash == _two_models()[0].weights_hash
    return "passed"


TEXT_SECONDS = 1.0  # of reading
RECORD = '{"lp": "en-de", "segment": "%d", "system": "A", "mt": "a b", "ref": "a c", "score": 1}\n'
READERS: dict[str, Callable[[Path], object]] = {
    "lines": read_lines,
    "judgments": lambda file: list(read_human_data(file)),
    "corpus": lambda file: score_corpus(file, "chrf", file.parent / f"out-{time.time_ns()}"),
}


@contextlib.contextmanager
def writing_process(file: Path, rng: random.Random) -> Iterator[None]:
    """Let a process overwrite, truncate and append to a file until the block ends."""
    texts = ["".join(RECORD % n for n in range(start, start + 2000)) for start in (0, 5000)]
    file.write_text(texts[0])
    writer = os.fork()
    if writer == 0:
        while True:
            text = rng.choice(texts)
            change = rng.randrange(3)
            if change == 0:
                os.truncate(file, rng.randrange(len(text)))
            else:
                with file.open("a" if change == 1 else "w") as stream:
                    stream.write(text[: rng.randrange(len(text))])
            time.sleep(rng.uniform(0, 0.01))
    try:
        yield
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)


def read_while_writing(name: str, folder: Path, rng: random.Random) -> str:
    """Read a file that is being written: a result or a one-line error, never another exception."""
    folder.mkdir(parents=True)
    file = folder / "rows.jsonl"
    with writing_process(file, rng):
        end = time.monotonic() + TEXT_SECONDS
        while time.monotonic() < end:
            message = ""
            try:
                READERS[name](file)
            except TertiumError as error:
                message = str(error)
            assert "\n" not in message, message
    return "passed"
