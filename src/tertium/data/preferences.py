"""Human comparisons of two translations, read row by row; columns go by any of their aliases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tertium.data.formats import PathLike, read_records
from tertium.data.items import begin_anew
from tertium.data.rankings import ItemTexts, PairJudgment, RankingSet, gather, texts_of
from tertium.data.records import (
    ANNOTATOR_NAMES,
    DOCUMENT_NAMES,
    ITEM_NAMES,
    LP_NAMES,
    lower_names,
    references_from,
    source_from,
)
from tertium.data.testset import TestSet
from tertium.errors import DataError
from tertium.frames import printed

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


def read_preferences(
    path: PathLike,
    *,
    texts: Mapping[str, ItemTexts] | TestSet | None = None,
    name: str = "",
    lp: str = "",
    fields: Sequence[str] | None = None,
) -> RankingSet:
    """Read comparisons: a CSV, TSV or JSONL file with a row for each.

    Columns: item; the two systems (`system_a`, `system_b`); the verdict (`a`, `b`, `tie`, or the
    name of the better system: where a system is called `b`, that system, unless other rows say `b`
    of other systems); optionally the judge, and the document: where items begin anew in
    each, they are DOCUMENT:NAME. Texts come from `texts` or from columns of
    their own (`hypothesis_a`, `hypothesis_b`, source, reference).
    """
    comparisons: list[PairJudgment] = []
    said: list[_Verdict] = []
    documents: list[str] = []
    pairs: list[str] = []
    rows = []
    for where, record in read_records(path, fields):
        columns = _columns(tuple(record))
        with _at(where):
            comparison, verdict = _comparison(record, columns)
        comparisons.append(comparison)
        said.append(verdict)
        documents.append(_cell(record, columns.document))
        pairs.append(_cell(record, columns.lp))
        holds_texts = texts is None and columns.left_text and columns.right_text
        rows.append((where, record) if holds_texts else None)
    comparisons = _name_items(_settle(path, comparisons, said), documents)
    _refuse_pairs(path, comparisons, pairs)
    homes = {c.item: home for c, home in zip(comparisons, documents, strict=True) if home}
    if isinstance(texts, TestSet):
        texts = texts_of(texts, comparisons, homes)
    elif texts is None:
        texts = _texts_in(rows, comparisons)
    gathered = gather(
        comparisons,
        texts,
        name=name or Path(path).name.split(".")[0],
        lp=lp or (pairs[0] if len(set(pairs)) == 1 else ""),
    )
    return replace(gathered, documents=homes)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Say where the data are that an error is about."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _texts_in(
    rows: Iterable[tuple[str, Mapping[str, Any]] | None], comparisons: Sequence[PairJudgment]
) -> dict[str, ItemTexts] | None:
    """The texts that rows of comparisons hold, of which some may hold none."""
    found: dict[str, ItemTexts] = {}
    for row, comparison in zip(rows, comparisons, strict=True):
        if row is not None:
            where, record = row
            with _at(where):
                _note_texts(found, record, _columns(tuple(record)), comparison)
    return found or None


def _name_items(comparisons: list[PairJudgment], documents: Sequence[str]) -> list[PairJudgment]:
    """Comparisons whose items are DOCUMENT:NAME where names begin anew, as those of judgments."""
    if not begin_anew(zip((c.item for c in comparisons), documents, strict=True)):
        return comparisons
    named = zip(comparisons, documents, strict=True)
    return [c._replace(item=f"{home}:{c.item}") for c, home in named]


def _refuse_pairs(
    path: PathLike, comparisons: Sequence[PairJudgment], pairs: Sequence[str]
) -> None:
    """Refuse names of items that begin anew in each language pair: a set is of one."""
    if begin_anew((c.item, lp) for c, lp in zip(comparisons, pairs, strict=True) if lp):
        named = ", ".join(filter(None, dict.fromkeys(pairs)))
        raise DataError(
            f"{path}: items of several language pairs ({named}) have the same names; give each "
            "pair a file of its own"
        )


class _Columns(NamedTuple):
    """Which column holds what; None where none does."""

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
    """The columns of a header by their aliases; looked up once a file, not once a row."""
    known = {name.lower(): name for name in header} | {name: name for name in header}
    wanted = (ITEM_NAMES, LEFT_NAMES, RIGHT_NAMES, VERDICT_NAMES, ANNOTATOR_NAMES)
    every = (*wanted, LEFT_TEXTS, RIGHT_TEXTS, DOCUMENT_NAMES, LP_NAMES)
    return _Columns(*(next((known[n] for n in names if n in known), None) for names in every))


def _cell(record: Mapping[str, Any], column: str | None) -> str:
    """A name under a column, empty where there is none."""
    value = None if column is None else record[column]
    return "" if value is None else printed(value)


class _Verdict(NamedTuple):
    """What a verdict says as the name of a system, and as the mark of a side; None: nothing."""

    name: float | None
    mark: float | None

    @property
    def is_clear(self) -> bool:
        return None in self or self.name == self.mark


def _settle(
    path: PathLike, comparisons: list[PairJudgment], said: Sequence[_Verdict]
) -> list[PairJudgment]:
    """Comparisons with `a` for the side, not for a system called so, where other rows show it."""
    sides = any(one.name is None and one.mark != 0.5 for one in said)
    if not sides or all(one.is_clear for one in said):
        return comparisons
    if any(one.mark is None for one in said):
        raise DataError(
            f"{path}: preferences name sides in some rows and systems in others, and a system is "
            "called as a side: call it otherwise, or name the better system in every row"
        )
    both = zip(comparisons, said, strict=True)
    return [c if v.mark is None else c._replace(verdict=v.mark) for c, v in both]


def _comparison(record: Mapping[str, Any], columns: _Columns) -> tuple[PairJudgment, _Verdict]:
    cells = [_cell(record, column) for column in columns[:4]]
    if not all(cells):
        raise DataError(
            f"a comparison needs an item ({', '.join(ITEM_NAMES)}), two systems (system_a, "
            f"system_b) and a preference; found {', '.join(record) or 'nothing'}"
        )
    item, left, right, said = cells
    named, mark = {left: 1.0, right: 0.0}.get(said), VERDICTS.get(said.lower())
    verdict = mark if named is None else named
    if verdict is None:
        raise DataError(f"preference {said!r} is none of a, b, tie, {left!r}, {right!r}")
    judged = PairJudgment(item, left, right, verdict, _cell(record, columns.judge))
    return judged, _Verdict(named, mark)


def _note_texts(
    found: dict[str, ItemTexts], record: Mapping[str, Any], columns: _Columns, pair: PairJudgment
) -> None:
    """Keep the texts a row carries; one that differs from an earlier row's is refused."""
    sides = {
        pair.left: _text(record, columns.left_text or ""),
        pair.right: _text(record, columns.right_text or ""),
    }
    lowered = lower_names(record)
    where = f"item {pair.item!r}"
    source, references = source_from(lowered, where), references_from(lowered, where)
    entry = found.setdefault(pair.item, ItemTexts(sides, source, references))
    both = ((entry.source, source), (entry.references, references))
    if any(first and other and first != other for first, other in both):
        raise DataError(
            f"another source or reference for {where}; where names begin anew in each document, "
            "name it in a column `document`"
        )
    for system, text in sides.items():
        if entry.outputs.get(system, text) != text:
            raise DataError(f"another text for system {system!r} of {where}")
    found[pair.item] = ItemTexts(
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
