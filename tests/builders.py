"""Data and tools that tests of several folders build: judgments, changed files, recorded calls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tertium.core.segment import Judgment, Preference, Segment

WORDS = "the cat sat on a mat while two dogs barked at it and nobody came home before noon".split()
# Titles of products have no function words, by which English is recognized.
TITLES = [
    f"{color} {product}"
    for color in ("Blue", "Dark green")
    for product in (
        "cotton shirt large", "leather wallet slim", "ceramic coffee mug", "running shoes black",
        "steel water bottle", "garden hose heavy duty", "laptop stand aluminum", "yoga mat thick",
        "rain jacket waterproof", "desk lamp dimmable",
    )
]  # fmt: skip


def make_judgments(count: int = 12, seed: int = 1) -> list[Judgment]:
    """Make translations with 0 to 3 missing words, each with its own reference.

    The human score is minus the number of missing words, plus a ninth of the seed.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        words = [*rng.permutation(WORDS)[:8], f"{seed} {n}"]
        segment = Segment(" ".join(words[: 8 - n % 4]), f"x {n}", (" ".join(words),))
        rows.append(Judgment(segment, -float(n % 4) + seed / 9))
    return rows


def make_preferences(count: int = 12, seed: int = 1) -> list[Preference]:
    """Make comparisons of these translations with their first nine characters, in both orders."""
    pairs = []
    for n, row in enumerate(make_judgments(count, seed)):
        better, worse = row.segment, replace(row.segment, hypothesis=row.segment.hypothesis[:9])
        pair = (better, worse, 1.0) if n % 2 else (worse, better, 0.0)
        pairs.append(Preference(*pair, item=str(n)))
    return pairs


def change_json(file: Path, **changes: Any) -> None:
    """Replace values of a JSON object in a file; nested objects are changed, None removes a key."""

    def change(value: dict[str, Any], changes: dict[str, Any]) -> None:
        for key, new in changes.items():
            if new is None:
                del value[key]
            elif isinstance(new, dict) and isinstance(value.get(key), dict):
                change(value[key], new)
            else:
                value[key] = new

    content = json.loads(file.read_text(encoding="utf-8"))
    change(content, changes)
    file.write_text(json.dumps(content), encoding="utf-8")


def record_calls(patch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """Return a list that gets the positional arguments of each call; the function still runs."""
    calls: list[tuple[Any, ...]] = []
    function = getattr(owner, name)

    def record(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return function(*args, **kwargs)

    patch.setattr(owner, name, record)
    return calls
