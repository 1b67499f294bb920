"""METEOR's alignment: which words of a hypothesis stand for which words of the reference.

Candidate matches come in stages (the same word, the same stem, a synonym, a paraphrase); each word
may be part of one match. Of all choices METEOR takes the one that covers the most words, of these
the one with the fewest chunks (runs that are contiguous and in the same order on both sides), of
these the one whose matches lie closest to the diagonal. Its search is a beam over the reference,
and how it counts decides which alignment wins (Denkowski and Lavie 2014; what METEOR 1.5 does):

    covered words   exact: all of them; other stages: half of them, rounded down for each match
    uncontested     a match none of whose words has another candidate is taken before the search
    distance        |start in hypothesis - start in reference| of a match is charged to those tried
                    after it at the same word, not to itself
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

STAGES = ("exact", "stem", "synonym", "paraphrase")
EXACT, STEM, SYNONYM, PARAPHRASE = STAGES
BEAM = 40


class Match(NamedTuple):
    """A stretch of the hypothesis and the stretch of the reference it matches."""

    stage: str
    hypothesis_start: int
    hypothesis_length: int
    reference_start: int
    reference_length: int


@dataclass(frozen=True)
class Alignment:
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
) -> Alignment:
    """Align two lists of words.

    `stem` gives the stem of a word, `senses` what a word shares with its synonyms, `paraphrases`
    the candidate matches of a paraphrase table; a stage whose function is None is left out.

    >>> a = align("the cats sat".split(), "sat the cat".split(), stem=lambda w: w.rstrip("s"))
    >>> [(m.stage, m.hypothesis_start, m.reference_start) for m in a.matches], a.chunks
    ([('exact', 2, 0), ('exact', 0, 1), ('stem', 1, 2)], 2)
    """
    hypothesis, reference = tuple(hypothesis), tuple(reference)
    candidates = exact_matches(hypothesis, reference)
    if hypothesis != reference:
        if stem is not None:
            candidates += stem_matches(hypothesis, reference, stem)
        if senses is not None:
            candidates += synonym_matches(hypothesis, reference, senses)
        if paraphrases is not None:
            candidates += paraphrases(hypothesis, reference)
    matches = choose(candidates, len(hypothesis), len(reference), beam)
    return Alignment(hypothesis, reference, matches, count_chunks(matches))


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


# Rank of a partial alignment, smaller is better, in one integer that grows by addition:
# minus the covered words, then chunks, then distance, with room for 2^24 chunks and 2^32 distance.
_WORD = 1 << 56
_CHUNK = 1 << 32

# A partial alignment, as a plain tuple since tens of thousands are made: its rank; the bits of the
# hypothesis' words in use; the first undecided word of the reference; where the last match ended in
# the hypothesis (-1 after a word without a match); the contested matches so far, linked backwards.
_Link = tuple[Match, Any] | None
_Path = tuple[int, int, int, int, _Link]
_rank = itemgetter(0)


class _Candidate(NamedTuple):
    """A match as the search needs it."""

    match: Match
    words: int  # a bit for each word of the hypothesis it takes
    cost: int  # what it adds to the rank
    start: int  # in the hypothesis, as `end`
    end: int
    reference_end: int
    distance: int


class _Run(NamedTuple):
    """What happens to every path alike over words of the reference that leave nothing to choose.

    After its first word all paths have ended at the same place, so that they rank as before.
    """

    start: int  # where the match of its first word starts in the hypothesis; -1 if it has none
    cost: int
    end: int  # where the match of its last word ends in the hypothesis; -1 if it has none
    reference_end: int


def choose(
    candidates: Sequence[Match], hypothesis_length: int, reference_length: int, beam: int = BEAM
) -> tuple[Match, ...]:
    """The best matches that do not overlap, in the order of the reference.

    Where the search is indifferent the order of `candidates` decides.
    """
    settled, contested, covered = _settle(candidates, hypothesis_length, reference_length)
    paths: list[_Path] = [(0, 0, 0, -1, None)]
    for step in _steps(settled, covered):
        if len(paths) > 1:
            paths.sort(key=_rank)
            del paths[beam:]
        if isinstance(step, _Run):
            paths = _follow(paths, step)
        else:
            paths = _extend(paths, contested.get(step, ()), step)
    paths.sort(key=_rank)
    best = min(paths[:beam], key=lambda path: path[0] + _CHUNK * (path[3] >= 0))
    chosen = [*(candidate.match for candidate in settled.values()), *_unlink(best[4])]
    return tuple(sorted(chosen, key=attrgetter("reference_start")))


def count_chunks(matches: Sequence[Match]) -> int:
    """The number of runs of matches that are contiguous and in the same order on both sides."""
    chunks, end = 0, (-1, -1)
    for _, start, length, at, extent in matches:
        chunks += (start, at) != end
        end = start + length, at + extent
    return chunks


def _steps(settled: Mapping[int, _Candidate], covered: Sequence[int]) -> Iterator[int | _Run]:
    """The reference from left to right: words where there is a choice, and runs of others.

    `covered` counts the candidates over each word.
    """
    position = 0
    while position < len(covered):
        if covered[position] and position not in settled:
            yield position
            position += 1
        else:
            run = _gather(settled, covered, position)
            yield run
            position = run.reference_end


def _gather(settled: Mapping[int, _Candidate], covered: Sequence[int], position: int) -> _Run:
    """The run that begins at a word of the reference."""
    start = settled[position].start if position in settled else -1
    cost, end = 0, start
    while position < len(covered):
        only = settled.get(position)
        if only is not None:
            cost += only.cost + only.distance + _CHUNK * (end >= 0 and only.start != end)
            end, position = only.end, only.reference_end
        elif not covered[position]:
            cost += _CHUNK * (end >= 0)
            end, position = -1, position + 1
        else:
            break
    return _Run(start, cost, end, position)


def _follow(paths: list[_Path], run: _Run) -> list[_Path]:
    start, cost, stop, reference_end = run
    broken = cost + _CHUNK
    return [
        (rank + (cost if end < 0 or end == start else broken), words, reference_end, stop, last)
        for rank, words, _, end, last in paths
    ]


def _extend(paths: list[_Path], candidates: Sequence[_Candidate], position: int) -> list[_Path]:
    """Extend each path by each of the matches at a word of the reference, and by none."""
    extended: list[_Path] = []
    append, following = extended.append, position + 1
    for path in paths:
        rank, words, undecided, end, last = path
        if undecided > position:  # inside a match of several words
            append(path)
            continue
        chunk = _CHUNK if end >= 0 else 0
        for match, taken, cost, start, stop, reference_end, distance in candidates:
            if not words & taken:
                own = rank + cost if start == end else rank + cost + chunk
                append((own, words | taken, reference_end, stop, (match, last)))
                rank += distance
        append((rank + chunk, words, following, -1, last))
    return extended


def _settle(
    candidates: Sequence[Match], hypothesis_length: int, reference_length: int
) -> tuple[dict[int, _Candidate], dict[int, list[_Candidate]], list[int]]:
    """The uncontested candidates and the others, by where they start in the reference.

    No word of an uncontested match is part of any other candidate. Also how many candidates there
    are over each word of the reference.
    """
    on_hypothesis, on_reference = [0] * hypothesis_length, [0] * reference_length
    for _, start, length, at, extent in candidates:
        for j in range(start, start + length):
            on_hypothesis[j] += 1
        for i in range(at, at + extent):
            on_reference[i] += 1
    settled: dict[int, _Candidate] = {}
    contested: dict[int, list[_Candidate]] = {}
    for match in candidates:
        _, start, length, at, extent = match
        if max(*on_hypothesis[start : start + length], *on_reference[at : at + extent]) == 1:
            settled[at] = _candidate(match)
        else:
            contested.setdefault(at, []).append(_candidate(match))
    return settled, contested, on_reference


def _candidate(match: Match) -> _Candidate:
    stage, start, length, at, extent = match
    gain = length + extent if stage == EXACT else length // 2 + extent // 2
    words = ((1 << length) - 1) << start
    end, reference_end = start + length, at + extent
    return _Candidate(match, words, -gain * _WORD, start, end, reference_end, abs(start - at))


def _unlink(last: _Link) -> Iterator[Match]:
    while last is not None:
        match, last = last
        yield match
