"""Statistical power: how many segments and raters a difference between two systems needs.

The test is two-sided on the mean of paired differences. With the variance of that mean, the power
for a true difference is

    P = Phi(difference / SE - t) + Phi(-difference / SE - t)

where t is the critical value of Student's t. Its degrees of freedom are the number of independent
units minus 1: segments, or documents if whole documents are judged.

Variance of the difference between two systems, by source.

On one segment, judged by one rater for both systems, the difference is

    d = difference of the systems + document + rater in the document + segment + noise

with independent effects. `document` and `segment` are true: a system is better on some texts than
on others. `rater` is how one rater leans in one document, and `noise` is everything that another
judgment of the same segment would not repeat.

`variance.json` contains the components of public judgments by protocol, and how they were
estimated (`python -m benchmarks annotation variance`).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from importlib.resources import files
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, in_open_unit_interval
from tertium.core.atomic import PathLike
from tertium.core.charts import Axis, LineChart
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.fields import POSITIVE, Range, check_ranges
from tertium.core.result import Column, Result, Table, count_column, percent_column
from tertium.data.human_data_files import read_rater_judgments
from tertium.data.judgments import JudgmentSet
from tertium.people.campaign import PROTOCOL_TEXTS, PROTOCOLS, Protocol

MAX_SEGMENTS = 1_000_000
NEGLIGIBLE = 0.005  # share of the variance
CURVE_POINTS = 60  # of a chart
RATERS = (1, 2, 3)  # per segment, to compare
CURVE_SHARES = (0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 3.0)  # of the needed segments


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is asked of a campaign: protocol, systems, raters of each segment, error rates.

    For whole documents, `segments_per_document` is their mean size, and `effective_document_size`
    the size of the document of an average segment, which is larger if sizes differ.
    """

    protocol: Protocol = "esa"
    systems: Annotated[int, Range(2)] = 2
    raters: Annotated[int, Range(1)] = 1
    segments_per_document: float = 1.0
    effective_document_size: float = 1.0
    alpha: float = 0.05
    power: float = 0.8
    seconds: Annotated[float | None, POSITIVE] = None

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise UnknownNameError("protocol", self.protocol, PROTOCOLS)
        check_ranges(Design, vars(self))
        for name in ("alpha", "power"):
            value = getattr(self, name)
            if not in_open_unit_interval(value):
                raise UsageError(f"{name}={value!r}: expected a number between 0 and 1")

    @property
    def seconds_per_judgment(self) -> float:
        default: float = PROTOCOL_TEXTS[self.protocol]["seconds"]
        return self.seconds or default

    @property
    def rater_text(self) -> str:
        return f"{self.raters} rater{'s' * (self.raters > 1)} per segment"


@dataclass(frozen=True, kw_only=True)
class PowerPlan(Result):
    """How many segments a difference needs, with the power of other numbers of segments."""

    design: Design
    variance: VarianceComponents
    difference: float
    segments: int

    def power(self, segments: ArrayLike) -> FloatArray:
        return compute_power(self.difference, segments, self.variance, self.design)

    @property
    def detectable(self) -> float:
        """The difference that these segments find with the power of the design."""
        return detectable_difference(self.segments, self.variance, self.design)

    @property
    def judgments(self) -> int:
        return self.segments * self.design.systems * self.design.raters

    @property
    def hours(self) -> float:
        """The working time of all raters together."""
        return self.judgments * self.design.seconds_per_judgment / 3600

    @cached_property
    def curve(self) -> list[PowerPlan]:
        """Plans for the same difference with fewer and more segments."""
        sizes = {_round_size(max(2, round(share * self.segments))) for share in CURVE_SHARES}
        return [replace(self, segments=size) for size in sorted({*sizes, self.segments})]

    @cached_property
    def by_raters(self) -> list[PowerPlan]:
        """The plans for other numbers of raters per segment, and this one."""
        plans = {self.design.raters: self}
        for raters in {*RATERS} - {*plans}:
            design = replace(self.design, raters=raters)
            plans[raters] = plan_difference(self.difference, self.variance, design)
        return [plans[raters] for raters in sorted(plans)]

    def tables(self) -> list[Table]:
        """Return the power by number of segments, and the segments by number of raters."""
        return [self.power_table(), self.rater_table()]

    def power_table(self) -> Table:
        """Return the power, detectable difference and working time by number of segments."""
        design = self.design
        variance = self.variance
        columns = [
            count_column(
                "segments", mark=lambda plan: "best" if plan.segments == self.segments else ""
            ),
            percent_column("power", lambda plan: float(plan.power(plan.segments))),
            Column(f"difference at {100 * design.power:g} %", "detectable", 2),
            count_column("judgments"),
            Column("hours", decimals=1),
        ]
        shares = {name: getattr(variance, name) / variance.total for name in COMPONENTS}
        parts = [f"{name} {100 * s:.0f} %" for name, s in shares.items() if s > NEGLIGIBLE]
        notes = [
            f"variance of a difference on one segment: {variance.total:.3g} from "
            f"{variance.origin} ({', '.join(parts)})",
            f"hours: of all raters together, at {design.seconds_per_judgment:g} seconds per "
            "judgment",
        ]
        unit = f" {variance.unit}" if variance.unit else ""
        title = (
            f"Power to find a difference of {self.difference:.3g}{unit} ({design.protocol}, "
            f"{design.systems} systems, {design.rater_text})"
        )
        return Table(columns, self.curve, title, notes)

    def rater_table(self) -> Table:
        """Return the segments that the difference needs, by number of raters per segment."""
        columns = [
            Column("raters per segment", lambda plan: plan.design.raters, 0),
            count_column("segments"),
            count_column("judgments"),
            Column("hours", decimals=1),
        ]
        share = 100 * self.design.power
        title = f"Segments for a power of {share:g} %, by number of raters"
        return Table(columns, self.by_raters, title)

    def charts(self) -> list[LineChart]:
        """Return a curve for each number of raters; a line marks the requested power."""
        largest = max(plan.curve[-1].segments for plan in self.by_raters)
        sizes = np.linspace(2, largest, CURVE_POINTS)
        curves = {}
        needed = []
        for plan in self.by_raters:
            curves[plan.design.rater_text] = plan.power(sizes)
            needed.append(f"{plan.design.rater_text}: {plan.segments} segments")
        chart = LineChart(
            title=f"Power to find a difference of {self.difference:.3g}",
            x=Axis(name="segments", values=sizes),
            y_label="power",
            y_range=(0.0, 1.0),
            curves=curves,
            description="; ".join(needed),
            reference_value=self.design.power,
        )
        return [chart]

    def records(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        design = self.design
        return {
            "protocol": design.protocol,
            "difference": self.difference,
            "power": design.power,
            "alpha": design.alpha,
            "systems": design.systems,
            "raters_per_segment": design.raters,
            "seconds_per_judgment": design.seconds_per_judgment,
            "variance": asdict(self.variance),
            "segments": self.segments,
            "judgments": self.judgments,
            "hours": self.hours,
            "detectable_difference": self.detectable,
            "curve": [
                {
                    "segments": plan.segments,
                    "power": float(plan.power(plan.segments)),
                    "detectable": plan.detectable,
                    "judgments": plan.judgments,
                    "hours": plan.hours,
                }
                for plan in self.curve
            ],
        }


def compute_power(
    difference: ArrayLike, segments: ArrayLike, variance: VarianceComponents, design: Design
) -> FloatArray:
    """Compute the probability that the test finds a true difference.

    >>> variance = VarianceComponents(document=0, rater=0, segment=400, noise=0)
    >>> float(compute_power(5, 128, variance, Design(protocol="da")).round(2))
    0.8
    """
    from scipy.special import ndtr

    error, critical = _describe_test(segments, variance, design)
    effect = np.abs(np.asarray(difference, dtype=np.float64)) / np.maximum(error, 1e-150)
    return ndtr(effect - critical) + ndtr(-effect - critical)


def detectable_difference(segments: int, variance: VarianceComponents, design: Design) -> float:
    """Compute the true difference that a number of segments finds with the target power."""
    from scipy.special import ndtri

    error, critical = _describe_test(segments, variance, design)
    return float((critical + ndtri(design.power)) * error)


def _describe_test(
    segments: ArrayLike, variance: VarianceComponents, design: Design
) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of the mean difference, and the critical value of its test.

    The degrees of freedom are the number of independent units, segments or documents, minus 1.
    """
    from scipy.special import stdtrit

    count = np.asarray(segments, dtype=np.float64)
    spread = variance.mean_variance(count, design.raters, design.effective_document_size)
    freedom = np.maximum(1.0, count / max(1.0, design.segments_per_document) - 1)
    return np.sqrt(spread), np.asarray(stdtrit(freedom, 1 - design.alpha / 2), dtype=np.float64)


def plan_power(
    difference: float | None = None,
    *,
    budget: float | None = None,
    pilot: PathLike | JudgmentSet | None = None,
    documents: Sequence[str] = (),
    **design: Any,
) -> PowerPlan:
    """Compute how many segments have to be judged to find a difference between two systems.

    Parameters
    ----------
    difference
        The difference of mean scores to find, in the unit of the protocol: points from 0 to 100
        (DA, ESA), MQM points, or the share of comparisons won minus lost (ranking).
    budget
        Instead of a difference: seconds of working time of all raters together.
    pilot
        Judgments to estimate the variance from. By default, that of public judgments.
    documents
        The document of each segment of the test set, if whole documents will be judged.
    **design
        The fields of `tertium.people.power.Design`: `protocol` ("da", "esa", "mqm", "ranking",
        "contrastive-esa" or "post-edit"; by default "esa"), the numbers of `systems` (2) and of
        `raters` who judge each segment (1), the `power` to find the difference (0.8), the level
        `alpha` of the two-sided test (0.05), and the `seconds` for one judgment (by protocol).

    Returns
    -------
    PowerPlan
        The number of segments, and a curve of the power of smaller and larger campaigns.

    Examples
    --------
    >>> plan_power(3, protocol="esa", raters=2).segments
    278
    """
    if documents:
        design["segments_per_document"] = len(documents) / len(set(documents))
        design["effective_document_size"] = effective_document_size(documents)
    chosen = Design(**design)
    if pilot is None:
        variance = stored_variance(chosen.protocol)
    else:
        sets = [pilot] if isinstance(pilot, JudgmentSet) else read_rater_judgments(pilot)
        if len(sets) != 1:
            raise DataError(f"{pilot}: a pilot is one set of scores with systems and raters")
        variance = estimate_variance(sets[0], chosen.protocol)
    if difference is not None and budget is None:
        return plan_difference(difference, variance, chosen)
    if budget is not None and difference is None:
        return plan_budget(budget, variance, chosen)
    raise UsageError("give either a difference to find, or a budget of working time")


def plan_difference(difference: float, variance: VarianceComponents, design: Design) -> PowerPlan:
    """Find the smallest number of segments that has the target power."""
    if not abs(difference) > 0:
        raise UsageError(f"a difference of {difference:g}: expected a number other than 0")
    sizes = range(2, MAX_SEGMENTS + 1)

    def power(size: int) -> float:
        return float(compute_power(difference, size, variance, design))

    place = bisect_left(sizes, design.power, key=power)
    if place == len(sizes):
        raise UsageError(
            f"a difference of {difference:g} needs more than {MAX_SEGMENTS:,} segments: plan for a "
            "larger difference"
        )
    return PowerPlan(
        design=design, variance=variance, difference=abs(difference), segments=sizes[place]
    )


def plan_budget(seconds: float, variance: VarianceComponents, design: Design) -> PowerPlan:
    """Find the number of segments that fits into a working time, and its detectable difference."""
    seconds_per_segment = design.systems * design.raters * design.seconds_per_judgment
    segments = int(seconds / seconds_per_segment + 1e-9)
    if segments < 2:
        raise UsageError(
            f"{seconds / 3600:g} hours are enough for {segments} segments of {design.systems} "
            f"systems at {design.seconds_per_judgment:g} seconds per judgment; expected 2 or more"
        )
    difference = detectable_difference(segments, variance, design)
    return PowerPlan(design=design, variance=variance, difference=difference, segments=segments)


def effective_document_size(documents: Sequence[str]) -> float:
    """Return the size of the document of an average segment: sum of m^2 / sum of m.

    Large documents share more of their effects: documents of 1 and 9 segments count like two of
    8.2, not like two of 5.

    >>> effective_document_size(["a"] * 9 + ["b"])
    8.2
    """
    sizes = np.array([*Counter(documents).values()], dtype=np.float64)
    return float((sizes**2).sum() / sizes.sum()) if len(sizes) else 1.0


def _round_size(segments: int) -> int:
    """Round to two digits, as the sizes of a table.

    >>> [_round_size(n) for n in (7, 123, 4567)]
    [7, 120, 4600]
    """
    return int(float(f"{segments:.2g}"))


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


def estimate_variance(pilot: JudgmentSet, protocol: str) -> VarianceComponents:
    """Estimate the variance from the judgments of a pilot with two or more systems.

    The total is that of the pilot, which is too small to estimate the shares of segments, raters
    and documents. They are those of public judgments under the protocol, or else under ESA.
    """
    values = paired_differences(pilot)
    if len(values) < MIN_DIFFERENCES:
        raise DataError(
            f"{pilot.title}: {len(values)} segments judged for two systems by the same rater; a "
            f"variance needs {MIN_DIFFERENCES} or more"
        )
    public = stored_variance("esa" if protocol == "post-edit" else protocol)
    factor = float(np.mean(values**2)) / public.total
    scaled = {name: factor * getattr(public, name) for name in COMPONENTS}
    origin = f"{pilot.title} ({len(values):,} differences), shares of public judgments"
    return VarianceComponents(**scaled, origin=origin)


def paired_differences(pilot: JudgmentSet) -> FloatArray:
    """Return differences of system pairs by the same rater, centered by pair."""
    cells: dict[tuple[str, str, str], dict[str, float]] = {}
    for judgment in pilot.judgments:
        cell = cells.setdefault((judgment.lp, judgment.item, judgment.annotator), {})
        cell[judgment.system] = judgment.score
    differences: dict[tuple[str, str, str], list[float]] = {}
    for (lp, _, _), cell in cells.items():
        for a, b in combinations(sorted(cell), 2):
            differences.setdefault((lp, a, b), []).append(cell[a] - cell[b])
    if not differences:
        raise DataError(f"{pilot.title}: a difference needs judgments of two systems by one rater")
    return np.concatenate([np.array(group) - np.mean(group) for group in differences.values()])
