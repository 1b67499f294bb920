"""Static word vectors: GloVe, or any word2vec or GloVe file.

`glove` is GloVe 6B (50 d) from an installed package, `file/PATH` a text file:

    vectors.txt, .vec, .txt.gz   lines of `word v1 v2 ...`, with or without word2vec's header

The package has a matrix (words, dim) and a parquet file whose first column has the words. Text and
parquet files are slow to read: their content is cached as a matrix and a list of words under the
hash of the files, and memory-mapped from there.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar, TextIO

import numpy as np

from tertium.core.arrays import BoolArray, Float32Array
from tertium.core.errors import DataError, MissingResourceError, UsageError
from tertium.core.extras import explain_missing
from tertium.core.store import WORD_VECTORS, cached_file_hash, write_cache_file
from tertium.data.text_files import limited_lines
from tertium.encoders.encoder import Embeddings, EncoderName, offsets_from_lengths
from tertium.encoders.weight_files import MODEL_CARDS, locate_weights
from tertium.text.length_limits import MAX_ENCODED_TOKENS

_WORD = re.compile(
    r"(?:[^\W\d_]\.){2,}|n't(?!\w)|'(?:s|re|ve|ll|d|m)(?!\w)|\d+(?:[.,:]\d+)*|[^\W\d_]+?(?=n't(?!\w))"
    r"|[^\W\d_]+(?:[-.][^\W\d_]+)*|[^\W_]+|\S"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class WordVectorEncoder:
    """One vector per word, independent of context; unknown words are skipped.

    Texts are split into words, numbers and punctuation marks. A word is looked up as written, then
    in lower case, then, if it contains a hyphen or period, by its parts. A sentence vector is the
    mean of the word vectors, zero if there are none. At most `MAX_ENCODED_TOKENS` known words of a
    text are read.
    """

    name: str
    weights_hash: str
    files: tuple[Path, ...]
    languages: frozenset[str] | None = None
    layers: ClassVar[int] = 1
    max_length: ClassVar[int] = MAX_ENCODED_TOKENS

    @property
    def dim(self) -> int:
        return int(self._table[0].shape[1])

    @property
    def sentence_dim(self) -> int:
        return self.dim

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        rows = self._rows
        words = self.tokenize(texts)
        long = self.find_truncated(texts)
        indices = np.array([rows[w] for text_words in words for w in text_words], dtype=np.int64)
        vectors = np.asarray(self._table[0][indices], dtype=np.float32)  # (words, dim)
        truncated = np.array([text in long for text in texts], dtype=np.bool_)
        return embed_words(words, vectors, truncated, tokens=tokens, sentences=sentences)

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [tuple(islice(self._known_words(text), MAX_ENCODED_TOKENS)) for text in texts]

    def find_unknown_words(self, texts: Sequence[str]) -> set[str]:
        """Return the texts with words that have no vector."""
        return {text for text in texts if {*self._lookup_forms(text)} - self._rows.keys()}

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        long = [text for text in texts if len(text) > MAX_ENCODED_TOKENS]
        return {
            text for text in long if any(islice(self._known_words(text), MAX_ENCODED_TOKENS, None))
        }

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        return {text for text in texts if text.strip() and not any(self._known_words(text))}

    def signature_fields(self) -> Mapping[str, str]:
        stem = self.name.replace(":", "_").replace("|", "_")
        return {"model": f"{stem}@{self.weights_hash[:8]}", "prec": "fp32"}

    def fingerprint(self, part: str) -> str:
        return ""

    def _known_words(self, text: str) -> Iterator[str]:
        return (word for word in self._lookup_forms(text) if word in self._rows)

    def _lookup_forms(self, text: str) -> Iterator[str]:
        """Yield the words of a text in the form of the table, unknown words in lower case."""
        rows = self._rows
        for word in _WORD.findall(text):
            form = word if word in rows else word.lower()
            parts = re.split("[-.]", form) if form not in rows else [form]
            yield from (parts if len(parts) > 1 and all(parts) else [form])

    @cached_property
    def _table(self) -> tuple[Float32Array, list[str]]:
        return read_table(self.files, self.weights_hash)

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        """The row of each word in the matrix."""
        return {word: row for row, word in enumerate(self._table[1])}


def embed_words(
    words: Sequence[tuple[str, ...]],
    vectors: Float32Array,
    truncated: BoolArray,
    *,
    tokens: bool,
    sentences: bool,
) -> Embeddings:
    """Return the embeddings of texts, given the vectors of all their words (words, dim)."""
    lengths = np.array([len(text_words) for text_words in words], dtype=np.int64)
    offsets = offsets_from_lengths(lengths)
    means = np.zeros((len(words), vectors.shape[1] * sentences), dtype=np.float32)
    nonempty = np.flatnonzero(lengths)
    if sentences and len(nonempty):
        means[nonempty] = np.add.reduceat(vectors, offsets[nonempty]) / lengths[nonempty, None]
    return Embeddings(
        vectors=vectors[: len(vectors) * tokens],
        offsets=offsets * tokens,
        tokens=tuple(text_words if tokens else () for text_words in words),
        sentences=means,
        truncated=truncated,
    )


def load(name: EncoderName, *, precision: str, special: bool, device: str) -> WordVectorEncoder:
    """Load `glove` or `file/PATH`; word vectors have no layers and no special tokens."""
    if name.layer:
        raise UsageError(f"encoder {name}: word vectors have no layers; leave out @{name.layer}")
    if name.family == "glove":
        weights = locate_weights(name)
        card = MODEL_CARDS["glove"]
        files = tuple(weights.folder / file for file in card.files)
        digest = weights.hash
        languages = card.languages
    else:
        file = Path(name.path).expanduser()
        if not file.is_file():
            raise MissingResourceError(f"encoder {name}: there is no file {file}")
        files = (file,)
        languages = None
        digest = hashlib.sha256(cached_file_hash(file).encode()).hexdigest()
    return WordVectorEncoder(name=str(name), weights_hash=digest, files=files, languages=languages)


def read_table(files: Sequence[Path], key: str) -> tuple[Float32Array, list[str]]:
    """Read the matrix (words, dim) and the words of files whose combined hash is `key`.

    The words, and the matrix of a text file, are read from the cache after the first time.
    """
    is_text = files[0].suffix != ".npy"
    words_path = WORD_VECTORS.path(f"{key[:32]}.txt")
    matrix_path = WORD_VECTORS.path(f"{key[:32]}.npy") if is_text else files[0]
    with contextlib.suppress(OSError, ValueError):
        words = words_path.read_text(encoding="utf-8").split("\n")
        matrix = np.load(matrix_path, mmap_mode="r", allow_pickle=False)
        if len(matrix) == len(words):
            return matrix, words
    if is_text:
        matrix, words = read_text(files[0])
        write_cache_file(matrix_path, lambda stream: np.save(stream, matrix))
    else:
        matrix = np.load(matrix_path, mmap_mode="r", allow_pickle=False)
        with explain_missing(f"reading the words of {files[1].name}"):
            from pyarrow import parquet
        words = parquet.read_table(files[1]).column(0).to_pylist()
    write_cache_file(words_path, lambda stream: stream.write("\n".join(words).encode()))
    return matrix, words


def read_text(path: Path) -> tuple[Float32Array, list[str]]:
    """Read the matrix (words, dim) and the words of a text file; words may contain spaces."""
    dim = 0
    vectors = dict[str, Float32Array]()
    with _open(path) as stream:
        for number, line in enumerate(limited_lines(stream, str(path)), start=1):
            columns = line.split()
            if number == 1 and len(columns) == 2 and all(map(str.isdigit, columns)):
                dim = int(columns[1])  # word2vec's header `words dimension`
                continue
            dim = dim or len(columns) - 1
            word, *values = line.rstrip().rsplit(" ", dim)
            try:
                vector = np.array(values, dtype=np.float32)
            except ValueError:
                vector = np.zeros(0, dtype=np.float32)
            if len(vector) != dim or not dim:
                expected = f"a word and {dim or 'its'} numbers"
                raise DataError(f"{path}, line {number}: expected {expected}")
            vectors.setdefault(word, vector)
    if not vectors:
        raise DataError(f"{path} has no word vectors: expected lines of `word v1 v2 ...`")
    return np.stack(list(vectors.values())), list(vectors)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[TextIO]:
    open_text = gzip.open if path.suffix == ".gz" else open
    try:
        with open_text(path, "rt", encoding="utf-8", errors="replace", newline="\n") as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from None
