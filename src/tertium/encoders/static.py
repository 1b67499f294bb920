"""Word vectors that know no context: GloVe, and any word2vec or GloVe file of one's own.

`glove` is GloVe 6B (50 d) from an installed package, `file/PATH` any of these:

    vectors.txt, .vec, .txt.gz   lines of `word v1 v2 ...`, with or without word2vec's header
    vectors.npy                  a matrix (words, dim); its words are the lines of vectors.txt
    vectors.npy + *.parquet      the same with the words in the first column of a parquet file

Text and parquet are slow to read, so what they hold is kept as a matrix and a list of words under
the hash of the files, and mapped into memory from there.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar, TextIO

import numpy as np

from tertium.arrays import Float32Array, IntArray
from tertium.cache.files import WORD_VECTORS, file_hash, keep_file
from tertium.encoders.cards import CARDS
from tertium.encoders.encoder import Embeddings, EncoderName, offsets_of
from tertium.encoders.weights import locate
from tertium.errors import DataError, MissingResourceError, UsageError
from tertium.extras import explain_missing
from tertium.text.bounds import ENCODED_PIECES

_WORD = re.compile(
    r"(?:[^\W\d_]\.){2,}|n't(?!\w)|'(?:s|re|ve|ll|d|m)(?!\w)|\d+(?:[.,:]\d+)*|[^\W\d_]+?(?=n't(?!\w))"
    r"|[^\W\d_]+(?:[-.][^\W\d_]+)*|[^\W_]+|\S"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class StaticEncoder:
    """The same vector for a word wherever it stands; unknown words are skipped.

    Texts are split into words, numbers and marks. A word is looked up as written, then in lower
    case, then (where it has a hyphen or stop inside) by its parts. A sentence vector is the mean of
    its word vectors, zero where there is none. `count_unknown` counts the skipped words. Of a
    text `ENCODED_PIECES` known words are read.
    """

    name: str
    dim: int
    weights_hash: str
    files: tuple[Path, ...]
    languages: frozenset[str] | None = None
    layers: ClassVar[int] = 1
    max_length: ClassVar[int] = ENCODED_PIECES

    @property
    def sentence_dim(self) -> int:
        return self.dim

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        rows, words = self._table.rows, self.pieces(texts)
        places = np.array([rows[w] for found in words for w in found], dtype=np.int64)
        vectors = np.asarray(self._table.matrix[places], dtype=np.float32)
        offsets = offsets_of([len(found) for found in words])
        return Embeddings(
            vectors=vectors if tokens else np.zeros((0, 0), dtype=np.float32),
            offsets=offsets if tokens else np.zeros_like(offsets),
            pieces=tuple(found if tokens else () for found in words),
            sentences=_means(vectors, offsets)[:, : self.dim * sentences],
            truncated=np.array([self._is_cut(text) for text in texts], dtype=np.bool_),
        )

    def pieces(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [tuple(islice(self._known_words(text), ENCODED_PIECES)) for text in texts]

    def count_unknown(self, texts: Sequence[str]) -> int:
        """How many words of these texts have no vector."""
        rows = self._table.rows
        return sum(word not in rows for text in texts for word in self._look_up(text))

    def count_truncated(self, texts: Sequence[str]) -> int:
        return sum(map(self._is_cut, texts))

    def count_opaque(self, texts: Sequence[str]) -> int:
        return sum(bool(t.strip()) and next(self._known_words(t), None) is None for t in texts)

    def signature_fields(self) -> Mapping[str, str]:
        stem = self.name.replace(":", "_").replace("|", "_")
        return {"model": f"{stem}@{self.weights_hash[:8]}", "prec": "fp32"}

    def fingerprint(self, part: str) -> str:
        return ""

    def _known_words(self, text: str) -> Iterator[str]:
        rows = self._table.rows
        return (word for word in self._look_up(text) if word in rows)

    def _is_cut(self, text: str) -> bool:
        if len(text) <= ENCODED_PIECES:
            return False
        return next(islice(self._known_words(text), ENCODED_PIECES, None), None) is not None

    def _look_up(self, text: str) -> Iterator[str]:
        """The words of a text in the form the table knows, or as written where it knows none."""
        rows = self._table.rows
        for word in _WORD.findall(text):
            form = word if word in rows else word.lower()
            parts = re.split("[-.]", form) if form not in rows else [form]
            yield from (parts if len(parts) > 1 and all(parts) else [form])

    @cached_property
    def _table(self) -> WordTable:
        return read_table(self.files, self.weights_hash)


def _means(vectors: Float32Array, offsets: IntArray) -> Float32Array:
    """The mean of each text's rows, (n, dim); zero for a text without."""
    lengths = np.diff(offsets)
    result = np.zeros((len(lengths), vectors.shape[1]), dtype=np.float32)
    full = np.flatnonzero(lengths)
    if len(full):
        result[full] = np.add.reduceat(vectors, offsets[full]) / lengths[full, None]
    return result


def load(
    name: EncoderName, *, precision: str, long: str, special: bool, device: str
) -> StaticEncoder:
    """The encoder of `glove` or `file/PATH`; word vectors have no layers and no special tokens."""
    if precision != "fp32":
        raise UsageError(f"encoder {name} holds its vectors in fp32 only, not {precision}")
    if name.layer:
        raise UsageError(f"encoder {name}: word vectors have no layers; leave out @{name.layer}")
    if name.family == "glove":
        weights, card = locate(name), CARDS["glove"]
        files = tuple(weights.folder / file for file in card.files)
        digest, languages = weights.hash, card.languages
    else:
        files = files_of(Path(name.rest).expanduser())
        missing = [str(file) for file in files if not file.is_file()]
        if missing:
            raise MissingResourceError(f"encoder {name}: there is no file {missing[0]}")
        digest = hashlib.sha256("".join(map(file_hash, files)).encode()).hexdigest()
        languages = None
    return StaticEncoder(
        name=str(name),
        dim=width_of(files[0]),
        weights_hash=digest,
        files=files,
        languages=languages,
    )


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
    keep_file(index, lambda stream: stream.write("\n".join(words).encode()))
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
    keep_file(matrix_path, lambda stream: np.save(stream, matrix))
    keep_file(words_path, lambda stream: stream.write("\n".join(words).encode()))
    return matrix, words


def _index(key: str, suffix: str) -> Path:
    return WORD_VECTORS.path(f"{key[:32]}.{suffix}")
