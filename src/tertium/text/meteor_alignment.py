"""METEOR's alignment of the words of a hypothesis and a reference.

Candidate matches come in stages (same word, same stem, synonym, paraphrase). Each word takes part
in at most one match. In long texts, only the nearest words are candidates
(`length_limits.MAX_WORD_MATCHES`).

METEOR prefers the alignment that covers the most words, then the one with the fewest chunks (runs
that are contiguous and in the same order on both sides), then the one closest to the diagonal. A
beam search runs over the words of the reference; its way of counting decides which alignment wins
(Denkowski and Lavie 2014; as implemented in METEOR 1.5):

    covered words   exact: all of them; other stages: half of them, rounded down for each match
    uncontested     a match whose words have no other candidate is selected before the search
    distance        |start in hypothesis - start in reference| of a match is charged to candidates
                    tried after it at the same word, not to the match itself

A partial alignment is a path. At each word of the reference it may take one of the matches that
start there, or none; the best `beam` paths continue.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from tertium.text import length_limits

STAGES = ("exact", "stem", "synonym", "paraphrase")
EXACT, STEM, SYNONYM, PARAPHRASE = STAGES
BEAM = 40  # as in METEOR 1.5


class Match(NamedTuple):
    """A run of words in the hypothesis and the run in the reference that it matches."""

    stage: str
    hypothesis_start: int
    hypothesis_length: int
    reference_start: int
    reference_length: int


# The rank of a partial alignment is one integer, lower is better: minus the covered words, then
# chunks, then distance, for up to 2^24 chunks and a distance of 2^44.
WORD = 1 << 68
CHUNK = 1 << 44

# A partial alignment, as a plain tuple for speed: its rank; bits of the hypothesis words in use;
# the first undecided reference word; the end of the last match in the hypothesis (-1 after a word
# without a match); the contested matches so far, linked backwards.
Link = tuple[Match, Any] | None
Path = tuple[int, int, int, int, Link]
_rank = itemgetter(0)


class Candidate(NamedTuple):
    """A match with precomputed values for the search."""

    match: Match
    words: int  # bits of its words in the hypothesis
    cost: int  # added to the rank
    start: int  # in the hypothesis, like `end`
    end: int
    reference_end: int
    distance: int


class _Run(NamedTuple):
    """A run of reference words without alternatives, which extends all paths in the same way.

    After its first word, all paths end at the same position, so their order does not change.
    """

    start: int  # start of the first match in the hypothesis; -1 if the first word has none
    cost: int
    end: int  # end of the last match in the hypothesis; -1 if the last word has none
    reference_end: int


def choose_matches(
    candidates: Sequence[Match], hypothesis_length: int, reference_length: int, beam: int = BEAM
) -> tuple[Match, ...]:
    """Select the best matches that do not overlap; the order of `candidates` breaks ties."""
    hypothesis_counts = [0] * hypothesis_length
    reference_counts = [0] * reference_length
    for _, start, length, at, extent in candidates:
        for j in range(start, start + length):
            hypothesis_counts[j] += 1
        for i in range(at, at + extent):
            reference_counts[i] += 1
    uncontested, contested = _split_uncontested(candidates, hypothesis_counts, reference_counts)
    paths: list[Path] = [(0, 0, 0, -1, None)]
    for step in _steps(uncontested, reference_counts):
        if len(paths) > 1:
            paths.sort(key=_rank)
            del paths[beam:]
        if isinstance(step, _Run):
            paths = _extend_by_run(paths, step)
        else:
            paths = _extend(paths, contested.get(step, ()), step, beam)
    paths.sort(key=_rank)
    best = min(paths[:beam], key=lambda path: path[0] + CHUNK * (path[3] >= 0))
    chosen = [*(candidate.match for candidate in uncontested.values()), *_unlink(best[4])]
    return tuple(sorted(chosen, key=attrgetter("reference_start")))


def _steps(
    uncontested: Mapping[int, Candidate], candidate_counts: Sequence[int]
) -> Iterator[int | _Run]:
    """Split the reference into words with alternatives, and runs of words without."""
    position = 0
    while position < len(candidate_counts):
        if candidate_counts[position] and position not in uncontested:
            yield position
            position += 1
        else:
            run = _make_run(uncontested, candidate_counts, position)
            yield run
            position = run.reference_end


def _make_run(
    uncontested: Mapping[int, Candidate], candidate_counts: Sequence[int], position: int
) -> _Run:
    start = uncontested[position].start if position in uncontested else -1
    cost = 0
    end = start
    while position < len(candidate_counts):
        only = uncontested.get(position)
        if only is not None:
            cost += only.cost + only.distance + CHUNK * (end >= 0 and only.start != end)
            end = only.end
            position = only.reference_end
        elif not candidate_counts[position]:
            cost += CHUNK * (end >= 0)
            end = -1
            position = position + 1
        else:
            break
    return _Run(start, cost, end, position)


def _extend_by_run(paths: list[Path], run: _Run) -> list[Path]:
    start, cost, stop, reference_end = run
    new_chunk = cost + CHUNK
    return [
        (rank + (cost if end < 0 or end == start else new_chunk), words, reference_end, stop, last)
        for rank, words, _, end, last in paths
    ]


def _extend(
    paths: list[Path], candidates: Sequence[Candidate], position: int, beam: int
) -> list[Path]:
    """Extend each path by each match at a word of the reference, and by no match.

    Paths that at least `beam` others precede are left out.
    """
    extended: list[Path] = []
    append = extended.append
    following = position + 1
    worst = math.inf  # paths from this rank on are left out
    least_cost = min([0, *(candidate.cost for candidate in candidates)])
    first_words = {candidate.start: candidate.words & -candidate.words for candidate in candidates}
    for path in paths:
        if len(extended) >= 2 * beam:
            extended.sort(key=_rank)
            del extended[beam:]
            worst = extended[-1][0]
        rank, words, undecided, end, last = path
        if undecided > position:  # inside a match of several words
            append(path)
            continue
        chunk = CHUNK if end >= 0 else 0
        can_continue = end in first_words and not words & first_words[end]
        least = least_cost if can_continue else least_cost + chunk
        if rank + least >= worst:
            continue
        for match, match_words, cost, start, stop, reference_end, distance in candidates:
            if not words & match_words:
                own = rank + cost if start == end else rank + cost + chunk
                if own < worst:
                    append((own, words | match_words, reference_end, stop, (match, last)))
                rank += distance
                if rank + least >= worst:
                    break
        else:
            append((rank + chunk, words, following, -1, last))
    return extended


def _split_uncontested(
    candidates: Sequence[Match], hypothesis_counts: Sequence[int], reference_counts: Sequence[int]
) -> tuple[dict[int, Candidate], dict[int, list[Candidate]]]:
    """Separate uncontested candidates, whose words have no other candidate, from contested ones."""
    uncontested: dict[int, Candidate] = {}
    contested: dict[int, list[Candidate]] = {}
    for match in candidates:
        _, start, length, at, extent = match
        counts = (*hypothesis_counts[start : start + length], *reference_counts[at : at + extent])
        if max(counts) == 1:
            uncontested[at] = _make_candidate(match)
        else:
            contested.setdefault(at, []).append(_make_candidate(match))
    return uncontested, contested


def _make_candidate(match: Match) -> Candidate:
    """Compute the cost and positions of a match for the search."""
    stage, start, length, at, extent = match
    gain = length + extent if stage == EXACT else length // 2 + extent // 2
    end = start + length
    reference_end = at + extent
    words = _word_bits(start, end)
    return Candidate(match, words, -gain * WORD, start, end, reference_end, abs(start - at))


@lru_cache(maxsize=1 << 12)  # equal candidates of a long text share these numbers
def _word_bits(start: int, end: int) -> int:
    return (1 << end) - (1 << start)


def _unlink(last: Link) -> Iterator[Match]:
    while last is not None:
        match, last = last
        yield match


def count_chunks(matches: Sequence[Match]) -> int:
    """Count the runs of matches that are contiguous and in the same order on both sides."""
    chunks = 0
    end = (-1, -1)
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


Senses = frozenset[str]
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
    hypothesis = tuple(hypothesis)
    reference = tuple(reference)
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
