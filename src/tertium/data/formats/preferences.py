"""Human comparisons: files with a row for each pair of translations, and WMT relative rankings.

In WMT rankings, a judge ranks up to five systems per row, which gives ten pairs. Columns:
`srclang, trglang, srcIndex, documentId, segmentId, judgeId`, then for each system `system1Number,
system1Id, system1rank`, ... Later years omit some columns, have two systems per row, or add a
`rankingID`. Rank 1 is best, equal ranks are ties, and -1 is a system that was not ranked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.result import format_name
from tertium.core.segment import Segment, check_texts, checked_segment
from tertium.data import records
from tertium.data.formats import Source
from tertium.data.item_names import has_duplicates_across_documents
from tertium.data.rankings import ItemTexts, PairwiseJudgment, RankingSet, build_ranking_set
from tertium.data.record_files import default_name, read_jsonl, read_records
from tertium.data.records import Record, get_text, lowercase_columns, read_integer
from tertium.data.tables import read_table
from tertium.text.language_codes import CODE_ALIASES, LANGUAGE_NAMES

LEFT_NAMES = ("system_a", "left", "left_system", "system_1", "system1", "system1id", "a")
RIGHT_NAMES = ("system_b", "right", "right_system", "system_2", "system2", "system2id", "b")
VERDICT_NAMES = ("preference", "verdict", "winner", "better")
LEFT_TEXTS = ("hypothesis_a", "translation_a", "output_a", "mt_a", "text_a")
RIGHT_TEXTS = ("hypothesis_b", "translation_b", "output_b", "mt_b", "text_b")
VERDICTS = {
    **dict.fromkeys(("a", "left", "first"), 1.0),
    **dict.fromkeys(("b", "right", "second"), 0.0),
    **dict.fromkeys(("tie", "equal", "same", "both", "="), 0.5),
}


def is_comparison(source: Source) -> bool:
    return not source.columns.isdisjoint(VERDICT_NAMES) and not source.columns.isdisjoint(
        LEFT_NAMES
    )


def read_comparison(source: Source) -> Iterator[RankingSet]:
    yield read_preferences(source.path, lp=source.lp)


def read_preferences(
    path: PathLike,
    *,
    name: str = "",
    lp: str = "",
) -> RankingSet:
    """Read comparisons from a CSV, TSV or JSONL file with a row for each.

    Columns: item; the two systems (`system_a`, `system_b`); the preference (`a`, `b`, `tie`, or the
    name of the better system); optionally the judge and the document. If item names repeat across
    documents, items are `DOCUMENT:NAME`. The texts are in columns (`hypothesis_a`, `hypothesis_b`,
    source, reference), or in `X.texts.jsonl` next to `X.judgements.tsv`.
    """
    rows = [(where, records.lowercase_columns(record)) for where, record in read_records(path)]
    comparisons = [_read_comparison(row, where) for where, row in rows]
    documents = [records.get_text(row, records.DOCUMENT_NAMES) for _, row in rows]
    pairs = [records.read_language_pair(row) for _, row in rows]
    if _are_ambiguous(comparisons, documents):
        comparisons = [
            c._replace(item=f"{document}:{c.item}")
            for c, document in zip(comparisons, documents, strict=True)
        ]
    if _are_ambiguous(comparisons, pairs):
        names = ", ".join(filter(None, dict.fromkeys(pairs)))
        raise DataError(
            f"{path}: items of several language pairs ({names}) have the same names; put each "
            "language pair in its own file"
        )
    item_documents = {c.item: d for c, d in zip(comparisons, documents, strict=True) if d}
    stem, suffix, _ = Path(path).name.partition(".judgements.")
    files = [Path(path).with_name(f"{stem}.texts.jsonl{ending}") for ending in ("", ".gz")]
    texts = next((read_texts(file) for file in files if suffix and file.is_file()), None)
    return build_ranking_set(
        comparisons,
        texts or _collect_texts(rows, comparisons) or None,
        name=name or default_name(path),
        lp=lp or (pairs[0] if len(set(pairs)) == 1 else ""),
        documents=item_documents,
    )


def _are_ambiguous(comparisons: Sequence[PairwiseJudgment], groups: Sequence[str]) -> bool:
    """Return whether an item has several documents or language pairs."""
    items = (comparison.item for comparison in comparisons)
    return has_duplicates_across_documents(
        (item, group) for item, group in zip(items, groups, strict=True) if group
    )


def _read_comparison(row: Record, where: str) -> PairwiseJudgment:
    names = (records.ITEM_NAMES, LEFT_NAMES, RIGHT_NAMES, VERDICT_NAMES)
    item, left, right, preference = (records.get_text(row, aliases) for aliases in names)
    if not (item and left and right and preference):
        raise DataError(
            f"{where}: a comparison needs an item ({', '.join(records.ITEM_NAMES)}), two systems "
            f"(system_a, system_b) and a preference; found {', '.join(row) or 'nothing'}"
        )
    by_system = {left: 1.0, right: 0.0}.get(preference)
    verdict = VERDICTS.get(preference.lower(), by_system)
    if verdict is None:
        expected = f"a, b, tie, {left!r} or {right!r}"
        raise DataError(f"{where}: preference {preference!r}: expected {expected}")
    if by_system not in (None, verdict):
        raise DataError(
            f"{where}: preference {preference!r} is a system and the other side: rename the system"
        )
    return PairwiseJudgment(item, left, right, verdict)


def _collect_texts(
    rows: Sequence[tuple[str, Record]], comparisons: Sequence[PairwiseJudgment]
) -> ItemTexts:
    """Return the texts in the rows; a text that differs from that of an earlier row is an error."""
    texts: dict[str, dict[str, Segment]] = {}
    for (where, row), pair in zip(rows, comparisons, strict=True):
        sides = ((pair.left, LEFT_TEXTS), (pair.right, RIGHT_TEXTS))
        for system, names in sides if not {*LEFT_TEXTS}.isdisjoint(row) else ():
            text = records.get_first_alias(row, names)
            if not isinstance(text, str):
                raise DataError(
                    f'{where}: {names[0]} is {text!r}: expected text; an empty translation is ""'
                )
            references = records.read_references(row, where)
            segment = Segment(text, records.read_source(row, where), references)
            outputs = texts.setdefault(pair.item, {system: segment})
            first = next(iter(outputs.values()))
            if (first.source, first.references) != (segment.source, segment.references):
                raise DataError(
                    f"{where}: another source or reference for item {pair.item!r}; if item names "
                    "repeat across documents, add a column `document`"
                )
            if outputs.setdefault(system, segment) != segment:
                raise DataError(
                    f"{where}: another text for system {system!r} of item {pair.item!r}"
                )
    return texts


def read_texts(path: PathLike) -> ItemTexts:
    """Read system outputs by item from a JSONL file of `segment, source, reference, outputs`."""
    texts: dict[str, Mapping[str, Segment]] = {}
    for where, raw_record in read_jsonl(path):
        record = records.lowercase_known_columns(raw_record)
        outputs = record.get("outputs")
        item = records.get_text(record, records.ITEM_NAMES)
        if not isinstance(outputs, dict) or not outputs or not item:
            raise DataError(f"{where}: expected segment and outputs (system -> text)")
        if item in texts:
            raise DataError(f"{where}: segment {item!r} occurs a second time")
        source = records.read_source(record, where)
        references = records.read_references(record, where)
        check_texts([*outputs.values()], where, "text")
        texts[item] = {
            format_name(system): checked_segment(text, source, references)
            for system, text in outputs.items()
        }
    return texts


NOT_RANKED = "rank missing"

LANGUAGES = {  # English names and three-letter codes, including those that only WMT uses
    **{code: language for code, language in CODE_ALIASES.items() if len(code) == 3},
    **{name.lower(): code for code, name in LANGUAGE_NAMES.items()},
    "esn": "es",
    "hat": "ht",
    "ptb": "pt",
}

_RANK = re.compile(r"system(\d+)rank")


def is_ranking(source: Source) -> bool:
    return "system1rank" in source.columns


def read_ranking(source: Source) -> Iterator[RankingSet]:
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
        system = record.get(f"system{match[1]}id", "").strip()
        rank = record[match[0]].strip()
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
    for (left, a), (right, b) in combinations(ranked, 2):
        yield PairwiseJudgment(item, left, right, 0.5 if a == b else float(a < b))


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
