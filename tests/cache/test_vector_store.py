"""The store gives back what it was given or nothing, and outlives faults, kills and strangers."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.cache.parts import part_of, right_or_absent, same, texts_of

from tertium.cache import database
from tertium.cache import vector_store as cache
from tertium.cache.database import CacheEntry, KeyHasher, decode_entry, encode_entry
from tertium.cache.vector_store import VectorStore, open_vector_store, store_size_limit
from tertium.errors import DataError, UsageError
from tertium.execution import runtime

MEGABYTE = 1 << 20
ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / cache.FILE


@pytest.fixture
def store(path: Path) -> Iterator[VectorStore]:
    made = VectorStore(path, 64 * MEGABYTE)
    yield made
    made.close()


def filled(path: Path, count: int = 200, limit: int = 64 * MEGABYTE) -> None:
    made = VectorStore(path, limit)
    made.write("model", {text: part_of(text) for text in texts_of(count)})
    made.close()


# One row


@given(
    arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(1, 6))),
    st.sampled_from([np.float32, np.float16, "bf16"]),
    st.booleans(),
    st.data(),
)
def test_a_row_gives_back_every_bit(
    matrix: np.ndarray, kind: object, truncated: bool, data: st.DataObject
) -> None:
    if kind == "bf16":
        matrix = (matrix.view(np.uint32) & 0xFFFF0000).view(np.float32)
    else:
        with np.errstate(over="ignore"):
            matrix = matrix.astype(kind).astype(np.float32)  # type: ignore[call-overload]
    word = st.text(st.characters(exclude_characters="\0"), max_size=4)
    tokens = tuple(data.draw(word) for _ in matrix)
    digest = bytes(range(24))
    row = encode_entry(CacheEntry(matrix, tokens, truncated), digest)
    assert row is not None
    found = decode_entry(row, digest)
    assert found is not None
    assert found.matrix.tobytes() == matrix.tobytes()
    assert (found.matrix.shape, found.tokens, found.truncated) == (matrix.shape, tokens, truncated)


def test_half_precision_takes_half_the_room() -> None:
    matrix = np.random.default_rng(0).normal(size=(20, 64)).astype(np.float32)
    rounded = (matrix.view(np.uint32) & 0xFFFF0000).view(np.float32)
    sizes = [
        len(encode_entry(CacheEntry(m, ("x",) * 20, False), bytes(24)) or b"")
        for m in (matrix, rounded)
    ]
    assert sizes[0] > 20 * 64 * 4
    assert sizes[1] < 20 * 64 * 2 + 200


def test_a_sentence_vector_stays_one() -> None:
    vector = np.arange(5, dtype=np.float32) / 7
    row = encode_entry(CacheEntry(vector, (), False), bytes(24))
    assert row is not None
    found = decode_entry(row, bytes(24))
    assert found is not None
    assert np.array_equal(found.matrix, vector)


def test_a_damaged_or_foreign_row_is_nothing() -> None:
    row = encode_entry(part_of("a cat sat"), bytes(24))
    assert row is not None
    assert decode_entry(row, bytes(23) + b"\1") is None
    assert decode_entry(row[:-1], bytes(24)) is None
    for place in range(0, len(row), 7):
        damaged = bytearray(row)
        damaged[place] ^= 0x10
        assert decode_entry(bytes(damaged), bytes(24)) is None


def test_keys_differ_by_fingerprint_and_text() -> None:
    texts = ["a", "b", "", "é", "e\u0301", "\ud800"]
    keys = [KeyHasher(name)(text) for name in ("m@4", "m@6") for text in texts]
    assert len(set(keys)) == len(keys)


# The store at peace


def test_it_gives_back_what_it_was_given(store: VectorStore) -> None:
    parts = {text: part_of(text) for text in texts_of(700)}
    assert store.read("model", list(parts)) == {}
    store.write("model", parts)
    store.flush()
    found = store.read("model", [*parts, "unknown"])
    assert set(found) == set(parts)
    assert right_or_absent(found)
    assert store.read("other model", list(parts)) == {}
    assert store.info().texts == {"model": 700}


def test_another_process_reads_it(path: Path) -> None:
    filled(path, 20)
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.cache.parts import *
found = Store(Path({str(path)!r}), 1 << 26).read("model", texts_of(30))
assert right_or_absent(found)
print(len(found))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("20", 0), done.stderr


def test_processes_write_at_the_same_time(path: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.cache.parts import *
store = Store(Path({str(path)!r}), 1 << 28)
for start in range(0, 400, 100):
    store.write("model", {{t: part_of(t) for t in texts_of(150, start + int(sys.argv[1]))}})
store.close()
print(store.usable)
"""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(50 * n)], stdout=subprocess.PIPE, text=True
        )
        for n in range(4)
    ]
    assert [worker.communicate(timeout=120)[0].strip() for worker in workers] == ["True"] * 4
    store = VectorStore(path, 1 << 28)
    found = store.read("model", texts_of(600))
    assert len(found) == 600
    assert right_or_absent(found)
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs Linux or macOS: it forks")
def test_a_fork_opens_its_own_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    store = open_vector_store()
    assert store is not None
    store.write("model", {"a cat": part_of("a cat")})
    store.flush()
    assert store.read("model", ["a cat"])
    child = os.fork()
    if child == 0:
        other = open_vector_store()
        sound = other is not None and other is not store and bool(other.read("model", ["a cat"]))
        os._exit(0 if sound else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.read("model", ["a cat"])


# Its size


def test_what_was_used_longest_ago_goes_first(path: Path) -> None:
    size = 2_500_000
    for age, start in ((3000, 0), (2000, 1000), (1000, 2000)):
        filled_at(path, texts_of(1000, start), time.time() - age, size)
    found = VectorStore(path, size).read("model", texts_of(3000))
    left = [sum(text in found for text in texts_of(1000, start)) for start in (0, 1000, 2000)]
    assert left[0] == 0 < left[1] < left[2] == 1000
    assert database.file_bytes(path) <= 1.3 * size


def filled_at(path: Path, texts: list[str], when: float, limit: int) -> None:
    """Write as a process that started at that time would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: when)
        made = VectorStore(path, limit)
        made.write("model", {text: part_of(text) for text in texts})
        made.close()


def test_a_run_larger_than_the_store_keeps_what_it_stored_first(path: Path) -> None:
    limit = 2 * MEGABYTE
    store = VectorStore(path, limit)
    for start in range(0, 3000, 500):
        store.write("model", {text: part_of(text) for text in texts_of(500, start)})
    store.close()
    found = VectorStore(path, limit).read("model", texts_of(3000))
    assert len(found) > 1000
    assert set(found) == set(texts_of(len(found)))
    assert database.file_bytes(path) <= 1.3 * limit


def test_a_file_beyond_a_smaller_limit_shrinks_as_it_is_used(path: Path) -> None:
    filled_at(path, texts_of(3000), when=1e9, limit=64 * MEGABYTE)
    before, limit = database.file_bytes(path), 2 * MEGABYTE
    assert before > limit
    store = VectorStore(path, limit)
    for start in range(5000, 5200, 20):
        store.write("model", {text: part_of(text) for text in texts_of(20, start)})
        store.flush()
    store.close()
    assert path.stat().st_size <= limit
    assert len(VectorStore(path, limit).read("model", texts_of(200, 5000))) == 200


def test_two_that_evict_at_once_free_what_one_would(path: Path) -> None:
    limit = 2 * MEGABYTE
    filled_at(path, texts_of(3000), when=1e9, limit=64 * MEGABYTE)
    one, other = VectorStore(path, limit), VectorStore(path, limit)
    goal = int(0.8 * limit)
    with closing(database.connect(path)) as first, closing(database.connect(path)) as second:
        one._evict(first, goal)
        left = database.used_bytes(second)
        other._evict(second, goal)
        assert database.used_bytes(second) == left
    assert goal // 2 < left <= goal


def test_reading_keeps_a_text_young(path: Path) -> None:
    limit = 2_500_000
    filled_at(path, texts_of(1000), time.time() - 90_000, limit)
    filled_at(path, texts_of(1000, 1000), time.time() - 80_000, limit)
    reader = VectorStore(path, limit)
    reader.read("model", texts_of(1000))
    reader.close()
    later = VectorStore(path, limit)
    later._started = time.time() + 1
    later.write("model", {text: part_of(text) for text in texts_of(500, 2000)})
    later.close()
    found = VectorStore(path, limit).read("model", texts_of(3000))
    assert all(text in found for text in texts_of(1000))
    assert not all(text in found for text in texts_of(1000, 1000))


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 4 << 30), ("500M", 500 << 20), ("1.5GB", 3 << 29), ("0", 0), ("7k", 7168)],
)
def test_the_size_is_read_from_the_environment(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE_SIZE", text)
    assert store_size_limit() == size


def test_a_size_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTIUM_CACHE_SIZE", "lots")
    with pytest.raises(UsageError, match="TERTIUM_CACHE_SIZE=lots is no size"):
        store_size_limit()


def test_no_store_where_none_is_wanted_or_possible(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    assert open_vector_store() is not None
    with runtime(cache=False):
        assert open_vector_store() is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "file" / "below"))
    assert open_vector_store() is None
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    monkeypatch.setenv("TERTIUM_CACHE_SIZE", "0")
    assert open_vector_store() is None


# Faults


def goes_on_without(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Reading and writing do no harm and warn exactly once."""
    store = VectorStore(path, 64 * MEGABYTE)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert right_or_absent(store.read("model", texts_of(300)))
            store.write("model", {text: part_of(text) for text in texts_of(10, 900)})
            store.flush()
    assert not store.usable
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert "is not used" in warnings[0]
    store.close()


def test_a_file_of_rubbish(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is not a database" * 1000)
    goes_on_without(path, caplog)
    with pytest.raises(DataError, match="tertium cache clear"):
        VectorStore(path, MEGABYTE).info()
    assert VectorStore(path, MEGABYTE).clear() == 22_000
    assert not path.exists()


def test_a_file_cut_short(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    goes_on_without(path, caplog)


def test_a_store_that_another_process_makes_at_this_moment(path: Path) -> None:
    path.parent.mkdir()
    late = sqlite3.connect(path, isolation_level=None)
    assert late.execute("PRAGMA application_id").fetchone() == (0,)
    database.connect(path).close()
    database._make(late, timeout=1.0)
    assert late.execute("SELECT count(*) FROM vectors").fetchone() == (0,)
    late.close()


def test_a_database_of_another_program(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE precious (thing TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    goes_on_without(path, caplog)
    with pytest.raises(DataError, match="made by another program"):
        VectorStore(path, MEGABYTE).clear()
    assert path.read_bytes() == before


def test_a_locked_file(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "WRITER_PATIENCE", 0.1)
    monkeypatch.setattr(database.connect, "__kwdefaults__", {"patience": 0.1})
    filled(path)
    other = sqlite3.connect(path)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("INSERT INTO spaces VALUES (1, 'other')")
    goes_on_without(path, caplog)
    other.rollback()
    other.close()
    assert len(VectorStore(path, MEGABYTE).read("model", texts_of(200))) == 200


def test_a_full_disk(path: Path) -> None:
    """A limit on the size of files stands for the disk's end: writing fails in the same place."""
    filled(path, 100)
    script = f"""
import sys, resource
sys.path.insert(0, {str(ROOT)!r})
from tests.cache.parts import *
size = Path({str(path)!r}).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40_000, size + 40_000))
store = Store(Path({str(path)!r}), 1 << 30)
for start in range(1000, 4000, 1000):
    store.write("model", {{t: part_of(t) for t in texts_of(1000, start)}})
    store.flush()
found = store.read("model", texts_of(4000))
assert right_or_absent(found)
print(store.usable)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("False", 0), done.stderr
    assert done.stderr.count("is not used") == 1
    store = VectorStore(path, 64 * MEGABYTE)
    found = store.read("model", texts_of(4000))
    assert set(texts_of(100)) <= set(found)
    assert right_or_absent(found)
    store.close()


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_never_give_a_wrong_vector(path: Path, seed: int) -> None:
    filled(path)
    rng = np.random.default_rng(seed)
    damaged = bytearray(path.read_bytes())
    for place in rng.integers(0, len(damaged), size=40):
        damaged[place] ^= int(rng.integers(1, 256))
    path.write_bytes(bytes(damaged))
    store = VectorStore(path, 64 * MEGABYTE)
    assert right_or_absent(store.read("model", texts_of(300)))
    store.write("model", {text: part_of(text) for text in texts_of(300)})
    store.flush()
    assert right_or_absent(store.read("model", texts_of(300)))
    store.close()


def test_a_damaged_row_is_stored_anew(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(path, 50)
    database_file = sqlite3.connect(path)
    database_file.execute("UPDATE vectors SET data = zeroblob(length(data)) WHERE vector <= 7")
    database_file.commit()
    database_file.close()
    store = VectorStore(path, 64 * MEGABYTE)
    found = store.read("model", texts_of(50))
    assert len(found) == 43
    assert "7 damaged entries" in caplog.text
    store.write("model", {text: part_of(text) for text in texts_of(50)})
    store.flush()
    found = store.read("model", texts_of(50))
    assert len(found) == 50
    assert right_or_absent(found)
    store.close()


WRITER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.cache.parts import *
store = Store(Path(sys.argv[1]), 1 << 30)
start = 0
print("writing", flush=True)
while True:
    store.write("model", {{t: part_of(t) for t in texts_of(60, start)}})
    start += 60
    if start == 600:
        print("going", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs Linux or macOS: it kills")
@pytest.mark.parametrize("delay", [0.0, 0.03, 0.17])
def test_a_killed_writer_leaves_a_usable_store(path: Path, delay: float) -> None:
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            if delay:
                while writer.stdout.readline().strip() != "going":
                    assert writer.poll() is None
                time.sleep(delay)
            else:
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        store = VectorStore(path, 1 << 30)
        found = store.read("model", texts_of(20_000))
        assert store.usable
        assert len(found) > 300 or not delay  # two chunks before the one in flight
        assert right_or_absent(found)
        store.write("after", {text: part_of(text) for text in texts_of(10)})
        store.close()
        assert store.usable
        assert len(VectorStore(path, 1 << 30).read("after", texts_of(10))) == 10
        check = sqlite3.connect(path)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        check.close()


def test_clearing_empties_the_store(path: Path) -> None:
    filled(path)
    store = VectorStore(path, 64 * MEGABYTE)
    assert store.clear() > 100_000
    assert store.info().texts == {}
    store.write("model", {"a cat": part_of("a cat")})
    store.flush()
    assert same(store.read("model", ["a cat"])["a cat"], part_of("a cat"))
    store.close()
