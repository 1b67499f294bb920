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

A partial alignment is a path; at each word of the reference it may take one of the matches that
start there, or none, and the best `beam` paths go on. In a long text a word may match thousands of
others (a `Crowd`); a beam of 40 paths would try each of them at each word, and a list of them grows
with the square of the text. There the words of the hypothesis that match a word in one stage are
one integer, a bit each, and the continuations of all paths are streams of rising rank of which the
best `beam` are drawn: a stream is opened, and a sum of distances added up, only when no better
continuation is left. The result is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

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


def choose(
    candidates: Sequence[Match], hypothesis_length: int, reference_length: int, beam: int = BEAM
) -> tuple[Match, ...]:
    """The best matches that do not overlap, in the order of the reference.

    Where the search is indifferent the order of `candidates` decides.
    """
    settled, contested, covered = _settle(candidates, hypothesis_length, reference_length)

    def extend(paths: list[Path], at: int) -> list[Path]:
        return _extend(paths, contested.get(at, ()), at)

    return search(settled, covered, extend, beam)


def search(
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


def count_chunks(matches: Sequence[Match]) -> int:
    """The number of runs of matches that are contiguous and in the same order on both sides."""
    chunks, end = 0, (-1, -1)
    for _, start, length, at, extent in matches:
        chunks += (start, at) != end
        end = start + length, at + extent
    return chunks


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


def _settle(
    candidates: Sequence[Match], hypothesis_length: int, reference_length: int
) -> tuple[dict[int, Candidate], dict[int, list[Candidate]], list[int]]:
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
    settled: dict[int, Candidate] = {}
    contested: dict[int, list[Candidate]] = {}
    for match in candidates:
        _, start, length, at, extent = match
        if max(*on_hypothesis[start : start + length], *on_reference[at : at + extent]) == 1:
            settled[at] = candidate_of(match)
        else:
            contested.setdefault(at, []).append(candidate_of(match))
    return settled, contested, on_reference


def candidate_of(match: Match) -> Candidate:
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


Key = TypeVar("Key")
IntArray = npt.NDArray[np.int64]

FEW = 12  # set bits that are added up faster one by one than as an array


class Crowd(NamedTuple):
    """All words of the hypothesis that match a word of the reference in one stage."""

    stage: str
    words: int  # a bit for each

    @property
    def cost(self) -> int:
        """What a match adds to the rank of a path: both words are covered, or halves of them."""
        return -2 * WORD if self.stage == EXACT else 0


Crowds = Mapping[str, tuple[Crowd, ...]]  # by word of the reference, in the order of stages


def crowds_of(
    hypothesis: Sequence[str],
    reference: Sequence[str],
    stem: Callable[[str], str] | None,
    senses: Callable[[str], frozenset[int]] | None,
) -> Crowds:
    """The crowds of each distinct word of the reference; a stage without a function is left out.

    >>> crowds_of(["a", "as", "a"], ["a"], lambda word: word[0], None)
    {'a': (Crowd(stage='exact', words=5), Crowd(stage='stem', words=2))}
    """
    masks: dict[str, int] = {}
    for j, word in enumerate(hypothesis):
        masks[word] = masks.get(word, 0) | 1 << j
    by_stem = _group(masks, lambda word: (stem(word),)) if stem is not None else {}
    by_sense = _group(masks, senses) if senses is not None else {}
    found: dict[str, tuple[Crowd, ...]] = {}
    for word in dict.fromkeys(reference):
        equal = masks.get(word, 0)
        akin = by_stem.get(stem(word), ()) if stem is not None else ()
        related = (w for s in senses(word) for w in by_sense.get(s, ())) if senses else ()
        crowds = (
            Crowd(EXACT, equal),
            Crowd(STEM, _join(masks, akin) & ~equal),
            Crowd(SYNONYM, _join(masks, related) & ~equal),
        )
        found[word] = tuple(crowd for crowd in crowds if crowd.words)
    return found


def _group(words: Iterable[str], keys: Callable[[str], Iterable[Key]]) -> dict[Key, list[str]]:
    groups: dict[Key, list[str]] = {}
    for word in words:
        for key in keys(word):
            groups.setdefault(key, []).append(word)
    return groups


def _join(masks: Mapping[str, int], words: Iterable[str]) -> int:
    joined = 0
    for word in words:
        joined |= masks[word]
    return joined


def choose_from_crowds(
    reference: Sequence[str],
    crowds: Crowds,
    phrases: Sequence[Match],
    hypothesis_length: int,
    beam: int,
) -> tuple[Match, ...]:
    """What `choose` finds among all matches of crowds and then `phrases`."""
    on_hypothesis, on_reference = _count(reference, crowds, phrases, hypothesis_length)
    settled: dict[int, Candidate] = {}
    for at, word in enumerate(reference):
        if on_reference[at] == 1 and crowds[word]:
            (crowd,) = crowds[word]
            start = crowd.words.bit_length() - 1
            if on_hypothesis[start] == 1:
                settled[at] = candidate_of(Match(crowd.stage, start, 1, at, 1))
    contested: dict[int, list[Candidate]] = {}
    for match in phrases:
        _, start, length, at, extent = match
        taken = on_hypothesis[start : start + length], on_reference[at : at + extent]
        if max(*taken[0].tolist(), *taken[1].tolist()) == 1:
            settled[at] = candidate_of(match)
        else:
            contested.setdefault(at, []).append(candidate_of(match))
    places = np.arange(hypothesis_length)

    def extend(paths: list[Path], at: int) -> list[Path]:
        distances = np.abs(places - at)
        step = _Step(paths, at, crowds[reference[at]], contested.get(at, []), distances)
        return step.best(beam)

    return search(settled, on_reference.tolist(), extend, beam)


def _count(
    reference: Sequence[str], crowds: Crowds, phrases: Sequence[Match], hypothesis_length: int
) -> tuple[IntArray, IntArray]:
    """How many candidates there are over each word of the hypothesis and of the reference."""
    on_hypothesis = np.zeros(hypothesis_length, dtype=np.int64)
    for word, count in Counter(reference).items():
        for crowd in crowds[word]:
            on_hypothesis[_bit_mask(crowd.words, hypothesis_length)] += count
    sizes = {word: sum(c.words.bit_count() for c in found) for word, found in crowds.items()}
    on_reference = np.array([sizes[word] for word in reference], dtype=np.int64)
    for _, start, length, at, extent in phrases:
        on_hypothesis[start : start + length] += 1
        on_reference[at : at + extent] += 1
    return on_hypothesis, on_reference


def _bit_mask(bits: int, size: int) -> npt.NDArray[np.bool_]:
    """Which of `size` bits are set."""
    raw = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, count=size, bitorder="little").view(np.bool_)


# A continuation of path k: its rank, k, the number of the crowd, the place in it; then the path,
# or None before its stream is opened, when the rank is a lower bound; and the stream behind it.
_Item = tuple[int, int, int, int, Path | None]
_Entry = tuple[int, int, int, int, Path | None, Iterator[_Item]]
_UNOPENED = -1


@dataclass(frozen=True, eq=False)
class _Step:
    """The continuations of paths at one word of the reference, best first.

    Where ranks are equal the order is that of `choose`: by path, by crowd, by place; at last the
    phrases, then the path that takes none.
    """

    paths: Sequence[Path]  # in the order of their ranks
    at: int
    crowds: Sequence[Crowd]
    phrases: Sequence[Candidate]
    distances: IntArray  # of each word of the hypothesis

    def best(self, beam: int) -> list[Path]:
        """The best continuations of all paths together."""
        costs = [*(crowd.cost for crowd in self.crowds), *(phrase.cost for phrase in self.phrases)]
        least = min([0, *costs])
        nothing: Iterator[_Item] = iter(())
        heap: list[_Entry] = [
            (path[0] + least, k, _UNOPENED, _UNOPENED, None, nothing)
            for k, path in enumerate(self.paths)
        ]
        chosen: list[Path] = []
        while heap and len(chosen) < beam:
            _, k, crowd, _, path, stream = heappop(heap)
            if crowd == _UNOPENED:
                for entry in self._open(k):
                    heappush(heap, entry)
                continue
            if path is not None:
                chosen.append(path)
            for item in stream:
                heappush(heap, (*item, stream))
                break
        return chosen

    def _open(self, k: int) -> Iterator[_Entry]:
        """The streams of a path, each with the least rank that it may have."""
        rank, words, undecided, end, _ = self.paths[k]
        if undecided > self.at:  # inside a match of several words
            yield rank, k, 0, 0, self.paths[k], iter(())
            return
        chunk = CHUNK if end >= 0 else 0
        free = [crowd.words & ~words for crowd in self.crowds]
        for c, bits in enumerate(free):
            if bits:
                lowest = rank + self.crowds[c].cost
                yield lowest + chunk, k, c, -1, None, self._take(k, c, free)
                if end >= 0 and bits >> end & 1:
                    yield lowest, k, c, -2, None, self._go_on(k, c, free)
        lowest = rank + min((phrase.cost for phrase in self.phrases), default=chunk)
        yield lowest, k, len(free), -1, None, self._rest(k, free)

    def _take(self, k: int, c: int, free: list[int]) -> Iterator[_Item]:
        """The matches of a crowd that begin a chunk, in the order of the hypothesis."""
        rank, _, _, end, _ = self.paths[k]
        rank += self._charge(free[:c]) + (CHUNK if end >= 0 else 0)
        bits = free[c]
        while bits:
            start = (bits & -bits).bit_length() - 1
            bits &= bits - 1
            if start != end:
                yield self._item(k, c, start, rank)
            rank += abs(start - self.at)

    def _go_on(self, k: int, c: int, free: list[int]) -> Iterator[_Item]:
        """The match of a crowd that continues the last chunk."""
        rank, _, _, end, _ = self.paths[k]
        before = free[c] & ((1 << end) - 1)
        yield self._item(k, c, end, rank + self._charge([*free[:c], before]))

    def _rest(self, k: int, free: list[int]) -> Iterator[_Item]:
        """The phrases, and no match at all."""
        rank, words, _, end, last = self.paths[k]
        rank += self._charge(free)
        chunk = CHUNK if end >= 0 else 0
        items: list[_Item] = []
        for number, (match, taken, cost, start, stop, reference_end, far) in enumerate(
            self.phrases
        ):
            if not words & taken:
                own = rank + cost + (0 if start == end else chunk)
                path: Path = own, words | taken, reference_end, stop, (match, last)
                items.append((own, k, len(free), number, path))
                rank += far
        none: Path = rank + chunk, words, self.at + 1, -1, last
        yield from sorted([*items, (none[0], k, len(free), len(self.phrases), none)])

    def _item(self, k: int, c: int, start: int, rank: int) -> _Item:
        _, words, _, _, last = self.paths[k]
        crowd = self.crowds[c]
        own, match = rank + crowd.cost, Match(crowd.stage, start, 1, self.at, 1)
        return own, k, c, start, (own, words | 1 << start, self.at + 1, start + 1, (match, last))

    def _charge(self, crowds: Sequence[int]) -> int:
        """The distances of all words in crowds together."""
        total = 0
        for bits in crowds:
            if bits.bit_count() > FEW:
                total += int(self.distances[_bit_mask(bits, len(self.distances))].sum())
                continue
            while bits:
                total += abs((bits & -bits).bit_length() - 1 - self.at)
                bits &= bits - 1
        return total


__all__ = [
    "BEAM",
    "PARAPHRASE",
    "STAGES",
    "Match",
    "MeteorAlignment",
    "align",
    "choose",
    "count_chunks",
]

# Pairs of words above which a word may have so many candidates that they are not made one by one.
# Both searches find the same; below it this one is faster.
CROWDED = 200 * 200


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
    if len(hypothesis) * len(reference) > CROWDED:
        crowds = crowds_of(hypothesis, reference, stem, senses)
        matches = choose_from_crowds(reference, crowds, tuple(phrases), len(hypothesis), beam)
    else:
        candidates = exact_matches(hypothesis, reference)
        if stem is not None:
            candidates += stem_matches(hypothesis, reference, stem)
        if senses is not None:
            candidates += synonym_matches(hypothesis, reference, senses)
        candidates += phrases
        matches = choose(candidates, len(hypothesis), len(reference), beam)
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
