"""Numbers, amounts, dates and times in a text, each brought to one written form.

`1,000`, `a thousand` and `1000` are one number; `15 November 2016`, `Nov. 15th, 2016` and
`2016-11-15` are one date. The scanner reads characters, not tokens, so that it needs no parser and
no tokenization can hide a number from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Protocol


def _count(words: str, start: int = 1, step: int = 1) -> dict[str, int]:
    return {word: start + step * n for n, word in enumerate(words.split())}


ONES: Mapping[str, int] = _count(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen",
    start=0,
)
TENS: Mapping[str, int] = _count("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
SCALES: Mapping[str, int] = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "k": 10**3, "m": 10**6, "mln": 10**6, "mn": 10**6, "bn": 10**9, "tn": 10**12,
}  # fmt: skip
ORDINALS: Mapping[str, int] = {
    **_count(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
    ),
    **_count(
        "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth", 20, 10
    ),
    **{"hundredth": 100, "thousandth": 1000, "millionth": 10**6},
}
GROUPS: Mapping[str, Decimal] = {"dozen": Decimal(12), "half": Decimal("0.5")}

MONTHS: Mapping[str, int] = _count("jan feb mar apr may jun jul aug sep oct nov dec")
WEEKDAYS: Mapping[str, int] = _count("mon tue wed thu fri sat sun")
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


UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number, amount, date or time: characters `start` to `end` of its text, and what they say.

    `kind` is one of number, ordinal, percent, money, date, time; `value` is canonical: a decimal
    without needless zeros (money led by its currency), `year-month-day-weekday` with `?` for what
    was left open, or `hour:minute`.
    """

    start: int
    end: int
    kind: str
    value: str


def find_quantities(text: str) -> tuple[Quantity, ...]:
    """All quantities of a text from left to right, none inside another.

    >>> [(q.kind, q.value) for q in find_quantities("On May 5th, two thousand paid $1.5 million.")]
    [('date', '?-5-5-?'), ('number', '2000'), ('money', 'USD 1500000')]
    """
    plain = western_digits(text)
    found: list[Quantity] = []
    for start in map(re.Match.start, _START.finditer(plain)):
        if not found or start >= found[-1].end:
            quantity = _read(plain, start)
            if quantity is not None:
                found.append(quantity)
    return tuple(found)


class Valued(Protocol):
    """Whatever has a kind and a canonical value: a `Quantity`, or its span in an analysis."""

    @property
    def kind(self) -> str: ...
    @property
    def value(self) -> str: ...


def same_quantity(left: Valued, right: Valued) -> bool:
    """Whether two quantities can mean the same: nothing that both say differs.

    Dates agree where every part that both give is equal; a plain number agrees with an amount,
    share or year of the same size, for its unit may stand elsewhere in the sentence.

    >>> a, b = find_quantities("5 May 2016 or May 5")
    >>> same_quantity(a, b)
    True
    """
    if left.kind == right.kind:
        if left.kind == "date":
            return _dates_agree(left.value, right.value)
        return left.value == right.value
    if "time" in (left.kind, right.kind) or "ordinal" in (left.kind, right.kind):
        return False
    return _amount(left) == _amount(right)


def western_digits(text: str) -> str:
    """The text with every decimal digit and full-width sign in its plain form, of the same length.

    >>> western_digits("٣ and ５")
    '3 and 5'
    """
    if text.isascii():
        return text
    return "".join(map(_western, text))


def _western(character: str) -> str:
    if character.isascii():
        return character
    digit = unicodedata.digit(character, None)
    if digit is not None and character.isdecimal():
        return str(digit)
    return _PLAIN.get(character, character)


def _read(text: str, start: int) -> Quantity | None:
    for pattern, reader in _READERS:
        match = pattern.match(text, start)
        if match is not None and match.end() > start:
            answer = reader(match)
            if answer is not None:
                kind, value = answer
                return _grow(text, Quantity(start=start, end=match.end(), kind=kind, value=value))
    return None


def _grow(text: str, quantity: Quantity) -> Quantity:
    """A number with what follows it: a scale word, a percent sign, a currency."""
    if quantity.kind != "number":
        return quantity
    value, end = Decimal(quantity.value), quantity.end
    while scale := _SCALE.match(text, end):
        value, end = value * SCALES[scale.group(1).lower().rstrip("s")], scale.end()
    kind, shown = "number", write_decimal(value)
    if percent := _PERCENT.match(text, end):
        kind, end = "percent", percent.end()
    elif currency := _CURRENCY_AFTER.match(text, end):
        kind, end = "money", currency.end()
        shown = f"{CURRENCIES[currency.group(1).lower()]} {shown}"
    return Quantity(start=quantity.start, end=end, kind=kind, value=shown)


def write_decimal(value: Decimal) -> str:
    """A decimal without exponent and needless zeros.

    >>> write_decimal(Decimal("1500.00"))
    '1500'
    """
    if value == value.to_integral_value():
        return str(value.quantize(Decimal(1))) if abs(value) < 10**27 else f"{value:e}"
    return f"{value.normalize():f}"


def read_digits(text: str) -> Decimal | None:
    """The number that digits with separators stand for, or nothing.

    A comma or space before exactly three digits separates thousands; otherwise a comma is a
    decimal point, as in much of Europe. A point before three zeros separates thousands too.

    >>> read_digits("1,000"), read_digits("1,5"), read_digits("1 234.5")
    (Decimal('1000'), Decimal('1.5'), Decimal('1234.5'))
    """
    plain = text.replace(" ", "").replace("\u00a0", "").replace("\u202f", "").replace("'", "")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(\.\d{3})+,\d+|\d{1,3}(\.\d{3}){2,}|[1-9]\d{0,2}\.000", plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"\d+,\d+", plain):
        plain = plain.replace(",", ".")
    try:
        return Decimal(plain) if len(plain) <= 27 else None
    except InvalidOperation:
        return None


def _number(match: re.Match[str]) -> tuple[str, str] | None:
    value = read_digits(match.group(1))
    return None if value is None else ("number", write_decimal(value))


def _signed_money(match: re.Match[str]) -> tuple[str, str] | None:
    value = read_digits(match.group(2))
    if value is None:
        return None
    if match.group(3):
        value *= SCALES[match.group(3).lower().rstrip("s")]
    return "money", f"{CURRENCIES[match.group(1).lower()]} {write_decimal(value)}"


def _fraction(match: re.Match[str]) -> tuple[str, str] | None:
    top, bottom = int(match.group(1)), int(match.group(2))
    if not 0 < top < bottom <= 100:
        return None
    return "number", write_decimal(round(Decimal(top) / Decimal(bottom), 4))


def _vulgar(match: re.Match[str]) -> tuple[str, str]:
    whole = Decimal(match.group(1) or 0)
    part = Decimal(str(unicodedata.numeric(match.group(2))))
    return "number", write_decimal(round(whole + part, 4))


def _ordinal(match: re.Match[str]) -> tuple[str, str]:
    return "ordinal", str(int(match.group(1)))


def _words(match: re.Match[str]) -> tuple[str, str] | None:
    read = read_numeral(match.group())
    if read is None:
        return None
    value, ordinal = read
    return ("ordinal" if ordinal else "number"), write_decimal(value)


def _named_month(match: re.Match[str]) -> tuple[str, str] | None:
    parts = match.groupdict()
    month = MONTHS[parts["m"].lower().rstrip(".")[:3]]
    return _date(parts.get("y"), month, parts.get("d"), parts.get("w"))


def _iso(match: re.Match[str]) -> tuple[str, str] | None:
    return _date(match.group(1), int(match.group(2)), match.group(3), None)


def _slash_date(match: re.Match[str]) -> tuple[str, str] | None:
    first, second, year = int(match.group(1)), int(match.group(2)), match.group(3)
    day, month = (second, first) if second > 12 else (first, second)
    return _date(year, month, str(day), None)


def _year(match: re.Match[str]) -> tuple[str, str] | None:
    decade = match.group(2)
    return "date", f"{match.group(1)}{'s' if decade else ''}-?-?-?"


def _weekday(match: re.Match[str]) -> tuple[str, str]:
    return "date", f"?-?-?-{WEEKDAYS[match.group(1).lower()[:3]]}"


def _clock(match: re.Match[str]) -> tuple[str, str] | None:
    hour, minute = int(match.group(1)), int(match.group(2) or 0)
    half = (match.group(3) or "").lower()[:1]
    if match.group(2) is None and not half:
        return None
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return ("time", f"{hour}:{minute:02d}") if hour < 25 and minute < 60 else None


def _date(
    year: str | None, month: int, day: str | None, weekday: str | None
) -> tuple[str, str] | None:
    number = int(re.sub(r"\D", "", day)) if day else None
    if not 1 <= month <= 12 or (number is not None and not 1 <= number <= 31):
        return None
    if year is not None and len(year) == 2:
        year = ("19" if int(year) > 40 else "20") + year
    week = str(WEEKDAYS[weekday.lower()[:3]]) if weekday else UNKNOWN
    return "date", f"{year or UNKNOWN}-{month}-{number or UNKNOWN}-{week}"


def _dates_agree(left: str, right: str) -> bool:
    parts = list(zip(left.split("-"), right.split("-"), strict=True))
    shared = [(a, b) for a, b in parts if UNKNOWN not in (a, b)]
    return bool(shared) and all(a == b for a, b in shared)


def _amount(quantity: Valued) -> str:
    return quantity.value.rpartition(" ")[2].removesuffix("-?-?-?")


_PLAIN = {"％": "%", "，": ",", "．": ".", "＄": "$", "：": ":", "－": "-", "–": "-", "−": "-"}
_DIGITS = (
    r"\d{1,3}(?:[ \u00a0\u202f',]\d{3})+(?:\.\d+)?(?!\d)|\d{1,3}(?:\.\d{3})+,\d+"
    r"|\d+(?:[.,]\d+)*"
)
_M = (
    r"(?P<m>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_W = r"(?:(?P<w>Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,?\s+)?(?:the\s+)?"
_Y = r"(?:,?\s+(?:of\s+)?(?P<y>1\d{3}|20\d{2})\b)?"
_D = r"(?P<d>[0-3]?\d(?:st|nd|rd|th)?)\b"
_SCALE_NAMES = "|".join(f"{name}s?" for name in SCALES if len(name) > 3)
_SCALE_BEHIND = rf"[\s-]?({_SCALE_NAMES}|bn|tn|mln|m|k)\b"
_SCALE = re.compile(_SCALE_BEHIND, re.IGNORECASE)
_PERCENT = re.compile(r"\s?%|[\s-](?:percent|per\s?cent|pc|pct)\b", re.IGNORECASE)
_NAMES = "|".join(re.escape(name) for name in CURRENCIES if name.isalpha())
_SIGNS = "|".join(re.escape(name) for name in CURRENCIES if not name.isalpha())
_CURRENCY_AFTER = re.compile(rf"(?:\s|-)?((?:{_NAMES})\b|{_SIGNS})", re.IGNORECASE)
_CURRENCY_BEFORE = re.compile(
    rf"(usd|eur|gbp|us\$|rub|cny|jpy|{_SIGNS})\s?({_DIGITS})(?:{_SCALE_BEHIND})?",
    re.IGNORECASE,
)
_READERS = (
    (re.compile(rf"{_W}{_D}\s+(?:of\s+)?{_M}{_Y}"), _named_month),
    (re.compile(rf"{_W}{_M}\s*(?:the\s+)?{_D}(?![:,.]?\d){_Y}"), _named_month),
    (re.compile(rf"{_M},?\s+(?:of\s+)?(?P<y>1\d{{3}}|20\d{{2}})\b"), _named_month),
    (re.compile(_M), _named_month),
    (re.compile(r"((?:1\d|20)\d{2})-([01]?\d)-([0-3]?\d)(?!\d)"), _iso),
    (re.compile(r"([0-3]?\d)[/.]([0-3]?\d)[/.]((?:1\d|20)?\d{2})(?![\d.])"), _slash_date),
    (re.compile(r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"), _weekday),
    (re.compile(r"([0-2]?\d)(?:[:.]([0-5]\d))?\s?([ap])\.?m\b\.?", re.IGNORECASE), _clock),
    (re.compile(r"([0-2]?\d):([0-5]\d)(?!\d)()"), _clock),
    (_CURRENCY_BEFORE, _signed_money),
    (re.compile(r"(\d{1,6})(?:st|nd|rd|th)\b"), _ordinal),
    (re.compile(r"(\d*)\s?([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])"), _vulgar),
    (re.compile(r"(\d{1,2})/(\d{1,3})(?![\d/])"), _fraction),
    (re.compile(r"(1[5-9]\d{2}|20\d{2})('?s)?\b(?![.,%]\d|\s?%|\s(?:percent|per\s?cent))"), _year),
    (re.compile(rf"({_DIGITS})"), _number),
    (NUMERAL, _words),
)
_OPENERS = "|".join((*ONES, *TENS, *ORDINALS, *GROUPS, "hundred", "thousand", "million", "an?"))
_START = re.compile(  # where a quantity may begin; digits inside a word (H5N1) are not one
    rf"(?<!\w)(?<!\d[.,:/])\d|{_SIGNS}|[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"
    rf"|\b(?:{_OPENERS}|usd|eur|gbp|us\$|jpy|cny|rub)\b"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)",
    re.IGNORECASE,
)
