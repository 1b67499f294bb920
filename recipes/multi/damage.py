"""Damage translations at the level of pieces, in any language, with known error positions.

`flagship.damage` changes English words. Here a word is a run of pieces that begins with a blank
(or a single piece in scripts without blanks). Each kind of damage returns the damaged pieces and
the spans that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int32]
Generator = np.random.Generator
Spans = list[tuple[int, int]]
SLIGHT, SERIOUS, FATAL = 0.3, 0.9, 2.0  # minimum score drop in standard deviations

_NEGATIONS = (
    "not never nicht kein keine pas jamais no nunca non não nie niet geen inte ikke nu не нет ни "
    "nem ei değil δεν ne nije není لا ليس لم לא אין नहीं না नाही 不 没 沒 ない ません 않 ไม่ không "
    "tidak bukan nav mitte ei nė hindi"
).split()
_AUXILIARIES = "is are was were will can could should may must has have had would".split()
_OPPOSITES = (
    "more less|before after|first last|high low|higher lower|good bad|better worse|best worst|"
    "old new|large small|with without|many few|above below|early late|right wrong|he she|his her|"
    "increase decrease|rose fell|open closed|always never|same different|inside outside|all some|"
    "left right|men women|man woman|north south|east west|day night|won lost|mehr weniger|"
    "больше меньше|más menos|plus moins|vor nach|он она|er sie|il elle|él ella"
).split("|")


@dataclass(frozen=True)
class Material:
    """The texts that damage can use: the text, its source, and texts of other lines."""

    text: Array
    source: Array
    same_language: Array  # another line
    other_language: Array  # the same line in a third language


@dataclass(frozen=True)
class Damaged:
    """A damaged text, its wrong spans, and the score drop it should cause at least."""

    text: Array
    spans: Spans
    cost: float


Kind = Callable[[Material, Generator], Damaged | None]


class Damager:
    """All kinds of damage over a vocabulary."""

    def __init__(self, names: Sequence[str]) -> None:
        self._starts_word = np.array([name.startswith("▁") for name in names])
        self._is_capitalized = np.array(
            [len(n) > 2 and n[0] == "▁" and n[1].isupper() for n in names]
        )
        self._is_punctuation = np.array(
            [bool(n.strip("▁")) and not any(map(str.isalnum, n)) for n in names]
        )
        numbers = {name: n for n, name in enumerate(names)}
        forms: dict[tuple[bool, int], list[int]] = {}
        for n, name in enumerate(names):
            if name.strip("▁").isdecimal() and name.isascii() | (name[0] == "▁"):
                forms.setdefault((name[0] == "▁", len(name)), []).append(n)
        self._digits = {n: np.array(form) for form in forms.values() for n in form if len(form) > 1}
        self._negations = {numbers[m] for w in _NEGATIONS for m in (w, f"▁{w}") if m in numbers}
        self._auxiliaries = {numbers[f"▁{w}"] for w in _AUXILIARIES if f"▁{w}" in numbers}
        self._not = numbers.get("▁not")
        self._opposites: dict[int, int] = {}
        for pair in _OPPOSITES:
            words = [numbers.get(f"▁{word}") for word in pair.split()]
            if len(words) == 2 and words[0] is not None and words[1] is not None:
                self._opposites |= {words[0]: words[1], words[1]: words[0]}
        self.kinds: dict[str, tuple[float, Kind]] = {
            "dropped": (2, self.drop),
            "half dropped": (1, self.truncate),
            "doubled": (1, self.double),
            "shuffled": (1, self.shuffle),
            "swapped": (1, self.swap),
            "number": (2, self.change_number),
            "replaced": (2.5, self.replace_words),
            "added": (2, self.add_words),
            "name": (1.5, self.change_name),
            "untranslated part": (1, self.leave_part),
            "negation": (3, self.negate),
            "opposite": (2, self.reverse),
            "copy": (0.7, self.copy),
            "wrong language": (1, self.wrong_language),
            "another line": (0.7, self.another_line),
            "empty": (0.2, self.empty),
            "points lost": (0.5, self.lose_points),
        }
        shares = np.array([share for share, _ in self.kinds.values()])
        self._probabilities = shares / shares.sum()

    def damage(self, material: Material, rng: Generator) -> Damaged | None:
        """Apply a random kind; None where none of the kinds tried is applicable."""
        names = list(self.kinds)
        for _ in range(4):
            kind = names[int(rng.choice(len(names), p=self._probabilities))]
            damaged = self.kinds[kind][1](material, rng)
            if damaged is not None and not np.array_equal(damaged.text, material.text):
                return damaged
        return None

    def words(self, text: Array) -> list[tuple[int, int]]:
        """Return the (start, end) of each word."""
        if not len(text):
            return []
        begins = self._starts_word[text]
        # in scripts without blanks every piece is a word
        if begins.sum() * 6 < len(text):
            return [(n, n + 1) for n in range(len(text))]
        starts = [0, *(np.flatnonzero(begins[1:]) + 1).tolist()]
        return list(zip(starts, [*starts[1:], len(text)], strict=True))

    def _random_span(self, text: Array, rng: Generator, longest: int) -> tuple[int, int] | None:
        words = self.words(text)
        if not words:
            return None
        size = int(rng.integers(1, min(longest, len(words)) + 1))
        first = int(rng.integers(len(words) - size + 1))
        return words[first][0], words[first + size - 1][1]

    def drop(self, material: Material, rng: Generator) -> Damaged | None:
        words = self.words(material.text)
        run = self._random_span(material.text, rng, 3)
        if run is None or len(words) < 5:
            return None
        remaining = np.concatenate([material.text[: run[0]], material.text[run[1] :]])
        return Damaged(remaining, [], SERIOUS if run[1] - run[0] > 2 else SLIGHT)

    def truncate(self, material: Material, rng: Generator) -> Damaged | None:
        words = self.words(material.text)
        if len(words) < 6:
            return None
        size = int(rng.integers(len(words) // 3, len(words) // 2 + 1))
        last = len(words) - size
        first = int(rng.choice([0, last, int(rng.integers(last + 1))]))
        start, end = words[first][0], words[first + size - 1][1]
        return Damaged(np.concatenate([material.text[:start], material.text[end:]]), [], FATAL)

    def double(self, material: Material, rng: Generator) -> Damaged | None:
        run = self._random_span(material.text, rng, 4)
        if run is None:
            return None
        start, end = run
        text = np.concatenate([material.text[:end], material.text[start:]])
        return Damaged(text, [(end, 2 * end - start)], SERIOUS)

    def shuffle(self, material: Material, rng: Generator) -> Damaged | None:
        words = self.words(material.text)
        if len(words) < 4:
            return None
        order = rng.permutation(len(words))
        text = np.concatenate([material.text[slice(*words[n])] for n in order])
        return Damaged(text, [(0, len(text))], FATAL)

    def swap(self, material: Material, rng: Generator) -> Damaged | None:
        words = self.words(material.text)
        if len(words) < 6:
            return None
        a, b, c = sorted(int(n) for n in rng.choice(len(words), size=3, replace=False))
        first, middle, last = words[a][0], words[b][0], words[c][0]
        text = material.text
        mixed = [text[:first], text[middle:last], text[first:middle], text[last:]]
        return Damaged(np.concatenate(mixed), [(first, last)], SERIOUS)

    def change_number(self, material: Material, rng: Generator) -> Damaged | None:
        places = [n for n, piece in enumerate(material.text) if int(piece) in self._digits]
        if not places:
            return None
        place, text = places[int(rng.integers(len(places)))], material.text.copy()
        text[place] = rng.choice(self._digits[int(text[place])])
        return Damaged(text, [(place, place + 1)], SERIOUS)

    def replace_words(self, material: Material, rng: Generator) -> Damaged | None:
        run, other = (
            self._random_span(material.text, rng, 3),
            self._random_span(material.same_language, rng, 3),
        )
        return self._replace_span(material.text, run, material.same_language, other, SERIOUS)

    def _replace_span(
        self,
        text: Array,
        run: tuple[int, int] | None,
        donor: Array,
        donor_span: tuple[int, int] | None,
        cost: float,
    ) -> Damaged | None:
        if run is None or donor_span is None:
            return None
        new = donor[donor_span[0] : donor_span[1]]
        mixed = np.concatenate([text[: run[0]], new, text[run[1] :]])
        return Damaged(mixed, [(run[0], run[0] + len(new))], cost)

    def add_words(self, material: Material, rng: Generator) -> Damaged | None:
        words, donor_span = (
            self.words(material.text),
            self._random_span(material.same_language, rng, 8),
        )
        if not words:
            return None
        at = len(material.text) if rng.random() < 0.5 else words[int(rng.integers(len(words)))][0]
        return self._replace_span(
            material.text, (at, at), material.same_language, donor_span, SERIOUS
        )

    def change_name(self, material: Material, rng: Generator) -> Damaged | None:
        own_names = [
            w for w in self.words(material.text)[1:] if self._is_capitalized[material.text[w[0]]]
        ]
        other_names = [
            w
            for w in self.words(material.same_language)[1:]
            if self._is_capitalized[material.same_language[w[0]]]
        ]
        if not own_names or not other_names:
            return None
        run, donor_span = (
            own_names[int(rng.integers(len(own_names)))],
            other_names[int(rng.integers(len(other_names)))],
        )
        return self._replace_span(material.text, run, material.same_language, donor_span, SERIOUS)

    def leave_part(self, material: Material, rng: Generator) -> Damaged | None:
        run, donor_span = (
            self._random_span(material.text, rng, 5),
            self._random_span(material.source, rng, 5),
        )
        return self._replace_span(material.text, run, material.source, donor_span, SERIOUS)

    def negate(self, material: Material, rng: Generator) -> Damaged | None:
        text = material.text
        negated = [n for n, piece in enumerate(text) if int(piece) in self._negations]
        if negated:
            at = negated[int(rng.integers(len(negated)))]
            remaining = np.concatenate([text[:at], text[at + 1 :]])
            return Damaged(remaining, [(max(at - 1, 0), min(at + 1, len(remaining)))], SERIOUS)
        places = [n for n, piece in enumerate(text) if int(piece) in self._auxiliaries]
        if not places or self._not is None:
            return None
        at = places[int(rng.integers(len(places)))] + 1
        more = np.concatenate([text[:at], np.array([self._not], np.int32), text[at:]])
        return Damaged(more, [(at, at + 1)], SERIOUS)

    def reverse(self, material: Material, rng: Generator) -> Damaged | None:
        places = [n for n, piece in enumerate(material.text) if int(piece) in self._opposites]
        if not places:
            return None
        at, text = places[int(rng.integers(len(places)))], material.text.copy()
        text[at] = self._opposites[int(text[at])]
        return Damaged(text, [(at, at + 1)], SERIOUS)

    def copy(self, material: Material, rng: Generator) -> Damaged | None:
        return Damaged(material.source, [(0, len(material.source))], FATAL)

    def wrong_language(self, material: Material, rng: Generator) -> Damaged | None:
        return Damaged(material.other_language, [(0, len(material.other_language))], FATAL)

    def another_line(self, material: Material, rng: Generator) -> Damaged | None:
        return Damaged(material.same_language, [(0, len(material.same_language))], FATAL)

    def empty(self, material: Material, rng: Generator) -> Damaged | None:
        return Damaged(material.text[:0], [], FATAL)

    def lose_points(self, material: Material, rng: Generator) -> Damaged | None:
        remaining = (
            material.text[~self._is_punctuation[material.text]]
            if len(material.text)
            else material.text
        )
        return Damaged(remaining, [], 0.05) if 3 < len(remaining) < len(material.text) else None
