"""Variance of the difference between two systems, by source.

On one segment, judged by one rater for both systems, the difference is

    d = difference of the systems + document + rater in the document + segment + noise

with independent effects. `document` and `segment` are true: a system is better on some texts than
on others. `rater` is how one rater leans in one document, and `noise` is everything that another
judgment of the same segment would not repeat. The components follow from products of differences
(method of moments): two raters on a segment share document + segment, one rater on two segments
of a document shares document + rater, and two raters on two such segments share the document.

`variance.json` contains the components of public judgments by protocol, and how they were
estimated (`python -m benchmarks annotation variance`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import DataError
from tertium.core.segment import Judgment
from tertium.data.judgments import JudgmentSet

COMPONENTS = ("document", "rater", "segment", "noise")
SAME_VARIANCE = {"contrastive-esa": "esa"}  # protocols without judgments of their own
MIN_DIFFERENCES = 20  # of a pilot


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """Variances of the difference between two systems on one segment; see the module docstring.

    `unit` is the unit of the scores, and `origin` the judgments they were estimated from.
    """

    document: float
    rater: float
    segment: float
    noise: float
    unit: str = ""
    origin: str = ""

    @property
    def total(self) -> float:
        return self.document + self.rater + self.segment + self.noise

    def scale_to(self, total: float, origin: str) -> VarianceComponents:
        """Return the same shares of another total."""
        factor = total / self.total
        scaled = {name: factor * getattr(self, name) for name in COMPONENTS}
        return replace(self, **scaled, origin=origin)

    def mean_variance(
        self, segments: ArrayLike, raters: int, segments_per_document: float
    ) -> FloatArray:
        """Compute the variance of the mean difference over a number of segments.

        `raters` judge each segment. If segments are chosen singly from a large test set,
        `segments_per_document` is 1; for whole documents it is the size of the document of an
        average segment.
        """
        documents = np.maximum(1.0, np.asarray(segments) / max(1.0, segments_per_document))
        return (self.document + self.rater / raters) / documents + (
            self.segment + self.noise / raters
        ) / np.asarray(segments)


def stored_variance(protocol: str) -> VarianceComponents:
    """Return the variance components of public judgments under a protocol."""
    text = files("tertium.people").joinpath("variance.json").read_text(encoding="utf-8")
    entry = json.loads(text)["protocols"].get(SAME_VARIANCE.get(protocol, protocol))
    if entry is None:
        raise DataError(
            f"there are no public judgments to estimate the variance of {protocol!r} from: give "
            "a pilot (--pilot FILE)"
        )
    names = {field.name for field in fields(VarianceComponents)}
    return VarianceComponents(**{name: entry[name] for name in entry.keys() & names})


def estimate_variance(pilot: JudgmentSet, protocol: str = "") -> VarianceComponents:
    """Estimate the components from the judgments of a pilot with two or more systems.

    Without segments judged by two raters, segment and noise cannot be separated: then the total is
    that of the pilot, and the shares are those of public judgments under `protocol`.
    """
    values, labels = paired_differences(pilot)
    if len(values) < MIN_DIFFERENCES:
        raise DataError(
            f"{pilot.title}: {len(values)} segments judged for two systems by the same rater; a "
            f"variance needs {MIN_DIFFERENCES} or more"
        )
    components, has_overlap = fit_components(values, labels)
    origin = f"{pilot.title} ({len(values):,} differences)"
    if has_overlap:
        return replace(components, origin=origin)
    try:
        shares = stored_variance(protocol)
    except DataError:
        return replace(components, origin=f"{origin}, noise not separated from segments")
    return replace(
        shares.scale_to(components.total, f"{origin}, shares of public judgments"), unit=""
    )


def paired_differences(pilot: JudgmentSet) -> tuple[FloatArray, IntArray]:
    """Return differences of system pairs by the same rater, centered by pair, and their labels.

    The rows of the labels (4, differences) are numbers of the pair, document, segment and rater.
    """
    cells: dict[tuple[str, str, str], dict[str, Judgment]] = {}
    for judgment in pilot.judgments:
        cell = cells.setdefault((judgment.lp, judgment.item, judgment.annotator), {})
        cell[judgment.system] = judgment
    rows = []
    for (lp, item, rater), cell in cells.items():
        for a, b in combinations(sorted(cell), 2):
            document = f"{lp}\t{cell[a].document or item}"
            difference = cell[a].score - cell[b].score
            rows.append((f"{lp}\t{a}\t{b}", document, f"{lp}\t{item}", rater, difference))
    if not rows:
        raise DataError(f"{pilot.title}: a difference needs judgments of two systems by one rater")
    *names, scores = zip(*rows, strict=True)
    labels: IntArray = np.stack([np.unique(column, return_inverse=True)[1] for column in names])
    values, pair = np.array(scores), labels[0]
    return values - (np.bincount(pair, values) / np.bincount(pair))[pair], labels


def fit_components(values: FloatArray, labels: IntArray) -> tuple[VarianceComponents, bool]:
    """Fit the components; return also whether segments with two raters separate the noise."""
    pair, document, segment, rater = labels
    total = float(np.mean(values**2))
    same_segment = pair_products(values, pair, segment)
    same_rater = pair_products(values, pair, document, rater)
    other_rater = pair_products(values, pair, document) - same_rater - same_segment
    both, one_rater, two_raters = map(_mean_product, (same_segment, same_rater, other_rater))
    shared = min(one_rater or 0.0, both or np.inf) if two_raters is None else two_raters
    document_variance = max(0.0, shared)
    rater_variance = max(0.0, (one_rater or 0.0) - document_variance)
    segment_variance = max(0.0, (total if both is None else both) - document_variance)
    components = VarianceComponents(
        document=document_variance,
        rater=rater_variance,
        segment=segment_variance,
        noise=max(0.0, total - document_variance - rater_variance - segment_variance),
    )
    return components.scale_to(total, "") if components.total else components, both is not None


def pair_products(values: FloatArray, *groups: IntArray) -> FloatArray:
    """Return the sum of products of different members of a group, and their number, (2,)."""
    label = np.unique(np.stack(groups), axis=1, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(label).astype(np.float64)
    sums, squares = np.bincount(label, values), np.bincount(label, values**2)
    return np.array([np.sum(sums**2 - squares), np.sum(counts * (counts - 1))])


def _mean_product(products: FloatArray) -> float | None:
    return float(products[0] / products[1]) if products[1] > 0.5 else None
