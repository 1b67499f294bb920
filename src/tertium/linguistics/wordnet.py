"""WordNet as numbers: the synsets of a word, the words of a synset, and what points to what.

    >>> wordnet = load_wordnet()
    >>> dog = wordnet.rows("dogs", "n")[0]
    >>> wordnet.lemmas(dog)
    ('dog', 'domestic_dog', 'canis_familiaris')
    >>> [wordnet.lemmas(row)[0] for row in wordnet.related_rows(dog, "hypernym")]
    ['canine', 'domestic_animal']

A synset is known by its row, its place in the order of the files. Words are matched in lower case,
with spaces written as underscores. (Fellbaum 1998, WordNet: An Electronic Lexical Database.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import cache, cached_property

from tertium.cache.arrays import Arrays
from tertium.errors import UnknownNameError
from tertium.linguistics.wordnet_files import find_wordnet
from tertium.linguistics.wordnet_index import (
    LEXICAL,
    POS,
    RELATIONS,
    Pos,
    Relation,
    load_arrays,
)

__all__ = ["DETACHMENTS", "Pos", "Relation", "WordNet", "load_wordnet"]

# The suffixes morphy(7WN) takes off and what it puts in their place, in its order.
DETACHMENTS: Mapping[Pos, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "v": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}


class WordNet:
    """A read dictionary. Get the installed one from `load_wordnet`."""

    def __init__(self, arrays: Arrays) -> None:
        # Plain lists: a single element of a list is read several times faster than of an array.
        self._offset: list[int] = arrays["offset"].tolist()
        self._sense_lemma: list[int] = arrays["sense_lemma"].tolist()
        self._sense_start: list[int] = arrays["sense_start"].tolist()
        self._index_start = arrays["index_start"]
        self._index_synset = arrays["index_synset"]
        self._lemmas = arrays["lemmas"].tobytes().decode().split("\n")
        self._ids = dict(zip(self._lemmas, range(len(self._lemmas)), strict=True))
        self._arrays = arrays
        # What was asked for before.
        self._edges: dict[Relation, tuple[list[int], list[int]]] = {}
        self._ancestors: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        """The number of synsets."""
        return len(self._offset)

    def __contains__(self, word: str) -> bool:
        """Whether the word, as it stands, is a lemma of any part of speech."""
        return normalise(word) in self._ids

    def rows(self, word: str, pos: Pos | None = None) -> tuple[int, ...]:
        """The synsets of a word and of its base forms, the most frequent sense first."""
        kinds = POS if pos is None else (pos,)
        found = (self.senses(base, p) for p in kinds for base in self.base_forms(word, p))
        return tuple(dict.fromkeys(row for rows in found for row in rows))

    def senses(self, lemma: str, pos: Pos) -> tuple[int, ...]:
        """The rows of exactly this lemma; none if the dictionary does not list it."""
        lemma_id = self._ids.get(lemma)
        if lemma_id is None:
            return ()
        key = lemma_id * len(POS) + POS.index(pos)
        start, end = self._index_start[key : key + 2].tolist()
        rows: list[int] = self._index_synset[start:end].tolist()
        return tuple(rows)

    def offset(self, row: int) -> int:
        """Where WordNet's own data file has a row."""
        return self._offset[row]

    def lemmas(self, row: int) -> tuple[str, ...]:
        """The words of a synset, in lower case."""
        start, end = self._sense_start[row : row + 2]
        return tuple(self._lemmas[lemma] for lemma in self._sense_lemma[start:end])

    def base_forms(self, word: str, pos: Pos) -> tuple[str, ...]:
        """The lemmas a word may be a form of, itself first if it is one; as morphy(7WN).

        >>> load_wordnet().base_forms("mice", "n"), load_wordnet().base_forms("saw", "v")
        (('mouse',), ('saw', 'see'))
        """
        word = normalise(word)
        irregular = self.exceptions.get((word, pos))
        forms = irregular if irregular is not None else _detach(word, pos)
        return tuple(f for f in dict.fromkeys((word, *forms)) if self.senses(f, pos))

    @cached_property
    def exceptions(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Irregular forms: (form, pos) -> base forms."""
        lines = self._arrays["exceptions"].tobytes().decode().split("\n")
        table: dict[tuple[str, str], tuple[str, ...]] = {}
        for pos, form, *bases in (line.split() for line in lines):
            table[form, pos] = (*table.get((form, pos), ()), *bases)
        return table

    def related_rows(self, row: int, relation: Relation) -> tuple[int, ...]:
        """The rows a relation leads to; for relations of single words, from any of its words."""
        if relation not in LEXICAL:
            return tuple(self._targets(row, relation))
        targets = (
            target
            for sense in range(self._sense_start[row], self._sense_start[row + 1])
            for target in self._targets(sense, relation)
        )
        rows = (bisect_left(self._sense_start, target + 1) - 1 for target in targets)
        return tuple(dict.fromkeys(rows))

    def ancestors(self, row: int) -> Mapping[int, int]:
        """Every synset above a row with its smallest distance, the row itself at 0."""
        found = self._ancestors.get(row)
        if found is None:
            found, level, distance = {row: 0}, [row], 0
            while level:
                distance += 1
                level = [h for r in level for h in self.hypernym_rows(r) if h not in found]
                found.update(dict.fromkeys(level, distance))
            self._ancestors[row] = found
        return found

    def hypernym_rows(self, row: int) -> tuple[int, ...]:
        """The rows directly above, instances under their class included."""
        return (*self._targets(row, "hypernym"), *self._targets(row, "instance_hypernym"))

    def _targets(self, source: int, relation: Relation) -> list[int]:
        sources, targets = self._edges.get(relation) or self._read_edges(relation)
        at = bisect_left(sources, source)
        end = at
        while end < len(sources) and sources[end] == source:
            end += 1
        return targets[at:end]

    def _read_edges(self, relation: Relation) -> tuple[list[int], list[int]]:
        if relation not in RELATIONS:
            raise UnknownNameError("relation of WordNet", relation, RELATIONS)
        arrays = self._arrays
        edges = arrays[f"{relation}_from"].tolist(), arrays[f"{relation}_to"].tolist()
        self._edges[relation] = edges
        return edges


@cache
def load_wordnet() -> WordNet:
    """The installed WordNet 3.0, read on the first call of a process and shared afterwards."""
    return WordNet(load_arrays(find_wordnet()))


def normalise(word: str) -> str:
    """A word as the dictionary lists it: lower case, underscores for spaces."""
    return "_".join(word.lower().split())


def _detach(word: str, pos: Pos) -> list[str]:
    if word.endswith("ss") or len(word) <= 2:
        return []
    return [
        word[: len(word) - len(ending)] + base
        for ending, base in DETACHMENTS[pos]
        if word.endswith(ending) and len(word) > len(ending)
    ]
