"""A damaged, replaced, locked, read-only, deleted, full or shared cache: scores stay equal."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.faults.children import Report, run
from tests.faults.kills import SCORED, _score_with_cache, _uninterrupted, texts

from tertium.encoders.vector_cache import FILE

FULL_DISK_BYTES = 160 << 10  # too small for the cache
Damage = Callable[[Path, random.Random], "contextlib.AbstractContextManager[None] | None"]


def _scores(folder: Path, before: Callable[[], None] = lambda: None) -> list[list[float]]:
    """Score in a new process with a cache folder."""

    def work(report: Report) -> None:
        before()
        report(json.dumps(_score_with_cache(texts(SCORED, 2), folder)["scores"]))

    scores: list[list[float]] = json.loads(run(work).answer)
    return scores


def corrupt(folder: Path, rng: random.Random) -> None:
    """Overwrite random bytes of the file."""
    file = folder / FILE
    data = bytearray(file.read_bytes())
    for _ in range(rng.choice((1, 20, 2000))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    file.write_bytes(data)


def truncated(folder: Path, rng: random.Random) -> None:
    os.truncate(folder / FILE, rng.randrange((folder / FILE).stat().st_size))


def random_bytes(folder: Path, rng: random.Random) -> None:
    (folder / FILE).write_bytes(rng.randbytes(5000))


def other_database(folder: Path, rng: random.Random) -> None:
    _remove(folder)
    with contextlib.closing(sqlite3.connect(folder / FILE)) as other:
        other.execute("CREATE TABLE other (value INTEGER)")
        other.commit()


def replaced_by_folder(folder: Path, rng: random.Random) -> None:
    _remove(folder)
    (folder / FILE).mkdir()


@contextlib.contextmanager
def locked(folder: Path, rng: random.Random) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextlib.contextmanager
def read_only(folder: Path, rng: random.Random) -> Iterator[None]:
    """Mount the folder read-only; without permission to mount, change its mode."""
    mounted = _mount("--bind", str(folder), str(folder))
    if mounted:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
    else:
        folder.chmod(0o500)
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
        else:
            folder.chmod(0o700)


@contextlib.contextmanager
def full_disk(folder: Path, rng: random.Random) -> Iterator[None]:
    """Mount a file system of a few pages."""
    _remove(folder)
    size = rng.choice((16, 64, 100, FULL_DISK_BYTES >> 10))
    if not _mount("-t", "tmpfs", "-o", f"size={size}k", "none", folder):
        raise NotPossibleError
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def deleted(folder: Path, rng: random.Random) -> Iterator[None]:
    """Delete the files while they are read and written."""
    deleter = os.fork()
    if deleter == 0:
        for _ in range(400):
            _remove(folder)
            time.sleep(rng.uniform(0.001, 0.02))
        os._exit(0)
    try:
        yield
    finally:
        os.kill(deleter, signal.SIGKILL)
        os.waitpid(deleter, 0)


DAMAGES: dict[str, Damage] = {
    "corrupt": corrupt,
    "truncated": truncated,
    "random bytes": random_bytes,
    "other database": other_database,
    "replaced by a folder": replaced_by_folder,
    "locked": locked,
    "read-only": read_only,
    "full disk": full_disk,
    "deleted during use": deleted,
}


class NotPossibleError(Exception):
    """Mounting needs root; file size limits are tested in any case."""


def try_damage(name: str, folder: Path, rng: random.Random) -> str:
    """Damage a filled cache and score with it."""
    folder.mkdir(parents=True)
    for file, content in filled_cache_files().items():
        (folder / file).write_bytes(content)
    assert (folder / FILE).stat().st_size > FULL_DISK_BYTES
    context = DAMAGES[name](folder, rng) or contextlib.nullcontext()
    try:
        with context:
            assert _scores(folder) == _uninterrupted()[0], f"different scores with a cache: {name}"
    except NotPossibleError:
        return "not possible here"
    if name == "other database":
        with contextlib.closing(sqlite3.connect(folder / FILE)) as other:
            assert other.execute("SELECT count(*) FROM other").fetchone() == (0,)
    shutil.rmtree(folder, ignore_errors=True)
    return "passed"


@cache
def filled_cache_files() -> dict[str, bytes]:
    """Return the files of a cache that a process has filled."""
    with tempfile.TemporaryDirectory() as folder:
        _scores(Path(folder))
        with contextlib.closing(sqlite3.connect(Path(folder) / FILE)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the process ended abruptly
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def limit_file_size(size: int) -> Callable[[], None]:
    """Limit the size of files, as on a full disk."""
    import resource  # Linux and macOS only

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def try_file_limit(folder: Path, rng: random.Random) -> None:
    """Score with a limit on file sizes."""
    folder.mkdir(parents=True)
    size = rng.choice((0, 4096, 40_000, 200_000))
    assert _scores(folder, limit_file_size(size)) == _uninterrupted()[0]
    assert _scores(folder) == _uninterrupted()[0], "different scores after a full disk"


def share_cache(folder: Path) -> None:
    """Run two writers and eight readers at once; all must get the same scores."""
    folder.mkdir(parents=True)
    pids = []
    for number in range(10):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if number >= 2:  # readers start later
                    time.sleep(0.01 * number)
                scores = _score_with_cache(texts(SCORED, 2), folder)["scores"]
                status = int(scores != _uninterrupted()[0])
            finally:
                os._exit(status)
        pids.append(pid)
    ends = [os.waitpid(pid, 0)[1] for pid in pids]
    assert ends == [0] * 10, f"different scores, or a crash, with a shared cache: {ends}"


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            file.unlink(missing_ok=True)


def _mount(*arguments: object) -> bool:
    """Mount a file system; return whether that was possible."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *map(str, arguments)], capture_output=True).returncode == 0
