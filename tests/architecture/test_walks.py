"""No walk through the house grows longer than the plan says (docs/design.md)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
WALKS = dict(re.findall(r"^\| .* \(`(\w+)`\) \|.* (\d+) \|$", PLAN, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("walk", ["score", "train", "meta", "explain"])
def test_a_walk_passes_no_more_files_than_the_plan_says(walk: str) -> None:
    command = [sys.executable, "-m", "tests.architecture.walks", walk]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    passed = done.stdout.split()
    assert len(passed) <= int(WALKS[walk]), "\n".join(passed)
