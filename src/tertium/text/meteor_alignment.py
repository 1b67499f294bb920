"""METEOR's alignment of the words of a hypothesis and a reference.

Candidate matches come in stages (same word, same stem, synonym, paraphrase). Each word takes part
in at most one match; `meteor_search` selects the matches. In long texts, only the nearest words
are candidates (`length_limits.MAX_WORD_MATCHES`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from tertium.text import length_limits
from tertium.text.meteor_search import BEAM, EXACT, STEM, SYNONYM, Match, choose_matches


def count_chunks(matches: Sequence[Match]) -> int:
    """Count the runs of matches that are contiguous and in the same order on both sides."""
    chunks, end = 0, (-1, -1)
    for _, start, length, at, extent in matches:
        chunks += (start, at) != end
        end = start + length, at + extent
    return chunks


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
    candidates, _ = find_matches(hypothesis, reference, stem, senses)
    if paraphrases is not None:
        candidates += paraphrases(hypothesis, reference)
    matches = choose_matches(candidates, len(hypothesis), len(reference), beam)
    return MeteorAlignment(hypothesis, reference, matches, count_chunks(matches))


def find_matches(
    hypothesis: Sequence[str],
    reference: Sequence[str],
    stem: Callable[[str], str] | None = None,
    senses: Callable[[str], Senses] | None = None,
) -> tuple[list[Match], bool]:
    """Find the pairs of words that match in each stage; return whether some are left out.

    A word matches equal words, different words with the same stem, and different words that share a
    sense. If a stage has too many matches, each word has only the nearest of them.

    >>> matches, is_limited = find_matches(["as", "a"], ["a"], lambda word: word[0])
    >>> [(match.stage, match.hypothesis_start) for match in matches], is_limited
    ([('exact', 1), ('stem', 0)], False)
    """
    stages: dict[str, Callable[[str], Iterable[Hashable]]] = {EXACT: lambda word: (word,)}
    if stem is not None:
        stages[STEM] = lambda word: (stem(word),)
    if senses is not None:
        stages[SYNONYM] = senses
    matches: list[Match] = []
    is_limited = False
    for stage, keys in stages.items():
        matching = _find_equal_keys(hypothesis, reference, keys, has_equal_words=stage == EXACT)
        longest = max(map(len, matching), default=0)
        limit = _match_limit(matching, longest)
        is_limited |= limit < longest
        for at, positions in enumerate(matching):
            nearest = bisect_left(positions, at)
            first = max(0, min(nearest - limit // 2, len(positions) - limit))
            matches += [Match(stage, j, 1, at, 1) for j in positions[first : first + limit]]
    return matches, is_limited


def _find_equal_keys(
    hypothesis: Sequence[str],
    reference: Sequence[str],
    keys: Callable[[str], Iterable[Hashable]],
    has_equal_words: bool,
) -> list[list[int]]:
    """Return for each word of the reference where the hypothesis has a word with the same key."""
    positions: dict[Hashable, list[int]] = {}
    for j, word in enumerate(hypothesis):
        for key in keys(word):
            positions.setdefault(key, []).append(j)
    by_word: dict[str, list[int]] = {}
    for word in dict.fromkeys(reference):
        same_key = {j for key in keys(word) for j in positions.get(key, ())}
        by_word[word] = sorted(j for j in same_key if has_equal_words or hypothesis[j] != word)
    return [by_word[word] for word in reference]


def _match_limit(matching: Sequence[Sequence[int]], limit: int) -> int:
    """Lower the number of matches of one word until all together are not too many."""
    while limit > 1:
        if (
            sum(min(limit, len(positions)) for positions in matching)
            <= length_limits.MAX_WORD_MATCHES
        ):
            break
        limit //= 2
    return limit
