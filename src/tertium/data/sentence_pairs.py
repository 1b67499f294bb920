"""Pairs of sentences with a human score of how alike they mean (STS benchmark, SICK)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tertium.data.formats import PathLike, read_records
from tertium.data.judgements import read_score
from tertium.errors import DataError


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences, how alike people find them, and what follows from what where they said.

    `label` is ENTAILMENT, NEUTRAL or CONTRADICTION, empty where nobody was asked.
    """

    left: str
    right: str
    score: float
    label: str = ""


def read_pairs(path: PathLike) -> list[SentencePair]:
    """Read a JSONL, TSV or CSV file of `a, b, score` and optionally `label`."""
    pairs = []
    for number, record in read_records(path):
        where = f"{path}, line {number}"
        left, right = record.get("a"), record.get("b")
        score = read_score(record.get("score"), where)
        if not isinstance(left, str) or not isinstance(right, str) or math.isnan(score):
            raise DataError(f"{where}: a, b and score are needed; found {', '.join(record)}")
        pairs.append(SentencePair(left, right, score, str(record.get("label") or "")))
    return pairs
