"""The laws of scoring: what may change nothing, and what a score must be.

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
from tertium.cache.memory import forget
from tertium.metrics.base.loading import load_metric
from tertium.runtime import runtime
from tertium.segment import Segment

# A text that reads like its reference (another blank, say) may round to a hair above it.
ROUNDING = 2e-5
RESCORED = 40  # segments of a larger set that one law scores again
ENCODED_ANEW = 8  # segments whose vectors are made again by one law


def hold_equal(found: FloatArray, wanted: FloatArray, where: str) -> int:
    """Say that a law is broken where scores differ in a bit, naming the segment where most."""
    hold(found.shape == wanted.shape, f"{where}: {found.shape} scores, not {wanted.shape}")
    gaps = np.abs(found - wanted)
    worst = int(np.argmax(gaps)) if gaps.size else 0
    hold(
        bool((gaps == 0).all()),
        f"{where}: segment {worst + 1} gets {found[worst]!r}, not {wanted[worst]!r}"
        if gaps.size
        else "",
    )
    return len(found)


def scores_are_finite(trial: Trial) -> int:
    """A finite number for each segment and for all of them together, and finite statistics."""
    scores, count = trial.scores, len(trial.segments)
    hold(scores.segments.shape == (count,), f"{scores.segments.shape} scores of {count} segments")
    hold(scores.statistics.shape == (count, len(trial.metric.columns)), "columns without a name")
    bad = np.flatnonzero(~np.isfinite(scores.segments))
    hold(not bad.size, f"segment {bad[:1] + 1} gets {scores.segments[bad[:1]]}")
    hold(np.isfinite(scores.statistics).all(), "a statistic is not finite")
    hold(np.isfinite(scores.system), f"the system score is {scores.system}")
    return count


def an_aggregate_is_a_loop(trial: Trial) -> int:
    """A weighted aggregate is the formula on a sum that a loop makes."""
    scores = trial.scores
    weights = trial.rng().integers(0, 3, size=(3, len(trial.segments))).astype(float)
    weights[:, 0] += 1
    for weight, value in zip(weights, scores.aggregate(weights), strict=True):
        total = np.zeros(scores.statistics.shape[1])
        for w, row in zip(weight, scores.statistics, strict=True):
            total += w * row
        wanted = float(trial.metric.reduce(total))
        hold(abs(value - wanted) <= 1e-9 * max(1.0, abs(wanted)), f"{value} is not {wanted}")
    return len(trial.segments)


def some_places(trial: Trial, most: int) -> IntArray:
    """Places of segments in another order: so many, or all where a metric reads all of them."""
    order = trial.rng().permutation(len(trial.segments))
    return order if trial.metric.reads_corpus else order[:most]


def score_places(trial: Trial, places: Sequence[int] | IntArray) -> FloatArray:
    return trial.metric.score([trial.segments[n] for n in places]).segments


def order_changes_nothing(trial: Trial) -> int:
    order = some_places(trial, RESCORED)
    wanted = trial.scores.segments[order]
    return hold_equal(score_places(trial, order), wanted, "in another order")


def neighbors_change_nothing(trial: Trial) -> int:
    """Scores in groups drawn at random, lone segments among them, are those of the whole."""
    tried = 0
    for group in _groups(some_places(trial, RESCORED), trial.rng()):
        wanted = trial.scores.segments[group]
        tried += hold_equal(score_places(trial, group), wanted, f"among {len(group)}")
    return tried


def _groups(order: IntArray, rng: np.random.Generator) -> Iterator[IntArray]:
    """A list in parts: single ones first, then larger."""
    start = 0
    while start < len(order):
        size = 1 if start < 4 else int(rng.integers(2, 30))
        yield order[start : start + size]
        start += size


def duplicates_get_equal_scores(trial: Trial) -> int:
    """The same segment gets the same score to the last bit, wherever it stands."""
    places = some_places(trial, RESCORED)
    values = score_places(trial, [*places, *places[::-1]])
    differ = np.flatnonzero(values[: len(places)] != values[len(places) :][::-1])
    hold(not differ.size, f"segment {places[differ[:1]] + 1} gets two scores in one call")
    return len(places)


def scoring_again_changes_nothing(trial: Trial) -> int:
    """What is remembered of a first call does not change a second one."""
    if len(trial.segments) > RESCORED:
        return 0  # too many to do it all twice: smaller sets tell
    again = trial.metric.score(trial.segments).segments
    hold((again == trial.scores.segments).all(), "a second call gives other scores")
    return len(again)


def batches_change_nothing(trial: Trial) -> int:
    size = int(trial.rng().integers(1, 8))
    with runtime(batch_size=size, token_budget=64, cache=False):
        return _hold_anew(trial, f"in batches of {size}")


def threads_change_nothing(trial: Trial) -> int:
    with runtime(threads=2, cache=False):
        return _hold_anew(trial, "on two threads")


def the_cache_changes_nothing(trial: Trial) -> int:
    """Vectors from a new store, and from that store again, give the same scores as memory."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, _cache_at(folder):
        cold = _hold_anew(trial, "from a cold store")
        return cold + _hold_anew(trial, "from a warm store")


def _hold_anew(trial: Trial, where: str) -> int:
    """Scores with nothing remembered, of segments drawn at random: what was encoded is encoded
    again."""
    places = some_places(trial, ENCODED_ANEW)
    forget()
    wanted = trial.scores.segments[places]
    return hold_equal(score_places(trial, places), wanted, where)


@contextmanager
def _cache_at(folder: str | Path) -> Iterator[None]:
    before = os.environ.get("TERTIUM_CACHE")
    os.environ["TERTIUM_CACHE"] = str(folder)
    try:
        yield
    finally:
        forget()
        if before is None:
            del os.environ["TERTIUM_CACHE"]
        else:
            os.environ["TERTIUM_CACHE"] = before


def a_perfect_hypothesis_is_not_beaten(trial: Trial) -> int:
    """Against one reference no hypothesis scores above the reference itself."""
    pairs = [
        (replace(segment, references=(text,)), Segment(text, segment.source, (text,)))
        for segment in (trial.segments[n] for n in some_places(trial, RESCORED))
        for text in segment.references
    ]
    values = trial.better(trial.metric.score([s for pair in pairs for s in pair]).segments)
    for (given, perfect), value, best in zip(pairs, values[::2], values[1::2], strict=True):
        hold(
            value <= best + ROUNDING,
            f"{_short(given)} gets {value!r}, and {_short(perfect)} only {best!r}",
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
