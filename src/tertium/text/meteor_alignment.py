"""METEOR's alignment of the words of a hypothesis and a reference.

Candidate matches come in stages (same word, same stem, synonym, paraphrase). Each word takes part
in at most one match; `meteor_search` selects the matches. `meteor_long_search` gives the same
result for long texts in less time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tertium.text.meteor_search import BEAM, EXACT, STEM, SYNONYM, Match, choose_matches


def count_chunks(matches: Sequence[Match]) -> int:
    """Count the runs of matches that are contiguous and in the same order on both sides."""
    chunks, end = 0, (-1, -1)
    for _, start, length, at, extent in matches:
        chunks += (start, at) != end
        end = start + length, at + extent
    return chunks


# Above this number of word pairs `meteor_long_search` is faster; both give the same result.
LONG_TEXT_WORD_PAIRS = 200 * 200


@dataclass(frozen=True)
class MeteorAlignment:
    """The selected matches, in the order of the reference, and the number of chunks they form."""

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

    `stem` returns the stem of a word, `senses` the ids of its senses, and `paraphrases` the
    candidate matches of a paraphrase table. A stage whose function is None is skipped.

    >>> a = align("the cats sat".split(), "sat the cat".split(), stem=lambda w: w.rstrip("s"))
    >>> [(m.stage, m.hypothesis_start, m.reference_start) for m in a.matches], a.chunks
    ([('exact', 2, 0), ('exact', 0, 1), ('stem', 1, 2)], 2)
    """
    hypothesis, reference = tuple(hypothesis), tuple(reference)
    if hypothesis == reference:  # no search covers more words in fewer chunks
        matches = tuple(Match(EXACT, i, 1, i, 1) for i in range(len(reference)))
        return MeteorAlignment(hypothesis, reference, matches, count_chunks(matches))
    phrases = paraphrases(hypothesis, reference) if paraphrases is not None else ()
    if len(hypothesis) * len(reference) > LONG_TEXT_WORD_PAIRS:
        from tertium.text.meteor_long_search import choose_long_matches, group_matches

        groups = group_matches(hypothesis, reference, stem, senses)
        matches = choose_long_matches(reference, groups, tuple(phrases), len(hypothesis), beam)
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
    """Return all pairs of equal words, in the order of the reference."""
    positions = _positions_by_word(hypothesis)
    return [
        Match(EXACT, j, 1, i, 1)
        for i, word in enumerate(reference)
        for j in positions.get(word, ())
    ]


def stem_matches(
    hypothesis: Sequence[str], reference: Sequence[str], stem: Callable[[str], str]
) -> list[Match]:
    """Return all pairs of different words with the same stem, in the order of the reference."""
    positions = _positions_by_word([stem(word) for word in hypothesis])
    return [
        Match(STEM, j, 1, i, 1)
        for i, word in enumerate(reference)
        for j in positions.get(stem(word), ())
        if hypothesis[j] != word
    ]


def synonym_matches(
    hypothesis: Sequence[str], reference: Sequence[str], senses: Callable[[str], Senses]
) -> list[Match]:
    """Return all pairs of different words that share a sense, in the order of the reference."""
    left = [(j, word, ids) for j, word in enumerate(hypothesis) if (ids := senses(word))]
    right = [(i, word, ids) for i, word in enumerate(reference) if (ids := senses(word))]
    return [
        Match(SYNONYM, j, 1, i, 1)
        for i, word, ids in right
        for j, other_word, other_ids in left
        if other_word != word and not ids.isdisjoint(other_ids)
    ]


def _positions_by_word(words: Sequence[str]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for j, word in enumerate(words):
        positions.setdefault(word, []).append(j)
    return positions
