"""Read human comparisons of two translations from files with a row for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tertium.atomic import PathLike
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
from tertium.data.record_files import read_jsonl, read_records
from tertium.data.testset import TestSet
from tertium.errors import DataError
from tertium.frames import format_name
from tertium.segment import check_texts
from tertium.text.language_codes import normalize_language_pair

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
    verdicts: list[_Verdict] = []
    documents: list[str] = []
    pairs: list[str] = []
    rows = []
    for where, record in read_records(path, fields):
        columns = _columns(tuple(record))
        with _at(where):
            comparison, verdict = _comparison(record, columns)
        comparisons.append(comparison)
        verdicts.append(verdict)
        documents.append(_cell(record, columns.document))
        pairs.append(normalize_language_pair(_cell(record, columns.lp)))
        has_texts = texts is None and columns.left_text and columns.right_text
        rows.append((where, record) if has_texts else None)
    comparisons = _name_items(_resolve_sides(path, comparisons, verdicts), documents)
    _check_language_pairs(path, comparisons, pairs)
    item_documents = {c.item: d for c, d in zip(comparisons, documents, strict=True) if d}
    if isinstance(texts, TestSet):
        texts = texts_by_item(texts, comparisons, item_documents)
    elif texts is None:
        texts = _texts_in(rows, comparisons)
    ranking_set = build_ranking_set(
        comparisons,
        texts,
        name=name or Path(path).name.split(".")[0],
        lp=lp or (pairs[0] if len(set(pairs)) == 1 else ""),
    )
    return replace(ranking_set, documents=item_documents)


@contextmanager
def _at(where: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _texts_in(
    rows: Iterable[tuple[str, Mapping[str, Any]] | None], comparisons: Sequence[PairwiseJudgment]
) -> dict[str, ItemTexts] | None:
    """Return the texts in the rows of comparisons, or None if no row has any."""
    texts: dict[str, ItemTexts] = {}
    for row, comparison in zip(rows, comparisons, strict=True):
        if row is not None:
            where, record = row
            with _at(where):
                _add_texts(texts, record, _columns(tuple(record)), comparison)
    return texts or None


def _name_items(
    comparisons: list[PairwiseJudgment], documents: Sequence[str]
) -> list[PairwiseJudgment]:
    """Rename items to `DOCUMENT:NAME` if their names repeat across documents."""
    if not has_duplicates_across_documents(
        zip((c.item for c in comparisons), documents, strict=True)
    ):
        return comparisons
    pairs = zip(comparisons, documents, strict=True)
    return [c._replace(item=f"{document}:{c.item}") for c, document in pairs]


def _check_language_pairs(
    path: PathLike, comparisons: Sequence[PairwiseJudgment], pairs: Sequence[str]
) -> None:
    """Raise an error if item names repeat across language pairs."""
    if has_duplicates_across_documents(
        (c.item, lp) for c, lp in zip(comparisons, pairs, strict=True) if lp
    ):
        names = ", ".join(filter(None, dict.fromkeys(pairs)))
        raise DataError(
            f"{path}: items of several language pairs ({names}) have the same names; put each "
            "language pair in its own file"
        )


class _Columns(NamedTuple):
    """The column names of a file; None for a column that is absent."""

    item: str | None
    left: str | None
    right: str | None
    verdict: str | None
    judge: str | None
    left_text: str | None
    right_text: str | None
    document: str | None
    lp: str | None


@lru_cache(maxsize=256)
def _columns(header: tuple[str, ...]) -> _Columns:
    """Find the columns of a header by their usual names; cached per header."""
    columns = {name.lower(): name for name in header} | {name: name for name in header}
    systems = (records.ITEM_NAMES, LEFT_NAMES, RIGHT_NAMES, VERDICT_NAMES, records.ANNOTATOR_NAMES)
    aliases = (*systems, LEFT_TEXTS, RIGHT_TEXTS, records.DOCUMENT_NAMES, records.LP_NAMES)
    return _Columns(*(next((columns[n] for n in names if n in columns), None) for names in aliases))


def _cell(record: Mapping[str, Any], column: str | None) -> str:
    value = None if column is None else record[column]
    return "" if value is None else format_name(value)


class _Verdict(NamedTuple):
    """A preference read as the name of a system and as a side; None if it is not one."""

    system: float | None
    side: float | None

    @property
    def is_unambiguous(self) -> bool:
        return None in self or self.system == self.side


def _resolve_sides(
    path: PathLike, comparisons: list[PairwiseJudgment], verdicts: Sequence[_Verdict]
) -> list[PairwiseJudgment]:
    """Read preferences as sides, not as system names, if other rows show that they are sides."""
    has_sides = any(v.system is None and v.side != 0.5 for v in verdicts)
    if not has_sides or all(v.is_unambiguous for v in verdicts):
        return comparisons
    if any(v.side is None for v in verdicts):
        raise DataError(
            f"{path}: preferences are sides in some rows and systems in others, and a system has "
            "the name of a side: rename it, or give the better system in every row"
        )
    pairs = zip(comparisons, verdicts, strict=True)
    return [c if v.side is None else c._replace(verdict=v.side) for c, v in pairs]


def _comparison(record: Mapping[str, Any], columns: _Columns) -> tuple[PairwiseJudgment, _Verdict]:
    cells = [_cell(record, column) for column in columns[:4]]
    if not all(cells):
        raise DataError(
            f"a comparison needs an item ({', '.join(records.ITEM_NAMES)}), two systems (system_a, "
            f"system_b) and a preference; found {', '.join(record) or 'nothing'}"
        )
    item, left, right, preference = cells
    verdict = _Verdict({left: 1.0, right: 0.0}.get(preference), VERDICTS.get(preference.lower()))
    value = verdict.side if verdict.system is None else verdict.system
    if value is None:
        raise DataError(f"preference {preference!r}: expected a, b, tie, {left!r} or {right!r}")
    judge = _cell(record, columns.judge)
    return PairwiseJudgment(item, left, right, value, judge), verdict


def _add_texts(
    texts: dict[str, ItemTexts],
    record: Mapping[str, Any],
    columns: _Columns,
    pair: PairwiseJudgment,
) -> None:
    """Add the texts of a row; a text that differs from that of an earlier row is an error."""
    sides = {
        pair.left: _text(record, columns.left_text or ""),
        pair.right: _text(record, columns.right_text or ""),
    }
    lowered = records.lowercase_columns(record)
    where = f"item {pair.item!r}"
    source = records.read_source(lowered, where)
    references = records.read_references(lowered, where)
    entry = texts.setdefault(pair.item, ItemTexts(sides, source, references))
    values = ((entry.source, source), (entry.references, references))
    if any(first and other and first != other for first, other in values):
        raise DataError(
            f"another source or reference for {where}; if item names repeat across documents, add "
            "a column `document`"
        )
    for system, text in sides.items():
        if entry.outputs.get(system, text) != text:
            raise DataError(f"another text for system {system!r} of {where}")
    texts[pair.item] = ItemTexts(
        outputs={**entry.outputs, **sides},
        source=source if entry.source is None else entry.source,
        references=entry.references or references,
    )


def _text(record: Mapping[str, Any], column: str) -> str:
    text = record[column]
    if text is None:
        raise DataError(f'{column} is null; an empty translation is ""')
    if not isinstance(text, str):
        raise DataError(f"{column}: expected text, got {text!r}")
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
