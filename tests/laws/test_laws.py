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
from tests.laws.table import LAWS, Law, check_law, find_law
from tests.laws.trial import (
    LawViolation,
    Subject,
    Trial,
    missing_resource,
    require,
    reuse_command_scores,
    subjects,
)
from tests.laws.violations import Violation, read_violations, shrink_violation
from tests.short_windows import short_windows

from tertium.core.errors import DataError
from tertium.data.testset import TestSet

SUBJECTS = subjects()
SLOW_METRICS = ("tertium-base", "tertium-multi")  # too slow for all texts in every run
WINDOWED_METRIC = "tertium-multi"  # reads long texts in windows
SAVED_VIOLATIONS = read_violations()


@pytest.fixture(params=SUBJECTS, ids=lambda s: Path(s.spec).name)
def subject(request: pytest.FixtureRequest) -> Subject:
    if reason := missing_resource(request.param):
        pytest.skip(reason)
    return request.param


def check_laws(trials: list[tuple[Law, Trial]]) -> int:
    """Check all laws, report all violations at once, and return the number of cases."""
    count, violations = 0, []
    for law, trial in trials:
        try:
            count += check_law(law, trial)
        except LawViolation as violation:
            violations.append(str(violation))
    assert not violations, "\n".join(violations)
    return count


@cache
def full_testset(in_turn: bool) -> TestSet:
    return gallery.whole_gallery(in_turn=in_turn)


@cache
def small_testset(shape: str) -> TestSet:
    """Short unusual texts in a shape, the same in every run."""
    rng = np.random.default_rng(20)
    return gallery.SHAPES[shape](lambda: str(rng.choice(gallery.SHORT)), rng)


def test_scores_of_the_full_gallery(subject: Subject, tmp_path: Path) -> None:
    trial = Trial(subject, full_testset(subject.spec in SLOW_METRICS), 1, tmp_path)
    with short_windows() if subject.spec == WINDOWED_METRIC else nullcontext():
        count = check_laws([(law, trial) for law in LAWS if not law.is_expensive])
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
        if law.is_expensive or law.systems > 1:
            chosen.append((law, trials[shape]))
    with reuse_command_scores():
        check_laws(chosen)


@pytest.mark.parametrize(
    "violation", SAVED_VIOLATIONS, ids=[f"{f.law}, {f.spec}" for f in SAVED_VIOLATIONS]
)
def test_saved_violations_are_fixed(violation: Violation) -> None:
    if reason := missing_resource(violation.subject):
        pytest.skip(reason)
    assert violation.recheck() > 0


def test_every_law_applies_to_a_subject() -> None:
    available = [s for s in SUBJECTS if not missing_resource(s)]
    assert all(any(law.applies(s) for s in available) for law in LAWS)
    assert find_law(str(LAWS[3])) is LAWS[3]


def test_shrunk_case_has_the_same_failure() -> None:
    """A smaller case that fails for another reason, here texts without words, is not accepted."""

    def texts_are_short(trial: Trial) -> int:
        for segment in trial.segments:
            if not segment.hypothesis.strip():
                raise DataError("nothing to read")
            require("long" not in segment.hypothesis, f"{segment.hypothesis!r} is long")
        return len(trial.segments)

    law, subject = Law("score", texts_are_short, lambda subject: True), Subject("chrf", "metric")
    texts = ["short", "a long text", "another long text of 7 words"]
    testset = TestSet({"a": texts}, [["x"]] * 3, ["x"] * 3)
    violation = shrink_violation(law, subject, testset, seed=1, seconds=20)
    assert violation.systems == {"a": ["long"]}
    assert violation.fault == "score: texts are short, chrf: 'long' is long"
