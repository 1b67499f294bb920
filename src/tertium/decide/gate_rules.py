"""Rules of a gate: margins of metrics, limits of checks and floors of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tertium.checks.check_settings import CHECK_IDS
from tertium.core.errors import UnknownNameError, UsageError, short_repr
from tertium.core.specs import check_unique_names
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import describe_scale_inputs, find_direction, find_scale
from tertium.evaluation.metric_choice import target_texts
from tertium.evaluation.system_scores import MetricDict
from tertium.meta.difference_scales import DifferenceScale
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric

HUMAN = "human"
HUMAN_EXAMPLE = "human=5%"
CHECK_ALIASES = {"truncated": "truncation", "copied": "untranslated", "repeated": "repetition"}


@dataclass(frozen=True)
class Limit:
    """The largest number or share of segments with a finding of a check, without rounding."""

    value: Fraction
    is_share: bool = False

    def __str__(self) -> str:
        value = float(100 * self.value if self.is_share else self.value)
        return f"{value:g} %" if self.is_share else f"{value:g}"

    def allows(self, count: int, segments: int) -> bool:
        """Tell whether so many of the segments may have a finding."""
        return count <= (self.value * segments if self.is_share else self.value)


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """What a candidate must satisfy.

    `margins` are the differences in the units of each metric by which a candidate may be worse, or
    `{"human": 0.05}`. `limits` bound findings of checks, by id; `ceilings` and `floors` bound the
    score of the candidate. `by` are columns: a slice that is shown to be worse fails the gate.
    """

    margins: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    by: tuple[str, ...] = ()

    @classmethod
    def from_values(
        cls,
        margin: Mapping[str, Any] | None = None,
        maximum: Mapping[str, Any] | None = None,
        minimum: Mapping[str, Any] | None = None,
        by: str | Sequence[str] = (),
    ) -> GateRules:
        """Check and convert rules as users write them: numbers, or texts such as "5%".

        >>> rules = GateRules.from_values({"chrf": 0.5}, {"empty": 0, "truncated": "1%"})
        >>> rules.margins, {name: str(limit) for name, limit in rules.limits.items()}
        ({'chrf': 0.5}, {'empty': '0', 'truncation': '1 %'})
        """
        limits: dict[str, Limit] = {}
        ceilings: dict[str, float] = {}
        for name, value in (maximum or {}).items():
            if (check := find_check(name)) is not None:
                limits[check] = _parse_limit("maximum", name, value)
            else:
                ceilings[_metric_spec(name)] = _parse_number("maximum", name, value)
        columns = (by,) if isinstance(by, str) else tuple(by)
        check_unique_names("by", columns)
        return cls(
            margins=_parse_margins(margin or {}),
            limits=limits,
            ceilings=ceilings,
            floors={
                _metric_spec(name): _parse_number("minimum", name, value)
                for name, value in (minimum or {}).items()
            },
            by=columns,
        )


def split_rules(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Split rules of the command line at their last "=", because specs contain one.

    >>> split_rules("--max", ["empty=0", "wrong language=1%"])
    {'empty': '0', 'wrong language': '1%'}
    """
    rules: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"{option} {text}: expected NAME=VALUE")
        if name.strip() in rules:
            raise UsageError(f"{option}: {name.strip()} is given twice")
        rules[name.strip()] = value.strip()
    return rules


def find_check(name: str) -> str | None:
    """Return the id of a check by its name with blanks or hyphens, or by an alias.

    >>> find_check("wrong language"), find_check("truncated"), find_check("chrf")
    ('wrong-language', 'truncation', None)
    """
    check = name.strip().lower().replace(" ", "-").replace("_", "-")
    check = CHECK_ALIASES.get(check, check)
    return check if check in CHECK_IDS else None


def resolve_margins(
    rules: GateRules, metrics: Sequence[Metric], testset: TestSet
) -> dict[str, float]:
    """Return the margin of each metric in its own units, by spec.

    A margin in human terms depends on the language direction and on the inputs that a metric reads.
    """
    own = match_rules(rules.margins, metrics)
    segments = testset.segments(next(iter(testset.systems)))
    resolved: dict[str, float] = {}
    for metric in metrics:
        if metric.spec in own:
            resolved[metric.spec] = own[metric.spec]
        elif HUMAN in own:
            direction = find_direction(target_texts(testset))
            inputs = metric.find_inputs(segments)
            resolved[metric.spec] = human_margin(metric, own[HUMAN], direction, inputs)
        else:
            raise UsageError(
                f"{metric.spec} has no margin: give one in its units (--margin {metric.name}=0.5) "
                f"or in human terms (--margin {HUMAN_EXAMPLE}); `tertium gate calibrate` suggests "
                "margins"
            )
    return resolved


def match_rules(values: Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    """Return rules by the specs of the metrics, whose tokenizers may have been chosen."""
    specs = MetricDict({metric.spec: metric.spec for metric in metrics})
    return {spec if spec == HUMAN else specs[spec]: value for spec, value in values.items()}


def human_margin(metric: Metric, excess: float, direction: str, inputs: str) -> float:
    """Return the difference that humans confirm in half of system pairs plus `excess`.

    The scale of the metric has the share of pairs in bins of differences; between the middles of
    bins, and from 0 (one half), the share is interpolated.
    """
    scale = find_scale(metric.spec, direction, inputs)
    if scale is None:
        reason = describe_scale_inputs(metric.spec, inputs)
        reads = f": it reads {reason}" if reason else ""
        raise UsageError(
            f"{metric.spec}: no scale for a margin in human terms ({direction}){reads}; give a "
            f"margin in the units of the metric (--margin {metric.name}=VALUE)"
        )
    return invert_scale(scale, 0.5 + excess)


def invert_scale(scale: DifferenceScale, share: float) -> float:
    """Return the difference at which a share of humans agrees with the order of two systems.

    >>> from tertium.meta.difference_scales import DifferenceBin
    >>> bins = (DifferenceBin(0.0, 1.0, 50, 0.52), DifferenceBin(1.0, 3.0, 50, 0.58))
    >>> round(invert_scale(DifferenceScale(metric="chrf", direction="all", bins=bins), 0.55), 3)
    1.25
    """
    differences = [0.0, *((part.low + part.high) / 2 for part in scale.bins)]
    shares = np.maximum.accumulate([0.5, *(part.agree for part in scale.bins)])
    return float(np.interp(share, shares, differences))


def _parse_margins(values: Mapping[str, Any]) -> dict[str, float]:
    margins: dict[str, float] = {}
    for name, value in values.items():
        if name != HUMAN:
            margins[_metric_spec(name)] = margin = _parse_number("margin", name, value)
            if margin < 0:
                raise UsageError(f"margin {name}={value}: expected 0 or more")
            continue
        limit = _parse_limit("margin", name, value)
        if not (limit.is_share and 0 < limit.value < Fraction(1, 2)):
            raise UsageError(
                f"margin {name}={value}: expected a share between 0 % and 50 %, such as 5%"
            )
        margins[HUMAN] = float(limit.value)
    return margins


def _metric_spec(name: str) -> str:
    try:
        return load_metric(name).spec
    except UnknownNameError:
        raise UnknownNameError("check or metric", name, (*CHECK_IDS, HUMAN)) from None


def _parse_limit(rule: str, name: str, value: Any) -> Limit:
    text = str(value).strip()
    is_share = text.endswith("%")
    digits = text[:-1].strip() if is_share else text
    _parse_number(rule, name, digits if is_share else value)
    number = Fraction(digits)
    if is_share and 0 <= number <= 100:
        return Limit(number / 100, is_share=True)
    if not is_share and number >= 0 and number.denominator == 1:
        return Limit(number)
    raise UsageError(f"{rule} {name}={value}: expected a number of segments, or a share such as 1%")


def _parse_number(rule: str, name: str, value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{rule} {name}={short_repr(value)}: expected a number")
    return number
