"""METEOR's search: of candidate matches those that it takes, word by word of the reference.

Of all choices METEOR takes the one that covers the most words, of these the one with the fewest
chunks (runs that are contiguous and in the same order on both sides), of these the one whose
matches lie closest to the diagonal. Its search is a beam over the reference, and how it counts
decides which alignment wins (Denkowski and Lavie 2014; what METEOR 1.5 does):

    covered words   exact: all of them; other stages: half of them, rounded down for each match
    uncontested     a match none of whose words has another candidate is taken before the search
    distance        |start in hypothesis - start in reference| of a match is charged to those tried
                    after it at the same word, not to itself

A partial alignment is a path; at each word of the reference it may take one of the matches that
start there, or none, and the best `beam` paths go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

STAGES = ("exact", "stem", "synonym", "paraphrase")
EXACT, STEM, SYNONYM, PARAPHRASE = STAGES
BEAM = 40  # METEOR 1.5's


class Match(NamedTuple):
    """A stretch of the hypothesis and the stretch of the reference it matches."""

    stage: str
    hypothesis_start: int
    hypothesis_length: int
    reference_start: int
    reference_length: int


# Rank of a partial alignment, smaller is better, in one integer that grows by addition:
# minus the covered words, then chunks, then distance, with room for 2^24 chunks and 2^44 distance.
WORD = 1 << 68
CHUNK = 1 << 44

# A partial alignment, as a plain tuple since tens of thousands are made: its rank; the bits of the
# hypothesis' words in use; the first undecided word of the reference; where the last match ended in
# the hypothesis (-1 after a word without a match); the contested matches so far, linked backwards.
Link = tuple[Match, Any] | None
Path = tuple[int, int, int, int, Link]
_rank = itemgetter(0)


class Candidate(NamedTuple):
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


def choose_matches(
    candidates: Sequence[Match], hypothesis_length: int, reference_length: int, beam: int = BEAM
) -> tuple[Match, ...]:
    """The best matches that do not overlap, in the order of the reference.

    Where the search is indifferent the order of `candidates` decides.
    """
    on_hypothesis, on_reference = [0] * hypothesis_length, [0] * reference_length
    for _, start, length, at, extent in candidates:
        for j in range(start, start + length):
            on_hypothesis[j] += 1
        for i in range(at, at + extent):
            on_reference[i] += 1
    settled, contested = split_uncontested(candidates, on_hypothesis, on_reference)

    def extend(paths: list[Path], at: int) -> list[Path]:
        return _extend(paths, contested.get(at, ()), at)

    return search_alignment(settled, on_reference, extend, beam)


def search_alignment(
    settled: Mapping[int, Candidate],
    covered: Sequence[int],
    extend: Callable[[list[Path], int], list[Path]],
    beam: int,
) -> tuple[Match, ...]:
    """The settled matches and the best of the others, in the order of the reference.

    `covered` counts the candidates over each word of the reference; `extend` continues paths by
    what may be matched at one.
    """
    paths: list[Path] = [(0, 0, 0, -1, None)]
    for step in _steps(settled, covered):
        if len(paths) > 1:
            paths.sort(key=_rank)
            del paths[beam:]
        paths = _follow(paths, step) if isinstance(step, _Run) else extend(paths, step)
    paths.sort(key=_rank)
    best = min(paths[:beam], key=lambda path: path[0] + CHUNK * (path[3] >= 0))
    chosen = [*(candidate.match for candidate in settled.values()), *_unlink(best[4])]
    return tuple(sorted(chosen, key=attrgetter("reference_start")))


def _steps(settled: Mapping[int, Candidate], covered: Sequence[int]) -> Iterator[int | _Run]:
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


def _gather(settled: Mapping[int, Candidate], covered: Sequence[int], position: int) -> _Run:
    """The run that begins at a word of the reference."""
    start = settled[position].start if position in settled else -1
    cost, end = 0, start
    while position < len(covered):
        only = settled.get(position)
        if only is not None:
            cost += only.cost + only.distance + CHUNK * (end >= 0 and only.start != end)
            end, position = only.end, only.reference_end
        elif not covered[position]:
            cost += CHUNK * (end >= 0)
            end, position = -1, position + 1
        else:
            break
    return _Run(start, cost, end, position)


def _follow(paths: list[Path], run: _Run) -> list[Path]:
    start, cost, stop, reference_end = run
    broken = cost + CHUNK
    return [
        (rank + (cost if end < 0 or end == start else broken), words, reference_end, stop, last)
        for rank, words, _, end, last in paths
    ]


def _extend(paths: list[Path], candidates: Sequence[Candidate], position: int) -> list[Path]:
    """Extend each path by each of the matches at a word of the reference, and by none."""
    extended: list[Path] = []
    append, following = extended.append, position + 1
    for path in paths:
        rank, words, undecided, end, last = path
        if undecided > position:  # inside a match of several words
            append(path)
            continue
        chunk = CHUNK if end >= 0 else 0
        for match, taken, cost, start, stop, reference_end, distance in candidates:
            if not words & taken:
                own = rank + cost if start == end else rank + cost + chunk
                append((own, words | taken, reference_end, stop, (match, last)))
                rank += distance
        append((rank + chunk, words, following, -1, last))
    return extended


def split_uncontested(
    candidates: Sequence[Match], on_hypothesis: Sequence[int], on_reference: Sequence[int]
) -> tuple[dict[int, Candidate], dict[int, list[Candidate]]]:
    """The uncontested candidates and the others, by where they start in the reference.

    No word of an uncontested match is part of any other candidate: given are how many there are
    over each word of either text.
    """
    settled: dict[int, Candidate] = {}
    contested: dict[int, list[Candidate]] = {}
    for match in candidates:
        _, start, length, at, extent = match
        if max(*on_hypothesis[start : start + length], *on_reference[at : at + extent]) == 1:
            settled[at] = make_candidate(match)
        else:
            contested.setdefault(at, []).append(make_candidate(match))
    return settled, contested


def make_candidate(match: Match) -> Candidate:
    """A match with what it adds to a path."""
    stage, start, length, at, extent = match
    gain = length + extent if stage == EXACT else length // 2 + extent // 2
    words = ((1 << length) - 1) << start
    end, reference_end = start + length, at + extent
    return Candidate(match, words, -gain * WORD, start, end, reference_end, abs(start - at))


def _unlink(last: Link) -> Iterator[Match]:
    while last is not None:
        match, last = last
        yield match
