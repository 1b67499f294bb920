"""Units and currencies of numbers, and numbers written as words, decades or in other units."""

from __future__ import annotations

import re

from tertium.checks.check import Findings, TranslationPair, declare_check

# words for 30, 40, ... 90 without endings; variants are separated by |
TENS = {
    "cs": "třicet čtyřicet padesát šedesát sedmdesát osmdesát devadesát",
    "da": r"tredive fyrre halvtreds (?:og|\b)tres\b halvfjerds (?:og|\b)firs halvfems",
    "de": "dreißig|dreissig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "en": "thirt[iy] fort[iy]|fourty fift[iy] sixt[iy] sevent[iy] eight[iy] ninet[iy]",
    "es": "treint cuarent cincuent sesent setent ochent novent",
    "fi": "kolmekym neljäkym viisikym kuusikym seitsemänkym kahdeksankym yhdeksänkym",
    "fr": "trente quarant cinquant soixant soixant|septant quatre-vingt|octant quatre-vingt|nonant",
    "hu": "harminc negyven ötven hatvan hetven nyolcvan kilencven",
    "it": "trent(?:a|un|ott) quarant cinquant sessant settant ottant novant",
    "nl": "dertig veertig vijftig zestig zeventig tachtig negentig",
    "no": "tretti førti femti seksti sytti åtti nitti",
    "pl": "trzydzie czterdzie pięćdziesi sześćdziesi siedemdziesi osiemdziesi dziewięćdziesi",
    "pt": "trint quarent cinquent|cinqüent sessent setent oitent novent",
    "ro": "treizeci patruzeci cincizeci șaizeci|şaizeci șaptezeci|şaptezeci optzeci nouăzeci",
    "ru": "тридцат сорок пят[ьи]десят шест[ьи]десят сем[ьи]десят вос[ье]м[ьи]?десят девяност",
    "sv": "trettio fyrtio femtio sextio sjuttio åttio nittio",
    "tr": r"otuz \bkırk \belli altmış yetmiş seksen doksan",
}
TENS_PATTERNS = {
    language: tuple(re.compile(word) for word in words.split()) for language, words in TENS.items()
}
# the unit after a number, and the factor to or from its metric or imperial counterpart
CONVERSIONS = tuple(
    (re.compile(rf"[\s\u00a0\u202f-]*(?:{unit})", re.IGNORECASE), factor)
    for unit, factor in (
        ("miles?|mi\\b|mph|km|км|公里|キロ|킬로|किमी|كم|كيلومتر", 1.609),
        ('inch|in\\b|["″]|cm|см|センチ|厘米', 2.54),
        ("feet|foot|ft|['′]|m\\b|met|м\\b|米|メートル", 3.281),
        ("yard|yd", 1.094),
        ("pounds?|lbs?\\b|kg|кг|公斤|キログラム", 2.205),
        ("ounce|oz\\b|g\\b", 28.35),
        ("acre|ha\\b|hect", 2.471),
        ("gallon|l\\b|lit", 3.785),
        ("square|sq", 2.59),
    )
)
TEMPERATURE = re.compile(r"[\s\u00a0\u202f]*(?:°|º|℃|℉|degrees|fahrenheit|[FC]\b)", re.IGNORECASE)
TOLERANCE = 0.05  # converted values are rounded
DIGIT = re.compile(r"\d")
_ZEROS = "0٠۰߀०০੦૦୦௦౦೦൦෦๐໐༠၀႐០᠐᥆᧐᪀᪐᭐᮰᱀᱐꘠꣐꤀꧐꧰꩐꯰０"
ALL_DIGITS = "".join(chr(ord(zero) + n) for zero in _ZEROS for n in range(10))
UNITS = {  # as written: the same unit in other languages has the same name
    **{unit: unit for unit in "GB MB TB kB GHz MHz kHz Hz kWh kW MW mAh V dpi px ms kg mg".split()},
    **{unit: unit for unit in "km cm mm nm ml kcal kJ dB fps Mbps Gbps".split()},
    **{"Go": "GB", "Mo": "MB", "To": "TB", "ko": "kB", "Ko": "kB", "KB": "kB", "GO": "GB"},
    **{"ГБ": "GB", "МБ": "MB", "ТБ": "TB", "КБ": "kB", "Гб": "GB", "Мб": "MB", "кБ": "kB"},
    **{"ГГц": "GHz", "МГц": "MHz", "кГц": "kHz", "Гц": "Hz", "кВт": "kW", "МВт": "MW", "В": "V"},
    **{"кг": "kg", "мг": "mg", "км": "km", "см": "cm", "мм": "mm", "нм": "nm"},
    **{"мс": "ms", "мл": "ml", "mL": "ml", "дБ": "dB"},
    **{"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "RUB": "₽", "INR": "₹", "円": "¥"},
    **{mark: mark for mark in "$€£¥₽₹₩"},
    **dict.fromkeys("%％٪", "%"),
}
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
