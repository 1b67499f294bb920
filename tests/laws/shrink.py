"""Shrink a failing test set while it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tertium.data.testset import TestSet

Fails = Callable[[TestSet], bool]


def shrink(testset: TestSet, fails: Fails, seconds: float = 60.0) -> TestSet:
    """Remove systems, segments, references, then characters while the test set still fails."""
    end = time.monotonic() + seconds
    is_smaller = True
    while is_smaller and time.monotonic() < end:
        is_smaller = False
        for smaller in _smaller_testsets(testset):
            if time.monotonic() > end:
                break
            if fails(smaller):
                testset, is_smaller = smaller, True
                break
    return testset


def _smaller_testsets(testset: TestSet) -> Iterator[TestSet]:
    """Yield smaller test sets, the smallest first."""
    yield from _fewer_systems(testset)
    yield from _fewer_segments(testset)
    yield from _fewer_references(testset)
    yield from _shorter_texts(testset)


def _fewer_systems(testset: TestSet) -> Iterator[TestSet]:
    names = list(testset.systems)
    for part in _subsets(len(names)):
        yield replace(testset, systems={names[n]: testset.systems[names[n]] for n in part})


def _fewer_segments(testset: TestSet) -> Iterator[TestSet]:
    for part in _subsets(len(testset)):
        yield TestSet(
            systems={name: [texts[n] for n in part] for name, texts in testset.systems.items()},
            references=[testset.references[n] for n in part],
            sources=[testset.sources[n] for n in part],
            documents=[testset.documents[n] for n in part] if testset.documents else (),
        )


def _fewer_references(testset: TestSet) -> Iterator[TestSet]:
    for n, texts in enumerate(testset.references):
        for k in range(len(texts) if len(texts) > 1 else 0):
            remaining = [*texts[:k], *texts[k + 1 :]]
            yield replace(testset, references=_replace_at(testset.references, n, remaining))


def _shorter_texts(testset: TestSet) -> Iterator[TestSet]:
    for name, texts in testset.systems.items():
        for n, text in enumerate(texts):
            for shorter in _shorter_versions(text):
                changed = {**testset.systems, name: _replace_at(texts, n, shorter)}
                yield replace(testset, systems=changed)
    for n, references in enumerate(testset.references):
        for k, text in enumerate(references):
            for shorter in _shorter_versions(text):
                fewer = _replace_at(references, k, shorter)
                yield replace(testset, references=_replace_at(testset.references, n, fewer))
    for n, text in enumerate(testset.sources):
        for shorter in _shorter_versions(text):
            yield replace(testset, sources=_replace_at(testset.sources, n, shorter))


def _shorter_versions(text: str) -> Iterator[str]:
    """Yield a text without all, halves, quarters ... single characters; then simplified."""
    size = len(text)
    while size:
        for start in range(0, len(text), size):
            yield text[:start] + text[start + size :]
        size = size // 2 if size > 1 else 0
    for n, character in enumerate(text[:40]):
        if character != "a":
            yield text[:n] + "a" + text[n + 1 :]


def _subsets(count: int) -> Iterator[list[int]]:
    """Yield halves of the positions, then all but one; never an empty list."""
    positions = list(range(count))
    if count > 2:
        yield positions[: count // 2]
        yield positions[count // 2 :]
    for n in range(count if count > 1 else 0):
        yield positions[:n] + positions[n + 1 :]


def _replace_at(values: Any, place: int, value: Any) -> list[Any]:
    return [*values[:place], value, *values[place + 1 :]]
