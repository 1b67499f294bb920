"""WMT relative rankings: a judge ranks up to five systems per row, which gives ten pairs.

Columns: `srclang, trglang, srcIndex, documentId, segmentId, judgeId`, then for each system
`system1Number, system1Id, system1rank`, ... Later years omit some columns, have two systems per
row, or add a `rankingID`. Rank 1 is best, equal ranks are ties, and -1 is a system that was not
ranked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.data.formats import Source
from tertium.data.rankings import (
    ItemTexts,
    PairwiseJudgment,
    RankingSet,
    build_ranking_set,
    texts_by_item,
)
from tertium.data.record_files import default_name
from tertium.data.records import ANNOTATOR_NAMES, get_text, lowercase_columns
from tertium.data.tables import read_table
from tertium.data.testset import TestSet
from tertium.text.language_codes import CODE_ALIASES

NOT_RANKED = "rank missing"

LANGUAGES = {  # English names and three-letter codes, including those that only WMT uses
    **{code: language for code, language in CODE_ALIASES.items() if len(code) == 3},
    "basque": "eu", "bulgarian": "bg", "chinese": "zh", "czech": "cs", "dutch": "nl",
    "english": "en", "esn": "es", "finnish": "fi", "french": "fr", "german": "de",
    "haitian creole": "ht", "hat": "ht", "hindi": "hi", "hungarian": "hu", "italian": "it",
    "japanese": "ja", "latvian": "lv", "polish": "pl", "portuguese": "pt", "ptb": "pt",
    "romanian": "ro", "russian": "ru", "spanish": "es", "turkish": "tr", "urdu": "ur",
}  # fmt: skip

MAX_RANK_DIGITS = 9
_RANK = re.compile(r"system(\d+)rank")


def matches(source: Source) -> bool:
    return "system1rank" in source.columns


def read(source: Source) -> Iterator[RankingSet]:
    yield from read_rankings(source.path).values()


def read_rankings(
    path: PathLike, texts: Mapping[str, Mapping[str, ItemTexts] | TestSet] | None = None
) -> dict[str, RankingSet]:
    """Read a ranking CSV file into a set for each language pair.

    `texts` contains the texts of language pairs: a test set, or texts by segment number. Without
    texts, a set is sufficient for system scores and annotator agreement. Test set and language pair
    are removed from system names (`newstest2016.uedin.4321.cs-en`).
    """
    comparisons_by_lp: dict[str, list[PairwiseJudgment]] = {}
    excluded_counts: dict[str, Counter[str]] = {}
    for where, row in read_table(path, delimiter=","):
        record = lowercase_columns(row)
        lp = "-".join(_language_code(record, key, where) for key in ("srclang", "trglang"))
        ranked, missing = _read_ranks(record, where)
        comparisons_by_lp.setdefault(lp, []).extend(_pairs(record, ranked, where))
        excluded_counts.setdefault(lp, Counter())[NOT_RANKED] += missing
    name = default_name(path)
    sets = {}
    for lp, comparisons in comparisons_by_lp.items():
        items = (texts or {}).get(lp)
        if isinstance(items, TestSet):
            items = texts_by_item(items, comparisons)
        sets[lp] = build_ranking_set(
            comparisons, items, name=name, lp=lp, excluded_counts=+excluded_counts[lp]
        )
    return sets


def _read_ranks(record: Mapping[str, str], where: str) -> tuple[list[tuple[str, int]], int]:
    """Return (system, rank) for each ranked system of a row, and the number of unranked systems."""
    ranked, missing = [], 0
    for key in record:
        match = _RANK.fullmatch(key)
        if match is None:
            continue
        system, rank = record.get(f"system{match[1]}id", "").strip(), record[key].strip()
        if not system or rank in ("", "-1"):
            missing += 1
        elif not rank.isdecimal() or len(rank) > MAX_RANK_DIGITS:
            raise DataError(f"{where}: rank {rank[:20]!r} of {system!r} is not a whole number")
        else:
            ranked.append((strip_system_name(system), int(rank)))
    if not ranked and not missing:
        raise DataError(f"{where}: no column system1Id with system1rank; found {', '.join(record)}")
    return ranked, missing


def _pairs(
    record: Mapping[str, str], ranked: list[tuple[str, int]], where: str
) -> Iterator[PairwiseJudgment]:
    item = get_text(record, ("srcindex", "segmentid"))
    if not item:
        raise DataError(f"{where}: expected the segment number in srcIndex or segmentId")
    judge = get_text(record, ANNOTATOR_NAMES)
    for (left, a), (right, b) in combinations(ranked, 2):
        yield PairwiseJudgment(item, left, right, 0.5 if a == b else float(a < b), judge)


def strip_system_name(name: str) -> str:
    """Remove the test set before a system name and the language pair after it.

    >>> strip_system_name("newstest2016.uedin-nmt.4321.cs-en"), strip_system_name("cu-bojar")
    ('uedin-nmt.4321', 'cu-bojar')
    """
    return re.sub(r"^[\w-]*test[\w-]*\.|\.[a-z]{2,3}-[a-z]{2,3}(\.txt)?$", "", name)


def _language_code(record: Mapping[str, str], key: str, where: str) -> str:
    language = record.get(key, "").strip().lower()
    if not language:
        raise DataError(f"{where}: no {key}; is this a WMT ranking file?")
    return LANGUAGES.get(language, language)
