"""WMT's relative rankings as published: a judge ranks up to five systems, which makes ten pairs.

Columns: `srclang, trglang, srcIndex, documentId, segmentId, judgeId`, then for each system
`system1Number, system1Id, system1rank`, ... Later years leave some out, have two systems a row, or
add a `rankingID`. Rank 1 is best, equal ranks are ties, -1 is a system that was not ranked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

from tertium.data.formats import PathLike, read_table
from tertium.data.judgements import ANNOTATOR_NAMES, text_of
from tertium.data.preferences import ItemTexts, PairJudgement, RankingSet, gather, texts_of
from tertium.data.testset import TestSet
from tertium.errors import DataError

NOT_RANKED = "rank missing"

CODES = {
    "czech": "cs", "cze": "cs", "ces": "cs", "english": "en", "eng": "en", "german": "de",
    "deu": "de", "ger": "de", "spanish": "es", "spa": "es", "esn": "es", "french": "fr",
    "fra": "fr", "fre": "fr", "hungarian": "hu", "hun": "hu", "russian": "ru", "rus": "ru",
    "hindi": "hi", "hin": "hi", "finnish": "fi", "fin": "fi", "romanian": "ro", "ron": "ro",
    "rum": "ro", "turkish": "tr", "tur": "tr", "bulgarian": "bg", "bul": "bg", "basque": "eu",
    "eus": "eu", "dutch": "nl", "nld": "nl", "portuguese": "pt", "ptb": "pt", "por": "pt",
    "urdu": "ur", "urd": "ur", "haitian creole": "ht", "hat": "ht", "latvian": "lv", "lav": "lv",
}  # fmt: skip

_RANK = re.compile(r"system(\d+)rank")


def read_rankings(
    path: PathLike, texts: Mapping[str, Mapping[str, ItemTexts] | TestSet] | None = None
) -> dict[str, RankingSet]:
    """Read a ranking CSV to one set for each language pair.

    `texts` gives the texts of a language pair, a test set or items by segment number; pairs without
    get sets without texts, which serve for scores of systems and agreement of judges. System names
    lose the test set and language pair around them (`newstest2016.uedin.4321.cs-en`).
    """
    found: dict[str, list[PairJudgement]] = {}
    left_out: dict[str, Counter[str]] = {}
    for number, row in read_table(path, delimiter=","):
        record = {key.lower(): value for key, value in row.items()}
        where = f"{path}, line {number}"
        lp = "-".join(_code(record, key, where) for key in ("srclang", "trglang"))
        ranked, missing = _read_ranks(record, where)
        found.setdefault(lp, []).extend(_pairs(record, ranked, where))
        left_out.setdefault(lp, Counter())[NOT_RANKED] += missing
    name = Path(path).name.split(".csv")[0]
    sets = {}
    for lp, comparisons in found.items():
        given = (texts or {}).get(lp)
        items = texts_of(given) if isinstance(given, TestSet) else given
        sets[lp] = gather(comparisons, items, name=name, lp=lp, left_out=+left_out[lp])
    return sets


def _read_ranks(record: Mapping[str, str], where: str) -> tuple[list[tuple[str, int]], int]:
    """(system, rank) for every system of a row, and how many had no rank."""
    ranked, missing = [], 0
    for key in record:
        match = _RANK.fullmatch(key)
        if match is None:
            continue
        system, rank = record.get(f"system{match[1]}id", "").strip(), record[key].strip()
        if not system or rank in ("", "-1"):
            missing += 1
        elif not rank.isdecimal():
            raise DataError(f"{where}: rank {rank!r} of {system!r} is not a whole number")
        else:
            ranked.append((plain_system(system), int(rank)))
    if not ranked and not missing:
        raise DataError(f"{where}: no column system1Id with system1rank; found {', '.join(record)}")
    return ranked, missing


def _pairs(
    record: Mapping[str, str], ranked: list[tuple[str, int]], where: str
) -> Iterator[PairJudgement]:
    item = text_of(record, ("srcindex", "segmentid"))
    if not item:
        raise DataError(f"{where}: neither srcIndex nor segmentId says which segment it is")
    judge = text_of(record, ANNOTATOR_NAMES)
    for (left, a), (right, b) in combinations(ranked, 2):
        yield PairJudgement(item, left, right, 0.5 if a == b else float(a < b), judge)


def plain_system(name: str) -> str:
    """A system's name without the test set before and the language pair behind it.

    >>> plain_system("newstest2016.uedin-nmt.4321.cs-en"), plain_system("cu-bojar")
    ('uedin-nmt.4321', 'cu-bojar')
    """
    return re.sub(r"^[\w-]*test[\w-]*\.|\.[a-z]{2,3}-[a-z]{2,3}(\.txt)?$", "", name)


def _code(record: Mapping[str, str], key: str, where: str) -> str:
    language = record.get(key, "").strip().lower()
    if not language:
        raise DataError(f"{where}: no {key}; is this a WMT ranking file?")
    return CODES.get(language, language)
