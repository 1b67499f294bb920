"""Numbers that are spelled out: words to values, and the names of months, scales and currencies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise

ONES: Mapping[str, int] = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
TENS: Mapping[str, int] = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
SCALES: Mapping[str, int] = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "k": 10**3, "m": 10**6, "mln": 10**6, "mn": 10**6, "bn": 10**9, "tn": 10**12,
}  # fmt: skip
ORDINALS: Mapping[str, int] = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13,
    "fourteenth": 14, "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18,
    "nineteenth": 19, "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50,
    "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90, "hundredth": 100,
    "thousandth": 1000, "millionth": 10**6,
}  # fmt: skip
GROUPS: Mapping[str, Decimal] = {"dozen": Decimal(12), "half": Decimal("0.5")}

MONTHS: Mapping[str, int] = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
WEEKDAYS: Mapping[str, int] = {
    "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6, "sun": 7,
}  # fmt: skip
CURRENCIES: Mapping[str, str] = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "buck": "USD",
    "bucks": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "£": "GBP",
    "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "sterling": "GBP", "¥": "JPY", "yen": "JPY",
    "jpy": "JPY", "yuan": "CNY", "renminbi": "CNY", "cny": "CNY", "rmb": "CNY", "₽": "RUB",
    "rub": "RUB", "ruble": "RUB", "rubles": "RUB", "rouble": "RUB", "roubles": "RUB",
    "₹": "INR", "rupee": "INR", "rupees": "INR", "franc": "CHF", "francs": "CHF", "chf": "CHF",
    "crown": "CZK", "crowns": "CZK", "czk": "CZK", "koruna": "CZK", "lira": "TRY", "liras": "TRY",
    "try": "TRY", "₺": "TRY", "leu": "RON", "lei": "RON", "ron": "RON", "₴": "UAH",
    "hryvnia": "UAH", "hryvnias": "UAH", "cent": "cent", "cents": "cent",
}  # fmt: skip

_SMALL = "|".join((*ONES, *TENS))
_BIG = "hundred|thousand|million|billion|trillion"
_NTH = "|".join(ORDINALS)
NUMERAL = re.compile(
    rf"(?:an?\s+(?=(?:{_BIG}|dozen|half)\b)|(?:{_SMALL})\b)?(?:[\s-]*\b(?:and\s+(?:a\s+(?=half))?)?"
    rf"(?:{_SMALL}|{_BIG}|{_NTH}|dozen|half)\b)*",
    re.IGNORECASE,
)


def read_numeral(text: str) -> tuple[Decimal, bool] | None:
    """The value of a spelled number, and whether it is an ordinal; nothing if it is not one number.

    >>> read_numeral("two hundred and five"), read_numeral("twenty-first")
    ((Decimal('205'), False), (Decimal('21'), True))
    >>> read_numeral("one two three") is None
    True
    """
    words = [w for w in re.split(r"[\s-]+", text.lower()) if w not in ("and", "a", "an", "")]
    if not words or any(not _may_follow(a, b) for a, b in pairwise(words)):
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


def _may_follow(left: str, right: str) -> bool:
    if left in ORDINALS or left in GROUPS:
        return False
    if right in ONES or right in ORDINALS:
        digit = ONES.get(right, ORDINALS.get(right, 0))
        big = right.removesuffix("th") in SCALES
        return left in SCALES or big or (left in TENS and 0 < digit < 10)
    if right in TENS:
        return left in SCALES
    return True
