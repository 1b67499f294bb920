"""Random numbers for statistics are drawn in one module, so that equal seeds give equal draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tertium

PACKAGE = Path(tertium.__file__).parent
HOME = "core/resampling.py"
DRAW = re.compile(
    r"default_rng\(|np\.random\.(?!Generator|default_rng)\w+"
    r"|\b(?:rng|generators?)(?:\[\w+\])?\.\w+\(|\.(?:integers|permutation|permuted)\("
)
NO_STATISTICS = (  # what these modules draw is no resample of data
    "encoders/toy_encoder.py",  # vectors of words
    "metrics/pairwise/",  # initial weights and batches
    "metrics/regression/svr.py",  # training rows
    "models/training_examples.py",
    "models/training_loop.py",
    "data/rankings.py",  # a sample of comparisons to train on
    "data/ratings.py",  # the rater of each translation that is held out
    "text/perturbations.py",  # simulated errors
    "people/assigning.py",  # campaigns
    "people/planning.py",
    "people/sampling.py",
    "testing.py",  # weights that check a metric
)


def draws_in(path: Path) -> list[str]:
    code = re.sub(r'"""(?s:.*?)"""', "", path.read_text(encoding="utf-8"))
    return DRAW.findall(code)


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_statistics_draw_in_one_module() -> None:
    modules = {name_of(path) for path in PACKAGE.rglob("*.py") if draws_in(path)}
    assert HOME in modules
    drawing = {name for name in modules - {HOME} if not name.startswith(NO_STATISTICS)}
    assert not drawing, f"draw in {HOME}: {sorted(drawing)}"


@pytest.mark.parametrize("name", NO_STATISTICS)
def test_every_exception_is_needed(name: str) -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if name_of(path).startswith(name)]
    assert any(map(draws_in, paths))
