"""Laws of scoring: what must not change a score, and what a score must be.

A law is a function of a trial that returns how many cases it looked at, a case being one segment
scored under that law, and raises `Broken` where the law does not hold.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.laws.trial import Trial, hold

from tertium.arrays import FloatArray, IntArray
from tertium.cache.vector_cache import clear_memory
from tertium.execution import runtime
from tertium.metrics.base.loading import load_metric
from tertium.segment import Segment

# A text that equals its reference up to blanks may score slightly higher by rounding.
ROUNDING = 2e-5
RESCORED = 40  # segments of a larger set that a law scores again
REENCODED = 8  # segments that a law encodes again


def hold_equal(scores: FloatArray, expected: FloatArray, where: str) -> int:
    """Raise `Broken` if scores differ in a bit; the message names the worst segment."""
    hold(scores.shape == expected.shape, f"{where}: {scores.shape} scores, not {expected.shape}")
    gaps = np.abs(scores - expected)
    worst = int(np.argmax(gaps)) if gaps.size else 0
    hold(
        bool((gaps == 0).all()),
        f"{where}: segment {worst + 1} gets {scores[worst]!r}, not {expected[worst]!r}"
        if gaps.size
        else "",
    )
    return len(scores)


def scores_are_finite(trial: Trial) -> int:
    """Segment scores, system scores and statistics are finite."""
    scores, count = trial.scores, len(trial.segments)
    hold(scores.segments.shape == (count,), f"{scores.segments.shape} scores of {count} segments")
    hold(scores.statistics.shape == (count, len(trial.metric.columns)), "columns without a name")
    bad = np.flatnonzero(~np.isfinite(scores.segments))
    hold(not bad.size, f"segment {bad[:1] + 1} gets {scores.segments[bad[:1]]}")
    hold(np.isfinite(scores.statistics).all(), "a statistic is not finite")
    hold(np.isfinite(scores.system), f"the system score is {scores.system}")
    return count


def an_aggregate_is_a_loop(trial: Trial) -> int:
    """A weighted aggregate equals the formula applied to the sum of a loop."""
    scores = trial.scores
    weights = trial.rng().integers(0, 3, size=(3, len(trial.segments))).astype(float)
    weights[:, 0] += 1
    for weight, value in zip(weights, scores.aggregate(weights), strict=True):
        total = np.zeros(scores.statistics.shape[1])
        for w, row in zip(weight, scores.statistics, strict=True):
            total += w * row
        expected = float(trial.metric.reduce(total))
        hold(abs(value - expected) <= 1e-9 * max(1.0, abs(expected)), f"{value} is not {expected}")
    return len(trial.segments)


def random_rows(trial: Trial, most: int) -> IntArray:
    """Return indices of segments in random order; all of them if the metric reads the corpus."""
    order = trial.rng().permutation(len(trial.segments))
    return order if trial.metric.reads_corpus else order[:most]


def score_rows(trial: Trial, places: Sequence[int] | IntArray) -> FloatArray:
    return trial.metric.score([trial.segments[n] for n in places]).segments


def order_changes_nothing(trial: Trial) -> int:
    order = random_rows(trial, RESCORED)
    expected = trial.scores.segments[order]
    return hold_equal(score_rows(trial, order), expected, "in another order")


def neighbors_change_nothing(trial: Trial) -> int:
    """Scores of random groups, including single segments, equal those of the full set."""
    count = 0
    for group in _groups(random_rows(trial, RESCORED), trial.rng()):
        expected = trial.scores.segments[group]
        count += hold_equal(score_rows(trial, group), expected, f"among {len(group)}")
    return count


def _groups(order: IntArray, rng: np.random.Generator) -> Iterator[IntArray]:
    """Split a list into parts: single items first, then larger ones."""
    start = 0
    while start < len(order):
        size = 1 if start < 4 else int(rng.integers(2, 30))
        yield order[start : start + size]
        start += size


def duplicates_get_equal_scores(trial: Trial) -> int:
    """Equal segments get equal scores to the last bit, at any position."""
    places = random_rows(trial, RESCORED)
    values = score_rows(trial, [*places, *places[::-1]])
    differ = np.flatnonzero(values[: len(places)] != values[len(places) :][::-1])
    hold(not differ.size, f"segment {places[differ[:1]] + 1} gets two scores in one call")
    return len(places)


def scoring_again_changes_nothing(trial: Trial) -> int:
    """Caching does not change the scores of a second call."""
    if len(trial.segments) > RESCORED:
        return 0  # too slow; smaller sets cover it
    again = trial.metric.score(trial.segments).segments
    hold((again == trial.scores.segments).all(), "a second call gives other scores")
    return len(again)


def batches_change_nothing(trial: Trial) -> int:
    size = int(trial.rng().integers(1, 8))
    with runtime(batch_size=size, token_budget=64, cache=False):
        return _hold_without_cache(trial, f"in batches of {size}")


def threads_change_nothing(trial: Trial) -> int:
    with runtime(threads=2, cache=False):
        return _hold_without_cache(trial, "on two threads")


def the_cache_changes_nothing(trial: Trial) -> int:
    """Vectors from a new cache, and from that cache again, give the same scores."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, _cache_at(folder):
        cold = _hold_without_cache(trial, "from a cold store")
        return cold + _hold_without_cache(trial, "from a warm store")


def _hold_without_cache(trial: Trial, where: str) -> int:
    """Random segments, scored and encoded again without any cache, get equal scores."""
    places = random_rows(trial, REENCODED)
    clear_memory()
    expected = trial.scores.segments[places]
    return hold_equal(score_rows(trial, places), expected, where)


@contextmanager
def _cache_at(folder: str | Path) -> Iterator[None]:
    before = os.environ.get("TERTIUM_CACHE")
    os.environ["TERTIUM_CACHE"] = str(folder)
    try:
        yield
    finally:
        clear_memory()
        if before is None:
            del os.environ["TERTIUM_CACHE"]
        else:
            os.environ["TERTIUM_CACHE"] = before


def a_perfect_hypothesis_is_not_beaten(trial: Trial) -> int:
    """With one reference, no hypothesis scores higher than the reference itself."""
    pairs = [
        (replace(segment, references=(text,)), Segment(text, segment.source, (text,)))
        for segment in (trial.segments[n] for n in random_rows(trial, RESCORED))
        for text in segment.references
    ]
    values = trial.better(trial.metric.score([s for pair in pairs for s in pair]).segments)
    for (segment, perfect), value, best in zip(pairs, values[::2], values[1::2], strict=True):
        hold(
            value <= best + ROUNDING,
            f"{_short(segment)} gets {value!r}, and {_short(perfect)} only {best!r}",
        )
    return len(pairs)


def _short(segment: Segment) -> str:
    return f"{segment.hypothesis[:30]!r} for {segment.references[0][:30]!r}"


def empty_hypotheses_are_counted(trial: Trial) -> int:
    empty = sum(not segment.hypothesis.strip() for segment in trial.segments)
    counted = trial.scores.warnings.get("empty hypothesis", 0)
    hold(counted == empty, f"{counted} of {empty} empty hypotheses are counted")
    return len(trial.segments)


def a_signature_is_made_of_fields(trial: Trial) -> int:
    head, *parts = trial.scores.signature.split("|")
    hold(head == trial.metric.label, f"the signature begins with {head}")
    hold(all(part.count(":") == 1 for part in parts), trial.scores.signature)
    keys = [part.split(":")[0] for part in parts]
    hold(len(set(keys)) == len(keys), f"a key stands twice in {keys}")
    hold({"nrefs", "version"} <= set(keys), f"nrefs or version is missing in {keys}")
    return 1


def a_spec_rebuilds_it(trial: Trial) -> int:
    metric = trial.metric
    again = load_metric(metric.spec)
    hold(again == metric, f"{metric.spec} builds {again!r}")
    hold(again.spec == metric.spec and hash(again) == hash(metric), f"{again.spec}, another hash")
    return 1
