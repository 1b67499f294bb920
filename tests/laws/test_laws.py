"""The table of laws on a fixed selection: every metric and ranker, the whole gallery, each shape.

The laws that look at scores share one scoring of the whole gallery, in which texts take turns where
a network reads two at once; each law that runs commands, encodes again or trains is tried on one
small set, whose shape goes round; of what they show, the commands score each segment once.
`make fuzz` tries more.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from tests import gallery
from tests.laws.findings import Finding, read_findings
from tests.laws.table import LAWS, Law, hold_law, law_named
from tests.laws.trial import (
    Broken,
    Subject,
    Trial,
    commands_score_once,
    missing_resource,
    subjects,
)

from tertium.data.testset import TestSet

SUBJECTS = subjects()
LARGE = ("tertium-base", "tertium-multi")  # every pair is a pass of its own, so texts take turns
FOUND = read_findings()


@pytest.fixture(params=SUBJECTS, ids=lambda s: Path(s.spec).name)
def subject(request: pytest.FixtureRequest) -> Subject:
    if reason := missing_resource(request.param):
        pytest.skip(reason)
    return request.param


def hold_laws(trials: list[tuple[Law, Trial]]) -> int:
    """Try all, tell all that is broken at once, and give the number of cases."""
    tried, faults = 0, []
    for law, trial in trials:
        try:
            tried += hold_law(law, trial)
        except Broken as broken:
            faults.append(str(broken))
    assert not faults, "\n".join(faults)
    return tried


@cache
def whole(in_turn: bool) -> TestSet:
    return gallery.whole_gallery(in_turn=in_turn)


@cache
def small(shape: str) -> TestSet:
    """Short hostile texts in a shape, the same in every run."""
    rng = np.random.default_rng(20)
    return gallery.SHAPES[shape](lambda: str(rng.choice(gallery.SHORT)), rng)


def test_scores_of_the_whole_gallery(subject: Subject, tmp_path: Path) -> None:
    trial = Trial(subject, whole(subject.spec in LARGE), 1, tmp_path)
    tried = hold_laws([(law, trial) for law in LAWS if not law.costly])
    assert tried >= len(trial.segments) or subject.kind == "ranker"


def test_operations_on_each_shape(subject: Subject, tmp_path: Path) -> None:
    """Each law on one shape that it applies to; the next subject begins with the next."""
    place = SUBJECTS.index(subject)
    turn = count(place)
    trials: dict[str, Trial] = {}  # a shape is scored once, for all laws that are tried on it
    for shape in gallery.SHAPES:
        (tmp_path / shape).mkdir()
        trials[shape] = Trial(subject, small(shape), place, tmp_path / shape)
    chosen = []
    for law in LAWS:
        shapes = [name for name in gallery.SHAPES if len(small(name).systems) >= law.systems]
        shape = shapes[next(turn) % len(shapes)]
        if law.costly or law.systems > 1:
            chosen.append((law, trials[shape]))
    with commands_score_once():
        hold_laws(chosen)


@pytest.mark.parametrize("finding", FOUND, ids=[f"{f.law}, {f.spec}" for f in FOUND])
def test_what_was_found_once_holds(finding: Finding) -> None:
    if reason := missing_resource(finding.subject):
        pytest.skip(reason)
    assert finding.try_again() > 0


def test_every_law_is_tried_on_someone() -> None:
    able = [s for s in SUBJECTS if not missing_resource(s)]
    assert all(any(law.applies(s) for s in able) for law in LAWS)
    assert law_named(str(LAWS[3])) is LAWS[3]
