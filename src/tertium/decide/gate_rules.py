"""Rules of a gate: margins of metrics, limits of checks and bounds of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from tertium.checks.check_settings import CHECK_IDS
from tertium.core.errors import UnknownNameError, UsageError, short_repr
from tertium.core.fields import check_unique_names
from tertium.data.testset import TestSet
from tertium.evaluation.human_agreement import describe_scale_inputs, find_direction, find_scale
from tertium.evaluation.metric_choice import target_texts
from tertium.evaluation.system_scores import MetricDict
from tertium.metrics.base.capabilities import find_inputs
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric

HUMAN = "human"
HUMAN_EXAMPLE = "human=5%"
CHECK_ALIASES = {"truncated": "truncation", "copied": "untranslated", "repeated": "repetition"}


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The largest number or share of segments with a finding, or a bound of a score.

    `name` is the id of a check or the spec of a metric.
    """

    rule: Literal["max", "min"]
    name: str
    value: Fraction
    is_share: bool = False
    is_check: bool = False

    def __str__(self) -> str:
        return f"{float(100 * self.value):g} %" if self.is_share else f"{float(self.value):g}"

    def allows(self, observed: float, segments: int) -> bool:
        """Tell whether a score, or so many of the segments, satisfies the bound."""
        if self.rule == "min":
            return observed >= self.value
        return observed <= (self.value * segments if self.is_share else self.value)


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """What a candidate must satisfy.

    `margins` are the differences in the units of each metric by which a candidate may be worse, or
    `{"human": 0.05}`. `bounds` limit findings of checks first, then scores of the candidate. `by`
    are columns: a slice that is shown to be worse fails the gate.
    """

    margins: Mapping[str, float] = field(default_factory=dict)
    bounds: Sequence[Bound] = ()
    by: tuple[str, ...] = ()

    @classmethod
    def from_values(
        cls,
        margin: Mapping[str, Any],
        maximum: Mapping[str, Any] | None = None,
        minimum: Mapping[str, Any] | None = None,
        by: Sequence[str] = (),
    ) -> GateRules:
        """Check and convert rules as users write them: numbers, or texts such as "5%".

        >>> rules = GateRules.from_values({"chrf": 0.5}, {"empty": 0, "truncated": "1%"})
        >>> rules.margins, {bound.name: str(bound) for bound in rules.bounds}
        ({'chrf': 0.5}, {'empty': '0', 'truncation': '1 %'})
        """
        check_unique_names("by", by)
        bounds = [_parse_maximum(*rule) for rule in (maximum or {}).items()]
        for name, value in (minimum or {}).items():
            number = _parse_number("minimum", name, value)
            bounds.append(Bound(rule="min", name=_metric_spec(name), value=number))
        margins = dict(_parse_margin(*rule) for rule in margin.items())
        bounds.sort(key=lambda bound: not bound.is_check)
        return cls(margins=margins, bounds=bounds, by=tuple(by))


def split_rules(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Split rules of the command line at their last "=", because specs contain one.

    >>> split_rules("--max", ["empty=0", "wrong language=1%"])
    {'empty': '0', 'wrong language': '1%'}
    """
    rules: dict[str, str] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not name.strip() or not value.strip():
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
    specs = MetricDict({metric.spec: metric.spec for metric in metrics})
    margins = {specs[name]: value for name, value in rules.margins.items() if name != HUMAN}
    for metric in metrics:
        if metric.spec in margins:
            continue
        if HUMAN not in rules.margins:
            raise UsageError(
                f"{metric.spec} has no margin: give one in its units (--margin {metric.name}=0.5) "
                f"or in human terms (--margin {HUMAN_EXAMPLE}); `tertium gate calibrate` suggests "
                "margins"
            )
        margins[metric.spec] = human_margin(metric, rules.margins[HUMAN], testset)
    return margins


def human_margin(metric: Metric, excess: float, testset: TestSet) -> float:
    """Return the difference that humans confirm in half of system pairs plus `excess`.

    The scale of the metric has the share of pairs in bins of differences; between the middles of
    bins, and from 0 (one half), the share is interpolated.
    """
    direction = find_direction(target_texts(testset))
    inputs = find_inputs(metric, testset.segments(next(iter(testset.systems))))
    scale = find_scale(metric.spec, direction, inputs)
    if scale is None:
        reason = describe_scale_inputs(metric.spec, inputs)
        reads = f": it reads {reason}" if reason else ""
        raise UsageError(
            f"{metric.spec}: no scale for a margin in human terms ({direction}){reads}; give a "
            f"margin in the units of the metric (--margin {metric.name}=VALUE)"
        )
    differences = [0.0, *((part.low + part.high) / 2 for part in scale.bins)]
    shares = np.maximum.accumulate([0.5, *(part.agree for part in scale.bins)])
    return float(np.interp(0.5 + excess, shares, differences))


def _parse_margin(name: str, value: Any) -> tuple[str, float]:
    if name != HUMAN:
        margin = float(_parse_number("margin", name, value))
        if margin < 0:
            raise UsageError(f"margin {name}={value}: expected 0 or more")
        return _metric_spec(name), margin
    share = _parse_share("margin", name, value)
    if share is None or not 0 < share < Fraction(1, 2):
        raise UsageError(
            f"margin {name}={value}: expected a share between 0 % and 50 %, such as 5%"
        )
    return HUMAN, float(share)


def _parse_maximum(name: str, value: Any) -> Bound:
    check = find_check(name)
    if check is None:
        number = _parse_number("maximum", name, value)
        return Bound(rule="max", name=_metric_spec(name), value=number)
    share = _parse_share("maximum", name, value)
    number = _parse_number("maximum", name, value) if share is None else share
    if number < 0 or (number.denominator > 1 if share is None else number > 1):
        raise UsageError(
            f"maximum {name}={value}: expected a number of segments, or a share such as 1%"
        )
    return Bound(rule="max", name=check, value=number, is_share=share is not None, is_check=True)


def _metric_spec(name: str) -> str:
    try:
        return load_metric(name).spec
    except UnknownNameError:
        raise UnknownNameError("check or metric", name, (*CHECK_IDS, HUMAN)) from None


def _parse_share(rule: str, name: str, value: Any) -> Fraction | None:
    """Return a share that is written in percent; None for other values."""
    digits, percent, rest = str(value).strip().partition("%")
    return _parse_number(rule, name, digits) / 100 if percent and not rest else None


def _parse_number(rule: str, name: str, value: Any) -> Fraction:
    """Return a number exactly as it is written."""
    text = str(value).strip()
    try:
        if math.isfinite(float(text)):
            return Fraction(text)
    except ValueError:
        pass
    raise UsageError(f"{rule} {name}={short_repr(value)}: expected a number")
