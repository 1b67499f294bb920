"""Rules of a gate, where they are written, and margins that two runs of a system suggest.

Settings of `tertium gate`: the table `[gate]` of `tertium.toml`, one table per language pair.

    [gate]
    metrics = ["chrf"]
    margin = {chrf = 0.5}
    max = {empty = 0}

    [gate.pairs.en-de]
    baseline = "main.de.txt"
    candidate = "new.de.txt"
    references = ["reference.de.txt"]

Files are relative to the folder of the settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from tertium.checks.check_settings import CHECK_IDS
from tertium.core.errors import ModelError, UnknownNameError, UsageError, short_repr
from tertium.core.fields import check_unique_names, read_dataclass
from tertium.core.result import Column, Result, Table, field_values, percent_column
from tertium.data.testset import TestSet
from tertium.data.text_files import read_toml
from tertium.evaluation.comparison import (
    find_direction,
    find_scale,
    find_scales,
)
from tertium.evaluation.metric_choice import target_texts
from tertium.evaluation.paired_tests import (
    MIN_SEGMENTS_TO_TEST,
    measure_difference,
    round_up,
)
from tertium.evaluation.system_scores import Evaluation, MetricDict
from tertium.files.text_inputs import InputFiles
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
        margins = {}
        for name, value in margin.items():
            number = float(_parse_number("margin", name, value, is_share=name == HUMAN))
            if name == HUMAN and not (_is_share(value) and 0 < number < 0.5):
                raise UsageError(
                    f"margin {name}={value}: expected a share between 0 % and 50 %, such as 5%"
                )
            if number < 0:
                raise UsageError(f"margin {name}={value}: expected 0 or more")
            margins[name if name == HUMAN else _metric_spec(name)] = number
        bounds = [_parse_maximum(*rule) for rule in (maximum or {}).items()]
        for name, value in (minimum or {}).items():
            least = _parse_number("minimum", name, value)
            bounds.append(Bound(rule="min", name=_metric_spec(name), value=least))
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
    scale = find_scale(metric, direction, inputs)
    if scale is None:
        raise UsageError(
            f"{metric.spec}: no scale for a margin in human terms ({direction}, {inputs}); give a "
            f"margin in the units of the metric (--margin {metric.name}=VALUE)"
        )
    differences = [0.0, *((part.low + part.high) / 2 for part in scale.bins)]
    shares = np.maximum.accumulate([0.5, *(part.agree for part in scale.bins)])
    return float(np.interp(0.5 + excess, shares, differences))


def _parse_maximum(name: str, value: Any) -> Bound:
    check = find_check(name)
    is_share = check is not None and _is_share(value)
    number = _parse_number("maximum", name, value, is_share=is_share)
    if check is None:
        return Bound(rule="max", name=_metric_spec(name), value=number)
    if number < 0 or (number > 1 if is_share else number.denominator > 1):
        raise UsageError(
            f"maximum {name}={value}: expected a number of segments, or a share such as 1%"
        )
    return Bound(rule="max", name=check, value=number, is_share=is_share, is_check=True)


def _metric_spec(name: str) -> str:
    try:
        return load_metric(name).spec
    except UnknownNameError:
        raise UnknownNameError("check or metric", name, (*CHECK_IDS, HUMAN)) from None


def _is_share(value: Any) -> bool:
    return str(value).strip().endswith("%")


def _parse_number(rule: str, name: str, value: Any, *, is_share: bool = False) -> Fraction:
    """Return a number, or a share in percent, exactly as it is written."""
    text = str(value).strip()
    digits = text.removesuffix("%") if is_share else text
    try:
        if math.isfinite(float(digits)):
            return Fraction(digits) / (100 if is_share else 1)
    except ValueError:
        pass
    raise UsageError(f"{rule} {name}={short_repr(value)}: expected a number")


FILES = ("baseline", "candidate", "sources", "documents", "translations", "references")
RULES = ("margin", "max", "min")
Files = TypeVar("Files", bound="PairFiles")


@dataclass(frozen=True, kw_only=True)
class PairFiles(InputFiles):
    """Files and rules of one language pair, or of all of them."""

    baseline: str = ""
    candidate: str = ""
    metrics: tuple[str, ...] = ()
    margin: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    min: Mapping[str, Any] = field(default_factory=dict)
    by: tuple[str, ...] = ()

    def merge(self, general: PairFiles) -> PairFiles:
        """Fill fields that are not set from general settings; rules are combined by name."""
        fields = {
            name: value or getattr(general, name) for name, value in field_values(self).items()
        }
        rules = {name: {**getattr(general, name), **getattr(self, name)} for name in RULES}
        return PairFiles(**{**fields, **rules})


@dataclass(frozen=True, kw_only=True)
class GateSettings(PairFiles):
    """The table `[gate]`."""

    alpha: float = 0.05
    undecided: Literal["", "pass", "fail"] = ""
    pairs: Mapping[str, PairFiles] = field(default_factory=dict)

    def merge_pairs(self, options: PairFiles) -> dict[str, PairFiles]:
        """Return complete settings by language pair; those of the command line come first.

        A single pair without a table of its own has an empty name.
        """
        pairs = {} if options.baseline or options.candidate else self.pairs
        pairs = pairs or {"": PairFiles()}
        merged = {name: options.merge(pair).merge(self) for name, pair in pairs.items()}
        for name, pair in merged.items():
            systems = {"--baseline": pair.baseline, "--candidate": pair.candidate}
            missing = [option for option, file in systems.items() if not file]
            if missing:
                place = f" in gate.pairs.{name}" if name else ""
                raise UsageError(
                    f"{' and '.join(missing)} missing{place}: give files, or name them in the "
                    "table [gate] of tertium.toml"
                )
        return merged


def read_gate_settings(path: str | Path) -> GateSettings:
    """Read the table `[gate]` of a TOML file; its files are relative to the folder of the file."""
    table = read_toml(path).get("gate", {})
    try:
        settings = read_dataclass(GateSettings, table, str(path), "gate")
    except ModelError as error:
        raise UsageError(str(error)) from None
    folder = Path(path).parent
    pairs = {name: _resolve_files(pair, folder) for name, pair in settings.pairs.items()}
    return replace(_resolve_files(settings, folder), pairs=pairs)


def _resolve_files(settings: Files, folder: Path) -> Files:
    def resolve(files: Any) -> Any:
        if isinstance(files, tuple):
            return tuple(map(resolve, files))
        return files and str(folder / files)

    changes = {name: resolve(getattr(settings, name)) for name in FILES}
    labels = [column.partition("=") for column in settings.by]
    changes["by"] = tuple(
        f"{name}={folder / file}" if equals else name for name, equals, file in labels
    )
    return replace(settings, **changes)


@dataclass(frozen=True, kw_only=True)
class SuggestedMargins(Result):
    """The margin of each metric, suggested by two runs, with its language pair, as records."""

    margins: Sequence[Mapping[str, Any]]
    alpha: float

    def tables(self) -> list[Table]:
        """Return a table for each language pair, with one row per metric."""
        pairs = dict.fromkeys(margin["pair"] for margin in self.margins)
        return [self._pair_table(pair) for pair in pairs]

    def _pair_table(self, pair: str) -> Table:
        margins = [margin for margin in self.margins if margin["pair"] == pair]
        columns = [
            Column("metric", "name"),
            Column("segments", decimals=0),
            Column(
                "difference",
                decimals=itemgetter("decimals"),
                text=lambda margin, decimals: f"{margin['difference']:+z.{decimals}f}",
            ),
            Column("margin", decimals=0, text=lambda margin, _: f"{margin['margin']:g}"),
            percent_column("human agreement", "human_agreement"),
        ]
        options = [f"{margin['spec']}={margin['margin']:g}" for margin in margins]
        notes = [
            "margin: the smallest one under which these two runs pass in either direction "
            f"(alpha = {self.alpha:g})",
            "human agreement: share of system pairs with such a difference that human scores order "
            "the same way",
            f"use: --margin {' '.join(options)}",
        ]
        return Table(columns, margins, pair, notes)

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per language pair and metric."""
        return Table([*map(Column, self.margins[0])], self.margins)


def suggest_margins(
    evaluations: Mapping[str, Evaluation], *, alpha: float = 0.05
) -> SuggestedMargins:
    """Return the smallest margins under which two runs pass in either direction.

    A smaller margin would find changes in a system that did not change. p-values are adjusted for
    the number of metrics. Margins are rounded up to two significant digits. `evaluations` are named
    by language pair.
    """
    margins = []
    for pair, evaluation in evaluations.items():
        if len(evaluation.systems) != 2:
            raise UsageError("margins are suggested from two runs of one system: give two systems")
        first, second = evaluation.systems
        scales = find_scales(evaluation)
        for metric in evaluation.metrics:
            scores = evaluation.scores[second][metric]
            difference = measure_difference(scores, evaluation.scores[first][metric])
            if not difference.is_testable:
                raise UsageError(
                    f"{metric}: two runs need scores of at least {MIN_SEGMENTS_TO_TEST} segments"
                )
            margin = round_up(max(map(abs, difference.interval(alpha / len(evaluation.metrics)))))
            scale = scales.get(metric)
            record = {
                "spec": metric,
                "name": evaluation.names[metric],
                "segments": len(scores),
                "difference": difference.value,
                "margin": margin,
                "human_agreement": scale.find(margin).agree if scale and margin else None,
                "decimals": scores.decimals,
                "pair": pair,
            }
            margins.append(record)
    return SuggestedMargins(margins=margins, alpha=alpha)
