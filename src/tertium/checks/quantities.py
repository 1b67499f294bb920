"""Units and currencies of numbers, and numbers written as words, decades or in other units."""

from __future__ import annotations

import re

from tertium.checks.check import Findings, TranslationPair, declare_check

# languages, and their words for 30, 40, ... 90 without endings; variants are separated by |
TENS = r"""
cs třicet čtyřicet padesát šedesát sedmdesát osmdesát devadesát
da tredive fyrre halvtreds (?:og|\b)tres\b halvfjerds (?:og|\b)firs halvfems
de dreißig|dreissig vierzig fünfzig sechzig siebzig achtzig neunzig
en thirt[iy] fort[iy]|fourty fift[iy] sixt[iy] sevent[iy] eight[iy] ninet[iy]
es treint cuarent cincuent sesent setent ochent novent
fi kolmekym neljäkym viisikym kuusikym seitsemänkym kahdeksankym yhdeksänkym
fr trente quarant cinquant soixant soixant|septant quatre-vingt|octant quatre-vingt|nonant
hu harminc negyven ötven hatvan hetven nyolcvan kilencven
it trent(?:a|un|ott) quarant cinquant sessant settant ottant novant
nl dertig veertig vijftig zestig zeventig tachtig negentig
no tretti førti femti seksti sytti åtti nitti
pl trzydzie czterdzie pięćdziesi sześćdziesi siedemdziesi osiemdziesi dziewięćdziesi
pt trint quarent cinquent|cinqüent sessent setent oitent novent
ro treizeci patruzeci cincizeci șaizeci|şaizeci șaptezeci|şaptezeci optzeci nouăzeci
ru тридцат сорок пят[ьи]десят шест[ьи]десят сем[ьи]десят вос[ье]м[ьи]?десят девяност
sv trettio fyrtio femtio sextio sjuttio åttio nittio
tr otuz \bkırk \belli altmış yetmiş seksen doksan
"""
TENS_PATTERNS = {
    language: [re.compile(word) for word in words]
    for language, *words in map(str.split, TENS.strip().splitlines())
}
# factors to or from the metric or imperial counterpart, and the unit after a number
FACTORS = r"""
1.609 miles?|mi\b|mph|km|км|公里|キロ|킬로|किमी|كم|كيلومتر
2.54 inch|in\b|["″]|cm|см|センチ|厘米
3.281 feet|foot|ft|['′]|m\b|met|м\b|米|メートル
1.094 yard|yd
2.205 pounds?|lbs?\b|kg|кг|公斤|キログラム
28.35 ounce|oz\b|g\b
2.471 acre|ha\b|hect
3.785 gallon|l\b|lit
2.59 square|sq
"""
CONVERSIONS = [
    (re.compile(rf"[\s\u00a0\u202f-]*(?:{unit})", re.IGNORECASE), float(factor))
    for factor, unit in map(str.split, FACTORS.strip().splitlines())
]
TEMPERATURE = re.compile(r"[\s\u00a0\u202f]*(?:°|º|℃|℉|degrees|fahrenheit|[FC]\b)", re.IGNORECASE)
TOLERANCE = 0.05  # converted values are rounded
DIGIT = re.compile(r"\d")
_ZEROS = "0٠۰߀०০੦૦୦௦౦೦൦෦๐໐༠၀႐០᠐᥆᧐᪀᪐᭐᮰᱀᱐꘠꣐꤀꧐꧰꩐꯰０"
ALL_DIGITS = "".join(chr(ord(zero) + n) for zero in _ZEROS for n in range(10))
# units, each followed by its spellings in other languages
SPELLINGS = """
GB Go GO ГБ Гб, MB Mo МБ Мб, TB To ТБ, kB ko Ko KB КБ кБ, GHz ГГц, MHz МГц, kHz кГц, Hz Гц,
kWh, kW кВт, MW МВт, mAh, V В, dpi, px, ms мс, kg кг, mg мг, km км, cm см, mm мм, nm нм,
ml мл mL, kcal, kJ, dB дБ, fps, Mbps, Gbps, $ USD, € EUR, £ GBP, ¥ JPY 円, ₽ RUB, ₹ INR, ₩,
% ％ ٪
"""
UNITS: dict[str, str] = {}  # the name of a unit by its spelling
for _spellings in map(str.split, SPELLINGS.split(",")):
    UNITS |= dict.fromkeys(_spellings, _spellings[0])
_UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
UNIT_AFTER = re.compile(rf"[\s\u00a0\u202f]?({_UNIT})(?![^\W\d_])")
DIGITS = re.compile(r"\d(?:[\d.,]*\d)?")
CURRENCIES = frozenset("$€£¥₽₹₩")
DECADE_ENDING = re.compile(r"['’]?s\b|er[njs]?\b|-?x\b")


def is_spelled_out(value: float, language: str, text: str) -> bool:
    """Tell whether a text has the word for the tens of a number from 30 to 99.

    >>> is_spelled_out(61, "en", "Sixty-one percent agreed."), is_spelled_out(61, "en", "Six.")
    (True, False)
    """
    words = TENS_PATTERNS.get(language)
    if words is None or not 30 <= value <= 99:
        return False
    return words[int(value) // 10 - 3].search(text.lower()) is not None


def is_converted(value: float, other: float, rest: str) -> bool:
    """Tell whether two values may be one quantity in metric and imperial units.

    `rest` is the text after the first value, with its unit.

    >>> is_converted(6, 15, " inches"), is_converted(95, 35, " °F"), is_converted(6, 17, " inches")
    (True, True, False)
    """
    low, high = sorted((value, other))
    for unit, factor in CONVERSIONS:
        if low <= 0 or unit.match(rest) is None:
            continue
        if abs(high / low - factor) <= TOLERANCE * factor:
            return True
    if TEMPERATURE.match(rest) is None:
        return False
    return any(abs(32 + 1.8 * a - b) <= 1 for a, b in ((value, other), (other, value)))


def read_quantities(text: str) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the units of each number with the place of the quantity, by the digits.

    >>> read_quantities("16 GB for $1,200")
    {'16': {'GB': (0, 5)}, '1200': {'$': (10, 16)}}
    """
    quantities: dict[str, dict[str, tuple[int, int]]] = {}
    end = 0
    while (digit := DIGIT.search(text, end)) is not None:
        number = DIGITS.match(text, digit.start())
        assert number is not None, "a digit is a number"
        start, end = number.span()
        before = text[max(0, start - 2) : start].rstrip()[-1:]
        after = UNIT_AFTER.match(text, end)
        units = {}
        if before in CURRENCIES:
            units[before] = (text.rindex(before, 0, start), end)
        elif after is not None:
            units[UNITS[after[1]]] = (start, after.end())
        if units:
            quantities.setdefault(re.sub(r"\D", "", number[0]), {}).update(units)
    return quantities


@declare_check(
    "units",
    "major",
    "16 GB for $1,200",
    "16 Go pour 1 200 $",
    "16 Mo pour 1 200 $",
    pair="en-fr",
    characters=ALL_DIGITS,
)
def find_unit_errors(pair: TranslationPair) -> Findings:
    """A number has the unit or currency of the source: GB stays GB, $ stays $."""
    source = read_quantities(pair.source)
    target = read_quantities(pair.hypothesis) if source else {}
    for number, units in target.items():
        expected = source.get(number, units)
        if {*units}.isdisjoint(expected):
            span = next(iter(units.values()))
            text = f"{' or '.join(expected)} in the source, {' or '.join(units)} in the translation"
            yield "hypothesis", *span, text


def is_decade(value: float, rest: str) -> bool:
    """Tell whether a number is a decade, as 1970s; `rest` is the text after it."""
    return value % 10 == 0 and 1000 < value < 2100 and DECADE_ENDING.match(rest) is not None
