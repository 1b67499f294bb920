"""Surface features react to the changes that they are named after."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertium.metrics.bundled.surface_features import (
    FEATURE_NAMES,
    analyze_text,
    longest_run,
    order_agreement,
    surface_features,
)

REFERENCE = "She paid 20 euros to Mr Smith, but he did not thank her."


def row(hypothesis: str, reference: str = REFERENCE) -> dict[str, float]:
    values = surface_features([hypothesis], [reference])[0]
    return dict(zip(FEATURE_NAMES, values.tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("cased recall", REFERENCE.lower()),
        ("case agreement", REFERENCE.lower()),
        ("capital share difference", REFERENCE.upper()),
        ("number recall", REFERENCE.replace("20", "30")),
        ("name recall", REFERENCE.replace("Smith", "Jones")),
        ("gender difference", REFERENCE.replace("She", "He")),
        ("negation difference", REFERENCE.replace("not ", "")),
        ("repetition", REFERENCE.replace("paid", "paid paid")),
        ("order", " ".join(reversed(REFERENCE.split()))),
        ("longest run", " ".join(reversed(REFERENCE.split()))),
        ("punctuation recall", REFERENCE.replace(",", "")),
        ("space share difference", REFERENCE.replace(" ", "")),
        ("length log ratio", "She paid"),
        ("letters outside ASCII", REFERENCE + " Übermäßig"),
        ("empty", ""),
        ("identical", REFERENCE + " "),
        ("content recall", REFERENCE.replace("euros", "dollars")),
    ],
)
def test_feature_reacts_to_its_change(name: str, changed: str) -> None:
    assert row(changed)[name] != row(REFERENCE)[name]


def test_paraphrase_keeps_number_and_name_features() -> None:
    same = row("20 euros were paid by her to Mr Smith, yet he did not thank her.")
    for name in ("number recall", "number precision", "name recall", "negation difference"):
        assert same[name] == row(REFERENCE)[name]


@given(st.text(alphabet="aBcÄßǅ一1 .", max_size=12))
def test_letter_shares_equal_a_loop(text: str) -> None:
    letters = [c for c in text if c.isalpha()] or [""]
    counts = analyze_text(text)
    assert counts.capitals == sum(c.isupper() for c in letters) / len(letters)
    assert counts.non_ascii == sum(not c.isascii() for c in letters) / len(letters)


@given(st.lists(st.sampled_from("abcdefgh")), st.lists(st.sampled_from("abcdefgh")))
def test_order_agreement_equals_a_loop_over_pairs(left: list[str], right: list[str]) -> None:
    shared = [w for w in left if left.count(w) == right.count(w) == 1]
    pairs = [(a, b) for n, a in enumerate(shared) for b in shared[n + 1 :]]
    agreeing = sum(right.index(a) < right.index(b) for a, b in pairs)
    assert order_agreement(left, right) == (agreeing / len(pairs) if pairs else 1.0)


def test_longest_run_and_order_agreement() -> None:
    assert longest_run("the big black cat".split(), "a big black dog".split()) == 2
    assert longest_run([], ["a"]) == 0
    rng = np.random.default_rng(1)  # long texts use arrays
    left, right = (rng.choice(list("abcd"), 400).tolist() for _ in range(2))
    runs = [" ".join(left[n : n + size]) for size in range(20) for n in range(400 - size)]
    joined = f" {' '.join(right)} "
    assert longest_run(left, right) == max(len(run.split()) for run in runs if f" {run} " in joined)
    assert longest_run(["the"] * 5000, [*["the"] * 4999, "cat"]) == 4999
    assert order_agreement("a b c d".split(), "a c b d".split()) == pytest.approx(5 / 6)
    assert order_agreement(["a"], ["b"]) == 1.0
