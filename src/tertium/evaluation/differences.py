"""What a difference of two systems means to people, from pairs of systems that people judged.

The scales that ship were fitted by `recipes/differences.py`; `tertium meta --thresholds` fits
others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from tertium.errors import TertiumError
from tertium.evaluation.agreement import Sources, gather
from tertium.evaluation.comparison import Comparison
from tertium.meta.differences import (
    INTO_ENGLISH,
    OTHERS,
    DifferenceScale,
    fit_scales,
)
from tertium.metrics.base.metric import Metric, load_metric
from tertium.text.english import looks_english

FILE = "differences.json"


def fit_differences(
    human: Sources, metrics: str | Metric | Sequence[str | Metric] = (), **sources: Any
) -> list[DifferenceScale]:
    """Scales of metrics on judged systems; arguments as of `meta_evaluate`."""
    gathered = gather(human, metrics, level="system", **sources)
    learned = {metric.spec: metric.learned for metric in gathered.metrics}
    return fit_scales(gathered.sets, learned)


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


def explain_differences(comparison: Comparison) -> list[str]:
    """A line for each metric and system: how often people agree with such a difference.

    >>> from tertium.evaluation.differences import say
    >>> from tertium.meta.differences import DifferenceBin
    >>> say("ours", "chrF", 0.01, 3, DifferenceBin(0.0, 0.02, 245, 0.78), "into English")
    'ours: +0.010 chrF: people agree in 78 % of such pairs of systems (n = 245, into English)'
    """
    evaluation = comparison.evaluation
    references = [
        s.references[0] for s in evaluation.testset.segments(evaluation.systems[0]) if s.references
    ]
    direction = INTO_ENGLISH if references and looks_english(references) else OTHERS
    lines = []
    for metric in evaluation.metrics:
        scale = find_scale(metric, direction)
        for system in evaluation.systems[1:] if scale else ():
            difference = comparison.difference(metric, system)
            scores = evaluation.scores[system][metric]
            if scale is not None and difference == difference and difference != 0:
                found = scale.find(difference)
                lines.append(
                    say(system, scores.name, difference, scores.decimals, found, scale.direction)
                )
    return lines


def say(
    system: str, metric: str, difference: float, decimals: int, found: Any, direction: str
) -> str:
    """One sentence of a difference, better than the baseline where positive."""
    return (
        f"{system}: {difference:+.{decimals}f} {metric}: people agree in {found.agree:.0%} of such "
        f"pairs of systems (n = {found.pairs:,}, {direction})"
    ).replace("%", " %")
