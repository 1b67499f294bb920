"""MQM: experts mark errors, errors weigh, and a translation's score is minus their sum.

Freitag et al. 2021 (Experts, Errors, and Context) weigh errors as `spans.MQM_WEIGHTS` says. Files
are tab-separated with a row for each error: `system doc doc_id seg_id rater source target category
severity`; a translation without error has one row that says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tertium.data.formats import PathLike, read_table
from tertium.data.judgements import ANNOTATOR_NAMES, JudgementSet, text_of
from tertium.errors import DataError
from tertium.segment import Judgement, Segment
from tertium.spans import MQM_WEIGHTS, weigh

SEGMENT_NAMES = ("seg_id", "globalsegid", "global_seg_id", "segment", "segment_id", "item")
QUALITY_CONTROL = "quality-control row"

_MARKS = re.compile(r"</?v>")


def read_mqm(
    path: PathLike,
    *,
    references: Mapping[str, str] | None = None,
    weights: Mapping[str, float] = MQM_WEIGHTS,
    lp: str = "",
) -> JudgementSet:
    """Read an MQM file to one judgement for each rater of each translation.

    Average the raters with `ratings.average`. `references` gives a reference by segment id, for the
    file has none. Rows of planted errors (severity `HOTW-test`) are left out and counted.
    """
    totals: dict[tuple[str, str, str], float] = {}
    texts: dict[tuple[str, str], Segment] = {}
    left_out: Counter[str] = Counter()
    for number, row in read_table(path):
        record = {key.lower(): value for key, value in row.items()}
        where = f"{path}, line {number}"
        system, item, rater = _names(record, where)
        if "hotw" in record.get("severity", "").lower():
            left_out[QUALITY_CONTROL] += 1
            continue
        severity, category = record.get("severity", ""), record.get("category", "")
        key = (system, item, rater)
        totals[key] = totals.get(key, 0.0) + weigh(severity, category, weights, where)
        if (system, item) not in texts:
            texts[system, item] = _segment(record, (references or {}).get(item))
    judgements = tuple(
        Judgement(texts[system, item], 0.0 - total, item, system, rater, lp)
        for (system, item, rater), total in totals.items()
    )
    name = Path(path).name.split(".")[0]
    return JudgementSet(name=name, lp=lp, judgements=judgements, left_out=dict(left_out))


def _names(record: Mapping[str, Any], where: str) -> tuple[str, str, str]:
    system, item = text_of(record, ("system",)), text_of(record, SEGMENT_NAMES)
    rater = text_of(record, ANNOTATOR_NAMES)
    if not (system and item and rater and "severity" in record):
        found = ", ".join(record)
        raise DataError(f"{where}: system, seg_id, rater and severity are needed; found {found}")
    return system, item, rater


def _segment(record: Mapping[str, str], reference: str | None) -> Segment:
    """The texts without the marks around errors."""
    target, source = (_MARKS.sub("", record.get(key) or "") for key in ("target", "source"))
    return Segment(target, source or None, (reference,) if reference is not None else ())
