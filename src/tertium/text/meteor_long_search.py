"""METEOR's search in long texts, where a word may match thousands of others (a `Crowd`).

A beam of 40 paths would try each of them at each word, and a list of them grows with the square of
the text. Here the words of the hypothesis that match a word in one stage are one integer, a bit
each, and the continuations of all paths are streams of rising rank of which the best `beam` are
drawn: a stream is opened, and a sum of distances added up, only when no better continuation is
left. The result is that of `meteor_search.choose`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

import numpy as np

from tertium.arrays import BoolArray, IntArray
from tertium.text.meteor_search import (
    CHUNK,
    EXACT,
    STEM,
    SYNONYM,
    WORD,
    Candidate,
    Match,
    Path,
    make_candidate,
    search_alignment,
    split_uncontested,
)

Key = TypeVar("Key")

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


def group_matches(
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


def choose_long_matches(
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
                settled[at] = make_candidate(Match(crowd.stage, start, 1, at, 1))
    lone, contested = split_uncontested(phrases, on_hypothesis.tolist(), on_reference.tolist())
    settled |= lone
    places = np.arange(hypothesis_length)

    def extend(paths: list[Path], at: int) -> list[Path]:
        distances = np.abs(places - at)
        step = _Step(paths, at, crowds[reference[at]], contested.get(at, []), distances)
        return step.best(beam)

    return search_alignment(settled, on_reference.tolist(), extend, beam)


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


def _bit_mask(bits: int, size: int) -> BoolArray:
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
