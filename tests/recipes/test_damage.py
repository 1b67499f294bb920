"""Damage: every kind changes the text as described and is deterministic under a seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes.flagship.damage import KINDS, damage

TEXT = (
    "On Tuesday, Mr Smith said that he could not accept 1,250 euros for the new house in Berlin "
    "because his wife had lost more than two jobs."
)


def damaged(kind: str, text: str = TEXT, seed: int = 1) -> str | None:
    return damage(text, kind, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_changes_the_text_deterministically(kind: str) -> None:
    changed = damaged(kind)
    assert changed is not None
    assert changed != TEXT
    assert changed == damaged(kind)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=60), seed=st.integers(0, 9))
def test_damage_accepts_any_text(kind: str, text: str, seed: int) -> None:
    changed = damaged(kind, text, seed)
    assert changed is None or changed != text


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("gender swapped", "She saw him there", "He saw her there"),
        ("negation flipped", "He did not go", "He did go"),
        ("negation flipped", "They won't come", "They will come"),
        ("negation flipped", "It is cold", "It is not cold"),
        ("punctuation lost", "Yes, it is.", "Yes it is"),
        ("empty", "anything", ""),
    ],
)
def test_damage_examples(kind: str, before: str, after: str) -> None:
    assert damaged(kind, before) == after


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number changed", "no figures in here at all"),
        ("gender swapped", "they went home together"),
        ("name changed", "There is nobody here"),
        ("negation flipped", "black cats sleep"),
        ("word dropped", "a b c"),
        ("empty", ""),
    ],
)
def test_inapplicable_damage_returns_none(kind: str, text: str) -> None:
    assert damaged(kind, text) is None
