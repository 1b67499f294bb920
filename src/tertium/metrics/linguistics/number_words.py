"""Parse English numbers in words, such as two hundred and five."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise


def number_words(words: str, start: int = 1, step: int = 1) -> dict[str, int]:
    """Number the words of a text from `start`."""
    return {word: start + step * n for n, word in enumerate(words.split())}


ONES: Mapping[str, int] = number_words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen",
    start=0,
)
TENS: Mapping[str, int] = number_words(
    "twenty thirty forty fifty sixty seventy eighty ninety", 20, 10
)
SCALES: Mapping[str, int] = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "k": 10**3, "m": 10**6, "mln": 10**6, "mn": 10**6, "bn": 10**9, "tn": 10**12,
}  # fmt: skip
ORDINALS: Mapping[str, int] = {
    **number_words(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
    ),
    **number_words(
        "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth", 20, 10
    ),
    **{"hundredth": 100, "thousandth": 1000, "millionth": 10**6},
}
GROUPS: Mapping[str, Decimal] = {"dozen": Decimal(12), "half": Decimal("0.5")}
_SMALL = "|".join((*ONES, *TENS))
_BIG = "hundred|thousand|million|billion|trillion"
_NTH = "|".join(ORDINALS)
NUMERAL = re.compile(
    rf"(?:an?\s+(?=(?:{_BIG}|dozen|half)\b)|(?:{_SMALL})\b)?(?:[\s-]*\b(?:and\s+(?:a\s+(?=half))?)?"
    rf"(?:{_SMALL}|{_BIG}|{_NTH}|dozen|half)\b)*",
    re.IGNORECASE,
)


def parse_number_words(text: str) -> tuple[Decimal, bool] | None:
    """Parse a spelled-out number; return its value and whether it is an ordinal, or None.

    >>> parse_number_words("two hundred and five"), parse_number_words("twenty-first")
    ((Decimal('205'), False), (Decimal('21'), True))
    >>> parse_number_words("one two three") is None
    True
    """
    words = [w for w in re.split(r"[\s-]+", text.lower()) if w not in ("and", "a", "an", "")]
    if not words or any(not _can_follow(a, b) for a, b in pairwise(words)):
        return None
    total, current = Decimal(0), Decimal(0)
    for word in words:
        if word in ORDINALS and word.removesuffix("th") not in SCALES:
            current += ORDINALS[word]
        elif word in ONES or word in TENS:
            current += ONES.get(word) or TENS.get(word, 0)
        elif word in GROUPS:
            group = GROUPS[word]
            current = current + group if group < 1 else (current or Decimal(1)) * group
        else:
            scale = SCALES[word.removesuffix("th")]
            current = (current or Decimal(1)) * scale
            if scale > 100:
                total, current = total + current, Decimal(0)
    return total + current, words[-1] in ORDINALS


def _can_follow(left: str, right: str) -> bool:
    if left in ORDINALS or left in GROUPS:
        return False
    if right in ONES or right in ORDINALS:
        digit = ONES.get(right, ORDINALS.get(right, 0))
        is_scale = right.removesuffix("th") in SCALES
        return left in SCALES or is_scale or (left in TENS and 0 < digit < 10)
    if right in TENS:
        return left in SCALES
    return True
