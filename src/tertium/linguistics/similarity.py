"""How alike two words are, and by what relation: the word part of an alignment's score.

Several sources are asked, and the strongest answer counts: identity of form or lemma, numbers,
WordNet (synonym, derivation, hypernym at a distance, sibling, antonym), distributional vectors, and
strings for names that are spelled differently. What each word brings to these questions is looked
up once (`profile`), so that comparing a pair costs about a microsecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tertium.linguistics import lexicons
from tertium.linguistics.wordnet import Pos, Relation, WordNet, load_wordnet

SENSES = 6  # of each word, the most frequent first: rare ones relate everything to everything
CLIMB = 3  # edges up the hierarchy
CHANCE = 0.55  # cosines above those that 50-dimensional vectors of frequent words have by chance

# relation -> strength in 0..1
STRENGTHS: Mapping[str, float] = {
    "same": 1.0,
    "lemma": 0.95,
    "number": 1.0,
    "synonym": 0.9,
    "derivation": 0.8,
    "marker": 0.8,
    "hypernym": 0.75,
    "hyponym": 0.75,
    "entailment": 0.65,
    "spelling": 0.7,
    "sibling": 0.55,
    "antonym": 0.6,
    "other number": 0.5,
    "pronoun": 0.6,
    "coreference": 0.28,
    "part": 0.65,
    "function": 0.45,
    "distributional": 0.0,
    "none": 0.0,
}

POS_OF: Mapping[str, Pos] = {"noun": "n", "name": "n", "verb": "v", "adjective": "a", "adverb": "r"}
NOTHING: frozenset[int] = frozenset()
NO_WORDS: frozenset[str] = frozenset()


class Likeness(NamedTuple):
    """How alike, in 0..1, and by which relation of the first word to the second."""

    strength: float
    relation: str


UNLIKE = Likeness(0.0, "none")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordProfile:
    """What one lemma brings to a comparison: its senses, what is above them, what is tied to them.

    One object for each lemma and kind (see `profile`), compared by identity.
    """

    lemma: str
    known: bool
    senses: frozenset[int] = NOTHING
    parents: frozenset[int] = NOTHING
    above: frozenset[int] = NOTHING
    reach: frozenset[int] = NOTHING
    caused: frozenset[int] = NOTHING
    opposites: frozenset[int] = NOTHING
    derived: frozenset[int] = NOTHING
    pieces: frozenset[str] = NO_WORDS
    parts: frozenset[str] = NO_WORDS


@lru_cache(maxsize=1 << 16)
def profile(lemma: str, kind: str) -> WordProfile:
    """The profile of a lemma of a kind (noun, verb ...)."""
    pos = POS_OF.get(kind)
    wordnet = load_wordnet()
    rows = (wordnet.senses(lemma, pos) or wordnet.rows(lemma, pos))[:SENSES] if pos else ()
    parts = frozenset(lemma.split("_")) if "_" in lemma else NO_WORDS
    pieces = frozenset(lemma[i : i + 3] for i in range(len(lemma) - 2))
    if not rows or pos is None:
        return WordProfile(lemma=lemma, known=False, pieces=pieces, parts=parts)
    above = frozenset(a for r in rows for a, d in wordnet.ancestors(r).items() if 0 < d <= CLIMB)
    return WordProfile(
        lemma=lemma,
        known=True,
        senses=frozenset(rows),
        parents=frozenset(h for row in rows for h in wordnet.hypernym_rows(row)),
        above=above,
        reach=above.union(rows),
        caused=_targets(wordnet, rows, "entailment", "cause") if pos == "v" else NOTHING,
        opposites=_targets(wordnet, rows, "antonym"),
        derived=_targets(wordnet, rows, "derivation", "pertainym"),
        pieces=pieces,
        parts=parts,
    )


def _targets(wordnet: WordNet, rows: tuple[int, ...], *relations: Relation) -> frozenset[int]:
    return frozenset(t for row in rows for r in relations for t in wordnet.related_rows(row, r))


@lru_cache(maxsize=1 << 17)
def relate(a: WordProfile, b: WordProfile) -> Likeness:
    """How two content words are related by form and dictionary; direction matters for hypernyms.

    `hypernym` says that the second word is the more general.

    >>> relate(profile("dog", "noun"), profile("animal", "noun")).relation
    'hypernym'
    >>> relate(profile("hot", "adjective"), profile("cold", "adjective")).relation
    'antonym'
    """
    if a.lemma == b.lemma:
        return Likeness(STRENGTHS["lemma"], "lemma")
    if a.known and b.known:
        relation = _dictionary_relation(a, b)
        if relation:
            return Likeness(STRENGTHS[relation], relation)
    if a.parts or b.parts:
        shared = (a.parts or {a.lemma}) & (b.parts or {b.lemma})
        if shared:
            return Likeness(STRENGTHS["part"], "part")
    if not (a.known and b.known) or a.lemma[:4] == b.lemma[:4]:
        return _spelling(a, b)
    return UNLIKE


def _dictionary_relation(a: WordProfile, b: WordProfile) -> str:
    if not (a.opposites.isdisjoint(b.senses) and b.opposites.isdisjoint(a.senses)):
        return "antonym"
    derived = not (a.derived.isdisjoint(b.senses) and b.derived.isdisjoint(a.senses))
    if a.reach.isdisjoint(b.reach) and not derived:  # most pairs of words end here
        entailed = not (a.caused.isdisjoint(b.senses) and b.caused.isdisjoint(a.senses))
        return "entailment" if entailed else ""
    if not a.senses.isdisjoint(b.senses):
        return "synonym"
    if derived:
        return "derivation"
    if not b.senses.isdisjoint(a.above):
        return "hypernym"
    if not a.senses.isdisjoint(b.above):
        return "hyponym"
    return "" if a.parents.isdisjoint(b.parents) else "sibling"


def _spelling(a: WordProfile, b: WordProfile) -> Likeness:
    """Names and unknown words: the share of letter trigrams they have in common (Dice)."""
    if not a.pieces or not b.pieces:
        return UNLIKE
    dice = 2 * len(a.pieces & b.pieces) / (len(a.pieces) + len(b.pieces))
    if dice < 0.4:
        return UNLIKE
    return Likeness(STRENGTHS["spelling"] * min(1.0, dice + 0.3), "spelling")


@lru_cache(maxsize=1 << 15)
def relate_function_words(a: str, a_kind: str, b: str, b_kind: str) -> Likeness:
    """How alike two words of grammar are.

    >>> relate_function_words("he", "pronoun", "him", "pronoun").relation
    'lemma'
    >>> relate_function_words("and", "conjunction", "as_well_as", "particle").relation
    'marker'
    """
    if a == b:
        return Likeness(STRENGTHS["lemma"], "lemma")
    if a in lexicons.PRONOUNS and b in lexicons.PRONOUNS:
        same = lexicons.PRONOUNS[a] == lexicons.PRONOUNS[b]
        return Likeness(STRENGTHS["lemma" if same else "pronoun"], "lemma" if same else "pronoun")
    if a in lexicons.FUTURE_AUXILIARIES and b in lexicons.FUTURE_AUXILIARIES:
        return Likeness(STRENGTHS["lemma"], "lemma")
    likeness = _by_sense(a, b)
    if likeness.strength:
        return likeness
    if a_kind == b_kind and a_kind not in ("other", "particle"):
        return Likeness(STRENGTHS["function"], "function")
    return UNLIKE


def relate_mixed(a: str, a_kind: str, b: str, b_kind: str) -> Likeness:
    """A word of grammar beside a content word: a pronoun and its noun, "but" and "however".

    >>> relate_mixed("she", "pronoun", "ann", "name").relation
    'coreference'
    """
    if a_kind == "pronoun" or b_kind == "pronoun":
        pronoun, kind = (a, b_kind) if a_kind == "pronoun" else (b, a_kind)
        if kind in ("noun", "name") and lexicons.PRONOUNS.get(pronoun, ("",))[0] == "3":
            return Likeness(STRENGTHS["coreference"], "coreference")
    return _by_sense(a, b)


def _by_sense(a: str, b: str) -> Likeness:
    """Connectives of one sense, negations, indefinite pronouns of one sort."""
    sense = lexicons.MARKER_SENSES.get(a)
    if sense and sense == lexicons.MARKER_SENSES.get(b):
        return Likeness(STRENGTHS["marker"], "marker")
    if a in lexicons.NEGATIONS and b in lexicons.NEGATIONS:
        return Likeness(STRENGTHS["marker"], "marker")
    for group in (lexicons.INDEFINITE_PEOPLE, lexicons.INDEFINITE_THINGS):
        if a in group and b in group:
            return Likeness(STRENGTHS["pronoun"], "pronoun")
    return UNLIKE


BRIDGES = frozenset(
    {
        *lexicons.MARKER_SENSES,
        *lexicons.NEGATIONS,
        *lexicons.INDEFINITE_PEOPLE,
        *lexicons.INDEFINITE_THINGS,
        *(word for word, features in lexicons.PRONOUNS.items() if features[0] == "3"),
    }
)  # words of grammar that `relate_mixed` can relate to a content word

FLIPPED: Mapping[str, str] = {"hypernym": "hyponym", "hyponym": "hypernym"}


def distributional(cosine: float) -> float:
    """The strength of a cosine of word vectors: nothing below `CHANCE`, at most 0.85.

    >>> [round(distributional(cosine), 2) for cosine in (0.5, 0.8, 1.0)]
    [0.0, 0.47, 0.85]
    """
    return max(0.0, min(1.0, (cosine - CHANCE) / 0.45)) * 0.85
