"""Translations as rows with their own language pair: scores, warnings and findings of each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray
from tertium.checks.configuration import CheckSettings
from tertium.data.records import LP_NAMES
from tertium.data.testset import TestSet
from tertium.errors import UsageError
from tertium.evaluation.checking import check_segments
from tertium.evaluation.evaluation import as_numbers
from tertium.evaluation.metric_choice import choose_tokenizer, set_languages
from tertium.evaluation.scoring import find_scorable
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE, Metric
from tertium.metrics.base.text_warnings import (
    LANGUAGE_UNKNOWN,
    OUT_OF_VOCABULARY_TEXT,
    TRUNCATED_TEXT,
    kinds_by_segment,
)
from tertium.segment import Segment
from tertium.spans import Span
from tertium.text.language_codes import LANGUAGE_CODES, normalize_language_pair
from tertium.text.language_identification import main_language

# Checks whose findings mean that the output is not a translation. On WMT24, 61 % of 745
# translations with such a finding have a human score below 50, of all translations 7 %
# (`recipes.checks.bad_outputs`).
FAILED_OUTPUT = (
    *("empty", "wrong-language", "untranslated", "chatter"),
    *("truncation", "repetition", "length-ratio"),
)
UNRELIABLE = (TRUNCATED_TEXT, OUT_OF_VOCABULARY_TEXT, LANGUAGE_UNKNOWN, NO_SCORE)
# Parts of a signature that depend on the rows or on their language.
ROW_FIELDS = frozenset({"trunc", "lp", "tok", "lang", "served", "refs"})


@dataclass(frozen=True, kw_only=True)
class Row:
    """One translation of one segment."""

    segment: Segment
    system: str = ""
    item: str | int = ""
    lp: str = ""
    document: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowScores:
    """Scores of rows under one metric, (n,) with NaN for rows without the required inputs.

    `warnings` are those of each row, `signatures` one for each language pair without the parts that
    depend on the rows. `cost` is None without a price.
    """

    metric: Metric
    values: FloatArray
    warnings: Sequence[tuple[str, ...]]
    signatures: Mapping[str, str]
    seconds: float
    cost: float | None = None

    @property
    def oriented(self) -> FloatArray:
        """Scores for which higher is better."""
        return self.values if self.metric.higher_is_better else -self.values

    def is_reliable(self, row: int) -> bool:
        """Tell whether the metric read the whole text, in a language that it supports."""
        return bool(np.isfinite(self.values[row])) and not any(
            warning.startswith(UNRELIABLE) for warning in self.warnings[row]
        )


def rows_of_testset(testset: TestSet, lp: str = "") -> list[Row]:
    """Return all translations of a test set; language pairs are those of its column `lp`.

    `lp` is the pair of all rows if there is no such column.
    """
    column = next((testset.columns[name] for name in LP_NAMES if name in testset.columns), ())
    if lp and column:
        raise UsageError("the records have a column of language pairs: omit the language options")
    pairs = [normalize_language_pair(name) for name in column] or [lp] * len(testset)
    documents = testset.documents or [""] * len(testset)
    items = as_numbers(testset.items)
    return [
        Row(segment=segment, system=system, item=item, lp=pair, document=document)
        for system in testset.systems
        for segment, item, pair, document in zip(
            testset.segments(system), items, pairs, documents, strict=True
        )
    ]


def group_by_pair(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Return the indices of the rows of each language pair."""
    groups: dict[str, list[int]] = {}
    for n, row in enumerate(rows):
        groups.setdefault(row.lp, []).append(n)
    return groups


def split_pair(lp: str) -> tuple[str, str]:
    """Return source and target language; empty if they are unknown.

    >>> split_pair("en-de"), split_pair("")
    (('en', 'de'), ('', ''))
    """
    source, dash, target = lp.partition("-")
    is_pair = bool(dash) and {source, target} <= LANGUAGE_CODES
    return (source, target) if is_pair else ("", "")


def metric_for_pair(spec: str | Metric, lp: str, texts: Sequence[str]) -> Metric:
    """Load a metric for a language pair; if it is unknown, for the language of the texts."""
    metric = load_metric(spec)
    source, target = split_pair(lp)
    if target:
        return set_languages(metric, spec, source, target)
    return choose_tokenizer(metric, spec, texts)


def score_rows(rows: Sequence[Row], spec: str | Metric) -> RowScores:
    """Score rows, each language pair with the settings of its languages."""
    values = np.full(len(rows), np.nan)
    warnings: list[tuple[str, ...]] = [(NO_SCORE,)] * len(rows)
    signatures: dict[str, str] = {}
    started, cost = time.perf_counter(), None
    for lp, indices in group_by_pair(rows).items():
        segments = [rows[n].segment for n in indices]
        metric = metric_for_pair(spec, lp, [s.hypothesis for s in segments])
        mask = find_scorable(segments, metric)
        usable = [s for s, can_score in zip(segments, mask, strict=True) if can_score]
        metric.check(usable or segments)
        scores = metric.score(usable)
        signatures[lp] = stable_signature(metric, scores.signature)
        if "cost" in scores.usage:
            cost = (cost or 0.0) + scores.usage["cost"]
        chosen = [n for n, can_score in zip(indices, mask, strict=True) if can_score]
        values[chosen] = scores.segments
        for n, kinds in zip(chosen, kinds_by_segment(scores.flags, len(usable)), strict=True):
            warnings[n] = kinds
    return RowScores(
        metric=load_metric(spec),
        values=values,
        warnings=warnings,
        signatures=signatures,
        seconds=time.perf_counter() - started,
        cost=cost,
    )


def stable_signature(metric: Metric, signature: str) -> str:
    """Remove the parts of a signature that depend on the rows or on their language.

    >>> stable_signature(load_metric("bleu"), "BLEU|nrefs:1|case:mixed|tok:zh|version:1")
    'BLEU|nrefs:1|case:mixed|version:1'
    """
    dropped = {*ROW_FIELDS} | ({"nrefs"} if _reads_source_only(metric, signature) else set())
    name, *parts = signature.split("|")
    return "|".join([name, *(part for part in parts if part.partition(":")[0] not in dropped)])


def _reads_source_only(metric: Metric, signature: str) -> bool:
    return metric.required_inputs == {"source"} or "|against:source|" in f"{signature}|"


def find_errors(
    rows: Sequence[Row], settings: CheckSettings | None = None
) -> list[tuple[Span, ...]]:
    """Return the findings of checks in each row; unknown languages are detected from the texts."""
    chosen = settings or CheckSettings()
    findings: list[tuple[Span, ...]] = [()] * len(rows)
    for lp, indices in group_by_pair(rows).items():
        languages = split_pair(lp)
        if not languages[1]:
            languages = _detect_languages([rows[n].segment for n in indices])
        segments = [rows[n].segment for n in indices]
        for n, spans in zip(indices, check_segments(segments, languages, chosen), strict=True):
            findings[n] = spans
    return findings


def _detect_languages(segments: Sequence[Segment]) -> tuple[str, str]:
    source = main_language([s.source for s in segments if s.source])
    target = main_language([s.hypothesis for s in segments])
    return source, "" if target == source else target


def finding_kinds(spans: Sequence[Span], kinds: Sequence[str]) -> Iterator[str]:
    """Yield the ids of checks among `kinds` that have a finding, in the order of `kinds`."""
    present = {span.category for span in spans}
    return (kind for kind in kinds if kind in present)
