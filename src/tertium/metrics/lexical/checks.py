"""The share of translations without a finding of `tertium check`, or the weight of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tertium.checks.check import CheckRunner, TranslationPair, select_checks
from tertium.checks.check_settings import CHECKS
from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.core.spans import Span, score_spans
from tertium.metrics.base.metric import SegmentMetric
from tertium.text.language_codes import parse_language_pair

MAX_PENALTY = 25.0  # MQM points of a translation that is worth nothing


@dataclass(frozen=True, kw_only=True)
class Checks(SegmentMetric):
    """Share of clean segments, in percent; higher is better and 100 is perfect.

    A segment is clean if no check of `tertium check` finds an error (lost placeholders, wrong
    numbers, untranslated text). Reads the source. Checks that compare segments, or that need a
    glossary, are not run.

    Settings:

    - `measure`: `clean` is 100 or 0 for a segment. `penalty` is minus the MQM weight of its
      findings (critical 10, major 5, minor 1; at most 25), so 0 is perfect.
    - `select`, `ignore`: ids of checks (`tertium list checks`).
    - `lp`: the language pair, such as en-de. Without it, checks that depend on the languages are
      not run.

    >>> metric = Checks(lp="en-de")
    >>> metric.score([Segment("Im Jahr 1974", "In 1947"), Segment("Ja.", "Yes.")]).system
    50.0
    """

    name: ClassVar[str] = "checks"
    title: ClassVar[str] = "Checks"
    decimals: ClassVar[int] = 2
    citation: ClassVar[str] = """\
@article{lommel-etal-2014-mqm,
    title = "Multidimensional Quality Metrics ({MQM}): A Framework for Declaring and Describing
        Translation Quality Metrics",
    author = "Lommel, Arle and Uszkoreit, Hans and Burchardt, Aljoscha",
    journal = "Tradum{\\`a}tica", number = "12", year = "2014", pages = "455--463"
}"""

    measure: Literal["clean", "penalty"] = "clean"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    lp: str = ""

    def __post_init__(self) -> None:
        parse_language_pair(self.lp)
        select_checks(CHECKS, self.select, self.ignore)

    @property
    def required_inputs(self) -> frozenset[str]:
        return frozenset({"source"})

    @property
    def worst_score(self) -> float:
        return 0.0 if self.measure == "clean" else -MAX_PENALTY

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Return the findings of each segment in text order."""
        runner = CheckRunner(select_checks(CHECKS, self.select, self.ignore))
        source, target = parse_language_pair(self.lp) or ("", "")
        pairs = (TranslationPair(s.source or "", s.hypothesis, source, target) for s in segments)
        findings = runner.run(pairs)
        return [tuple(sorted(spans, key=lambda span: (span.start, span.end))) for spans in findings]

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        findings = self.spans(segments)
        if self.measure == "clean":
            return np.array([100.0 * (not spans) for spans in findings])
        return np.array([max(score_spans(spans), -MAX_PENALTY) for spans in findings])

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        chosen = select_checks(CHECKS, self.select, self.ignore)
        fields = {"measure": self.measure, "checks": str(len(chosen))}
        return fields | ({"lp": self.lp} if self.lp else {})
