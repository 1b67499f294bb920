"""What a difference of two systems means to people, from pairs of systems that people judged.

The scales that ship were fitted by `recipes/differences.py`; `tertium meta --thresholds` fits
others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from tertium.errors import TertiumError
from tertium.evaluation.scoring import Evaluation
from tertium.meta.differences import INTO_ENGLISH, OTHERS, DifferenceScale
from tertium.metrics.base.metric import load_metric
from tertium.text.english import looks_english

FILE = "differences.json"


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """How often people agree with such a difference of two systems, on how many pairs of them.

    >>> meaning = Meaning(difference=0.01, agree=0.78, pairs=245, direction="into English")
    >>> meaning.say("chrF", 3)
    '+0.010 chrF: people agree in 78 % of such pairs of systems (n = 245, into English)'
    """

    difference: float
    agree: float
    pairs: int
    direction: str

    def say(self, metric: str, decimals: int) -> str:
        """One sentence; a difference is positive where the first system is better."""
        share = f"{100 * self.agree:.0f} %"
        return (
            f"{self.difference:+.{decimals}f} {metric}: people agree in {share} of such pairs of "
            f"systems (n = {self.pairs:,}, {self.direction})"
        )

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"agree": self.agree, "pairs": self.pairs, "direction": self.direction}


@cache
def shipped_scales() -> tuple[DifferenceScale, ...]:
    """The scales that come with the package."""
    text = files("tertium.evaluation").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(DifferenceScale.from_record(record) for record in json.loads(text)["scales"])


def find_scale(spec: str, direction: str) -> DifferenceScale | None:
    """The scale of a metric as it is now; none where it was not fitted, or learned anew since."""
    known = {s.direction: s for s in shipped_scales() if s.metric == spec}
    scale = known.get(direction) or known.get("all")
    if scale is None:
        return None
    try:
        learned = load_metric(spec).learned
    except TertiumError:
        return None
    return scale if tuple(learned) == scale.learned else None


def find_scales(evaluation: Evaluation) -> dict[str, DifferenceScale]:
    """By metric the scale for the language that the systems translate into, where there is one."""
    texts = [s.references[:1] for s in evaluation.testset.segments(evaluation.systems[0])]
    references = [text for own in texts for text in own]
    direction = INTO_ENGLISH if references and looks_english(references) else OTHERS
    found = {metric: find_scale(metric, direction) for metric in evaluation.metrics}
    return {metric: scale for metric, scale in found.items() if scale is not None}


def find_meaning(
    evaluation: Evaluation,
    scales: Mapping[str, DifferenceScale],
    metric: str,
    system: str,
    other: str,
) -> Meaning | None:
    """What the difference of a system to another means; none where there is none or no scale."""
    scores = [evaluation.scores[name][metric] for name in (system, other)]
    sign = 1.0 if scores[0].higher_is_better else -1.0
    difference = sign * (scores[0].system - scores[1].system)
    if metric not in scales or difference != difference or difference == 0:
        return None
    scale = scales[metric]
    part = scale.find(difference)
    return Meaning(
        difference=difference, agree=part.agree, pairs=part.pairs, direction=scale.direction
    )
