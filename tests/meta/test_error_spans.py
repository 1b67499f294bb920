"""Agreement of error spans: hand-checked rows, and slow loops over the definitions.

The definitions are those of the scoring scripts of the shared tasks: WMT25's counts how many errors
meet at a character (wmt25-mteval, task 2), WMT23's whether one does (wmt23 quality estimation).
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from tertium.core.spans import ErrorAnnotations, Span
from tertium.meta.span_scores import (
    count_by_category,
    count_by_severity,
    count_characters,
    count_characters_once,
    macro,
    match_spans,
    micro,
    split_by_rater,
)

MAJOR, MINOR = "major", "minor"


def draw(rng: np.random.Generator, length: int, most: int) -> list[Span]:
    """Random spans, with overlaps and all severities."""
    spans = []
    for _ in range(rng.integers(0, most + 1)):
        start = int(rng.integers(0, length))
        end = int(rng.integers(start + 1, length + 1))
        severity = str(rng.choice(["minor", "major", "critical", "neutral", "bad"]))
        side = "source" if rng.random() < 0.1 else "hypothesis"
        spans.append(Span(start, end, side, severity, str(rng.choice(["a", "b"]))))
    return spans


def marks_at(spans: list[Span], place: int) -> dict[str, int]:
    """How many major and minor errors of the translation cover a character."""
    counts = {MAJOR: 0, MINOR: 0}
    for span in spans:
        if span.side == "hypothesis" and span.start <= place < span.end:
            if span.severity in ("major", "critical"):
                counts[MAJOR] += 1
            elif span.severity == "minor":
                counts[MINOR] += 1
    return counts


def slow_wmt25(gold: list[Span], marked: list[Span], length: int) -> list[float]:
    credit = human = metric = 0.0
    for place in range(length):
        g, f = marks_at(gold, place), marks_at(marked, place)
        human += g[MAJOR] + g[MINOR]
        metric += f[MAJOR] + f[MINOR]
        credit += min(g[MAJOR], f[MAJOR]) + min(g[MINOR], f[MINOR])
        over = max(0, g[MAJOR] - f[MAJOR]) + max(0, g[MINOR] - f[MINOR])
        under = max(0, f[MAJOR] - g[MAJOR]) + max(0, f[MINOR] - g[MINOR])
        credit += 0.5 * min(over, under)
    return [credit, human, metric]


def slow_wmt23(gold: list[Span], marked: list[Span], length: int) -> list[float]:
    credit = human = metric = 0.0
    for place in range(length):
        g, f = marks_at(gold, place), marks_at(marked, place)
        human += bool(g[MAJOR] or g[MINOR])
        metric += bool(f[MAJOR] or f[MINOR])
        if (g[MAJOR] and f[MAJOR]) or (g[MINOR] and f[MINOR]):
            credit += 1.0
        elif (g[MAJOR] or g[MINOR]) and (f[MAJOR] or f[MINOR]):
            credit += 0.5
    return [credit, human, metric]


def slow_match(gold: list[Span], marked: list[Span], length: int) -> list[float]:
    """The best of all one-to-one pairings, tried one by one."""
    counted = ("minor", "major", "critical")
    ours = [s for s in gold if s.side == "hypothesis" and s.severity in counted]
    theirs = [s for s in marked if s.side == "hypothesis" and s.severity in counted]
    short, long = sorted([ours, theirs], key=len)
    best = 0.0
    for chosen in permutations(long, len(short)):
        total = 0.0
        for a, b in zip(short, chosen, strict=True):
            places = set(range(a.start, a.end)), set(range(b.start, b.end))
            share = len(places[0] & places[1]) / len(places[0] | places[1])
            total += share * (1.0 if (a.severity == MINOR) == (b.severity == MINOR) else 0.5)
        best = max(best, total)
    return [best, len(ours), len(theirs)]


@pytest.mark.parametrize(
    ("count", "slow"),
    [
        (count_characters, slow_wmt25),
        (count_characters_once, slow_wmt23),
        (match_spans, slow_match),
    ],
)
def test_fast_counts_equal_slow_counts(count, slow):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(7)
    lengths = [int(n) for n in rng.integers(1, 25, size=150)]
    gold = [draw(rng, n, 4) for n in lengths]
    marked = [draw(rng, n, 4) for n in lengths]
    rows = count(gold, marked, lengths)
    expected = [slow(g, f, n) for g, f, n in zip(gold, marked, lengths, strict=True)]
    np.testing.assert_allclose(rows, expected, atol=1e-9)
    assert rows[:, 0].sum() > 0


def test_one_row_by_hand():
    """`0123456789`: human 0-4 major, 6-8 minor; the metric 2-7 minor.

    At 2 and 3 severities differ (1/2 each), at 6 they agree: 2 of 6 and of 5.
    """
    human = [[Span(0, 4, severity=MAJOR), Span(6, 8, severity=MINOR)]]
    metric = [[Span(2, 7, severity=MINOR)]]
    rows = count_characters(human, metric, [10])
    assert rows.tolist() == [[2.0, 6.0, 5.0]]
    figures = micro(rows)
    assert (figures.precision, figures.recall) == (2 / 5, 2 / 6)
    assert figures.f1 == pytest.approx(2 * 2 / (5 + 6))
    # one pair: 6-8 with 2-7 shares 1 of 6; 0-4 with 2-7 shares 2 of 7, halved
    assert match_spans(human, metric, [10])[0, 0] == pytest.approx(max(1 / 6, 0.5 * 2 / 7))


def test_overlapping_errors_and_tags_without_severity():
    human = [[Span(0, 2, severity=MAJOR), Span(0, 2, severity=MINOR)]]
    metric = [[Span(0, 2, severity=MINOR)]]
    assert count_characters(human, metric, [2]).tolist() == [[2.0, 4.0, 2.0]]
    assert count_characters_once(human, metric, [2]).tolist() == [[2.0, 2.0, 2.0]]
    human, metric = [[Span(0, 4)]], [[Span(0, 2, severity=MAJOR), Span(2, 4, severity=MINOR)]]
    for count in (count_characters, count_characters_once):
        assert count(human, metric, [4]).tolist() == [[4.0, 4.0, 4.0]]
    mixed = [[Span(0, 4), Span(4, 5, severity=MINOR)]]  # one without a severity
    assert count_characters(mixed, metric, [5]).tolist() == [[0.0, 1.0, 4.0]]


def test_precision_and_recall_of_few_errors():
    one = [Span(0, 2, severity=MAJOR)]
    rows = count_characters([[], one, [], one], [[], one, one, []], [3, 3, 3, 3])
    assert [micro(rows[n : n + 1]).f1 for n in range(4)] == [1.0, 1.0, 0.0, 0.0]
    assert macro(rows).f1 == micro(rows).f1 == 0.5  # credit 2, human 4, metric 4
    assert (macro(rows).precision, macro(rows).recall) == (0.5, 0.5)  # of the defined ones
    assert count_characters([[]], [[]], [0]).tolist() == [[0.0, 0.0, 0.0]]
    silent, eager = micro(rows[3:]), micro(rows[2:3])
    assert math.isnan(silent.precision)
    assert math.isnan(eager.recall)
    assert (silent.recall, silent.f1, eager.precision, eager.f1) == (0.0, 0.0, 0.0, 0.0)
    assert math.isnan(macro(rows[3:]).precision)


def test_severities_and_categories_are_counted_separately():
    human = [[Span(0, 4, severity=MAJOR, category="x"), Span(4, 6, severity=MINOR, category="y")]]
    metric = [[Span(0, 2, severity=MINOR), Span(4, 6, severity=MINOR)]]
    rows = count_by_severity(human, metric, [6])
    assert {name: row.tolist() for name, row in rows.items()} == {
        "minor": [[2.0, 2.0, 4.0]],
        "major": [[0.0, 4.0, 0.0]],
    }
    marked = count_by_category(human, metric, [6])
    assert {name: micro(row).recall for name, row in marked.items()} == {"x": 0.25, "y": 1.0}
    with_category = [[Span(0, 4, severity=MAJOR, category="y")]]
    assert count_by_category(human, with_category, [6])["x"].tolist() == [[0.0, 4.0, 0.0]]


def test_errors_are_split_by_rater():
    marked = ErrorAnnotations(
        (Span(0, 1, rater="a"), Span(2, 3, rater="a"), Span(4, 5, rater="b")), raters=3
    )
    assert [len(spans) for spans in split_by_rater(marked)] == [2, 1, 0]
    assert split_by_rater(ErrorAnnotations()) == [()]
