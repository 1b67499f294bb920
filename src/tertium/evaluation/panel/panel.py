"""All doubts about some metrics, asked of the evidence of a study of agreement.

study = tertium.meta_evaluate("judgements.jsonl", ["chrf", "tertium-small"])
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
from tertium.evaluation.panel.readings import READINGS
from tertium.evaluation.panel.sentinels import ask_sentinels
from tertium.evaluation.panel.tables import (
    ask_best_systems,
    ask_chance,
    ask_domains,
    ask_interference,
)
from tertium.evaluation.panel.texts import (
    ask_bad_outputs,
    ask_length,
    ask_order,
    ask_references,
)
from tertium.runtime import track

DOUBTS: Mapping[str, Callable[[Case], Doubt]] = {
    "sentinels": ask_sentinels,
    "chance": ask_chance,
    "bad outputs": ask_bad_outputs,
    "references": ask_references,
    "length": ask_length,
    "order": ask_order,
    "domains": ask_domains,
    "best systems": ask_best_systems,
    "interference": ask_interference,
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
        answers, reasons = _ask(name, cases)
        if answers:
            merged = merge(answers)
            doubts.append(replace(merged, reading=READINGS[name](merged)))
        else:
            not_asked[name] = reasons[0]
    return DoubtPanel(doubts=tuple(doubts), not_asked=not_asked)


def _ask(name: str, cases: Mapping[str, Case]) -> tuple[list[tuple[str, Doubt]], list[str]]:
    answers, reasons = [], []
    for label, case in cases.items():
        try:
            if np.isnan(case.human).all():
                raise NotAsked("there are scores of whole systems only")
            answers.append((label, DOUBTS[name](case)))
        except NotAsked as reason:
            reasons.append(str(reason))
    return answers, reasons
