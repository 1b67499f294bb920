"""Rules that damage a good translation, one kind at a time: what a metric must notice.

A rule is a pure function of the text, what goes with it and a random generator, and returns None
where the text offers nothing to damage in that way. Most work in any language: units are words, or
characters where a script has no blanks. Those of meaning read tables of a few languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.text.scripts import UNSPACED_SCRIPTS, main_script

Pairs = tuple[tuple[str, str], ...]
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_POINTS = re.compile(r"[^\w\s]", re.UNICODE)


def _pairs(*lines: str) -> Pairs:
    found = [tuple(pair.split("|", 1)) for line in lines for pair in line.split("; ")]
    return tuple((left, right) for left, right in found)


# What is said and its denial.
NEGATIONS: Mapping[str, Pairs] = {
    "en": _pairs("is|is not; are|are not; was|was not; will|will not; has|has not; can|cannot"),
    "de": _pairs("ist|ist nicht; wird|wird nicht; hat|hat nicht; kann|kann nicht; war|war nicht"),
    "fr": _pairs("est|n'est pas; sera|ne sera pas; peut|ne peut pas; était|n'était pas"),
    "es": _pairs("es|no es; está|no está; puede|no puede; será|no será; fue|no fue"),
    "ru": _pairs("может|не может; будет|не будет; был|не был; было|не было"),
    "zh": _pairs("会|不会; 是|不是; 可以|不可以; 能|不能"),
}
OPPOSITES: Mapping[str, Pairs] = {
    "en": _pairs("more|less; before|after; first|last; open|closed; old|new; rose|fell"),
    "de": _pairs("mehr|weniger; vor|nach; erste|letzte; alte|neue; stiegen|sanken"),
    "fr": _pairs("plus|moins; avant|après; premier|dernier; ouvert|fermé; ancien|nouveau"),
    "es": _pairs("más|menos; antes|después; primera|última; abierto|cerrado; antiguo|nuevo"),
    "ru": _pairs("больше|меньше; до|после; первый|последний; открыт|закрыт; старый|новый"),
    "zh": _pairs("多|少; 之前|之后; 第一|最后; 开放|关闭; 旧|新; 上涨|下跌"),
}
DAYS: Mapping[str, Pairs] = {
    "en": _pairs("Monday|Thursday; Tuesday|Friday; Wednesday|Sunday; March|October; May|August"),
    "de": _pairs("Montag|Donnerstag; Dienstag|Freitag; Mittwoch|Sonntag; März|Oktober; Mai|August"),
    "fr": _pairs("lundi|jeudi; mardi|vendredi; mercredi|dimanche; mars|octobre; mai|août"),
    "es": _pairs("lunes|jueves; martes|viernes; miércoles|domingo; marzo|octubre; mayo|agosto"),
    "ru": _pairs("понедельник|четверг; вторник|пятницу; среду|субботу; марта|октября; мая|августа"),
    "zh": _pairs("周一|周四; 周二|周五; 周三|周日; 三月|十月; 五月|八月"),
}
GENDERS: Mapping[str, Pairs] = {
    "en": _pairs("he|she; his|her; brother|sister; father|mother; man|woman"),
    "de": _pairs("er|sie; sein|ihr; Bruder|Schwester; Vater|Mutter; Mann|Frau"),
    "fr": _pairs("il|elle; frère|sœur; père|mère; homme|femme"),
    "es": _pairs("él|ella; hermano|hermana; padre|madre; hombre|mujer"),
    "ru": _pairs("он|она; его|её; брат|сестра; отец|мать; мужчина|женщина"),
    "zh": _pairs("他|她; 哥哥|姐姐; 父亲|母亲; 男子|女子"),
}
NAMES: Mapping[str, Pairs] = {
    "en": _pairs("Anna|Clara; Peter|Martin; Berlin|Vienna; Madrid|Lisbon; Oslo|Warsaw"),
    "de": _pairs("Anna|Clara; Peter|Martin; Berlin|Wien; Madrid|Lissabon; Oslo|Warschau"),
    "fr": _pairs("Anna|Clara; Peter|Martin; Berlin|Vienne; Madrid|Lisbonne; Oslo|Varsovie"),
    "es": _pairs("Anna|Clara; Peter|Martin; Berlín|Viena; Madrid|Lisboa; Oslo|Varsovia"),
    "ru": _pairs("Анна|Клара; Петер|Мартин; Берлине|Вене; Мадриде|Лиссабоне; Осло|Варшаве"),
    "zh": _pairs("安娜|克拉拉; 彼得|马丁; 柏林|维也纳; 马德里|里斯本; 奥斯陆|华沙"),
}
UNITS: Mapping[str, Pairs] = {
    "en": _pairs("kilometres|metres; euros|cents; hours|minutes; years|months; degrees|percent"),
    "de": _pairs("Kilometer|Meter; Euro|Cent; Stunden|Minuten; Jahre|Monate; Grad|Prozent"),
    "fr": _pairs("kilomètres|mètres; euros|centimes; heures|minutes; ans|mois; degrés|pour cent"),
    "es": _pairs("kilómetros|metros; euros|céntimos; horas|minutos; años|meses; grados|por ciento"),
    "ru": _pairs("километров|метров; евро|центов; часов|минут; лет|месяцев; градусов|процентов"),
    "zh": _pairs("公里|米; 欧元|欧分; 小时|分钟; 年|个月; 度|百分点"),
}


@dataclass(frozen=True, kw_only=True)
class PerturbationInput:
    """A good translation, its language, and texts that may stand in its place.

    `source` is what it translates, `other` another text of its language, `foreign` the same said in
    a third language.
    """

    text: str
    language: str
    source: str
    other: str
    foreign: str


Damage = Callable[[PerturbationInput, np.random.Generator], str | None]


def is_unspaced_script(text: str) -> bool:
    """Whether a text is of a script without blanks between words."""
    return main_script(text) in UNSPACED_SCRIPTS


def units(text: str) -> list[str]:
    """The words of a text, or its characters where it has no blanks between words.

    >>> units("two words"), units("你好。")
    (['two', 'words'], ['你', '好', '。'])
    """
    return list(text) if is_unspaced_script(text) else text.split()


def join_units(parts: Sequence[str], like: str) -> str:
    """Units put together again as those of another text."""
    return ("" if is_unspaced_script(like) else " ").join(parts)


def drop_words(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Leave out a run of one to three units, not the last."""
    parts = units(given.text)
    if len(parts) < 6:
        return None
    size = int(rng.integers(1, 4)) + is_unspaced_script(given.text)
    start = int(rng.integers(len(parts) - size))
    return join_units([*parts[:start], *parts[start + size :]], given.text)


def drop_half(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """End after a half."""
    parts = units(given.text)
    return join_units(parts[: len(parts) // 2], given.text) if len(parts) > 5 else None


def add_words(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Go on with the end of another text."""
    tail = units(given.other)
    if len(tail) < 6:
        return None
    return join_units([*units(given.text), *tail[len(tail) // 2 :]], given.text)


def double_words(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Say one to three units twice."""
    parts = units(given.text)
    if len(parts) < 4:
        return None
    size = int(rng.integers(1, 4))
    end = size + int(rng.integers(len(parts) - size + 1))
    return join_units([*parts[:end], *parts[end - size :]], given.text)


def shuffle(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """All units in random order."""
    parts = units(given.text)
    return join_units([parts[n] for n in rng.permutation(len(parts))], given.text)


def change_number(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Another digit in a number."""
    places = [n for found in _NUMBER.finditer(given.text) for n in range(*found.span())]
    places = [n for n in places if given.text[n].isdecimal()]
    if not places:
        return None
    place = places[int(rng.integers(len(places)))]
    digit = (int(given.text[place]) + int(rng.integers(1, 10))) % 10
    return given.text[:place] + str(digit) + given.text[place + 1 :]


def lose_points(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """No punctuation."""
    return _POINTS.sub("", given.text)


def garble_letters(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """Two neighbors exchanged inside of every fourth long word."""
    parts = given.text.split()
    long = [n for n, word in enumerate(parts) if len(word) > 4 and word[:4].isalpha()]
    if not long or is_unspaced_script(given.text):
        return None
    for n in long[:: max(1, len(long) // 3)]:
        at = 1 + int(rng.integers(len(parts[n]) - 3))
        parts[n] = parts[n][:at] + parts[n][at + 1] + parts[n][at] + parts[n][at + 2 :]
    return " ".join(parts)


def leave_part(given: PerturbationInput, rng: np.random.Generator) -> str | None:
    """The second half of the source in place of that of the translation."""
    own, left = units(given.text), units(given.source)
    start = join_units(own[: len(own) // 2], given.text)
    return f"{start} {join_units(left[len(left) // 2 :], given.source)}"


def _exchange(tables: Mapping[str, Pairs]) -> Damage:
    """The rule that puts the partner of one word of a table in its place."""

    def rule(given: PerturbationInput, rng: np.random.Generator) -> str | None:
        found = list(_partners(given, tables.get(given.language, ())))
        if not found:
            return None
        start, end, new = found[int(rng.integers(len(found)))]
        old = given.text[start:end]
        new = new[:1].upper() + new[1:] if old[:1].isupper() else new
        return given.text[:start] + new + given.text[end:]

    return rule


def _partners(given: PerturbationInput, pairs: Pairs) -> Iterator[tuple[int, int, str]]:
    """Where words of a table stand, and what may stand there."""
    partner = {**dict(pairs), **{b: a for a, b in pairs}}
    # the longest first: "is" inside of "is not" is no affirmation
    terms = "|".join(map(re.escape, sorted(partner, key=len, reverse=True)))
    edge = "" if is_unspaced_script(given.text) else r"\b"
    for found in re.finditer(f"{edge}({terms}){edge}", given.text, re.IGNORECASE) if terms else ():
        new = partner.get(found[0]) or partner.get(found[0].lower())
        if new is not None:
            yield *found.span(), new


# The kinds that change what is said by a word or two, and leave all else as it is.
MEANING_KINDS = ("number", "unit", "date", "name", "negation", "opposite", "gender")
PERTURBATIONS: Mapping[str, Damage] = {
    "omission": drop_words,
    "truncation": drop_half,
    "addition": add_words,
    "repetition": double_words,
    "word order": shuffle,
    "number": change_number,
    "unit": _exchange(UNITS),
    "date": _exchange(DAYS),
    "name": _exchange(NAMES),
    "negation": _exchange(NEGATIONS),
    "opposite": _exchange(OPPOSITES),
    "gender": _exchange(GENDERS),
    "untranslated part": leave_part,
    "source copied": lambda given, rng: given.source,
    "wrong language": lambda given, rng: given.foreign,
    "unrelated": lambda given, rng: given.other,
    "empty": lambda given, rng: "",
    "spelling": garble_letters,
    "punctuation": lose_points,
}


def perturb(original: PerturbationInput, kind: str, rng: np.random.Generator) -> str | None:
    """The text with one kind of damage, None where it offers nothing to damage that way.

    >>> paid = Original(text="He paid 300 euros.", language="en", source="", other="", foreign="")
    >>> damage(paid, "unit", np.random.default_rng(1))
    'He paid 300 cents.'
    """
    changed = PERTURBATIONS[kind](original, rng)
    return None if changed is None or changed.strip() == original.text.strip() else changed
