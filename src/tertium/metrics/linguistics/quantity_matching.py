"""Find numbers, amounts, dates and times in a text and convert them to a canonical form.

`1,000`, `a thousand` and `1000` are one number; `15 November 2016`, `Nov. 15th, 2016` and
`2016-11-15` are one date. The scanner works on characters, not on tokens, so it needs no parser
and does not depend on the tokenization.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from tertium.metrics.linguistics.dependency_graph import TypedSpan
from tertium.metrics.linguistics.lexicons import map_to_class


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
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "k": 10**3,
    "m": 10**6,
    "mln": 10**6,
    "mn": 10**6,
    "bn": 10**9,
    "tn": 10**12,
}

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
    total = Decimal(0)
    current = Decimal(0)
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
                total = total + current
                current = Decimal(0)
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


MONTHS: Mapping[str, int] = number_words("jan feb mar apr may jun jul aug sep oct nov dec")
WEEKDAYS: Mapping[str, int] = number_words("mon tue wed thu fri sat sun")
CURRENCIES = map_to_class(
    USD="$ us$ usd dollar dollars buck bucks",
    EUR="€ eur euro euros",
    GBP="£ gbp pound pounds sterling",
    JPY="¥ yen jpy",
    CNY="yuan renminbi cny rmb",
    RUB="₽ rub ruble rubles rouble roubles",
    INR="₹ rupee rupees",
    CHF="franc francs chf",
    CZK="crown crowns czk koruna",
    TRY="lira liras try ₺",
    RON="leu lei ron",
    UAH="₴ hryvnia hryvnias",
    cent="cent cents",
)


KindAndValue = tuple[str, str]
UNSPECIFIED = "?"  # a missing part of a date
MAX_DIGITS = 20  # of the integer before a fraction sign; decimal has 28 significant digits


def find_quantities(text: str) -> tuple[TypedSpan, ...]:
    """Find all quantities of a text from left to right, without overlaps.

    The kind is number, ordinal, percent, money, date or time. The value is canonical: a decimal
    without trailing zeros (money has its currency in front), `year-month-day-weekday` with `?` for
    missing parts, or `hour:minute`.

    >>> [(q.kind, q.value) for q in find_quantities("On May 5th, two thousand paid $1.5 million.")]
    [('date', '?-5-5-?'), ('number', '2000'), ('money', 'USD 1500000')]
    """
    text = normalize_digits(text)
    quantities: list[TypedSpan] = []
    for start in map(re.Match.start, _START.finditer(text)):
        if not quantities or start >= quantities[-1].end:
            quantity = _parse_quantity(text, start)
            if quantity is not None:
                quantities.append(quantity)
    return tuple(quantities)


def quantities_agree(left: TypedSpan, right: TypedSpan) -> bool:
    """Check whether two quantities can mean the same.

    Dates agree if all parts given in both are equal. A plain number agrees with an amount,
    percentage or year of the same size, because its unit may be elsewhere in the sentence.

    >>> a, b = find_quantities("5 May 2016 or May 5")
    >>> quantities_agree(a, b)
    True
    """
    if left.kind == right.kind:
        if left.kind == "date":
            return _dates_agree(left.value, right.value)
        return left.value == right.value
    if "time" in (left.kind, right.kind) or "ordinal" in (left.kind, right.kind):
        return False
    return _amount(left) == _amount(right)


def normalize_digits(text: str) -> str:
    """Replace decimal digits, full-width signs, ı and ſ by ASCII; the length does not change.

    >>> normalize_digits("٣ and ５")
    '3 and 5'
    """
    if text.isascii():
        return text
    digits = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
    return digits.translate(_ASCII_SIGNS)


def _parse_quantity(text: str, start: int) -> TypedSpan | None:
    for pattern, parse in _PARSERS:
        match = pattern.match(text, start)
        if match is not None and match.end() > start and (parsed := parse(match)):
            kind, value = parsed
            return _extend_with_unit(text, TypedSpan(start, match.end(), kind, value))
    return None


def _extend_with_unit(text: str, quantity: TypedSpan) -> TypedSpan:
    """Extend a number by the scale word, percent sign or currency that follows it."""
    if quantity.kind != "number":
        return quantity
    value = Decimal(quantity.value)
    end = quantity.end
    while scale := _SCALE.match(text, end):
        value = value * SCALES[scale[1].lower().rstrip("s")]
        end = scale.end()
    kind = "number"
    formatted = format_decimal(value)
    if percent := _PERCENT.match(text, end):
        kind = "percent"
        end = percent.end()
    elif currency := _CURRENCY_AFTER.match(text, end):
        kind = "money"
        end = currency.end()
        formatted = f"{CURRENCIES[currency[1].lower()]} {formatted}"
    return TypedSpan(quantity.start, end, kind, formatted)


def format_decimal(value: Decimal) -> str:
    """Format a decimal without exponent and trailing zeros.

    >>> format_decimal(Decimal("1500.00"))
    '1500'
    """
    if value == value.to_integral_value():
        return str(value.quantize(Decimal(1))) if abs(value) < 10**27 else f"{value:e}"
    return f"{value.normalize():f}"


def parse_digits(text: str) -> Decimal | None:
    """Parse digits with separators; return None if they are not a number.

    A comma or space before exactly three digits separates thousands. Any other comma is a decimal
    point, as in much of Europe. A point before three zeros separates thousands too.

    >>> parse_digits("1,000"), parse_digits("1,5"), parse_digits("1 234.5")
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


def _parse_number(match: re.Match[str]) -> KindAndValue | None:
    value = parse_digits(match[1])
    return None if value is None else ("number", format_decimal(value))


def _parse_money(match: re.Match[str]) -> KindAndValue | None:
    value = parse_digits(match[2])
    if value is None:
        return None
    if match[3]:
        value *= SCALES[match[3].lower().rstrip("s")]
    return "money", f"{CURRENCIES[match[1].lower()]} {format_decimal(value)}"


def _parse_fraction(match: re.Match[str]) -> KindAndValue | None:
    numerator = int(match[1])
    denominator = int(match[2])
    if not 0 < numerator < denominator <= 100:
        return None
    return "number", format_decimal(round(Decimal(numerator) / Decimal(denominator), 4))


def _parse_vulgar_fraction(match: re.Match[str]) -> KindAndValue | None:
    if len(match[1]) > MAX_DIGITS:
        return None
    fraction = Decimal(str(unicodedata.numeric(match[2])))
    return "number", format_decimal(round(Decimal(match[1] or 0) + fraction, 4))


def _parse_ordinal(match: re.Match[str]) -> KindAndValue:
    return "ordinal", str(int(match[1]))


def _parse_words(match: re.Match[str]) -> KindAndValue | None:
    parsed = parse_number_words(match.group())
    if parsed is None:
        return None
    value, is_ordinal = parsed
    return ("ordinal" if is_ordinal else "number"), format_decimal(value)


def _parse_date(match: re.Match[str]) -> KindAndValue | None:
    """Parse a date with the groups y, m, d, w and s (the s of a decade) of a pattern."""
    parts = match.groupdict()
    year, month, day, weekday, decade = (parts.get(name) or "" for name in "ymdws")
    day = re.sub(r"\D", "", day)
    if month.isdecimal() and int(month) > 12:  # 11/15/2016
        month, day = day, month
    if month:
        number = int(month) if month.isdecimal() else MONTHS[month[:3].lower()]
        if not 1 <= number <= 12 or (day and not 1 <= int(day) <= 31):
            return None
        month = str(number)
    if len(year) == 2:
        year = ("19" if int(year) > 40 else "20") + year
    week = str(WEEKDAYS[weekday[:3].lower()]) if weekday else ""
    values = (year + decade[-1:], month, day.lstrip("0"), week)
    return "date", "-".join(value or UNSPECIFIED for value in values)


def _parse_time(match: re.Match[str]) -> KindAndValue | None:
    hour = int(match[1])
    minute = int(match[2] or 0)
    half_day = (match[3] or "").lower()[:1]  # "a" or "p"
    if match[2] is None and not half_day:
        return None
    if half_day:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half_day == "p" else 0)
    return ("time", f"{hour}:{minute:02d}") if hour < 25 and minute < 60 else None


def _dates_agree(left: str, right: str) -> bool:
    parts = list(zip(left.split("-"), right.split("-"), strict=True))
    shared = [(a, b) for a, b in parts if UNSPECIFIED not in (a, b)]
    return bool(shared) and all(a == b for a, b in shared)


def _amount(quantity: TypedSpan) -> str:
    return quantity.value.rpartition(" ")[2].removesuffix("-?-?-?")


# re.IGNORECASE matches ı with i and ſ with s, but str.lower() keeps them.
_ASCII_SIGNS = str.maketrans("％，．＄：－–−ıſ", "%,.$:---is")
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
_SCALE_SUFFIX = rf"[\s-]?({_SCALE_NAMES}|bn|tn|mln|m|k)\b"
_SCALE = re.compile(_SCALE_SUFFIX, re.IGNORECASE)
_PERCENT = re.compile(r"\s?%|[\s-](?:percent|per\s?cent|pc|pct)\b", re.IGNORECASE)
_NAMES = "|".join(re.escape(name) for name in CURRENCIES if name.isalpha())
_SIGNS = "|".join(re.escape(name) for name in CURRENCIES if not name.isalpha())
_CURRENCY_AFTER = re.compile(rf"(?:\s|-)?((?:{_NAMES})\b|{_SIGNS})", re.IGNORECASE)
_CURRENCY_BEFORE = re.compile(
    rf"(usd|eur|gbp|us\$|rub|cny|jpy|{_SIGNS})\s?({_DIGITS})(?:{_SCALE_SUFFIX})?",
    re.IGNORECASE,
)
_PARSERS = (
    (re.compile(rf"{_W}{_D}\s+(?:of\s+)?{_M}{_Y}"), _parse_date),
    (re.compile(rf"{_W}{_M}\s*(?:the\s+)?{_D}(?![:,.]?\d){_Y}"), _parse_date),
    (re.compile(rf"{_M},?\s+(?:of\s+)?(?P<y>1\d{{3}}|20\d{{2}})\b"), _parse_date),
    (re.compile(_M), _parse_date),
    (
        re.compile(r"(?P<y>(?:1\d|20)\d{2})-(?P<m>0?\d|1[0-2])-(?P<d>[0-3]?\d)(?!\d)"),
        _parse_date,
    ),
    (
        re.compile(r"(?P<d>[0-3]?\d)[/.](?P<m>[0-3]?\d)[/.](?P<y>(?:1\d|20)?\d{2})(?![\d.])"),
        _parse_date,
    ),
    (re.compile(r"(?P<w>Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"), _parse_date),
    (re.compile(r"([0-2]?\d)(?:[:.]([0-5]\d))?\s?([ap])\.?m\b\.?", re.IGNORECASE), _parse_time),
    (re.compile(r"([0-2]?\d):([0-5]\d)(?!\d)()"), _parse_time),
    (_CURRENCY_BEFORE, _parse_money),
    (re.compile(r"(\d{1,6})(?:st|nd|rd|th)\b"), _parse_ordinal),
    (re.compile(r"(\d*)\s?([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])"), _parse_vulgar_fraction),
    (re.compile(r"(\d{1,2})/(\d{1,3})(?![\d/])"), _parse_fraction),
    (
        re.compile(
            r"(?P<y>1[5-9]\d{2}|20\d{2})(?P<s>'?s)?\b"
            r"(?![.,%]\d|\s?%|\s(?:percent|per\s?cent))"
        ),
        _parse_date,
    ),
    (re.compile(rf"({_DIGITS})"), _parse_number),
    (NUMERAL, _parse_words),
)
_OPENERS = "|".join((*ONES, *TENS, *ORDINALS, *GROUPS, "hundred", "thousand", "million", "an?"))
_START = re.compile(  # where a quantity may begin; digits inside a word (H5N1) do not count
    rf"(?<!\w)(?<!\d[.,:/])\d|{_SIGNS}|[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"
    rf"|\b(?:{_OPENERS}|usd|eur|gbp|us\$|jpy|cny|rub)\b"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)",
    re.IGNORECASE,
)
