"""All doubts about some metrics, asked of the evidence of a study of agreement.

study = tertium.meta_evaluate("judgments.jsonl", ["chrf", "tertium-small"])
for doubt in ask_doubts(study).doubts:
    print(doubt.question, doubt.reading)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tertium.errors import UsageError
from tertium.evaluation.agreement import AgreementStudy
from tertium.evaluation.panel.case import Case, Doubt, NotAsked, merge
from tertium.evaluation.panel.tables import (
    ask_best_systems,
    ask_chance,
    ask_domains,
    ask_interference,
    ask_sentinels,
)
from tertium.evaluation.panel.texts import ask_bad_outputs, ask_length, ask_order, ask_references
from tertium.runtime import track


def _say_of_each(doubt: Doubt, say: Callable[[int], str]) -> str:
    return "; ".join(f"{name} {say(n)}" for n, name in enumerate(doubt.series)) + "."


def _read_chance(doubt: Doubt) -> str:
    own, shuffled, _ = doubt.values
    tied = f"One score for all gets {doubt.values[2, 0]:.3f} where ties are calibrated: "
    return tied + _say_of_each(
        doubt, lambda n: f"is {own[n] - shuffled[n]:+.3f} above its own shuffled"
    )


def _read_sentinels(doubt: Doubt) -> str:
    found = []
    for n, series in enumerate(doubt.series):
        own = doubt.values[:, n]
        only = [r for r, row in enumerate(doubt.rows) if row.endswith(" only")]
        known = [r for r in only if own[r] == own[r]]
        if known:
            best = max(known, key=lambda r: own[r])
            beaten = [
                doubt.rows[r] for r in range(len(own)) if r not in only and not own[r] > own[best]
            ]
            more = f", no less than {', '.join(beaten)}" if beaten else ", less than every metric"
            found.append(f"{series}: {doubt.rows[best]} reaches r = {own[best]:.3f}{more}")
    return "; ".join(found) + "."


def _read_length(doubt: Doubt) -> str:
    last = doubt.values[-1]
    return f"With {doubt.rows[-1]}, " + _say_of_each(
        doubt, lambda n: f"moves by {last[n]:+.2f} standard deviations"
    )


def _read_bad_outputs(doubt: Doubt) -> str:
    worst = doubt.values.argmax(axis=0)
    return "What gets by most easily: " + _say_of_each(
        doubt,
        lambda n: f"rates {doubt.rows[worst[n]]} above {doubt.values[worst[n], n]:.0%} of outputs",
    )


def _read_references(doubt: Doubt) -> str:
    first, last = doubt.values[0], doubt.values[-1]
    return "With another segment's reference, " + _say_of_each(
        doubt, lambda n: f"agrees by r = {last[n]:.3f} instead of {first[n]:.3f}"
    )


def _read_order(doubt: Doubt) -> str:
    moved = [name for n, name in enumerate(doubt.series) if np.nanmax(doubt.values[:, n]) > 0]
    if not moved:
        return "Every score is the same to the last bit, whatever stands beside it."
    return f"Scores change with their neighbors under {', '.join(moved)}."


def _read_domains(doubt: Doubt) -> str:
    def spread(n: int) -> str:
        own = doubt.values[:, n]
        if np.isnan(own).all():
            return "is undefined everywhere"
        low, high = int(np.nanargmin(own)), int(np.nanargmax(own))
        least, most = (f"{doubt.rows[r]} ({own[r]:.3f})" for r in (low, high))
        return f"agrees least on {least}, most on {most}"

    return _say_of_each(doubt, spread)


def _read_best_systems(doubt: Doubt) -> str:
    first, last = doubt.values[0], doubt.values[-1]
    return f"From {doubt.rows[0]} to {doubt.rows[-1]}, " + _say_of_each(
        doubt, lambda n: f"goes from {first[n]:.0%} to {last[n]:.0%} of pairs"
    )


def _read_interference(doubt: Doubt) -> str:
    parts = []
    for n, row in enumerate(doubt.rows):
        own, people = doubt.values[n, n], doubt.values[n, -1]
        parts.append(f"{row}: {own:+.2f} under itself, {people:+.2f} under people")
    return "; ".join(parts) + "."


# how each is asked, and read
DOUBTS: Mapping[str, tuple[Callable[[Case], Doubt], Callable[[Doubt], str]]] = {
    "sentinels": (ask_sentinels, _read_sentinels),
    "chance": (ask_chance, _read_chance),
    "bad outputs": (ask_bad_outputs, _read_bad_outputs),
    "references": (ask_references, _read_references),
    "length": (ask_length, _read_length),
    "order": (ask_order, _read_order),
    "domains": (ask_domains, _read_domains),
    "best systems": (ask_best_systems, _read_best_systems),
    "interference": (ask_interference, _read_interference),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class DoubtPanel:
    """The doubts that could be asked, and by name why others could not."""

    doubts: tuple[Doubt, ...]
    not_asked: Mapping[str, str]

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "doubts": [doubt.records() for doubt in self.doubts],
            "not_asked": dict(self.not_asked),
        }


def ask_doubts(study: AgreementStudy, *, seed: int = 12345) -> DoubtPanel:
    """Ask every doubt of every judged set; several sets make one answer where they can."""
    if study.level != "segment":
        raise UsageError(
            "the panel asks about segments: leave out --level and statistics of systems"
        )
    cases = {
        judged.name: Case(
            judged=judged, people=study.people[judged.name], metrics=study.metrics, seed=seed
        )
        for judged in study.sets
    }
    doubts, not_asked = [], {}
    for name in track(list(DOUBTS), "doubting"):
        ask, read = DOUBTS[name]
        answers, reasons = _ask(ask, cases)
        if answers:
            merged = merge(answers)
            doubts.append(replace(merged, reading=read(merged)))
        else:
            not_asked[name] = reasons[0]
    return DoubtPanel(doubts=tuple(doubts), not_asked=not_asked)


def _ask(
    ask: Callable[[Case], Doubt], cases: Mapping[str, Case]
) -> tuple[list[tuple[str, Doubt]], list[str]]:
    """What came of each set that can answer, and why others cannot."""
    answers, reasons = [], []
    for label, case in cases.items():
        try:
            if np.isnan(case.human).all():
                raise NotAsked("there are scores of whole systems only")
            answers.append((label, ask(case)))
        except NotAsked as reason:
            reasons.append(str(reason))
    return answers, reasons
