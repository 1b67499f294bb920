"""METEOR's alignment: which words of a hypothesis stand for which words of the reference.

Candidate matches come in stages (the same word, the same stem, a synonym, a paraphrase); each word
may be part of one match (`meteor_search` chooses). Long texts are searched in another way, with the
same result (`meteor_crowds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tertium.text.meteor_search import BEAM, EXACT, STEM, SYNONYM, Match, choose_matches


def count_chunks(matches: Sequence[Match]) -> int:
    """The number of runs of matches that are contiguous and in the same order on both sides."""
    chunks, end = 0, (-1, -1)
    for _, start, length, at, extent in matches:
        chunks += (start, at) != end
        end = start + length, at + extent
    return chunks


# Pairs of words above which a word may have so many candidates that they are not made one by one.
# Both searches find the same; below it that of `meteor_search` is faster.
LONG_TEXT_WORD_PAIRS = 200 * 200


@dataclass(frozen=True)
class MeteorAlignment:
    """The chosen matches, in the order of the reference, and the number of chunks they form."""

    hypothesis: tuple[str, ...]
    reference: tuple[str, ...]
    matches: tuple[Match, ...]
    chunks: int


Senses = frozenset[int]
Paraphrases = Callable[[Sequence[str], Sequence[str]], Iterable[Match]]


def align(
    hypothesis: Sequence[str],
    reference: Sequence[str],
    *,
    stem: Callable[[str], str] | None = None,
    senses: Callable[[str], Senses] | None = None,
    paraphrases: Paraphrases | None = None,
    beam: int = BEAM,
) -> MeteorAlignment:
    """Align two lists of words.

    `stem` gives the stem of a word, `senses` what a word shares with its synonyms, `paraphrases`
    the candidate matches of a paraphrase table; a stage whose function is None is left out.

    >>> a = align("the cats sat".split(), "sat the cat".split(), stem=lambda w: w.rstrip("s"))
    >>> [(m.stage, m.hypothesis_start, m.reference_start) for m in a.matches], a.chunks
    ([('exact', 2, 0), ('exact', 0, 1), ('stem', 1, 2)], 2)
    """
    hypothesis, reference = tuple(hypothesis), tuple(reference)
    if hypothesis == reference:  # words stand for themselves: no search covers more in one chunk
        matches = tuple(Match(EXACT, place, 1, place, 1) for place in range(len(reference)))
        return MeteorAlignment(hypothesis, reference, matches, count_chunks(matches))
    phrases = paraphrases(hypothesis, reference) if paraphrases is not None else ()
    if len(hypothesis) * len(reference) > LONG_TEXT_WORD_PAIRS:
        from tertium.text.meteor_long_search import choose_long_matches, group_matches

        crowds = group_matches(hypothesis, reference, stem, senses)
        matches = choose_long_matches(reference, crowds, tuple(phrases), len(hypothesis), beam)
    else:
        candidates = exact_matches(hypothesis, reference)
        if stem is not None:
            candidates += stem_matches(hypothesis, reference, stem)
        if senses is not None:
            candidates += synonym_matches(hypothesis, reference, senses)
        candidates += phrases
        matches = choose_matches(candidates, len(hypothesis), len(reference), beam)
    return MeteorAlignment(hypothesis, reference, matches, count_chunks(matches))


def exact_matches(hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
    """Every pair of equal words, in the order of the reference."""
    places = _places(hypothesis)
    return [
        Match(EXACT, j, 1, i, 1) for i, word in enumerate(reference) for j in places.get(word, ())
    ]


def stem_matches(
    hypothesis: Sequence[str], reference: Sequence[str], stem: Callable[[str], str]
) -> list[Match]:
    """Every pair of different words with one stem, in the order of the reference."""
    places = _places([stem(word) for word in hypothesis])
    return [
        Match(STEM, j, 1, i, 1)
        for i, word in enumerate(reference)
        for j in places.get(stem(word), ())
        if hypothesis[j] != word
    ]


def synonym_matches(
    hypothesis: Sequence[str], reference: Sequence[str], senses: Callable[[str], Senses]
) -> list[Match]:
    """Every pair of different words that share a sense, in the order of the reference."""
    left = [(j, word, known) for j, word in enumerate(hypothesis) if (known := senses(word))]
    right = [(i, word, known) for i, word in enumerate(reference) if (known := senses(word))]
    return [
        Match(SYNONYM, j, 1, i, 1)
        for i, word, known in right
        for j, other, shared in left
        if other != word and not known.isdisjoint(shared)
    ]


def _places(words: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for j, word in enumerate(words):
        places.setdefault(word, []).append(j)
    return places
