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

from tertium.core.errors import DataError
from tertium.data.formats import Source
from tertium.data.rankings import (
    PairwiseJudgment,
    RankingSet,
    build_ranking_set,
)
from tertium.data.record_files import default_name
from tertium.data.records import ANNOTATOR_NAMES, get_text, lowercase_columns, read_integer
from tertium.data.tables import read_table
from tertium.text.language_codes import CODE_ALIASES, LANGUAGE_NAMES

NOT_RANKED = "rank missing"

LANGUAGES = {  # English names and three-letter codes, including those that only WMT uses
    **{code: language for code, language in CODE_ALIASES.items() if len(code) == 3},
    **{name.lower(): code for code, name in LANGUAGE_NAMES.items()},
    "esn": "es",
    "hat": "ht",
    "ptb": "pt",
}

_RANK = re.compile(r"system(\d+)rank")


def matches(source: Source) -> bool:
    return "system1rank" in source.columns


def read(source: Source) -> Iterator[RankingSet]:
    """Yield a set for each language pair; without texts, it is sufficient for system scores.

    Test set and language pair are removed from system names (`newstest2016.uedin.4321.cs-en`).
    """
    comparisons: dict[str, list[PairwiseJudgment]] = {}
    missing: Counter[str] = Counter()
    for where, row in read_table(source.path, delimiter=","):
        record = lowercase_columns(row)
        lp = "-".join(_language_code(record, key, where) for key in ("srclang", "trglang"))
        ranked = _read_ranks(record, where)
        missing[lp] += ranked.count(None)
        pairs = _pairs(record, [entry for entry in ranked if entry], where)
        comparisons.setdefault(lp, []).extend(pairs)
    name = default_name(source.path)
    for lp, pairs_of_lp in comparisons.items():
        counts = {NOT_RANKED: missing[lp]} if missing[lp] else {}
        yield build_ranking_set(pairs_of_lp, name=name, lp=lp, excluded_counts=counts)


def _read_ranks(record: Mapping[str, str], where: str) -> list[tuple[str, int] | None]:
    """Return (system, rank) for each system of a row, or None if it was not ranked."""
    ranked: list[tuple[str, int] | None] = []
    for match in filter(None, map(_RANK.fullmatch, record)):
        system, rank = record.get(f"system{match[1]}id", "").strip(), record[match[0]].strip()
        if not system or rank in ("", "-1"):
            ranked.append(None)
        else:
            number = read_integer(rank, f"the rank of {system!r}", where)
            ranked.append((strip_system_name(system), number))
    if not ranked:
        raise DataError(f"{where}: no column system1Id with system1rank; found {', '.join(record)}")
    return ranked


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
