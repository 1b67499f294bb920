"""Perturbations: rules that damage a good translation in one specific way, to test metrics.

A rule is a function of a text, related texts and a random generator. It returns None if the text
offers nothing to change in this way. Most rules work in any language: their units are words, or
characters in scripts without spaces. Rules that change the meaning exchange word pairs of
`word_pairs.json`, which has them for a few languages, in either direction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from tertium.text.scripts import is_unspaced_script

Pairs = Sequence[Sequence[str]]
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PUNCTUATION = re.compile(r"[^\w\s]", re.UNICODE)


@dataclass(frozen=True, kw_only=True)
class PerturbationInput:
    """A good translation, an unrelated (`other`) and a `foreign` text that may replace it."""

    text: str
    language: str
    source: str
    other: str
    foreign: str


Perturbation = Callable[[PerturbationInput, np.random.Generator], str | None]


def units(text: str) -> list[str]:
    """Split a text into words, or into characters in a script without spaces.

    >>> units("two words"), units("你好。")
    (['two', 'words'], ['你', '好', '。'])
    """
    return list(text) if is_unspaced_script(text) else text.split()


def join_units(parts: Sequence[str], like: str) -> str:
    """Join units with or without spaces, as in the text `like`."""
    return ("" if is_unspaced_script(like) else " ").join(parts)


def drop_words(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Remove a run of one to three units, never the last one."""
    parts = units(original.text)
    if len(parts) < 6:
        return None
    size = int(rng.integers(1, 4)) + is_unspaced_script(original.text)
    start = int(rng.integers(len(parts) - size))
    return join_units([*parts[:start], *parts[start + size :]], original.text)


def truncate(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Remove the second half."""
    parts = units(original.text)
    return join_units(parts[: len(parts) // 2], original.text) if len(parts) > 5 else None


def add_words(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Append the second half of another text."""
    tail = units(original.other)
    if len(tail) < 6:
        return None
    return join_units([*units(original.text), *tail[len(tail) // 2 :]], original.text)


def repeat_words(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Repeat a run of one to three units."""
    parts = units(original.text)
    if len(parts) < 4:
        return None
    size = int(rng.integers(1, 4))
    end = size + int(rng.integers(len(parts) - size + 1))
    return join_units([*parts[:end], *parts[end - size :]], original.text)


def shuffle_words(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Put all units in random order."""
    parts = units(original.text)
    return join_units([parts[n] for n in rng.permutation(len(parts))], original.text)


def change_number(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Replace one digit of a number."""
    text = original.text
    positions = [n for match in _NUMBER.finditer(text) for n in range(*match.span())]
    positions = [n for n in positions if text[n].isdecimal()]
    if not positions:
        return None
    position = positions[int(rng.integers(len(positions)))]
    digit = (int(text[position]) + int(rng.integers(1, 10))) % 10
    return text[:position] + str(digit) + text[position + 1 :]


def remove_punctuation(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    return _PUNCTUATION.sub("", original.text)


def misspell_words(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Swap two adjacent letters in about a third of the long words."""
    parts = original.text.split()
    long = [n for n, word in enumerate(parts) if len(word) > 4 and word[:4].isalpha()]
    if not long or is_unspaced_script(original.text):
        return None
    for n in long[:: max(1, len(long) // 3)]:
        at = 1 + int(rng.integers(len(parts[n]) - 3))
        parts[n] = parts[n][:at] + parts[n][at + 1] + parts[n][at] + parts[n][at + 2 :]
    return " ".join(parts)


def leave_untranslated(original: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Replace the second half by the second half of the source."""
    own = units(original.text)
    source = units(original.source)
    start = join_units(own[: len(own) // 2], original.text)
    return f"{start} {join_units(source[len(source) // 2 :], original.source)}"


@cache
def _word_pairs() -> Mapping[str, Mapping[str, Pairs]]:
    """Return the word pairs of each kind by language."""
    content = files("tertium.text").joinpath("word_pairs.json").read_text("utf-8")
    kinds: dict[str, dict[str, Pairs]] = json.loads(content)
    return kinds


def _exchange(kind: str) -> Perturbation:
    """Make a rule that replaces one word of a pair by its partner."""

    def rule(original: PerturbationInput, rng: np.random.Generator) -> str | None:
        pairs = _word_pairs()[kind].get(original.language, ())
        matches = list(_find_partners(original, pairs))
        if not matches:
            return None
        start, end, new = matches[int(rng.integers(len(matches)))]
        old = original.text[start:end]
        new = new[:1].upper() + new[1:] if old[:1].isupper() else new
        return original.text[:start] + new + original.text[end:]

    return rule


def _find_partners(original: PerturbationInput, pairs: Pairs) -> Iterator[tuple[int, int, str]]:
    partner = {word: other for a, b in pairs for word, other in ((a, b), (b, a))}
    # Longest first: "is" inside "is not" must not match.
    terms = "|".join(map(re.escape, sorted(partner, key=len, reverse=True)))
    edge = "" if is_unspaced_script(original.text) else r"\b"
    pattern = f"{edge}({terms}){edge}"
    for match in re.finditer(pattern, original.text, re.IGNORECASE) if terms else ():
        new = partner.get(match[0]) or partner.get(match[0].lower())
        if new is not None:
            yield *match.span(), new


# Kinds that change the meaning with a word or two and leave everything else as it is.
MEANING_KINDS = ("number", "unit", "date", "name", "negation", "opposite", "gender")
PERTURBATIONS: Mapping[str, Perturbation] = {
    "omission": drop_words,
    "truncation": truncate,
    "addition": add_words,
    "repetition": repeat_words,
    "word order": shuffle_words,
    "number": change_number,
    **{kind: _exchange(kind) for kind in MEANING_KINDS[1:]},
    "untranslated part": leave_untranslated,
    "source copied": lambda original, rng: original.source,
    "wrong language": lambda original, rng: original.foreign,
    "unrelated": lambda original, rng: original.other,
    "empty": lambda original, rng: "",
    "spelling": misspell_words,
    "punctuation": remove_punctuation,
}


def perturb(original: PerturbationInput, kind: str, rng: np.random.Generator) -> str | None:
    """Apply one kind of perturbation; return None if it does not change the text.

    >>> paid = PerturbationInput(
    ...     text="He paid 300 euros.", language="en", source="", other="", foreign=""
    ... )
    >>> perturb(paid, "unit", np.random.default_rng(1))
    'He paid 300 cents.'
    """
    changed = PERTURBATIONS[kind](original, rng)
    return None if changed is None or changed.strip() == original.text.strip() else changed
