"""Laws of scoring: valid scores that depend on nothing but the texts.

A law is a function of a trial. It returns the number of cases it checked (scored segments) and
raises `LawViolation`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
from tests.laws.trial import Trial, require

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics.base.loading import load_metric
from tertium.text.scripts import is_blank

# A text that equals its reference up to blanks may score slightly higher by rounding.
ROUNDING = 2e-5
BLANK_TEXTS = ("", " ", "\u3000\t\u00a0", "\u200b\ufeff")
MAX_RESCORED = 40  # segments of a larger set that a law scores again
MAX_REENCODED = 8  # segments that a law encodes again


def require_equal(scores: FloatArray, expected: FloatArray, where: str, tolerance: float) -> int:
    """Raise `LawViolation` if scores differ; the message names the worst segment."""
    shapes = f"got scores of shape {scores.shape}, expected {expected.shape}"
    require(scores.shape == expected.shape, f"{where}: {shapes}")
    differences = np.abs(scores - expected)
    for n in np.flatnonzero(~(differences <= tolerance))[:1]:
        score, right = float(scores[n]), float(expected[n])
        require(False, f"{where}: segment {n + 1} has score {score!r}, expected {right!r}")
    return len(scores)


def scores_are_finite(trial: Trial) -> int:
    """Segment scores, system scores and statistics are finite."""
    scores, count = trial.scores, len(trial.segments)
    shape = scores.segments.shape
    require(shape == (count,), f"{shape} scores of {count} segments")
    require(scores.statistics.shape == (count, len(trial.metric.columns)), "columns without a name")
    bad = np.flatnonzero(~np.isfinite(scores.segments))
    require(not bad.size, f"segment {bad[:1] + 1} has score {scores.segments[bad[:1]]}")
    require(np.isfinite(scores.statistics).all(), "a statistic is not finite")
    require(np.isfinite(scores.system), f"the system score is {scores.system}")
    return count


def aggregate_equals_loop(trial: Trial) -> int:
    """A weighted aggregate equals the formula applied to the sum of a loop."""
    scores = trial.scores
    weights = trial.rng().integers(0, 3, size=(3, len(trial.segments))).astype(float)
    weights[:, 0] += 1
    for weight, value in zip(weights, scores.aggregate(weights), strict=True):
        total = np.zeros(scores.statistics.shape[1])
        for w, row in zip(weight, scores.statistics, strict=True):
            total += w * row
        expected = float(trial.metric.reduce(total))
        is_close = abs(value - expected) <= 1e-9 * max(1.0, abs(expected))
        require(is_close, f"got {value}, expected {expected}")
    return len(trial.segments)


def random_rows(trial: Trial, most: int) -> IntArray:
    """Return indices of segments in random order; all of them if the metric reads the corpus."""
    order = trial.rng().permutation(len(trial.segments))
    return order if trial.metric.reads_corpus else order[:most]


def score_rows(trial: Trial, rows: Sequence[int] | IntArray) -> FloatArray:
    return trial.metric.score([trial.segments[n] for n in rows]).segments


def scores_do_not_depend_on_order(trial: Trial) -> int:
    order = random_rows(trial, MAX_RESCORED)
    expected = trial.scores.segments[order]
    return require_equal(score_rows(trial, order), expected, "in another order", trial.tolerance)


def scores_do_not_depend_on_other_segments(trial: Trial) -> int:
    """Scores of random groups, including single segments, equal those of the full set."""
    count = 0
    for group in _groups(random_rows(trial, MAX_RESCORED), trial.rng()):
        expected = trial.scores.segments[group]
        where = f"in a group of {len(group)}"
        count += require_equal(score_rows(trial, group), expected, where, trial.tolerance)
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
    rows = random_rows(trial, MAX_RESCORED)
    values = score_rows(trial, [*rows, *rows[::-1]])
    differ = np.flatnonzero(values[: len(rows)] != values[len(rows) :][::-1])
    require(not differ.size, f"segment {rows[differ[:1]] + 1} has two scores in one call")
    return len(rows)


def rescoring_gives_equal_scores(trial: Trial) -> int:
    """Caching does not change the scores of a second call."""
    if len(trial.segments) > MAX_RESCORED:
        return 0  # too slow; smaller sets cover it
    again = trial.metric.score(trial.segments).segments
    require((again == trial.scores.segments).all(), "a second call returns different scores")
    return len(again)


def scores_do_not_depend_on_batch_size(trial: Trial) -> int:
    size = int(trial.rng().integers(1, 8))
    with runtime(batch_size=size, token_budget=64, cache=False):
        return _require_equal_without_cache(trial, f"in batches of {size}")


def scores_do_not_depend_on_threads(trial: Trial) -> int:
    with runtime(threads=2, cache=False):
        return _require_equal_without_cache(trial, "on two threads")


def scores_do_not_depend_on_cache(trial: Trial) -> int:
    """Vectors from a new cache, and from that cache again, give the same scores."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, _cache_at(folder):
        cold = _require_equal_without_cache(trial, "with a cold cache")
        return cold + _require_equal_without_cache(trial, "with a warm cache")


def _require_equal_without_cache(trial: Trial, where: str) -> int:
    """Random segments, scored and encoded again without any cache, get equal scores."""
    rows = random_rows(trial, MAX_REENCODED)
    clear_memory()
    expected = trial.scores.segments[rows]
    return require_equal(score_rows(trial, rows), expected, where, trial.tolerance)


@contextmanager
def _cache_at(folder: str | Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, {"TERTIUM_CACHE": str(folder)}):
        try:
            yield
        finally:
            clear_memory()


def reference_scores_highest(trial: Trial) -> int:
    """With one reference, no hypothesis scores higher than the reference itself."""
    pairs = [
        (replace(segment, references=(text,)), Segment(text, segment.source, (text,)))
        for segment in (trial.segments[n] for n in random_rows(trial, MAX_RESCORED))
        for text in segment.references
    ]
    values = trial.orient(trial.metric.score([s for pair in pairs for s in pair]).segments)
    for (segment, perfect), value, best in zip(pairs, values[::2], values[1::2], strict=True):
        require(
            value <= best + ROUNDING,
            f"{_short(segment)} has score {value!r}, but {_short(perfect)} only {best!r}",
        )
    return len(pairs)


def _short(segment: Segment) -> str:
    return f"{segment.hypothesis[:30]!r} for {segment.references[0][:30]!r}"


def empty_translations_score_worst(trial: Trial) -> int:
    """No translation scores lower than an empty one, unless there is nothing to translate."""
    rows = [n for n in random_rows(trial, MAX_RESCORED) if not _is_right_if_blank(trial, n)]
    segments = [trial.segments[n] for n in rows]
    blanks = trial.rng().choice(BLANK_TEXTS, size=len(rows)).tolist()
    blank_segments = [replace(s, hypothesis=t) for s, t in zip(segments, blanks, strict=True)]
    if not rows:
        return 0
    scores = trial.metric.score([*segments, *blank_segments])
    values = trial.orient(scores.segments)
    for segment, value, empty in zip(
        segments, values[: len(rows)], values[len(rows) :], strict=True
    ):
        require(
            empty <= value + ROUNDING,
            f"{segment.hypothesis[:30]!r} has score {value!r}, but an empty translation {empty!r}",
        )
    return len(rows)


def _is_right_if_blank(trial: Trial, row: int) -> bool:
    segment = trial.segments[row]
    return all(map(is_blank, segment.references or (segment.source or "",)))


def empty_translations_always_lose(trial: Trial) -> int:
    """A ranker prefers any other translation to an empty one."""
    others = [s for s in trial.segments if not is_blank(s.hypothesis) and any(s.references)]
    others = [s for s in others if not all(map(is_blank, s.references))][:MAX_REENCODED]
    blanks = [replace(s, hypothesis=BLANK_TEXTS[n % 4]) for n, s in enumerate(others)]
    chances = trial.subject.ranker.prefer(others, blanks)
    require((chances == 1).all(), f"an empty translation wins with {1 - chances.min()}")
    return len(others)


def empty_hypotheses_are_counted(trial: Trial) -> int:
    empty = sum(is_blank(segment.hypothesis) for segment in trial.segments)
    counted = trial.scores.warnings.get("empty hypothesis", 0)
    require(counted == empty, f"counted {counted} of {empty} empty hypotheses")
    return len(trial.segments)


def signature_is_well_formed(trial: Trial) -> int:
    head, *parts = trial.scores.signature.split("|")
    require(head == trial.metric.label, f"the signature begins with {head}")
    require(all(part.count(":") == 1 for part in parts), trial.scores.signature)
    keys = [part.split(":")[0] for part in parts]
    require(len(set(keys)) == len(keys), f"duplicate key in {keys}")
    require({"nrefs", "version"} <= set(keys), f"nrefs or version is missing in {keys}")
    return 1


def spec_rebuilds_metric(trial: Trial) -> int:
    metric = trial.metric
    again = load_metric(metric.spec)
    require(again == metric, f"{metric.spec} loads as {again!r}")
    is_same = again.spec == metric.spec and hash(again) == hash(metric)
    require(is_same, f"spec or hash changed: {again.spec}")
    return 1
