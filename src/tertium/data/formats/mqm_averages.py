"""Average MQM scores of segments, `*.avg_seg_scores.tsv`: `system mqm_avg_score seg_id`.

The columns are separated by blanks. There are no texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tertium.core.errors import DataError
from tertium.data.formats import Source
from tertium.data.formats.mqm import mqm_language_pair
from tertium.data.judgments import JudgmentSet, Row, collect_published
from tertium.data.text_files import read_lines


def matches(source: Source) -> bool:
    return source.lines[0].split() == ["system", "mqm_avg_score", "seg_id"]


def read(source: Source) -> Iterator[JudgmentSet]:
    source.refuse_gold()
    path = source.path
    lines = enumerate(read_lines(path)[1:], start=2)
    rows = ((f"{path}, line {number}", line.split()) for number, line in lines if line.split())
    yield collect_published(path, rows, _convert, source.lp or mqm_language_pair(path))


def _convert(cells: Sequence[str], where: str) -> Iterator[Row]:
    if len(cells) != 3:
        expected = "expected system, mqm_avg_score and seg_id"
        raise DataError(f"{where}: {len(cells)} fields; {expected}")
    yield dict(zip(("system", "score", "item"), cells, strict=True))
