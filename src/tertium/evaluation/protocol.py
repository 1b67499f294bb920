"""Rank metrics as a shared task did, and say what a difference of two systems means to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tertium.errors import UnknownNameError
from tertium.evaluation.agreement import Gathered, Sources, gather
from tertium.meta.differences import DifferenceScale, fit_scales
from tertium.meta.protocol import PROTOCOLS, ProtocolResults, follow_protocol
from tertium.metrics.base.metric import Metric


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricRanking(Gathered):
    """A protocol's results, and what they were made of."""

    results: ProtocolResults

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {**self.results.records(), "judgements_left_out": self.left_out}


def rank_metrics(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    protocol: str = "wmt24",
    samples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
    **sources: Any,
) -> MetricRanking:
    """Rank metrics as a shared task did: soft pairwise accuracy and acc_eq*, averaged and tested.

    `human`, `metrics` and `sources` (scores, lps, exclude, gold, data, standardise, lower_better)
    are those of `meta_evaluate`; `protocol` is a name of `tertium.meta.protocol.PROTOCOLS`.
    """
    if protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", protocol, PROTOCOLS)
    gathered = gather(human, metrics, **sources)
    results = follow_protocol(gathered.sets, protocol, samples=samples, alpha=alpha, seed=seed)
    return MetricRanking(**vars(gathered), results=results)


def fit_differences(
    human: Sources, metrics: str | Metric | Sequence[str | Metric] = (), **sources: Any
) -> list[DifferenceScale]:
    """Scales of metrics on judged systems; arguments as of `meta_evaluate`."""
    gathered = gather(human, metrics, level="system", **sources)
    learned = {metric.spec: metric.learned for metric in gathered.metrics}
    return fit_scales(gathered.sets, learned)
