"""The WordNet dictionary files as a handful of arrays: read once, loaded in a moment after.

Files are those of WordNet 3.0 (wndb(5WN)): `index.*` list the synsets of each lemma, most frequent
sense first; `data.*` hold the synsets with their words and pointers; `*.exc` irregular forms.
Synsets are numbered in the order of the files (nouns, verbs, adjectives, adverbs). A sense is one
word in one synset; the senses of a synset are numbered consecutively.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tertium.cache.arrays import Arrays, cached_arrays
from tertium.errors import DataError, MissingResourceError

Ints = NDArray[np.int32]
Pos = Literal["n", "v", "a", "r"]

POS: tuple[Pos, ...] = ("n", "v", "a", "r")
FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
NAMES = ("data.{}", "index.{}", "{}.exc")
LAYOUT = "wordnet 2"

Relation = Literal[
    "antonym", "derivation", "pertainym", "participle", "hypernym", "instance_hypernym",
    "hyponym", "instance_hyponym", "holonym", "meronym", "attribute", "entailment", "cause",
    "also_see", "verb_group", "similar_to", "topic",
]  # fmt: skip

POINTERS: dict[str, Relation] = {
    "!": "antonym", "+": "derivation", "\\": "pertainym", "<": "participle",
    "@": "hypernym", "@i": "instance_hypernym", "~": "hyponym", "~i": "instance_hyponym",
    "#m": "holonym", "#p": "holonym", "#s": "holonym",
    "%m": "meronym", "%p": "meronym", "%s": "meronym",
    "=": "attribute", "*": "entailment", ">": "cause", "^": "also_see", "$": "verb_group",
    "&": "similar_to", ";c": "topic",
}  # fmt: skip
RELATIONS: tuple[Relation, ...] = tuple(dict.fromkeys(POINTERS.values()))
LEXICAL: frozenset[Relation] = frozenset({"antonym", "derivation", "pertainym", "participle"})


def load_arrays(folder: Path) -> Arrays:
    """The arrays of a dictionary folder, from the cache or made now."""
    files = [folder / name.format(FILES[pos]) for pos in POS for name in NAMES]
    present = [file for file in files if file.is_file()]
    return cached_arrays("wordnet", present, LAYOUT, lambda: read_dictionary(folder))


def read_dictionary(folder: Path) -> Arrays:
    """Read the dictionary files into arrays; see the fields of the result in the code below."""
    builder = _Builder()
    try:
        for pos in POS:
            builder.add_synsets(pos, _records(folder / f"data.{FILES[pos]}"))
        for pos in POS:
            builder.add_index(pos, _records(folder / f"index.{FILES[pos]}"))
        exceptions = [
            f"{pos} {line}"
            for pos in POS
            for line in (folder / f"{FILES[pos]}.exc").read_text("utf-8").splitlines()
        ]
    except OSError as error:
        raise MissingResourceError(f"WordNet in {folder} is incomplete: {error}") from None
    except (ValueError, IndexError, KeyError) as error:
        raise DataError(f"WordNet in {folder} cannot be read: {error!r}") from error
    return {**builder.arrays(), "exceptions": _text("\n".join(exceptions))}


def _records(file: Path) -> Iterator[list[str]]:
    """The space-separated fields of each line, without the licence and the glosses."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("  "):
                yield line.partition(" | ")[0].split()


@dataclass
class _Builder:
    """Grows lists while the files are read, then turns them into arrays."""

    offsets: list[int] = field(default_factory=list)
    lemma_ids: dict[str, int] = field(default_factory=dict)
    sense_lemma: list[int] = field(default_factory=list)
    sense_start: list[int] = field(default_factory=lambda: [0])
    pointers: list[tuple[str, int, str, str, str]] = field(default_factory=list)
    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    index: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def add_synsets(self, pos: Pos, records: Iterator[list[str]]) -> None:
        for fields in records:
            row, words = len(self.offsets), int(fields[3], 16)
            self.offsets.append(int(fields[0]))
            self.rows[pos, int(fields[0])] = row
            for word in fields[4 : 4 + 2 * words : 2]:
                self.sense_lemma.append(self.lemma_id(word.partition("(")[0].lower()))
            self.sense_start.append(len(self.sense_lemma))
            at = 4 + 2 * words
            for k in range(at + 1, at + 1 + 4 * int(fields[at]), 4):
                symbol, offset, target_pos, ends = fields[k : k + 4]
                self.pointers.append((symbol, row, target_pos, offset, ends))

    def add_index(self, pos: Pos, records: Iterator[list[str]]) -> None:
        for fields in records:
            key = self.lemma_id(fields[0]), POS.index(pos)
            self.index[key] = [self.rows[pos, int(o)] for o in fields[-int(fields[2]) :]]

    def lemma_id(self, lemma: str) -> int:
        return self.lemma_ids.setdefault(lemma, len(self.lemma_ids))

    def arrays(self) -> Arrays:
        keys = sorted(self.index)
        starts = np.zeros(len(self.lemma_ids) * len(POS) + 1, dtype=np.int32)
        for lemma, pos in keys:
            starts[lemma * len(POS) + pos + 1] = len(self.index[lemma, pos])
        return {
            "offset": _ints(self.offsets),
            "lemmas": _text("\n".join(self.lemma_ids)),
            "sense_lemma": _ints(self.sense_lemma),
            "sense_start": _ints(self.sense_start),
            "index_start": np.cumsum(starts, dtype=np.int32),
            "index_synset": _ints([row for key in keys for row in self.index[key]]),
            **self.pointer_arrays(),
        }

    def pointer_arrays(self) -> Arrays:
        """For each relation its sources, sorted, and their targets, in the order of the files."""
        pairs: dict[Relation, list[tuple[int, int]]] = {relation: [] for relation in RELATIONS}
        for symbol, source, pos, offset, ends in self.pointers:
            relation = POINTERS.get(symbol)
            if relation is None:
                continue
            target = self.rows["a" if pos == "s" else pos, int(offset)]
            if relation in LEXICAL:  # between senses: the two halves of `ends` number the words
                source = self.sense_start[source] + max(int(ends[:2], 16), 1) - 1
                target = self.sense_start[target] + max(int(ends[2:], 16), 1) - 1
            pairs[relation].append((source, target))
        result: dict[str, Ints] = {}
        for relation, ends_of in pairs.items():
            ends_of.sort(key=lambda pair: pair[0])
            both = _ints(ends_of).reshape(-1, 2)
            result[f"{relation}_from"], result[f"{relation}_to"] = both[:, 0], both[:, 1]
        return result


def _ints(values: list[int] | list[tuple[int, int]]) -> Ints:
    return np.array(values, dtype=np.int32)


def _text(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)
