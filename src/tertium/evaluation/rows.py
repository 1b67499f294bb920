"""Score translations as rows: every command that scores texts calls `score_rows`.

A row is a translation with its system, item, language pair and document. `score`, `gate`, `worst`,
`route`, `corpus` and `meta` arrange the scores of rows in their own way.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.errors import DataError, MissingInputError, UsageError
from tertium.core.extras import explain_missing
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.data.records import LP_NAMES, record_from_segment
from tertium.data.testset import TestSet
from tertium.evaluation.metric_choice import set_languages
from tertium.evaluation.system_scores import as_numbers
from tertium.metrics.base.capabilities import CountsUsage
from tertium.metrics.base.loading import load_metric, load_metrics
from tertium.metrics.base.metric import (
    NO_SCORE,
    Metric,
    compute_statistics,
    make_scores,
    reduce_rows,
    share_encoding,
)
from tertium.metrics.base.text_warnings import (
    LANGUAGE_UNKNOWN,
    OUT_OF_VOCABULARY_TEXT,
    TRUNCATED_TEXT,
    kinds_by_segment,
)
from tertium.text.language_codes import LANGUAGE_CODES, normalize_language_pair

UNRELIABLE = (TRUNCATED_TEXT, OUT_OF_VOCABULARY_TEXT, LANGUAGE_UNKNOWN, NO_SCORE)
# Parts of a signature that depend on the rows or on their language.
ROW_FIELDS = frozenset({"trunc", "lp", "tok", "lang", "served", "refs"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One translation of one segment."""

    segment: Segment
    system: str = ""
    item: str | int = ""
    lp: str = ""
    document: str = ""

    def record(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "system": self.system,
            "segment": self.item,
            **({"lp": self.lp} if self.lp else {}),
            **({"document": self.document} if self.document else {}),
            **record_from_segment(self.segment),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class RowScores:
    """Scores of rows under one metric, (n,) with NaN for rows without the required inputs.

    `flags` has a mask of rows for each kind of warning, (n,). `parts` has the scores of each
    language pair and system, unless the rows are a batch of a larger set. `signatures` has one
    signature for each language pair without what depends on the rows. `usage` has the tokens and
    the cost of a judge.
    """

    metric: Metric
    values: FloatArray
    flags: Mapping[str, BoolArray]
    parts: Mapping[tuple[str, str], Scores] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def oriented(self) -> FloatArray:
        """Scores for which higher is better."""
        return self.values if self.metric.higher_is_better else -self.values

    @cached_property
    def warnings(self) -> list[tuple[str, ...]]:
        """The kinds of warning of each row."""
        return kinds_by_segment(self.flags, len(self.values))

    @cached_property
    def is_reliable(self) -> BoolArray:
        """Whether the metric read the whole text, in a language that it supports, (n,)."""
        is_reliable: BoolArray = np.isfinite(self.values)
        for kind, mask in self.flags.items():
            if kind.startswith(UNRELIABLE):
                is_reliable &= ~mask
        return is_reliable


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
    return set_languages(load_metric(spec), spec, *split_pair(lp), texts)


def find_scorable(segments: Sequence[Segment], metric: Metric) -> list[bool]:
    """Return a mask of the translations that have the inputs of a metric.

    A metric with optional inputs rejects a mix of them. In that case, keep the translations with
    all inputs that any translation has: a human translation among the systems may be the reference
    itself and have no other.
    """
    available = [(bool(s.references), s.source is not None) for s in segments]
    needs = ("references" in metric.required_inputs, "source" in metric.required_inputs)
    mask = [all(h or not n for h, n in zip(has, needs, strict=True)) for has in available]
    try:
        metric.check(list(compress(segments, mask)))
    except MissingInputError:
        all_inputs = tuple(map(any, zip(*available, strict=True)))
        complete = [has == all_inputs for has in available]
        return complete if any(complete) else mask
    except DataError:  # no segment is left
        return mask
    return mask


def find_scorable_by_all(segments: Sequence[Segment], metrics: Sequence[Metric]) -> list[bool]:
    """Return a mask of the translations that have the inputs of every metric."""
    masks = [find_scorable(segments, metric) for metric in metrics]
    return [all(mask) for mask in zip(*masks, strict=True)] if masks else [True] * len(segments)


def score_rows(
    rows: Sequence[Row], metrics: Sequence[str | Metric], *, is_batch: bool = False
) -> list[RowScores]:
    """Score rows under each metric; metrics with the same encoder share its passes.

    Rows without an input of a metric have no score. Each system of a language pair gets its own
    scores and warnings, as if it were scored alone.

    Parameters
    ----------
    rows
        The translations.
    metrics
        Specs, which get the settings of each language pair, or metrics, which stay as they are.
    is_batch
        Whether the rows are a batch of a larger set, whose inputs were checked, so that systems get
        no scores. A judge, for example, decides by complete sets whether it gave enough answers.
    """
    loaded = load_metrics(metrics)
    segments = [row.segment for row in rows]
    shared = segments
    if len(loaded) > 1:
        shared = list(compress(segments, find_scorable_by_all(segments, loaded)))
    with share_encoding(loaded if shared else (), shared):
        return [_score_rows(rows, *pair, is_batch) for pair in zip(loaded, metrics, strict=True)]


def _score_rows(rows: Sequence[Row], base: Metric, spec: str | Metric, is_batch: bool) -> RowScores:
    started = time.perf_counter()
    values = np.full(len(rows), np.nan)
    flags: dict[str, BoolArray] = {NO_SCORE: np.ones(len(rows), dtype=np.bool_)}
    parts: dict[tuple[str, str], Scores] = {}
    signatures: dict[str, str] = {}
    usage: Counter[str] = Counter()
    for lp, group in group_by_pair(rows).items():
        metric = metric_for_pair(spec, lp, [rows[n].segment.hypothesis for n in group])
        usable = group if is_batch else _find_usable(rows, group, metric)
        systems: dict[str, list[int]] = {}
        for n in usable:
            systems.setdefault("" if is_batch else rows[n].system, []).append(n)
        with explain_missing(metric.name):
            # a metric that reads the corpus reads one system at a time
            batches = [*systems.values()] if metric.reads_corpus else [usable]
            statistics = np.zeros((len(rows), len(metric.columns)))
            for places in batches:
                segments = [rows[n].segment for n in places]
                statistics[places] = compute_statistics(metric, segments)
            for system, places in systems.items():
                segments = [rows[n].segment for n in places]
                system_statistics = statistics[places]
                values[places] = reduce_rows(metric, system_statistics)
                if isinstance(metric, CountsUsage):
                    usage.update(metric.usage(system_statistics))
                if is_batch:
                    system_flags = {**metric.flags(segments)}
                else:
                    scores = make_scores(metric, segments, system_statistics)
                    parts[lp, system] = scores
                    signatures[lp] = stable_signature(metric, scores.signature)
                    system_flags = {**scores.flags}
                flags[NO_SCORE][places] = ~np.isfinite(values[places])
                for kind, mask in system_flags.items():
                    flags.setdefault(kind, np.zeros(len(rows), dtype=np.bool_))[places] = mask
    return RowScores(
        metric=base,
        values=values,
        flags={kind: mask for kind, mask in flags.items() if mask.any()},
        parts=parts,
        signatures=signatures,
        usage=dict(usage),
        seconds=time.perf_counter() - started,
    )


def _find_usable(rows: Sequence[Row], group: Sequence[int], metric: Metric) -> list[int]:
    """Return the rows of a group that have the inputs of a metric; it is an error if none has."""
    segments = [rows[n].segment for n in group]
    mask = find_scorable(segments, metric)
    metric.check([*compress(segments, mask)] or segments)
    return [*compress(group, mask)]


def mark_rows(rows: Sequence[Row], spec: str | Metric) -> list[tuple[Span, ...]]:
    """Return the errors that a metric marks in each row, with the settings of language pairs."""
    marked: list[tuple[Span, ...]] = [()] * len(rows)
    for lp, group in group_by_pair(rows).items():
        metric = metric_for_pair(spec, lp, [rows[n].segment.hypothesis for n in group])
        usable = _find_usable(rows, group, metric)
        spans = metric.mark_errors([rows[n].segment for n in usable])
        for n, row_spans in zip(usable, spans, strict=True):
            marked[n] = row_spans
    return marked


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
