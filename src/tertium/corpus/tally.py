"""Counts of a run that can be merged, so that parts add up to the total."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, is_integer_at_least
from tertium.corpus.scoring import WARNING_SEPARATOR, ScoredBatch
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.text_warnings import TRUNCATED_TEXT
from tertium.segment import Segment


@dataclass
class MetricTally:
    """Statistics of one metric: count, sum, range, warnings, errors and signature."""

    count: int = 0
    missing: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    warnings: Counter[str] = field(default_factory=Counter)
    signature: dict[str, str] = field(default_factory=dict)
    usage: Counter[str] = field(default_factory=Counter)  # tokens and cost of a judge's answers
    errors: Counter[str] = field(default_factory=Counter)  # rows by kind of marked error

    def add(self, scores: FloatArray, warnings: Sequence[str]) -> None:
        valid = scores[~np.isnan(scores)] + 0.0  # turns -0.0 into 0.0
        self.missing += len(scores) - len(valid)
        self.count += len(valid)
        if len(valid):
            self.total = math.fsum([self.total, *valid.tolist()])
            self.low = min(self.low, float(valid.min()))
            self.high = max(self.high, float(valid.max()))
        for text in filter(None, warnings):
            self.warnings.update(text.split(WARNING_SEPARATOR))

    def add_signature(self, metric: Metric, segments: Sequence[Segment]) -> None:
        """Merge the signature of one segment for each number of references."""
        by_count = {len(segment.references): segment for segment in segments}
        text = metric.signature([by_count[count] for count in sorted(by_count)])
        label, *parts = text.split("|")
        split = {key: value for key, _, value in (part.partition(":") for part in parts)}
        self.signature = merge_signatures([self.signature, {"": label, **split}])

    def merge(self, other: MetricTally) -> None:
        self.count += other.count
        self.missing += other.missing
        self.total = math.fsum([self.total, other.total])
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.warnings.update(other.warnings)
        self.usage.update(other.usage)
        self.errors.update(other.errors)
        self.signature = merge_signatures([self.signature, other.signature])

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan

    def signature_text(self) -> str:
        """Return the signature of all scored rows."""
        parts = dict(self.signature)
        if "trunc" in parts:
            parts["trunc"] = str(self.warnings[TRUNCATED_TEXT])
        label = parts.pop("", "")
        return "|".join([label, *(f"{key}:{value}" for key, value in parts.items())])

    def record(self) -> dict[str, Any]:
        spread = [self.low, self.high] if self.count else None
        return {
            "count": self.count,
            "missing": self.missing,
            "total": self.total,
            "spread": spread,
            "warnings": dict(sorted(self.warnings.items())),
            "signature": self.signature,
            "usage": dict(self.usage),
            "errors": dict(sorted(self.errors.items())),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> MetricTally:
        """Read a record; raises `ValueError`, `KeyError` or `AttributeError` if it is not valid."""
        low, high = record["spread"] or (math.inf, -math.inf)
        return cls(
            count=_read_count(record["count"]),
            missing=_read_count(record["missing"]),
            total=_read_float(record["total"]),
            low=_read_float(low),
            high=_read_float(high),
            warnings=_read_counts(record["warnings"]),
            signature={key: _read_text(value) for key, value in record["signature"].items()},
            usage=Counter({key: _read_number(n) for key, n in record.get("usage", {}).items()}),
            errors=_read_counts(record.get("errors", {})),
        )


@dataclass
class Tally:
    """Counts of a part or a run: rows read, kept, and rejected by reason; statistics by metric."""

    rows: int = 0
    kept: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, MetricTally] = field(default_factory=dict)

    def add(self, batch: ScoredBatch, metrics: Sequence[Metric]) -> None:
        for metric in metrics:
            tally = self.metrics.setdefault(metric.spec, MetricTally())
            tally.add(batch.scores[metric.spec], batch.warnings[metric.spec])
            tally.usage.update(batch.usage.get(metric.spec, {}))
            tally.errors.update(batch.errors.get(metric.spec, {}))
            if batch.segments:
                tally.add_signature(metric, batch.segments)

    def merge(self, other: Tally) -> None:
        self.rows += other.rows
        self.kept += other.kept
        self.bad.update(other.bad)
        for spec, tally in other.metrics.items():
            self.metrics.setdefault(spec, MetricTally()).merge(tally)

    def record(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "kept": self.kept,
            "bad": dict(sorted(self.bad.items())),
            "metrics": {spec: tally.record() for spec, tally in self.metrics.items()},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Tally:
        metrics = {s: MetricTally.from_record(part) for s, part in record["metrics"].items()}
        rows, kept = _read_count(record["rows"]), _read_count(record["kept"])
        return cls(rows, kept, _read_counts(record["bad"]), metrics)


def _read_count(value: Any) -> int:
    if not is_integer_at_least(value, 0) or value >> 62:
        raise ValueError(value)
    return int(value)


def _read_counts(value: Mapping[str, Any]) -> Counter[str]:
    return Counter({key: _read_count(count) for key, count in value.items()})


def _read_float(value: Any) -> float:
    return float(_read_number(value))


def _read_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    return value


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def reason_kind(reason: str) -> str:
    """Return the kind of a reason: the text before its details.

    >>> reason_kind("not UTF-8 (byte 0xff at position 3)")
    'not UTF-8'
    """
    return re.split(r"[(:,;]", reason)[0].strip()


def merge_signatures(signatures: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge signatures: a varying number of references becomes `var`, other values are joined.

    >>> merge_signatures([{"": "chrF", "nrefs": "1"}, {"": "chrF", "nrefs": "2"}])
    {'': 'chrF', 'nrefs': 'var'}
    >>> merge_signatures([{"lang": "de"}, {"lang": "de,fr"}])
    {'lang': 'de,fr'}
    """
    merged: dict[str, str] = {}
    for signature in signatures:
        for key, value in signature.items():
            previous = merged.setdefault(key, value)
            if previous != value:
                values = sorted({*previous.split(","), *value.split(",")})
                merged[key] = "var" if key == "nrefs" else ",".join(values)
    return merged
