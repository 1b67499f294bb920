"""WordNet as values: the synsets of a word, the words of a synset, and what points to what.

    >>> wordnet = load_wordnet()
    >>> wordnet.synsets("dogs", "n")[0].lemmas
    ('dog', 'domestic_dog', 'canis_familiaris')
    >>> [s.lemmas[0] for s in wordnet.related_synsets(wordnet.synsets("dog", "n")[0], "hypernym")]
    ['canine', 'domestic_animal']

Words are matched in lower case, with spaces written as underscores. `relatedness` answers questions
about two words from what is here. (Fellbaum 1998, WordNet: An Electronic Lexical Database.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from tertium.cache.arrays import Arrays
from tertium.errors import MissingResourceError, UnknownNameError
from tertium.linguistics.wordnet_files import INSTALL, find_wordnet
from tertium.linguistics.wordnet_index import (
    INFORMATION,
    LEXICAL,
    POS,
    RELATIONS,
    Pos,
    Relation,
    load_arrays,
)

__all__ = ["DETACHMENTS", "Pos", "Relation", "Synset", "WordNet", "load_wordnet", "wordnet_pos"]

# The suffixes morphy(7WN) takes off and what it puts in their place, in its order.
DETACHMENTS: Mapping[Pos, tuple[tuple[str, str], ...]] = {
    "n": (("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
          ("men", "man"), ("ies", "y")),
    "v": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""),
          ("ing", "e"), ("ing", "")),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}  # fmt: skip

_UNIVERSAL: Mapping[str, Pos] = {
    "NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Synset:
    """Words that share one meaning.

    `row` numbers it in this index; `offset` is its place in WordNet's own data file; `topic` the
    number of its lexicographer file (15 is noun.location, 18 noun.person, 28 noun.time ...).
    """

    row: int
    pos: Pos
    offset: int
    topic: int
    lemmas: tuple[str, ...]


class WordNet:
    """A read dictionary. Get the installed one from `load_wordnet`."""

    def __init__(self, arrays: Arrays) -> None:
        # Plain lists: a single element of a list is read several times faster than of an array.
        self._offset: list[int] = arrays["offset"].tolist()
        self._pos: list[int] = arrays["pos"].tolist()
        self._topic: list[int] = arrays["topic"].tolist()
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
        self._depths: dict[int, int] = {}
        self._information: dict[str, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        """The number of synsets."""
        return len(self._offset)

    def __contains__(self, word: str) -> bool:
        """Whether the word, as it stands, is a lemma of any part of speech."""
        return normalise(word) in self._ids

    def synsets(self, word: str, pos: Pos | None = None) -> tuple[Synset, ...]:
        """The synsets of a word and of its base forms, the most frequent sense first."""
        return tuple(map(self.synset, self.rows(word, pos)))

    def rows(self, word: str, pos: Pos | None = None) -> tuple[int, ...]:
        """The row numbers of `synsets`, for callers that look up many words."""
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

    def synset(self, row: int) -> Synset:
        """The synset of a row number."""
        return Synset(
            row, self.pos_of(row), self._offset[row], self._topic[row], self.lemmas(row)
        )

    def offset(self, row: int) -> int:
        """Where WordNet's own data file has a row."""
        return self._offset[row]

    def pos_of(self, row: int) -> Pos:
        """The part of speech of a row."""
        return POS[self._pos[row]]

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

    def related_synsets(self, synset: Synset, relation: Relation) -> tuple[Synset, ...]:
        """The synsets a relation leads to; for relations of single words, from any of its words."""
        return tuple(map(self.synset, self.related_rows(synset.row, relation)))

    def related_rows(self, row: int, relation: Relation) -> tuple[int, ...]:
        """`related_synsets` on row numbers."""
        if relation not in LEXICAL:
            return tuple(self._targets(row, relation))
        targets = (
            target
            for sense in range(self._sense_start[row], self._sense_start[row + 1])
            for target in self._targets(sense, relation)
        )
        return tuple(dict.fromkeys(map(self._row_of_sense, targets)))

    def related_words(
        self, word: str, relation: Relation, pos: Pos | None = None
    ) -> frozenset[str]:
        """The words a relation leads to from any sense of a word or its base forms.

        Relations between single words (antonym, derivation, pertainym, participle) start at this
        word alone, not at its synonyms.

        >>> sorted(load_wordnet().related_words("hot", "antonym"))
        ['cold']
        """
        words: set[str] = set()
        for p in POS if pos is None else (pos,):
            for base in self.base_forms(word, p):
                for row in self.senses(base, p):
                    words.update(self._words_from(base, row, relation))
        return frozenset(words)

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

    def depth(self, row: int) -> int:
        """Nodes on the longest way from the top down to a row: `entity` is at 1.

        Verbs have many tops; an imagined one joins them, so that each of them is at 2.
        """
        depth = self._depths.get(row)
        if depth is None:
            top = 2 if self.pos_of(row) == "v" else 1
            depth = max((self.depth(h) + 1 for h in self.hypernym_rows(row)), default=top)
            self._depths[row] = depth
        return depth

    def information(self, corpus: str = "brown") -> NDArray[np.float64]:
        """-log of the share of a corpus that falls under each synset, (synsets,), in nats.

        A synset that was not seen counts as seen once. NaN but for nouns and verbs.
        """
        if corpus not in INFORMATION:
            raise UnknownNameError("corpus of information content", corpus, INFORMATION)
        if corpus not in self._information:
            self._information[corpus] = self._read_information(corpus)
        return self._information[corpus]

    def _read_information(self, corpus: str) -> NDArray[np.float64]:
        counts = self._arrays[f"count_{corpus}"].astype(np.float64)
        if np.isnan(counts).any():
            raise MissingResourceError(
                f"counts for information content (ic-{corpus}.dat) are not beside this WordNet: "
                f"{INSTALL}, or use measure='path' or 'wu_palmer'"
            )
        pos = np.array(self._pos)
        is_top = np.ones(len(self), dtype=bool)
        for relation in ("hypernym", "instance_hypernym"):
            is_top[self._arrays[f"{relation}_from"]] = False
        result = np.full(len(self), np.nan)
        for code in (POS.index("n"), POS.index("v")):
            total = counts[is_top & (pos == code)].sum()
            result[pos == code] = -np.log(np.maximum(counts[pos == code], 1) / total)
        return result

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

    def _words_from(self, lemma: str, row: int, relation: Relation) -> Iterable[str]:
        if relation not in LEXICAL:
            for target in self._targets(row, relation):
                yield from self.lemmas(target)
            return
        for sense in range(self._sense_start[row], self._sense_start[row + 1]):
            if self._lemmas[self._sense_lemma[sense]] == lemma:
                for target in self._targets(sense, relation):
                    yield self._lemmas[self._sense_lemma[target]]

    def _row_of_sense(self, sense: int) -> int:
        at = bisect_left(self._sense_start, sense + 1)
        return at - 1


@cache
def load_wordnet() -> WordNet:
    """The installed WordNet 3.0, read on the first call of a process and shared afterwards."""
    return WordNet(load_arrays(find_wordnet()))


def wordnet_pos(universal: str) -> Pos | None:
    """WordNet's letter for a universal part-of-speech tag; None for those it does not list.

    >>> wordnet_pos("PROPN"), wordnet_pos("DET")
    ('n', None)
    """
    return _UNIVERSAL.get(universal)


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
