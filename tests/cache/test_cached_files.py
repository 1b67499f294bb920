"""Files of the cache that two processes write at the same time: neither loses its entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tertium.core import store as store_module
from tertium.core.arrays import FloatArray
from tertium.core.store import SMALL_FILE_BYTES, cached_file_hash, cached_rows


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    return tmp_path


def make_keys(start: int) -> list[tuple[str]]:
    return [(str(number),) for number in range(start, start + 100)]


def compute_numbers(keys: list[tuple[str]], indices: Sequence[int]) -> FloatArray:
    return np.array([[float(keys[index][0])] for index in indices])


def test_rows_of_another_process_are_kept() -> None:
    first, second = make_keys(0), make_keys(50)

    def compute_during_another_write(indices: Sequence[int]) -> FloatArray:
        cached_rows("test", second, 1, lambda indices: compute_numbers(second, indices))
        return compute_numbers(first, indices)

    rows = cached_rows("test", first, 1, compute_during_another_write)
    assert rows.ravel().tolist() == list(range(100))

    def fail(indices: Sequence[int]) -> FloatArray:
        raise AssertionError(f"{len(indices)} rows were lost")

    assert cached_rows("test", second, 1, fail).ravel().tolist() == list(range(50, 150))
    assert cached_rows("test", first, 1, fail).ravel().tolist() == list(range(100))


def test_hashes_of_another_process_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [folder / "first", folder / "second"]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]) * SMALL_FILE_BYTES)
    hash_file = store_module.hash_file

    def hash_during_another_write(file: Path) -> str:
        if file == files[0]:
            cached_file_hash(files[1])
        return hash_file(file)

    monkeypatch.setattr(store_module, "hash_file", hash_during_another_write)
    expected = [cached_file_hash(file) for file in files]
    monkeypatch.setattr(store_module, "hash_file", lambda file: "computed again")
    assert [cached_file_hash(file) for file in files] == expected
