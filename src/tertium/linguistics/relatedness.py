"""How two words are related in WordNet, remembered, since features ask the same again and again.

Every function takes words in any form ("mice", "ran") and looks at all their senses of a part of
speech ("n", "v", "a", "r"; None for all). A word that WordNet does not list is related to nothing.

Measures of similarity, for synsets x and y under a common ancestor c (the best one is taken), with
d the number of edges, D the depth of c and IC its information content (-log of its share of a
corpus, Brown):

    path       1 / (1 + d(x, c) + d(y, c))
    wu_palmer  2 D(c) / (d(x, c) + d(y, c) + 2 D(c))             (Wu and Palmer 1994)
    resnik     IC(c), in nats                                    (Resnik 1995)
    lin        2 IC(c) / (IC(x) + IC(y))                         (Lin 1998)

For two words it is the largest value over their senses. Because d, IC(x) and IC(y) enter as sums,
that largest value needs the smallest of each per word and ancestor only, not all pairs of senses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from tertium.errors import UnknownNameError
from tertium.linguistics.wordnet import Pos, Relation, Synset, load_wordnet, normalise
from tertium.linguistics.wordnet_index import POS

Measure = Literal["path", "wu_palmer", "resnik", "lin"]

_TOP = -1  # joins the many tops of the verbs
_CACHE = 1 << 18


class _Below(NamedTuple):
    """What a word has under an ancestor: its smallest distance and smallest information."""

    distance: int
    information: float


Lineage = Mapping[int, _Below]


@lru_cache(maxsize=_CACHE)
def are_synonyms(a: str, b: str, pos: Pos | None = None) -> bool:
    """Whether two words share a synset, or are the same word.

    >>> are_synonyms("cars", "automobile"), are_synonyms("car", "wheel")
    (True, False)
    """
    if normalise(a) == normalise(b):
        return True
    return not _rows(a, pos).isdisjoint(_rows(b, pos))


@lru_cache(maxsize=_CACHE)
def are_antonyms(a: str, b: str, pos: Pos | None = None, *, indirect: bool = False) -> bool:
    """Whether two words are opposites of each other.

    With `indirect`, also when a word close to one of them is: `damp` is similar to `wet`, whose
    opposite is `dry`.

    >>> are_antonyms("hotter", "cold"), are_antonyms("damp", "dry"), are_antonyms("hot", "warm")
    (True, False, False)
    >>> are_antonyms("damp", "dry", indirect=True)
    True
    """
    if _leads_to(a, b, "antonym", pos) or _leads_to(b, a, "antonym", pos):
        return True
    return indirect and not _opposites(_rows(a, pos)).isdisjoint(_with_similar(_rows(b, pos)))


@lru_cache(maxsize=_CACHE)
def is_hypernym(general: str, specific: str, pos: Pos | None = None) -> bool:
    """Whether some sense of `general` stands above some sense of `specific`.

    >>> is_hypernym("animal", "dogs"), is_hypernym("dog", "animal")
    (True, False)
    """
    above, own = _lineage(specific, pos, False), _rows(specific, pos)
    return any(row in above and row not in own for row in _rows(general, pos))


@lru_cache(maxsize=_CACHE)
def are_derived(a: str, b: str, pos: Pos | None = None) -> bool:
    """Whether one word is made of the other: invade and invasion, quick and quickly.

    >>> are_derived("invaded", "invasion"), are_derived("quickly", "quick")
    (True, True)
    """
    relations: tuple[Relation, ...] = ("derivation", "pertainym", "participle")
    return any(_leads_to(x, y, r, pos) for x, y in ((a, b), (b, a)) for r in relations)


@lru_cache(maxsize=_CACHE)
def entails(a: str, b: str) -> bool:
    """Whether doing verb `a` entails or causes doing verb `b`: snoring entails sleeping.

    >>> entails("snores", "sleep"), entails("sleep", "snore"), entails("kill", "die")
    (True, False, True)
    """
    wordnet, targets = load_wordnet(), _rows(b, "v")
    relations: tuple[Relation, ...] = ("entailment", "cause")
    return any(
        target in targets
        for row in _rows(a, "v")
        for relation in relations
        for target in wordnet.related_rows(row, relation)
    )


@lru_cache(maxsize=_CACHE)
def similar(a: str, b: str, pos: Pos | None = None, measure: Measure = "lin") -> float:
    """The largest similarity of two words over their senses; 0 where nothing joins them.

    In 0..1 but for `resnik`. Adjectives have no ancestors in WordNet: theirs is `path` over its
    similar-to relation, whatever the measure (0 for `resnik`).

    >>> similar("cars", "automobile"), round(similar("car", "bicycle", "n"), 2)
    (1.0, 0.77)
    """
    informed = _needs_information(measure)
    return _compare(_lineage(a, pos, informed), _lineage(b, pos, informed), measure)


def synset_similarity(a: Synset, b: Synset, measure: Measure = "lin") -> float:
    """The similarity of two synsets, as `similar`."""
    informed = _needs_information(measure)
    return _compare(_lineage_of([a.row], informed), _lineage_of([b.row], informed), measure)


def _needs_information(measure: str) -> bool:
    if measure not in _MEASURES:
        raise UnknownNameError("measure of similarity", measure, _MEASURES)
    return measure in ("resnik", "lin")


def _compare(a: Lineage, b: Lineage, measure: Measure) -> float:
    value = _MEASURES[measure]
    if len(a) > len(b):
        a, b = b, a
    shared = (value(row, below, b[row]) for row, below in a.items() if row in b)
    return max(shared, default=0.0)


def _path(row: int, a: _Below, b: _Below) -> float:
    return 1 / (1 + a.distance + b.distance)


def _wu_palmer(row: int, a: _Below, b: _Below) -> float:
    if _is_flat(row):
        return _path(row, a, b)
    twice = 2 * (1 if row == _TOP else load_wordnet().depth(row))
    return twice / (a.distance + b.distance + twice)


def _resnik(row: int, a: _Below, b: _Below) -> float:
    return 0.0 if _is_flat(row) else _information(row)


def _lin(row: int, a: _Below, b: _Below) -> float:
    if _is_flat(row):
        return _path(row, a, b)
    if a.distance == b.distance == 0:
        return 1.0
    both = a.information + b.information
    return 2 * _information(row) / both if both > 0 else 0.0


_MEASURES: Mapping[str, Callable[[int, _Below, _Below], float]] = {
    "path": _path, "wu_palmer": _wu_palmer, "resnik": _resnik, "lin": _lin,
}  # fmt: skip


def _is_flat(row: int) -> bool:
    """Whether a row is of a part of speech without a hierarchy: adjectives and adverbs."""
    return row != _TOP and load_wordnet().pos_of(row) in ("a", "r")


@lru_cache(maxsize=_CACHE)
def _information(row: int) -> float:
    return 0.0 if row == _TOP else float(load_wordnet().information()[row])


@lru_cache(maxsize=1 << 16)
def _rows(word: str, pos: Pos | None) -> frozenset[int]:
    return frozenset(load_wordnet().rows(word, pos))


@lru_cache(maxsize=1 << 16)
def _words(word: str, relation: Relation, pos: Pos | None) -> frozenset[str]:
    return load_wordnet().related_words(word, relation, pos)


def _leads_to(a: str, b: str, relation: Relation, pos: Pos | None) -> bool:
    """Whether a relation of single words leads from a to a base form of b."""
    targets = _words(a, relation, pos)
    return bool(targets) and not targets.isdisjoint(_bases(b))


@lru_cache(maxsize=1 << 16)
def _bases(word: str) -> frozenset[str]:
    wordnet = load_wordnet()
    return frozenset(base for pos in POS for base in wordnet.base_forms(word, pos))


def _with_similar(rows: Iterable[int]) -> set[int]:
    related = load_wordnet().related_rows
    return {r for row in rows for r in (row, *related(row, "similar_to"))}


def _opposites(rows: Iterable[int]) -> set[int]:
    related = load_wordnet().related_rows
    return {r for row in _with_similar(rows) for r in related(row, "antonym")}


@lru_cache(maxsize=1 << 14)
def _lineage(word: str, pos: Pos | None, informed: bool) -> Lineage:
    return _lineage_of(_rows(word, pos), informed)


def _lineage_of(rows: Iterable[int], informed: bool) -> Lineage:
    """What is above some rows; `informed` adds information content, which not every WordNet has."""
    lineage: dict[int, _Below] = {}
    for row in rows:
        own = _information(row) if informed and not _is_flat(row) else 0.0
        for ancestor, distance in _above(row).items():
            old = lineage.get(ancestor, _Below(distance, own))
            lineage[ancestor] = _Below(min(old.distance, distance), min(old.information, own))
    return lineage


def _above(row: int) -> Mapping[int, int]:
    """The ancestors of a row with distances; similar adjectives; for verbs also their top."""
    wordnet = load_wordnet()
    if _is_flat(row):
        return {**dict.fromkeys(wordnet.related_rows(row, "similar_to"), 1), row: 0}
    above = wordnet.ancestors(row)
    if wordnet.pos_of(row) != "v":
        return above
    tops = (distance for r, distance in above.items() if not wordnet.hypernym_rows(r))
    return {**above, _TOP: min(tops, default=0) + 1}
