"""The table of laws on a fixed selection: every metric and ranker, the whole gallery, each shape.

The laws that look at scores share one scoring of the whole gallery, in which texts take turns where
a network reads two at once; each law that runs commands, encodes again or trains is tried on one
small set, whose shape goes round; of what they show, the commands score each segment once.
`make fuzz` tries more.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from tests import gallery
from tests.laws.findings import Finding, kind_of, read_findings, smallest
from tests.laws.table import LAWS, Law, hold_law, law_named
from tests.laws.trial import (
    Broken,
    Subject,
    Trial,
    commands_score_once,
    hold,
    missing_resource,
    subjects,
)
from tests.short_windows import short_windows

from tertium.data.testset import TestSet
from tertium.errors import DataError

SUBJECTS = subjects()
LARGE = ("tertium-base", "tertium-multi")  # every pair is a pass of its own, so texts take turns
WINDOWED = "tertium-multi"  # which reads long texts in parts
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
    with short_windows() if subject.spec == WINDOWED else nullcontext():
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


def test_a_smaller_case_has_the_same_fault() -> None:
    """What is left must not be kept for another reason: here a refusal of texts without words."""

    def texts_are_short(trial: Trial) -> int:
        for segment in trial.segments:
            if not segment.hypothesis.strip():
                raise DataError("nothing to read")
            hold("long" not in segment.hypothesis, f"{segment.hypothesis!r} is long")
        return len(trial.segments)

    law, subject = Law("score", texts_are_short, lambda subject: True), Subject("chrf", "metric")
    texts = ["short", "a long text", "another long text of 7 words"]
    testset = TestSet({"a": texts}, [["x"]] * 3, ["x"] * 3)
    finding = smallest(law, subject, testset, seed=1, seconds=20)
    assert finding.systems == {"a": ["long"]}
    assert finding.fault == "score: texts are short, chrf: 'long' is long"


def test_faults_are_of_one_kind_whatever_texts_and_numbers_they_name() -> None:
    assert kind_of("'a b' scored 0.5 above 'it'") == kind_of("\"it's\" scored -1e-05 above ''")
    assert kind_of("refused whole texts: a") != kind_of("refused whole texts: b")
    assert kind_of("ValueError: size 0") != kind_of("TypeError: size 0")
