"""The check of numbers: every number of the source is in the translation, in any notation.

Numbers are compared by value, so that 1,234.5 equals 1.234,5 and ٣ equals 3. A number may be
written with a word for its magnitude (1.5 million, 150万), a time on the 12-hour or 24-hour clock,
and a year in another calendar. Small and round numbers may be written as words, and quantities in
other units (`quantities`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tertium.checks.check import Findings, TranslationPair, declare_check
from tertium.checks.quantities import ALL_DIGITS, is_converted, is_decade, is_spelled_out

# digits with separators between them; a comma or blank between two numbers needs groups of three
NUMBER = re.compile(
    r"\d{1,3}(?:[ \u00a0\u2009\u202f'’]\d{3})+(?:[.,\u066b]\d+)?(?!\d)|\d+(?:[.,\u066b\u066c]\d+)*"
)
DIGIT = re.compile(r"\d")
DIGITS = re.compile(r"\d+")
SEPARATORS = re.compile(r"[ \u00a0\u2009\u202f'’,.\u066b\u066c]")
CLOCK = re.compile(r"\d[:.h]\d\d|[ap]\.?\s?m\b|o.clock", re.IGNORECASE)
MONTHS = 12
MAX_EXACT_DIGITS = 15  # of a floating-point number
MAX_UNIT = 12  # characters after a number that may be its unit
FIRST_WORD = re.compile(r"[\s\u00a0\u202f-]*([^\W\d_]+)")
DECADE_LANGUAGES = frozenset("ar fa he is mt".split())  # write decades as words
MAX_SPELLED = 31  # numbers that are often written as words or Roman numerals
# difference of the year in other calendars, as (smallest, largest)
CALENDAR_OFFSETS = {"th": (543, 543), "fa": (-622, -621), "ne": (56, 57), "am": (-8, -7)}
YEARS = range(1000, 2700)
YEARS_OF_CENTURIES = range(100, 2100)


class Number(NamedTuple):
    """A number in a text with its possible values: 1.234 is 1234 or 1.234."""

    text: str
    start: int
    end: int
    values: tuple[float, ...]


Numbers = list[Number]


def read_values(text: str) -> tuple[float, ...]:
    """Return the values that a number may have, by the meaning of its last separator.

    >>> read_values("1,234.50"), read_values("1.234"), read_values("٣")
    ((1234.5,), (1234.0, 1.234), (3.0,))
    """
    if text.isdecimal():
        return (float(int(text)) if len(text) <= MAX_EXACT_DIGITS else int(text),)
    parts = SEPARATORS.split(text)
    marks = SEPARATORS.findall(text)
    digits = "".join(str(int(part)).zfill(len(part)) for part in parts)
    decimals = len(parts[-1])
    values = []
    is_grouped = all(len(part) in (2, 3) for part in parts[1:])
    if is_grouped and len({*marks}) == 1 and decimals == 3:
        values.append(float(digits))
    if marks[-1] not in " \u00a0\u2009\u202f'’" and marks[:-1].count(marks[-1]) == 0:
        values.append(float(f"{digits[:-decimals]}.{digits[-decimals:]}"))
    return tuple(values) or (float(digits),)


def read_numbers(text: str) -> Numbers:
    """Return the numbers of a text; to search for the first digit alone is much faster."""
    numbers: Numbers = []
    end = 0
    while (digit := DIGIT.search(text, end)) is not None:
        match = NUMBER.match(text, digit.start())
        assert match is not None, "a digit is a number"
        if not text.startswith("&#", match.start() - 2):  # an escaped character
            numbers.append(Number(match[0], *match.span(), read_values(match[0])))
        end = match.end()
    return numbers


@declare_check(
    "numbers",
    "major",
    "It costs 1,234.50 euros at 5:30 p.m.",
    "Es kostet um 17:30 Uhr 1.234,50 Euro.",
    "Es kostet um 17:30 Uhr 1.243,50 Euro.",
    characters=ALL_DIGITS,
)
def find_number_errors(pair: TranslationPair) -> Findings:
    """Numbers of the source have the same value in the translation, in any notation."""
    digits = DIGITS.findall(pair.source)
    if not digits or digits == DIGITS.findall(pair.hypothesis):
        return
    numbers = read_numbers(pair.source)
    candidates = read_numbers(pair.hypothesis)
    texts = (" ".join(number.text for number in side) for side in (numbers, candidates))
    source_digits, target_digits = map(DIGITS.findall, texts)
    if source_digits == target_digits:
        return
    missing = [*numbers]
    extra = [*candidates]
    drop_partners(missing, extra, _are_equal)
    if not missing:
        return
    _explain_differences(missing, extra, candidates, pair)
    _match_units(missing, extra, numbers, pair)
    for number in missing:
        if extra:
            other = min(extra, key=lambda o: _distance(number, o))
            extra.remove(other)
            text = f"{number.text} in the source, {other.text} in the translation"
            yield "hypothesis", other.start, other.end, text
        elif not may_be_spelled_out(number) and not _is_written_as_words(number, pair):
            text = f"{number.text} is missing in the translation"
            yield "source", number.start, number.end, text


def drop_partners(
    missing: Numbers, extra: Numbers, is_partner: Callable[[Number, Number], bool]
) -> None:
    """Drop each missing number that has a partner among the extra ones, and the partner."""
    for number in [*missing]:
        partner = next((other for other in extra if is_partner(number, other)), None)
        if partner is not None:
            missing.remove(number)
            extra.remove(partner)


def _are_equal(number: Number, other: Number) -> bool:
    return number.text == other.text or not {*number.values}.isdisjoint(other.values)


def _match_units(
    missing: Numbers, extra: Numbers, numbers: Sequence[Number], pair: TranslationPair
) -> None:
    """Drop quantities in other units: 6 inches and 15 cm, or 140 miles of 220 km (140 miles)."""

    def is_same_quantity(number: Number, other: Number) -> bool:
        rest = pair.source[number.end : number.end + MAX_UNIT]
        return is_converted(number.values[0], other.values[0], rest)

    def is_in_other_unit(number: Number, other: Number) -> bool:
        unit = _read_unit(pair.source, number)
        is_other = not unit or _read_unit(pair.hypothesis, other) != unit
        return is_other and is_same_quantity(number, other)

    if extra:
        drop_partners(missing, extra, is_in_other_unit)
    elif pair.source.count("(") > pair.hypothesis.count("("):
        matched = [number for number in numbers if number not in missing]
        missing[:] = [n for n in missing if not any(is_same_quantity(n, o) for o in matched)]


def _read_unit(text: str, number: Number) -> str:
    word = FIRST_WORD.match(text, number.end)
    return word[1].lower() if word else ""


def _is_written_as_words(number: Number, pair: TranslationPair) -> bool:
    value = number.values[0]
    language = pair.target_language
    text = pair.hypothesis
    if is_decade(value, pair.source[number.end : number.end + 4]):
        return language in DECADE_LANGUAGES or is_spelled_out(value % 100, language, text)
    return is_spelled_out(value, language, text)


def _distance(number: Number, other: Number) -> tuple[int, float]:
    same = sum(a == b for a, b in zip(number.text, other.text, strict=False))
    return abs(len(number.text) - len(other.text)) - same, abs(number.values[0] - other.values[0])


def _explain_differences(
    missing: Numbers, extra: Numbers, candidates: Sequence[Number], pair: TranslationPair
) -> None:
    """Drop differences that a correct translation may have."""
    is_clock = CLOCK.search(pair.source) is not None or CLOCK.search(pair.hypothesis) is not None
    source_offsets = CALENDAR_OFFSETS.get(pair.source_language, ())
    offsets = [
        *CALENDAR_OFFSETS.get(pair.target_language, ()),
        *(-offset for offset in source_offsets),
    ]
    drop_partners(
        missing, extra, lambda number, other: _are_equivalent(number, other, is_clock, offsets)
    )
    if not {"lt", "lv"}.isdisjoint((pair.source_language, pair.target_language)):
        drop_partners(missing, extra, _is_decade_number)
    _match_parts(missing, extra, is_clock)
    if not extra:  # the same number twice may be written once
        values = {value for number in candidates for value in number.values}
        missing[:] = [number for number in missing if values.isdisjoint(number.values)]


def _match_parts(missing: Numbers, extra: Numbers, is_clock: bool) -> None:
    """Drop numbers that differ only in where they are split: 4:41.30 and 4.41,30.

    On the 24-hour clock, hours may differ by 12: 8:30 and 20.30.
    """
    ours, theirs = (
        Counter(part for number in side for part in _read_parts(number))
        for side in (missing, extra)
    )
    shared = ours & theirs
    if is_clock:
        for part in ours - shared:
            for hour in (part + 12, part - 12):
                if part <= 24 and theirs[hour] > shared[hour]:
                    shared[part] += 1
                    shared[hour] += 1

    def is_unmatched(number: Number) -> bool:
        groups = _read_parts(number)
        years = [part for part in groups if part in YEARS and shared[part]]
        spelled = MONTHS if len(groups) == 3 and years else -1
        counts = Counter(groups)  # 5.9.2021: September
        return any(counts[part] > shared[part] and part > spelled for part in groups)

    missing[:] = filter(is_unmatched, missing)
    extra[:] = filter(is_unmatched, extra)


def _read_parts(number: Number) -> list[int]:
    return [int(part) for part in DIGITS.findall(number.text)]


def _are_equivalent(number: Number, other: Number, is_clock: bool, offsets: Sequence[int]) -> bool:
    for value in number.values:
        for theirs in other.values:
            if _is_other_magnitude(value, theirs):
                return True
            if is_clock and value <= 24 and theirs <= 24 and abs(value - theirs) == 12:
                return True
            low, high = sorted((value, theirs))
            if low < 100 and high in YEARS and high % 100 == low:
                return True  # 1960s and 60er, 2008-09 and 2008-2009
            if high % 100 == 0 and high in YEARS_OF_CENTURIES and high / 100 + 1 == low:
                return True  # the 8th century and 700-luku
            if offsets and value in YEARS and min(offsets) <= theirs - value <= max(offsets):
                return True
    return False


def _is_decade_number(number: Number, other: Number) -> bool:
    """Tell whether a year and a number are the same decade: the 1970s and the 8th decade."""
    low, high = sorted((number.values[0], other.values[0]))
    return high % 10 == 0 and high in YEARS and high % 100 / 10 + 1 == low


def _is_other_magnitude(value: float, theirs: float) -> bool:
    """Tell whether two values differ by a power of ten of at least 100.

    >>> _is_other_magnitude(1.5, 1500000), _is_other_magnitude(5, 50)
    (True, False)
    """
    low, high = sorted((value, theirs))
    if low <= 0 or high < 99.9 * low:
        return False
    return f"{low:.6e}".split("e")[0] == f"{high:.6e}".split("e")[0]


def may_be_spelled_out(number: Number) -> bool:
    """Tell whether a number is often written as a word: small or round."""
    value = number.values[0]
    if value % 0.5:
        return False
    return value <= MAX_SPELLED or value % 100 == 0 or len(number.text.strip("0.,")) <= 1
