"""Check all laws on every metric and ranker, with the complete gallery and each shape.

Laws about scores share one scoring of the gallery. For slow networks, texts take turns. Laws
that run commands, encode again or train use one small test set, whose shape rotates.
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
LARGE = ("tertium-base", "tertium-multi")  # too slow for all texts in every run
WINDOWED = "tertium-multi"  # reads long texts in windows
SAVED_VIOLATIONS = read_findings()


@pytest.fixture(params=SUBJECTS, ids=lambda s: Path(s.spec).name)
def subject(request: pytest.FixtureRequest) -> Subject:
    if reason := missing_resource(request.param):
        pytest.skip(reason)
    return request.param


def hold_laws(trials: list[tuple[Law, Trial]]) -> int:
    """Check all laws, report all violations at once, and return the number of cases."""
    count, faults = 0, []
    for law, trial in trials:
        try:
            count += hold_law(law, trial)
        except Broken as broken:
            faults.append(str(broken))
    assert not faults, "\n".join(faults)
    return count


@cache
def full_testset(in_turn: bool) -> TestSet:
    return gallery.whole_gallery(in_turn=in_turn)


@cache
def small_testset(shape: str) -> TestSet:
    """Short unusual texts in a shape, the same in every run."""
    rng = np.random.default_rng(20)
    return gallery.SHAPES[shape](lambda: str(rng.choice(gallery.SHORT)), rng)


def test_scores_of_the_whole_gallery(subject: Subject, tmp_path: Path) -> None:
    trial = Trial(subject, full_testset(subject.spec in LARGE), 1, tmp_path)
    with short_windows() if subject.spec == WINDOWED else nullcontext():
        count = hold_laws([(law, trial) for law in LAWS if not law.costly])
    assert count >= len(trial.segments) or subject.kind == "ranker"


def test_operations_on_each_shape(subject: Subject, tmp_path: Path) -> None:
    """Check each law on one shape; shapes rotate over subjects."""
    place = SUBJECTS.index(subject)
    turn = count(place)
    trials: dict[str, Trial] = {}  # a shape is scored once for all laws
    for shape in gallery.SHAPES:
        (tmp_path / shape).mkdir()
        trials[shape] = Trial(subject, small_testset(shape), place, tmp_path / shape)
    chosen = []
    for law in LAWS:
        shapes = [
            name for name in gallery.SHAPES if len(small_testset(name).systems) >= law.systems
        ]
        shape = shapes[next(turn) % len(shapes)]
        if law.costly or law.systems > 1:
            chosen.append((law, trials[shape]))
    with commands_score_once():
        hold_laws(chosen)


@pytest.mark.parametrize(
    "finding", SAVED_VIOLATIONS, ids=[f"{f.law}, {f.spec}" for f in SAVED_VIOLATIONS]
)
def test_saved_violations_are_fixed(finding: Finding) -> None:
    if reason := missing_resource(finding.subject):
        pytest.skip(reason)
    assert finding.try_again() > 0


def test_every_law_applies_to_a_subject() -> None:
    able = [s for s in SUBJECTS if not missing_resource(s)]
    assert all(any(law.applies(s) for s in able) for law in LAWS)
    assert law_named(str(LAWS[3])) is LAWS[3]


def test_shrunk_case_has_the_same_failure() -> None:
    """A smaller case that fails for another reason, here texts without words, is not accepted."""

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


def test_kind_of_failure_ignores_texts_and_numbers() -> None:
    assert kind_of("'a b' scored 0.5 above 'it'") == kind_of("\"it's\" scored -1e-05 above ''")
    assert kind_of("refused whole texts: a") != kind_of("refused whole texts: b")
    assert kind_of("ValueError: size 0") != kind_of("TypeError: size 0")
