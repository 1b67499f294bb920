"""Damage English translations in ways that a metric should detect, one kind at a time.

Each kind is a pure function of the words and a random generator. It returns None if it is not
applicable (no number to change, no pronoun to swap). Training and evaluation use these functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

Damage = Callable[[list[str], np.random.Generator], list[str] | None]

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SWAPPED_PRONOUNS = {
    "he": "she", "she": "he", "him": "her", "his": "her", "himself": "herself",
    "herself": "himself", "hers": "his", "her": "his",
}  # fmt: skip
_AUXILIARIES = frozenset(
    "is are was were has have had will would can could should may might must do does did".split()
)
_NEGATED = frozenset("not n't never no".split())
_NUMBER_WORDS = (
    "two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred".split()
)
_OPPOSITES_PLAIN = (
    ("more", "less"), ("increase", "decrease"), ("increased", "decreased"), ("rose", "fell"),
    ("before", "after"), ("first", "last"), ("high", "low"), ("higher", "lower"),
    ("good", "bad"), ("better", "worse"), ("best", "worst"), ("old", "new"), ("large", "small"),
    ("always", "never"), ("with", "without"), ("many", "few"), ("won", "lost"), ("above", "below"),
    ("against", "for"), ("accepted", "rejected"), ("allowed", "forbidden"), ("began", "ended"),
    ("open", "closed"), ("early", "late"), ("same", "different"), ("right", "wrong"),
    ("all", "some"), ("everyone", "nobody"), ("inside", "outside"), ("buy", "sell"),
)  # fmt: skip
_OPPOSITES = {a: b for pair in _OPPOSITES_PLAIN for a, b in (pair, pair[::-1])}
_NAMES = (
    "Anderson", "Kowalski", "Tanaka", "Berlin", "Madrid", "Nguyen", "Siemens", "Toyota", "Oslo",
    "Petrov", "Garcia", "Canada", "Kenya", "Miller", "Dubois", "Rossi", "Vienna", "Lisbon",
    "Peru", "Samsung", "Maria", "Thomas", "Fatima", "Ivan", "Chicago", "Mumbai", "Novak",
)  # fmt: skip
_TAILS = (
    "and the weather was fine on that day.", "which nobody had expected at all.",
    "according to a spokesman for the ministry.", "as the two companies announced last week.",
    "because the children were still asleep.", "and this is why the road remains closed.",
    "in the second half of the eighteenth century.", "please contact our customer service.",
)  # fmt: skip


def drop_word(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Drop one longer word."""
    places = [n for n, word in enumerate(words) if len(word) > 3]
    if len(words) < 4 or not places:
        return None
    gone = places[rng.integers(len(places))]
    return [word for n, word in enumerate(words) if n != gone]


def drop_half(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Drop a run of a third to a half of the words."""
    if len(words) < 6:
        return None
    size = int(rng.integers(len(words) // 3, len(words) // 2 + 1))
    start = int(rng.integers(len(words) - size + 1))
    return words[:start] + words[start + size :]


def double_words(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Repeat one to three words."""
    if len(words) < 3:
        return None
    size = int(rng.integers(1, 4))
    start = int(rng.integers(len(words) - min(size, len(words)) + 1))
    return words[: start + size] + words[start : start + size] + words[start + size :]


def shuffle(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Shuffle all words."""
    if len(set(words)) < 4:
        return None
    mixed = [words[n] for n in rng.permutation(len(words))]
    return mixed if mixed != words else None


def swap_phrases(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Swap two neighboring runs of words."""
    if len(words) < 6:
        return None
    a, b, c = sorted(int(n) for n in rng.choice(len(words) - 1, size=3, replace=False))
    return words[:a] + words[b:c] + words[a:b] + words[c:] if a < b < c else None


def flip_negation(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Remove a negation, or add one after an auxiliary."""
    lowered = [word.lower() for word in words]
    for n, word in enumerate(lowered):
        if word in ("not", "never"):
            return words[:n] + words[n + 1 :]
        if word.endswith("n't") and len(word) > 3:
            stem = {"won't": "will", "can't": "can"}.get(word, word[:-3])
            return [*words[:n], stem, *words[n + 1 :]]
    places = [
        n for n, word in enumerate(lowered[:-1])
        if word in _AUXILIARIES and lowered[n + 1] not in _NEGATED
    ]  # fmt: skip
    if not places:
        return None
    place = places[rng.integers(len(places))]
    return [*words[: place + 1], "not", *words[place + 1 :]]


def change_number(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Replace a number, in digits or letters."""
    places = [
        n for n, word in enumerate(words) if _NUMBER.search(word) or word.lower() in _NUMBER_WORDS
    ]
    if not places:
        return None
    place = places[rng.integers(len(places))]
    changed = list(words)
    if _NUMBER.search(words[place]):
        changed[place] = _NUMBER.sub(lambda m: _other_digits(m.group(), rng), words[place], 1)
    else:
        alternatives = [word for word in _NUMBER_WORDS if word != words[place].lower()]
        changed[place] = alternatives[rng.integers(len(alternatives))]
    return changed


def swap_gender(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Swap gendered pronouns everywhere."""
    changed = [_like(word, _SWAPPED_PRONOUNS.get(word.lower(), word)) for word in words]
    return changed if changed != words else None


def change_name(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Replace a capitalized word inside the sentence by another name."""
    places = _names(words)
    if not places:
        return None
    place = places[rng.integers(len(places))]
    alternatives = [name for name in _NAMES if name not in words]
    core = re.sub(r"\w+", alternatives[rng.integers(len(alternatives))], words[place], count=1)
    return [*words[:place], core, *words[place + 1 :]]


def drop_name(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Drop a name."""
    places = _names(words)
    if not places or len(words) < 4:
        return None
    place = places[rng.integers(len(places))]
    return words[:place] + words[place + 1 :]


def reverse_meaning(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Replace one word by its opposite."""
    places = [n for n, word in enumerate(words) if word.lower() in _OPPOSITES]
    if not places:
        return None
    place = places[rng.integers(len(places))]
    opposite = _like(words[place], _OPPOSITES[words[place].lower()])
    return [*words[:place], opposite, *words[place + 1 :]]


def add_tail(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Append a hallucinated clause."""
    tail = _TAILS[rng.integers(len(_TAILS))].split()
    body = " ".join(words).rstrip(" .!?").split()
    return [*body, *tail] if body else None


def lose_case(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Convert everything to lower or upper case."""
    shout = rng.random() < 0.3
    changed = [word.upper() if shout else word.lower() for word in words]
    return changed if changed != words else None


def lose_spaces(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Join two to six neighboring words."""
    if len(words) < 5:
        return None
    size = int(rng.integers(2, min(7, len(words))))
    start = int(rng.integers(len(words) - size + 1))
    return [*words[:start], "".join(words[start : start + size]), *words[start + size :]]


def lose_punctuation(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Strip the punctuation of all words."""
    stripped = [word.strip(".,;:!?\"'()") for word in words]
    nonempty_words = [word for word in stripped if word]
    return nonempty_words if nonempty_words and nonempty_words != words else None


def garble_letters(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Misspell two words by swapping neighboring letters."""
    places = [n for n, word in enumerate(words) if len(word) > 4]
    if not places:
        return None
    changed = list(words)
    for place in rng.choice(places, size=min(2, len(places)), replace=False):
        word, at = changed[place], int(rng.integers(1, len(changed[place]) - 2))
        changed[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return changed if changed != words else None


def empty(words: list[str], rng: np.random.Generator) -> list[str] | None:
    """Return an empty text."""
    return [] if words else None


KINDS: Mapping[str, Damage] = {
    "word dropped": drop_word,
    "half dropped": drop_half,
    "words doubled": double_words,
    "words shuffled": shuffle,
    "phrases swapped": swap_phrases,
    "negation flipped": flip_negation,
    "number changed": change_number,
    "gender swapped": swap_gender,
    "name changed": change_name,
    "name dropped": drop_name,
    "meaning reversed": reverse_meaning,
    "tail hallucinated": add_tail,
    "case lost": lose_case,
    "spaces lost": lose_spaces,
    "punctuation lost": lose_punctuation,
    "letters garbled": garble_letters,
    "empty": empty,
}


def damage(text: str, kind: str, rng: np.random.Generator) -> str | None:
    """Return the text with one kind of damage, or None if it is not applicable.

    >>> damage("He paid 300 euros.", "gender swapped", np.random.default_rng(1))
    'She paid 300 euros.'
    """
    changed = KINDS[kind](text.split(), rng)
    if changed is None:
        return None
    result = " ".join(changed)
    return result if result != text else None


def _names(words: Sequence[str]) -> list[int]:
    return [
        n for n, word in enumerate(words)
        if n and word[:1].isupper() and word[1:2].islower() and words[n - 1] not in ".!?:\""
    ]  # fmt: skip


def _other_digits(number: str, rng: np.random.Generator) -> str:
    places = [n for n, c in enumerate(number) if c.isdigit()]
    place = places[rng.integers(len(places))]
    lowest = 1 if place == 0 else 0
    alternatives = [d for d in range(lowest, 10) if str(d) != number[place]]
    return number[:place] + str(alternatives[rng.integers(len(alternatives))]) + number[place + 1 :]


def _like(pattern: str, word: str) -> str:
    return word.capitalize() if pattern[:1].isupper() else word
