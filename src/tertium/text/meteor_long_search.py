"""METEOR's beam search for long texts, where a word may match thousands of others.

Trying every match at every word with 40 paths would be slow, and a list of all matches grows with
the square of the text length. Here, all hypothesis words that match a reference word in one stage
are one bit mask (`MatchGroup`). The continuations of all paths are streams ordered by rank, from
which the best `beam` are drawn. A stream is opened, and its distances are summed, only when no
better continuation is left. The result equals that of `meteor_search.choose_matches`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, TypeVar

import numpy as np

from tertium.arrays import BoolArray, IntArray
from tertium.text import length_limits
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

MAX_SCALAR_BITS = 12  # up to this many set bits, a loop is faster than an array


class MatchGroup(NamedTuple):
    """All words of the hypothesis that match a word of the reference in one stage."""

    stage: str
    words: int  # one bit per word

    @property
    def cost(self) -> int:
        """The cost of a match: an exact match covers both words, others cover half of each."""
        return -2 * WORD if self.stage == EXACT else 0


MatchGroups = Mapping[str, tuple[MatchGroup, ...]]  # by reference word, in the order of stages


def group_matches(
    hypothesis: Sequence[str],
    reference: Sequence[str],
    stem: Callable[[str], str] | None,
    senses: Callable[[str], frozenset[int]] | None,
) -> MatchGroups:
    """Group the matches of each distinct reference word; stages without a function are skipped.

    >>> group_matches(["a", "as", "a"], ["a"], lambda word: word[0], None)
    {'a': (MatchGroup(stage='exact', words=5), MatchGroup(stage='stem', words=2))}
    """
    masks: dict[str, int] = {}
    for j, word in enumerate(hypothesis):
        masks[word] = masks.get(word, 0) | 1 << j
    by_stem = _group(masks, lambda word: (stem(word),)) if stem is not None else {}
    by_sense = _group(masks, senses) if senses is not None else {}
    result: dict[str, tuple[MatchGroup, ...]] = {}
    for word in dict.fromkeys(reference):
        equal = masks.get(word, 0)
        same_stem = by_stem.get(stem(word), ()) if stem is not None else ()
        synonyms = (w for s in senses(word) for w in by_sense.get(s, ())) if senses else ()
        groups = (
            MatchGroup(EXACT, equal),
            MatchGroup(STEM, _join(masks, same_stem) & ~equal),
            MatchGroup(SYNONYM, _join(masks, synonyms) & ~equal),
        )
        result[word] = tuple(group for group in groups if group.words)
    return result


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
    groups: MatchGroups,
    phrases: Sequence[Match],
    hypothesis_length: int,
    beam: int,
) -> tuple[Match, ...]:
    """Select matches as `choose_matches` does from all matches of groups, then `phrases`."""
    hypothesis_counts, reference_counts = _count(reference, groups, phrases, hypothesis_length)
    beam = narrow_beam(beam, int(reference_counts.sum()))
    uncontested: dict[int, Candidate] = {}
    for at, word in enumerate(reference):
        if reference_counts[at] == 1 and groups[word]:
            (group,) = groups[word]
            start = group.words.bit_length() - 1
            if hypothesis_counts[start] == 1:
                uncontested[at] = make_candidate(Match(group.stage, start, 1, at, 1))
    lone_phrases, contested = split_uncontested(
        phrases, hypothesis_counts.tolist(), reference_counts.tolist()
    )
    uncontested |= lone_phrases
    positions = np.arange(hypothesis_length)

    def extend(paths: list[Path], at: int) -> list[Path]:
        distances = np.abs(positions - at)
        step = _Step(paths, at, groups[reference[at]], contested.get(at, []), distances)
        return step.best(beam)

    return search_alignment(uncontested, reference_counts.tolist(), extend, beam)


def narrow_beam(beam: int, matches: int) -> int:
    """Return the beam width for a number of matches, so that their product is bounded.

    >>> narrow_beam(40, 1_000_000), narrow_beam(40, 400_000_000)
    (40, 2)
    """
    return max(
        1, beam * length_limits.MAX_WORD_MATCHES // max(matches, length_limits.MAX_WORD_MATCHES)
    )


def _count(
    reference: Sequence[str], groups: MatchGroups, phrases: Sequence[Match], hypothesis_length: int
) -> tuple[IntArray, IntArray]:
    hypothesis_counts = np.zeros(hypothesis_length, dtype=np.int64)
    for word, count in Counter(reference).items():
        for group in groups[word]:
            hypothesis_counts[_bit_mask(group.words, hypothesis_length)] += count
    sizes = {word: sum(c.words.bit_count() for c in members) for word, members in groups.items()}
    reference_counts = np.array([sizes[word] for word in reference], dtype=np.int64)
    for _, start, length, at, extent in phrases:
        hypothesis_counts[start : start + length] += 1
        reference_counts[at : at + extent] += 1
    return hypothesis_counts, reference_counts


def _bit_mask(bits: int, size: int) -> BoolArray:
    raw = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, count=size, bitorder="little").view(np.bool_)


# A continuation of path k: its rank, k, the group index, the position in the group; then the path
# (None for an unopened stream, whose rank is a lower bound), and the remaining stream.
_Item = tuple[int, int, int, int, Path | None]
_Entry = tuple[int, int, int, int, Path | None, Iterator[_Item]]
_UNOPENED = -1


@dataclass(frozen=True, eq=False)
class _Step:
    """The continuations of paths at one word of the reference, best first, as `choose_matches`."""

    paths: Sequence[Path]  # sorted by rank
    at: int
    groups: Sequence[MatchGroup]
    phrases: Sequence[Candidate]
    distances: IntArray  # of each hypothesis word

    def best(self, beam: int) -> list[Path]:
        costs = [*(group.cost for group in self.groups), *(phrase.cost for phrase in self.phrases)]
        least = min([0, *costs])
        nothing: Iterator[_Item] = iter(())
        heap: list[_Entry] = [
            (path[0] + least, k, _UNOPENED, _UNOPENED, None, nothing)
            for k, path in enumerate(self.paths)
        ]
        chosen: list[Path] = []
        while heap and len(chosen) < beam:
            _, k, group, _, path, stream = heappop(heap)
            if group == _UNOPENED:
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
        """Yield the streams of a path, each with a lower bound of its rank."""
        rank, words, undecided, end, _ = self.paths[k]
        if undecided > self.at:  # inside a match of several words
            yield rank, k, 0, 0, self.paths[k], iter(())
            return
        chunk = CHUNK if end >= 0 else 0
        free = [group.words & ~words for group in self.groups]
        for c, bits in enumerate(free):
            if bits:
                lowest = rank + self.groups[c].cost
                yield lowest + chunk, k, c, -1, None, self._take(k, c, free)
                if end >= 0 and bits >> end & 1:
                    yield lowest, k, c, -2, None, self._continue_chunk(k, c, free)
        lowest = rank + min((phrase.cost for phrase in self.phrases), default=chunk)
        yield lowest, k, len(free), -1, None, self._take_phrases(k, free)

    def _take(self, k: int, c: int, free: list[int]) -> Iterator[_Item]:
        """Yield the matches of a group that begin a chunk, in the order of the hypothesis."""
        rank, _, _, end, _ = self.paths[k]
        rank += self._charge(free[:c]) + (CHUNK if end >= 0 else 0)
        bits = free[c]
        while bits:
            start = (bits & -bits).bit_length() - 1
            bits &= bits - 1
            if start != end:
                yield self._item(k, c, start, rank)
            rank += abs(start - self.at)

    def _continue_chunk(self, k: int, c: int, free: list[int]) -> Iterator[_Item]:
        """Yield the match of a group that continues the last chunk."""
        rank, _, _, end, _ = self.paths[k]
        before = free[c] & ((1 << end) - 1)
        yield self._item(k, c, end, rank + self._charge([*free[:c], before]))

    def _take_phrases(self, k: int, free: list[int]) -> Iterator[_Item]:
        """Yield the phrases and the continuation without a match."""
        rank, words, _, end, last = self.paths[k]
        rank += self._charge(free)
        chunk = CHUNK if end >= 0 else 0
        items: list[_Item] = []
        for number, (match, match_words, cost, start, stop, reference_end, far) in enumerate(
            self.phrases
        ):
            if not words & match_words:
                own = rank + cost + (0 if start == end else chunk)
                path: Path = own, words | match_words, reference_end, stop, (match, last)
                items.append((own, k, len(free), number, path))
                rank += far
        none: Path = rank + chunk, words, self.at + 1, -1, last
        yield from sorted([*items, (none[0], k, len(free), len(self.phrases), none)])

    def _item(self, k: int, c: int, start: int, rank: int) -> _Item:
        _, words, _, _, last = self.paths[k]
        group = self.groups[c]
        own, match = rank + group.cost, Match(group.stage, start, 1, self.at, 1)
        return own, k, c, start, (own, words | 1 << start, self.at + 1, start + 1, (match, last))

    def _charge(self, groups: Sequence[int]) -> int:
        total = 0
        for bits in groups:
            if bits.bit_count() > MAX_SCALAR_BITS:
                total += int(self.distances[_bit_mask(bits, len(self.distances))].sum())
                continue
            while bits:
                total += abs((bits & -bits).bit_length() - 1 - self.at)
                bits &= bits - 1
        return total
