"""Similarity of two words and the lexical relation behind it: the word part of the alignment score.

The strongest of several sources counts: same form or lemma, numbers, WordNet (synonym, derivation,
hypernym at a distance, sibling, antonym), word vectors, and spelling for names. The properties of
each word are looked up once (`build_profile`), so that comparing a pair takes about a microsecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tertium.metrics.base.wordnet import Pos, WordNet, load_wordnet
from tertium.metrics.linguistics import lexicons

MAX_SENSES = 6  # the most frequent senses of a word: rare senses relate everything to everything
MAX_HYPERNYM_DISTANCE = 3  # edges up the hierarchy
MIN_COSINE = (
    0.55  # 50-dimensional vectors of unrelated frequent words reach lower cosines by chance
)

RELATION_STRENGTHS: Mapping[str, float] = {
    "same": 1.0,
    "number": 1.0,
    "lemma": 0.95,
    "synonym": 0.9,
    "derivation": 0.8,
    "marker": 0.8,
    "hypernym": 0.75,
    "hyponym": 0.75,
    "spelling": 0.7,
    "entailment": 0.65,
    "part": 0.65,
    "antonym": 0.6,
    "pronoun": 0.6,
    "sibling": 0.55,
    "other number": 0.5,
    "function": 0.45,
    "coreference": 0.28,
    "none": 0.0,
}
INVERSE_RELATIONS: Mapping[str, str] = {"hypernym": "hyponym", "hyponym": "hypernym"}

WORDNET_POS: Mapping[str, Pos] = {
    "noun": "n",
    "name": "n",
    "verb": "v",
    "adjective": "a",
    "adverb": "r",
}
# Function words that `relate_mixed_words` can relate to a content word.
CROSS_CLASS_WORDS = frozenset(
    {
        *lexicons.MARKER_SENSES,
        *lexicons.NEGATIONS,
        *lexicons.INDEFINITE_PEOPLE,
        *lexicons.INDEFINITE_THINGS,
        *(word for word, features in lexicons.PRONOUNS.items() if features[0] == "3"),
    }
)


class WordSimilarity(NamedTuple):
    """Similarity of two words in 0..1, and the relation of the first word to the second."""

    strength: float
    relation: str


SIMILARITIES: Mapping[str, WordSimilarity] = {
    relation: WordSimilarity(strength, relation)
    for relation, strength in RELATION_STRENGTHS.items()
}
NO_SIMILARITY = SIMILARITIES["none"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordProfile:
    """WordNet and spelling properties of a lemma.

    `senses`, `parents`, `ancestors`, `entailed`, `antonyms` and `derivations` are synsets;
    `components` are the words of a multi-word lemma. There is one object per lemma and kind (see
    `build_profile`), compared by identity.
    """

    lemma: str
    in_wordnet: bool
    senses: frozenset[str]
    parents: frozenset[str]
    ancestors: frozenset[str]
    self_and_ancestors: frozenset[str]
    entailed: frozenset[str]
    antonyms: frozenset[str]
    derivations: frozenset[str]
    trigrams: frozenset[str]
    components: frozenset[str]


@lru_cache(maxsize=1 << 16)
def build_profile(lemma: str, kind: str) -> WordProfile:
    """Build the profile of a lemma of a kind (noun, verb ...)."""
    pos = WORDNET_POS.get(kind)
    wordnet = load_wordnet()
    senses = wordnet.lemma_synsets(lemma, pos) or wordnet.synsets(lemma, pos) if pos else ()
    senses = senses[:MAX_SENSES]
    ancestors = frozenset(
        ancestor
        for sense in senses
        for ancestor, distance in wordnet.ancestors(sense).items()
        if 0 < distance <= MAX_HYPERNYM_DISTANCE
    )
    return WordProfile(
        lemma=lemma,
        in_wordnet=bool(senses),
        senses=frozenset(senses),
        parents=frozenset(h for sense in senses for h in wordnet.direct_hypernyms(sense)),
        ancestors=ancestors,
        self_and_ancestors=ancestors.union(senses),
        entailed=_related(wordnet, senses, "entailment", "cause"),
        antonyms=_related(wordnet, senses, "antonym"),
        derivations=_related(wordnet, senses, "derivation", "pertainym"),
        trigrams=frozenset(lemma[i : i + 3] for i in range(len(lemma) - 2)),
        components=frozenset(lemma.split("_") if "_" in lemma else ()),
    )


def _related(wordnet: WordNet, senses: tuple[str, ...], *relations: str) -> frozenset[str]:
    pairs = product(senses, relations)
    return frozenset(synset for pair in pairs for synset in wordnet.related_synsets(*pair))


@lru_cache(maxsize=1 << 17)
def relate_content_words(a: WordProfile, b: WordProfile) -> WordSimilarity:
    """Relate two content words by form and dictionary.

    The relation `hypernym` means that the second word is the more general one.

    >>> relate_content_words(build_profile("dog", "noun"), build_profile("animal", "noun")).relation
    'hypernym'
    """
    if a.lemma == b.lemma:
        return SIMILARITIES["lemma"]
    both_listed = a.in_wordnet and b.in_wordnet
    if both_listed and (relation := _wordnet_relation(a, b)):
        return SIMILARITIES[relation]
    has_components = a.components or b.components
    if has_components and (a.components or {a.lemma}) & (b.components or {b.lemma}):
        return SIMILARITIES["part"]
    if not both_listed or a.lemma[:4] == b.lemma[:4]:
        return _relate_by_spelling(a, b)
    return NO_SIMILARITY


def _wordnet_relation(a: WordProfile, b: WordProfile) -> str:
    if not (a.antonyms.isdisjoint(b.senses) and b.antonyms.isdisjoint(a.senses)):
        return "antonym"
    is_derived = not (a.derivations.isdisjoint(b.senses) and b.derivations.isdisjoint(a.senses))
    if a.self_and_ancestors.isdisjoint(b.self_and_ancestors) and not is_derived:
        # most pairs of words end here
        is_entailed = not (a.entailed.isdisjoint(b.senses) and b.entailed.isdisjoint(a.senses))
        return "entailment" if is_entailed else ""
    if not a.senses.isdisjoint(b.senses):
        return "synonym"
    if is_derived:
        return "derivation"
    if not b.senses.isdisjoint(a.ancestors):
        return "hypernym"
    if not a.senses.isdisjoint(b.ancestors):
        return "hyponym"
    return "" if a.parents.isdisjoint(b.parents) else "sibling"


def _relate_by_spelling(a: WordProfile, b: WordProfile) -> WordSimilarity:
    """Relate names and unknown words by the Dice coefficient of their letter trigrams."""
    if not a.trigrams or not b.trigrams:
        return NO_SIMILARITY
    dice = 2 * len(a.trigrams & b.trigrams) / (len(a.trigrams) + len(b.trigrams))
    if dice < 0.4:
        return NO_SIMILARITY
    return WordSimilarity(RELATION_STRENGTHS["spelling"] * min(1.0, dice + 0.3), "spelling")


@lru_cache(maxsize=1 << 15)
def relate_function_words(a: str, a_kind: str, b: str, b_kind: str) -> WordSimilarity:
    """Relate two function words, given as lemma and kind.

    >>> relate_function_words("he", "pronoun", "him", "pronoun").relation
    'lemma'
    >>> relate_function_words("and", "conjunction", "as_well_as", "particle").relation
    'marker'
    """
    if a == b:
        return SIMILARITIES["lemma"]
    if a in lexicons.PRONOUNS and b in lexicons.PRONOUNS:
        return SIMILARITIES["lemma" if lexicons.PRONOUNS[a] == lexicons.PRONOUNS[b] else "pronoun"]
    if a in lexicons.FUTURE_AUXILIARIES and b in lexicons.FUTURE_AUXILIARIES:
        return SIMILARITIES["lemma"]
    similarity = _relate_by_lexicon(a, b)
    if similarity.strength:
        return similarity
    if a_kind == b_kind and a_kind not in ("other", "particle"):
        return SIMILARITIES["function"]
    return NO_SIMILARITY


def relate_mixed_words(a: str, a_kind: str, b: str, b_kind: str) -> WordSimilarity:
    """Relate a function word and a content word: a pronoun and a noun, "but" and "however".

    >>> relate_mixed_words("she", "pronoun", "ann", "name").relation
    'coreference'
    """
    if a_kind == "pronoun" or b_kind == "pronoun":
        pronoun, kind = (a, b_kind) if a_kind == "pronoun" else (b, a_kind)
        if kind in ("noun", "name") and lexicons.PRONOUNS.get(pronoun, ("",))[0] == "3":
            return SIMILARITIES["coreference"]
    return _relate_by_lexicon(a, b)


def _relate_by_lexicon(a: str, b: str) -> WordSimilarity:
    """Relate connectives of one sense, negations, and indefinite pronouns of one class."""
    sense = lexicons.MARKER_SENSES.get(a)
    if sense and sense == lexicons.MARKER_SENSES.get(b):
        return SIMILARITIES["marker"]
    if a in lexicons.NEGATIONS and b in lexicons.NEGATIONS:
        return SIMILARITIES["marker"]
    for group in (lexicons.INDEFINITE_PEOPLE, lexicons.INDEFINITE_THINGS):
        if a in group and b in group:
            return SIMILARITIES["pronoun"]
    return NO_SIMILARITY


def cosine_to_strength(cosine: float) -> float:
    """Map a cosine of word vectors to a strength: 0 below `MIN_COSINE`, at most 0.85.

    >>> [round(cosine_to_strength(cosine), 2) for cosine in (0.5, 0.8, 1.0)]
    [0.0, 0.47, 0.85]
    """
    return max(0.0, min(1.0, (cosine - MIN_COSINE) / 0.45)) * 0.85
