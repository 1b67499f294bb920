"""Files of word vectors: read once, then mapped into memory from an index in the cache folder.

    vectors.txt, .vec, .txt.gz   lines of `word v1 v2 ...`, with or without word2vec's header
    vectors.npy                  a matrix (words, dim); its words are the lines of vectors.txt
    vectors.npy + *.parquet      the same with the words in the first column of a parquet file

Text and parquet are slow to read, so what they hold is kept as a matrix and a list of words under
the hash of the files. Where the cache folder cannot be written to they are read every time.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO

import numpy as np

from tertium.arrays import Float32Array
from tertium.atomic import replace_content
from tertium.cache.kinds import WORD_VECTORS
from tertium.errors import DataError, WriteError
from tertium.extras import explain_missing

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class WordTable:
    """The row of each word in a matrix (words, dim)."""

    rows: Mapping[str, int]
    matrix: Float32Array


def files_of(path: Path) -> tuple[Path, ...]:
    """The files that make up the vectors at a path: a matrix brings its words along."""
    return (path, path.with_suffix(".txt")) if path.suffix == ".npy" else (path,)


def read_table(files: Sequence[Path], key: str) -> WordTable:
    """The table of some files whose joint hash is `key`."""
    if files[0].suffix == ".npy":
        matrix = np.load(files[0], mmap_mode="r", allow_pickle=False)
        words = _words(files[1], key)
    else:
        matrix, words = _read_indexed(files[0], key)
    if len(words) != len(matrix):
        raise DataError(f"{files[0]} has {len(matrix)} vectors, {files[-1]} {len(words)} words")
    return WordTable(rows=dict(zip(words, range(len(words)), strict=True)), matrix=matrix)


def read_text(path: Path) -> tuple[Float32Array, list[str]]:
    """The matrix (words, dim) and words of a text file; of equal words the first counts.

    A word may contain spaces: the last `dim` columns of a line are its numbers.
    """
    dim, vectors = width_of(path), dict[str, Float32Array]()
    with _open(path) as stream:
        for number, line in enumerate(stream, start=1):
            word, *values = line.rstrip().rsplit(" ", dim)
            if number == 1 and _is_header(line) and len(values) != dim:
                continue
            try:
                vector = np.array(values, dtype=np.float32)
            except ValueError:
                vector = np.zeros(0, dtype=np.float32)
            if len(vector) != dim:
                raise DataError(f"{path}, line {number}: expected a word and {dim} numbers")
            vectors.setdefault(word, vector)
    return np.stack(list(vectors.values())), list(vectors)


def width_of(path: Path) -> int:
    """The dimension of the vectors in a file, from its head."""
    if path.suffix == ".npy":
        return int(np.load(path, mmap_mode="r", allow_pickle=False).shape[1])
    with _open(path) as stream:
        first, second = stream.readline(), stream.readline()
    columns = len(first.split()) - 1
    if _is_header(first) and len(second.split()) - 1 != columns:
        columns = int(first.split()[1])
    if columns < 1:
        raise DataError(f"{path} holds no word vectors: expected lines of `word v1 v2 ...`")
    return columns


def _is_header(line: str) -> bool:
    """Whether a line is word2vec's `words dimension`."""
    parts = line.split()
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="\n")
    return path.open(encoding="utf-8", errors="replace", newline="\n")


def _words(path: Path, key: str) -> list[str]:
    """The words of a file that accompanies a matrix."""
    if path.suffix != ".parquet":
        with _open(path) as stream:
            return [line.rstrip("\n") for line in stream]
    index = _index(key, "txt")
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return index.read_text(encoding="utf-8").split("\n")
    words = _parquet_words(path)
    _keep(index, lambda stream: stream.write("\n".join(words).encode()))
    return words


def _parquet_words(path: Path) -> list[str]:
    with explain_missing(f"reading the words of {path.name}"):
        from pyarrow import parquet
    words: list[str] = parquet.read_table(path).column(0).to_pylist()
    return words


def _read_indexed(path: Path, key: str) -> tuple[Float32Array, list[str]]:
    """What a text file holds, from the index where there is one."""
    matrix_path, words_path = _index(key, "npy"), _index(key, "txt")
    with contextlib.suppress(OSError, ValueError):
        words = words_path.read_text(encoding="utf-8").split("\n")
        kept = np.load(matrix_path, mmap_mode="r", allow_pickle=False)
        if len(kept) == len(words):
            return kept, words
    matrix, words = read_text(path)
    _keep(matrix_path, lambda stream: np.save(stream, matrix))
    _keep(words_path, lambda stream: stream.write("\n".join(words).encode()))
    return matrix, words


def _index(key: str, suffix: str) -> Path:
    return WORD_VECTORS.path(f"{key[:32]}.{suffix}")


def _keep(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """A folder that cannot be written to costs time, never an error."""
    try:
        with replace_content(path, make_folder=True, durable=False) as stream:
            write(stream)
    except WriteError as error:
        log.debug("no index of word vectors is kept: %s", error)
