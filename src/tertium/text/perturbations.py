"""Perturbations: rules that damage a good translation in one specific way, to test metrics.

A rule is a function of a text, related texts and a random generator. It returns None if the text
offers nothing to change in this way. Most rules work in any language: their units are words, or
characters in scripts without spaces. Rules that change the meaning use word tables for a few
languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.text.scripts import is_unspaced_script

Pairs = tuple[tuple[str, str], ...]
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PUNCTUATION = re.compile(r"[^\w\s]", re.UNICODE)


def _pairs(*lines: str) -> Pairs:
    pairs = [tuple(pair.split("|", 1)) for line in lines for pair in line.split("; ")]
    return tuple((left, right) for left, right in pairs)


# Word pairs that are exchanged in either direction.
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
    own, source = units(original.text), units(original.source)
    start = join_units(own[: len(own) // 2], original.text)
    return f"{start} {join_units(source[len(source) // 2 :], original.source)}"


def _exchange(tables: Mapping[str, Pairs]) -> Perturbation:
    """Make a rule that replaces one word of a table by its partner."""

    def rule(original: PerturbationInput, rng: np.random.Generator) -> str | None:
        matches = list(_find_partners(original, tables.get(original.language, ())))
        if not matches:
            return None
        start, end, new = matches[int(rng.integers(len(matches)))]
        old = original.text[start:end]
        new = new[:1].upper() + new[1:] if old[:1].isupper() else new
        return original.text[:start] + new + original.text[end:]

    return rule


def _find_partners(original: PerturbationInput, pairs: Pairs) -> Iterator[tuple[int, int, str]]:
    partner = {**dict(pairs), **{b: a for a, b in pairs}}
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
    "unit": _exchange(UNITS),
    "date": _exchange(DAYS),
    "name": _exchange(NAMES),
    "negation": _exchange(NEGATIONS),
    "opposite": _exchange(OPPOSITES),
    "gender": _exchange(GENDERS),
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
