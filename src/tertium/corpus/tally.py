"""What a run counts: sums that may be added in any order, so that parts make up the whole.

Deciles come from a histogram over the leading bits of the scores: a bucket is 1/256 of a power of
two wide, so that a decile is right to 0.2 % of itself, whatever the range of the metric.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.corpus.scoring import JOINED, ScoredBlock
from tertium.encoders.encoder import TRUNCATED
from tertium.metrics.base.metric import Metric
from tertium.segment import Segment

MANTISSA = 8  # bits of it that are kept
_SHIFT = 52 - MANTISSA


@dataclass
class MetricTally:
    """Scores of one metric: how many, their sum and spread, warnings and signatures."""

    count: int = 0
    missing: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    buckets: Counter[int] = field(default_factory=Counter, repr=False)
    warnings: Counter[str] = field(default_factory=Counter)
    signature: dict[str, str] = field(default_factory=dict)

    def add(self, scores: FloatArray, warnings: Sequence[str]) -> None:
        known = scores[~np.isnan(scores)] + 0.0  # which makes a plain zero of -0.0
        self.missing += len(scores) - len(known)
        self.count += len(known)
        if len(known):
            self.total = math.fsum([self.total, *known.tolist()])
            self.low = min(self.low, float(known.min()))
            self.high = max(self.high, float(known.max()))
            codes, counts = np.unique(known.view(np.int64) >> _SHIFT, return_counts=True)
            self.buckets.update(dict(zip(codes.tolist(), counts.tolist(), strict=True)))
        for text in filter(None, warnings):
            self.warnings.update(text.split(JOINED))

    def sign(self, metric: Metric, segments: Sequence[Segment]) -> None:
        """Note the signature, by a segment for each number of references there is."""
        several = {len(segment.references): segment for segment in segments}
        text = metric.signature([several[count] for count in sorted(several)])
        label, *parts = text.split("|")
        split = {key: value for key, _, value in (part.partition(":") for part in parts)}
        self.signature = merge_signatures([self.signature, {"": label, **split}])

    def merge(self, other: MetricTally) -> None:
        self.count += other.count
        self.missing += other.missing
        self.total = math.fsum([self.total, other.total])
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.buckets.update(other.buckets)
        self.warnings.update(other.warnings)
        self.signature = merge_signatures([self.signature, other.signature])

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else math.nan

    def deciles(self) -> list[float]:
        """The nine scores that part all into tenths, each within 0.2 %."""
        values = sorted((_middle(code), count) for code, count in self.buckets.items())
        passed = np.cumsum([count for _, count in values])
        if not self.count:
            return [math.nan] * 9
        ranks = [math.ceil(tenth * self.count / 10) for tenth in range(1, 10)]
        places = np.searchsorted(passed, ranks)
        return [min(max(values[place][0], self.low), self.high) for place in places]

    def signature_text(self) -> str:
        """The signature of everything that was scored."""
        parts = dict(self.signature)
        if "trunc" in parts:
            parts["trunc"] = str(self.warnings[TRUNCATED])
        label = parts.pop("", "")
        return "|".join([label, *(f"{key}:{value}" for key, value in parts.items())])

    def record(self) -> dict[str, Any]:
        spread = [self.low, self.high] if self.count else None
        return {
            "count": self.count,
            "missing": self.missing,
            "total": self.total,
            "spread": spread,
            "buckets": {str(code): count for code, count in sorted(self.buckets.items())},
            "warnings": dict(sorted(self.warnings.items())),
            "signature": self.signature,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> MetricTally:
        low, high = record["spread"] or (math.inf, -math.inf)
        return cls(
            count=record["count"],
            missing=record["missing"],
            total=record["total"],
            low=low,
            high=high,
            buckets=Counter({int(code): count for code, count in record["buckets"].items()}),
            warnings=Counter(record["warnings"]),
            signature=dict(record["signature"]),
        )


@dataclass
class Tally:
    """What was done: rows read, kept and put aside by reason, and each metric's scores."""

    rows: int = 0
    kept: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, MetricTally] = field(default_factory=dict)

    def add(self, block: ScoredBlock, metrics: Sequence[Metric]) -> None:
        for metric in metrics:
            tally = self.metrics.setdefault(metric.spec, MetricTally())
            tally.add(block.scores[metric.spec], block.warnings[metric.spec])
            if block.segments:
                tally.sign(metric, block.segments)

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
        return cls(record["rows"], record["kept"], Counter(record["bad"]), metrics)


def name_reason(reason: str) -> str:
    """The kind of a reason: what it says before its details.

    >>> name_reason("not UTF-8 (byte 0xff at position 3)")
    'not UTF-8'
    """
    return re.split(r"[(:,;]", reason)[0].strip()


def _middle(code: int) -> float:
    """The score in the middle of a bucket; zero has one of its own."""
    if code == 0:
        return 0.0
    bits = np.int64(code) << _SHIFT | np.int64(1) << (_SHIFT - 1)
    return float(bits.view(np.float64))


def merge_signatures(several: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """One signature of several: a number of references that varies is `var`, others are joined.

    >>> merge_signatures([{"": "chrF", "nrefs": "1"}, {"": "chrF", "nrefs": "2"}])
    {'': 'chrF', 'nrefs': 'var'}
    >>> merge_signatures([{"lang": "de"}, {"lang": "de,fr"}])
    {'lang': 'de,fr'}
    """
    merged: dict[str, str] = {}
    for signature in several:
        for key, value in signature.items():
            known = merged.setdefault(key, value)
            if known != value:
                values = sorted({*known.split(","), *value.split(",")})
                merged[key] = "var" if key == "nrefs" else ",".join(values)
    return merged
