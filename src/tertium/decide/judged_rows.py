"""Judged translations, and which of them are good enough to publish or bad enough to discard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.errors import DataError, UsageError
from tertium.core.spans import ErrorAnnotations
from tertium.data.rankings import RankingSet
from tertium.evaluation.judged import HumanInputs, Sources
from tertium.evaluation.rows import Row

MAJOR = ("major", "critical")  # severities of a serious error
# Human score that a good translation reaches, and below which a translation is bad.
DEFAULT_SCORES = {"ESA": (80.0, 50.0), "DA": (80.0, 50.0), "MQM": (-1.0, -10.0)}


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedRows:
    """Translations with human scores, (n,); `has_major` are those with a marked major error.

    `clusters` names the document of each row, or its segment if documents are unknown: rows of one
    cluster are alike.
    """

    rows: Sequence[Row]
    scores: FloatArray
    has_major: BoolArray
    is_annotated: bool
    clusters: Sequence[str]

    @property
    def protocol(self) -> str:
        """ESA, DA or MQM by the range of the scores; empty if it is another one."""
        low, high = float(self.scores.min()), float(self.scores.max())
        if low < 0 and high <= 0:
            return "MQM"
        if low >= 0 and 10 < high <= 100:
            return "ESA" if self.is_annotated else "DA"
        return ""


@dataclass(frozen=True, kw_only=True)
class QualityCriteria:
    """Which human judgments are good and which are bad.

    A translation is good if its human score is at least `good_score` and, unless `allow_major`, no
    major error is marked. It is bad if its score is below `bad_score` (None: no score is bad).
    """

    good_score: float
    bad_score: float | None = None
    allow_major: bool = False
    protocol: str = ""

    def flag_good(self, judged_rows: JudgedRows) -> BoolArray:
        """Return which rows are good, (n,)."""
        good: BoolArray = judged_rows.scores >= self.good_score
        return good if self.allow_major else good & ~judged_rows.has_major

    def flag_bad(self, judged_rows: JudgedRows) -> BoolArray:
        """Return which rows are bad, (n,)."""
        limit = -np.inf if self.bad_score is None else self.bad_score
        return judged_rows.scores < limit


def choose_criteria(
    judged_rows: JudgedRows,
    good_score: float | None = None,
    bad_score: float | None = None,
) -> QualityCriteria:
    """Return the criteria; scores that are not given are those of the protocol."""
    protocol = judged_rows.protocol
    if good_score is None and not protocol:
        low, high = judged_rows.scores.min(), judged_rows.scores.max()
        raise UsageError(
            f"human scores are {low:g} to {high:g}, not a scale with a default (0 to 100, or MQM "
            "below 0): give the score of a good translation with --good-score"
        )
    defaults = DEFAULT_SCORES.get(protocol, (None, None))
    good = defaults[0] if good_score is None else good_score
    bad = defaults[1] if bad_score is None else bad_score
    assert good is not None
    if bad is not None and bad > good:
        if bad_score is not None:
            raise UsageError(f"--bad-score {bad:g} is above --good-score {good:g}: exchange them")
        bad = good
    return QualityCriteria(
        good_score=good,
        bad_score=bad,
        allow_major=not judged_rows.is_annotated,
        protocol=protocol,
    )


def read_judged_rows(human: Sources | HumanInputs | JudgedRows) -> JudgedRows:
    """Read judged translations from files, datasets or sets of judgments."""
    if isinstance(human, JudgedRows):
        return human
    is_options = isinstance(human, HumanInputs)
    inputs: Any = human if is_options else HumanInputs(human=human)  # type: ignore[arg-type]
    rows: list[Row] = []
    scores: list[float] = []
    marked: list[ErrorAnnotations | None] = []
    for entry in inputs.read().values():
        if isinstance(entry, RankingSet):
            raise DataError(f"{entry.title}: comparisons have no scale: expected human scores")
        cells, annotations = entry.segment_scores().cells(), entry.error_annotations()
        documents = entry.labels().get("document", {})
        for (system, item), segment in entry.texts().items():
            score = cells.get((system, item), np.nan)
            if np.isnan(score) or system in inputs.exclude:
                continue
            scores.append(score)
            marked.append(annotations.get((system, item)))
            document = documents.get(item, "")
            row = Row(segment=segment, system=system, item=item, lp=entry.lp, document=document)
            rows.append(row)
    if not rows:
        raise DataError("no judged translations with texts: expected a translation and a score")
    annotated = [errors for errors in marked if errors is not None]
    return JudgedRows(
        rows=rows,
        scores=np.array(scores),
        has_major=np.array([errors is not None and _has_major(errors) for errors in marked]),
        is_annotated=2 * len(annotated) > len(rows),
        clusters=[f"{row.lp} {row.document or row.item}" for row in rows],
    )


def _has_major(annotations: ErrorAnnotations) -> bool:
    return any(error.severity in MAJOR for error in annotations.errors)
