"""Read human comparisons of two translations from files with a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError
from tertium.core.frames import format_name
from tertium.core.segment import check_texts
from tertium.data import records
from tertium.data.formats import Source
from tertium.data.item_names import has_duplicates_across_documents
from tertium.data.rankings import (
    ItemTexts,
    PairwiseJudgment,
    RankingSet,
    build_ranking_set,
    texts_by_item,
)
from tertium.data.record_files import default_name, read_jsonl, read_records
from tertium.data.testset import TestSet

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


def matches(source: Source) -> bool:
    return not source.columns.isdisjoint(VERDICT_NAMES) and not source.columns.isdisjoint(
        LEFT_NAMES
    )


def read(source: Source) -> Iterator[RankingSet]:
    stem, suffix, _ = source.path.name.partition(".judgements.")
    files = [source.path.with_name(f"{stem}.texts.jsonl{ending}") for ending in ("", ".gz")]
    file = next((file for file in files if suffix and file.is_file()), None)
    texts = None if file is None else read_texts(file)
    yield read_preferences(source.path, texts=texts, lp=source.lp)


def read_preferences(
    path: PathLike,
    *,
    texts: Mapping[str, ItemTexts] | TestSet | None = None,
    name: str = "",
    lp: str = "",
    fields: Sequence[str] | None = None,
) -> RankingSet:
    """Read comparisons from a CSV, TSV or JSONL file with a row for each.

    Columns: item; the two systems (`system_a`, `system_b`); the preference (`a`, `b`, `tie`, or the
    name of the better system); optionally the judge and the document. If item names repeat across
    documents, items are `DOCUMENT:NAME`. The texts come from `texts` or from columns
    (`hypothesis_a`, `hypothesis_b`, source, reference). If a system is named `a` or `b`, the
    preference means that system, unless other rows show that it means the side.
    """
    comparisons: list[PairwiseJudgment] = []
    readings: list[_Reading] = []
    documents: list[str] = []
    pairs: list[str] = []
    rows = []
    for where, record in read_records(path, fields):
        row = records.lowercase_columns(record)
        comparison, reading = _read_comparison(row, where)
        comparisons.append(comparison)
        readings.append(reading)
        documents.append(records.get_text(row, records.DOCUMENT_NAMES))
        pairs.append(records.read_language_pair(row))
        if texts is None and not {*LEFT_TEXTS}.isdisjoint(row):
            rows.append((where, row, len(comparisons) - 1))
    comparisons = _resolve_sides(path, comparisons, readings)
    if _are_ambiguous(comparisons, documents):
        pairs_of_documents = zip(comparisons, documents, strict=True)
        comparisons = [
            c._replace(item=f"{document}:{c.item}") for c, document in pairs_of_documents
        ]
    if _are_ambiguous(comparisons, pairs):
        names = ", ".join(filter(None, dict.fromkeys(pairs)))
        raise DataError(
            f"{path}: items of several language pairs ({names}) have the same names; put each "
            "language pair in its own file"
        )
    item_documents = {c.item: d for c, d in zip(comparisons, documents, strict=True) if d}
    if isinstance(texts, TestSet):
        texts = texts_by_item(texts, comparisons, item_documents)
    elif rows:
        texts = {}
        for where, row, number in rows:
            _add_texts(texts, row, comparisons[number], where)
    ranking_set = build_ranking_set(
        comparisons,
        texts,
        name=name or default_name(path),
        lp=lp or (pairs[0] if len(set(pairs)) == 1 else ""),
    )
    return replace(ranking_set, documents=item_documents)


def _are_ambiguous(comparisons: Sequence[PairwiseJudgment], groups: Sequence[str]) -> bool:
    """Return whether an item has several documents or language pairs."""
    items = (comparison.item for comparison in comparisons)
    return has_duplicates_across_documents(
        (item, group) for item, group in zip(items, groups, strict=True) if group
    )


class _Reading(NamedTuple):
    """A preference read as the name of a system and as a side; None if it is not one."""

    system: float | None
    side: float | None


def _read_comparison(row: Mapping[str, Any], where: str) -> tuple[PairwiseJudgment, _Reading]:
    names = (records.ITEM_NAMES, LEFT_NAMES, RIGHT_NAMES, VERDICT_NAMES, records.ANNOTATOR_NAMES)
    item, left, right, preference, judge = (records.get_text(row, aliases) for aliases in names)
    if not (item and left and right and preference):
        raise DataError(
            f"{where}: a comparison needs an item ({', '.join(records.ITEM_NAMES)}), two systems "
            f"(system_a, system_b) and a preference; found {', '.join(row) or 'nothing'}"
        )
    reading = _Reading({left: 1.0, right: 0.0}.get(preference), VERDICTS.get(preference.lower()))
    value = reading.side if reading.system is None else reading.system
    if value is None:
        expected = f"a, b, tie, {left!r} or {right!r}"
        raise DataError(f"{where}: preference {preference!r}: expected {expected}")
    return PairwiseJudgment(item, left, right, value, judge), reading


def _resolve_sides(
    path: PathLike, comparisons: list[PairwiseJudgment], readings: Sequence[_Reading]
) -> list[PairwiseJudgment]:
    """Read preferences as sides, not as system names, if other rows show that they are sides."""
    has_sides = any(system is None and side != 0.5 for system, side in readings)
    is_clear = all(None in reading or reading.system == reading.side for reading in readings)
    if not has_sides or is_clear:
        return comparisons
    resolved = []
    for comparison, (_, side) in zip(comparisons, readings, strict=True):
        if side is None:
            raise DataError(
                f"{path}: preferences are sides in some rows and systems in others, and a system "
                "has the name of a side: rename it, or give the better system in every row"
            )
        resolved.append(comparison._replace(verdict=side))
    return resolved


def _add_texts(
    texts: dict[str, ItemTexts], row: Mapping[str, Any], pair: PairwiseJudgment, where: str
) -> None:
    """Add the texts of a row; a text that differs from that of an earlier row is an error."""
    outputs = {pair.left: _text(row, LEFT_TEXTS, where), pair.right: _text(row, RIGHT_TEXTS, where)}
    source, references = records.read_source(row, where), records.read_references(row, where)
    entry = texts.setdefault(pair.item, ItemTexts(outputs, source, references))
    for first, later in ((entry.source, source), (entry.references, references)):
        if first and later and first != later:
            raise DataError(
                f"{where}: another source or reference for item {pair.item!r}; if item names "
                "repeat across documents, add a column `document`"
            )
    for system, text in outputs.items():
        if entry.outputs.get(system, text) != text:
            raise DataError(f"{where}: another text for system {system!r} of item {pair.item!r}")
    texts[pair.item] = ItemTexts(
        outputs={**entry.outputs, **outputs},
        source=source if entry.source is None else entry.source,
        references=entry.references or references,
    )


def _text(row: Mapping[str, Any], names: Sequence[str], where: str) -> str:
    column = next((name for name in names if name in row), names[0])
    text = row.get(column)
    if text is None:
        raise DataError(f'{where}: {column} is null; an empty translation is ""')
    if not isinstance(text, str):
        raise DataError(f"{where}: {column}: expected text, got {text!r}")
    return text


def read_texts(path: PathLike) -> dict[str, ItemTexts]:
    """Read system outputs by item from a JSONL file of `segment, source, reference, outputs`."""
    texts: dict[str, ItemTexts] = {}
    for where, raw_record in read_jsonl(path):
        record = records.lowercase_known_columns(raw_record)
        outputs, item = record.get("outputs"), records.get_text(record, records.ITEM_NAMES)
        if not isinstance(outputs, dict) or not outputs or not item:
            raise DataError(f"{where}: expected segment and outputs (system -> text)")
        if item in texts:
            raise DataError(f"{where}: segment {item!r} occurs a second time")
        check_texts([*outputs.values()], where, "text")
        texts[item] = ItemTexts(
            outputs={format_name(system): text for system, text in outputs.items()},
            source=records.read_source(record, where),
            references=records.read_references(record, where),
        )
    return texts
