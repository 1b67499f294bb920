"""The vector store returns correct entries or none, whatever happens to its file."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.cache.entries import (
    are_all_correct,
    are_equal,
    make_entry,
    make_texts,
    read_entries,
    write_entries,
    write_texts,
)

from tertium.core import store as database
from tertium.core.errors import DataError, UsageError
from tertium.core.runtime import runtime
from tertium.core.store import Store
from tertium.encoders import vector_cache as cache
from tertium.encoders.vector_cache import (
    CacheEntry,
    decode_entry,
    encode_entry,
    get_entries,
    open_vector_store,
    put_entries,
    store_size_limit,
)

MEGABYTE = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / cache.FILE


@pytest.fixture
def store(path: Path) -> Store:
    return Store(path, 64 * MEGABYTE)


def fill_store(path: Path, count: int = 200, limit: int = 64 * MEGABYTE) -> None:
    store = Store(path, limit)
    write_texts(store, make_texts(count))
    store.close()


# The format of one entry


@given(
    arrays(np.float32, st.tuples(st.integers(0, 5), st.integers(1, 6))),
    st.sampled_from([np.float32, np.float16, "bf16"]),
    st.booleans(),
    st.data(),
)
def test_an_entry_round_trips_exactly(
    matrix: np.ndarray, kind: object, truncated: bool, data: st.DataObject
) -> None:
    if kind == "bf16":
        matrix = (matrix.view(np.uint32) & 0xFFFF0000).view(np.float32)
    else:
        with np.errstate(over="ignore"):
            matrix = matrix.astype(kind).astype(np.float32)  # type: ignore[call-overload]
    word = st.text(max_size=4)
    tokens = tuple(data.draw(word) for _ in matrix)
    row = encode_entry(CacheEntry(matrix, tokens, truncated), "text")
    entry = decode_entry(row, "text")
    assert entry is not None
    assert entry.matrix.tobytes() == matrix.tobytes()
    assert (entry.matrix.shape, entry.tokens, entry.truncated) == (matrix.shape, tokens, truncated)


def test_a_sentence_vector_round_trips() -> None:
    vector = np.arange(5, dtype=np.float32) / 7
    entry = decode_entry(encode_entry(CacheEntry(vector, (), False), "text"), "text")
    assert entry is not None
    assert np.array_equal(entry.matrix, vector)


def test_a_damaged_or_mismatched_entry_decodes_to_none() -> None:
    row = encode_entry(make_entry("a cat sat"), "a cat sat")
    assert decode_entry(row, "a dog sat") is None
    assert decode_entry(row[:-1], "a cat sat") is None
    for offset in range(0, len(row), 7):
        damaged = bytearray(row)
        damaged[offset] ^= 0x10
        assert decode_entry(bytes(damaged), "a cat sat") is None


def test_keys_differ_by_kind_and_text(store: Store) -> None:
    texts = ["a", "b", "", "é", "e\u0301", "\ud800"]
    for kind in ("m@4", "m@6"):
        store.write(kind, {text: ascii(kind + text).encode() for text in texts})
    for kind in ("m@4", "m@6"):
        assert store.read(kind, texts) == {text: ascii(kind + text).encode() for text in texts}


# Reading and writing


def test_read_returns_what_was_written(store: Store) -> None:
    entries = {text: make_entry(text) for text in make_texts(700)}
    assert read_entries(store, "model", list(entries)) == {}
    write_entries(store, "model", entries)
    stored = read_entries(store, "model", [*entries, "unknown"])
    assert set(stored) == set(entries)
    assert are_all_correct(stored)
    assert read_entries(store, "other model", list(entries)) == {}
    assert store.count() == {"model": 700}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs Linux or macOS: it forks")
def test_a_fork_opens_its_own_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    store = open_vector_store()
    assert store is not None
    write_texts(store, ["a cat"])
    assert read_entries(store, "model", ["a cat"])
    child = os.fork()
    if child == 0:
        other = open_vector_store()
        sound = (
            other is not None
            and other is not store
            and bool(read_entries(other, "model", ["a cat"]))
        )
        os._exit(0 if sound else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert read_entries(store, "model", ["a cat"])


# The size limit


def test_least_recently_used_entries_are_evicted_first(path: Path) -> None:
    size = 2_500_000
    for age, start in ((3000, 0), (2000, 1000), (1000, 2000)):
        fill_store_at(path, make_texts(1000, start), time.time() - age, size)
    entries = read_entries(Store(path, size), "model", make_texts(3000))
    left = [sum(text in entries for text in make_texts(1000, start)) for start in (0, 1000, 2000)]
    assert left[0] == 0 < left[1] < left[2] == 1000
    assert database.file_bytes(path) <= 1.3 * size


def fill_store_at(path: Path, texts: list[str], when: float, limit: int) -> None:
    """Write entries with a process start time of `when`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: when)
        store = Store(path, limit)
        write_texts(store, texts)
        store.close()


def test_a_run_larger_than_the_store_keeps_its_first_entries(path: Path) -> None:
    limit = 2 * MEGABYTE
    store = Store(path, limit)
    for start in range(0, 3000, 500):
        write_texts(store, make_texts(500, start))
    store.close()
    entries = read_entries(Store(path, limit), "model", make_texts(3000))
    assert len(entries) > 1000
    assert set(entries) == set(make_texts(len(entries)))
    assert database.file_bytes(path) <= 1.3 * limit


def test_a_file_above_a_lower_limit_shrinks_during_use(path: Path) -> None:
    fill_store_at(path, make_texts(3000), when=1e9, limit=64 * MEGABYTE)
    before, limit = database.file_bytes(path), 2 * MEGABYTE
    assert before > limit
    store = Store(path, limit)
    for start in range(5000, 5200, 20):
        write_texts(store, make_texts(20, start))
    store.close()
    assert path.stat().st_size <= limit
    assert len(read_entries(Store(path, limit), "model", make_texts(200, 5000))) == 200


def test_reading_an_entry_protects_it_from_eviction(path: Path) -> None:
    limit = 2_500_000
    fill_store_at(path, make_texts(1000), time.time() - 90_000, limit)
    fill_store_at(path, make_texts(1000, 1000), time.time() - 80_000, limit)
    reader = Store(path, limit)
    read_entries(reader, "model", make_texts(1000))
    later = Store(path, limit)
    later._started = time.time() + 1
    write_texts(later, make_texts(500, 2000))
    entries = read_entries(Store(path, limit), "model", make_texts(3000))
    assert all(text in entries for text in make_texts(1000))
    assert not all(text in entries for text in make_texts(1000, 1000))


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 4 << 30), ("500M", 500 << 20), ("1.5GB", 3 << 29), ("0", 0), ("7k", 7168)],
)
def test_the_size_is_read_from_the_environment(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE_SIZE", text)
    assert store_size_limit() == size


def test_an_invalid_size_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTIUM_CACHE_SIZE", "lots")
    with pytest.raises(UsageError, match="TERTIUM_CACHE_SIZE=lots is not a size"):
        store_size_limit()


def test_no_store_if_disabled_or_not_writable(
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


# Damaged, locked and full files


def check_store_is_disabled(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Check that reading and writing raise nothing and warn exactly once."""
    store = Store(path, 64 * MEGABYTE)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert are_all_correct(read_entries(store, "model", make_texts(300)))
            write_texts(store, make_texts(10, 900))
    assert not store.is_usable
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert "is not used" in warnings[0]


def test_a_file_that_is_not_a_database(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is not a database" * 1000)
    check_store_is_disabled(path, caplog)
    with pytest.raises(DataError, match="tertium setup cache clear"):
        Store(path, MEGABYTE).count()
    assert Store(path, MEGABYTE).clear() == 22_000
    assert not path.exists()


def test_a_database_of_another_program(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE other (value TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    check_store_is_disabled(path, caplog)
    with pytest.raises(DataError, match="made by another program"):
        Store(path, MEGABYTE).clear()
    assert path.read_bytes() == before


def test_a_damaged_entry_is_stored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    entries = {text: make_entry(text) for text in make_texts(50)}
    put_entries("model", entries)
    with closing(sqlite3.connect(tmp_path / cache.FILE)) as database_file, database_file:
        database_file.execute("UPDATE entries SET value = zeroblob(length(value)) WHERE entry <= 7")
    cache.clear_memory()
    assert len(get_entries("model", list(entries))) == 43
    assert "7 damaged entries" in caplog.text
    put_entries("model", entries)
    cache.clear_memory()
    stored = get_entries("model", list(entries))
    assert len(stored) == 50
    assert are_all_correct(stored)


def test_clearing_empties_the_store(path: Path) -> None:
    fill_store(path)
    store = Store(path, 64 * MEGABYTE)
    assert store.clear() > 100_000
    assert store.count() == {}
    write_texts(store, ["a cat"])
    assert are_equal(read_entries(store, "model", ["a cat"])["a cat"], make_entry("a cat"))
