"""From what a network says of each piece to marked errors: chances first, then spans of the text.

A piece has logits of three ways to mark: as experts do under MQM and annotators under ESA (no
error, minor, major), and as post-editing tags words (good, bad); and logits of coarse categories,
which learned from errors that someone named. How much people mark differs so much among the ways
that each has thresholds of its own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Literal

import numpy as np

from tertium.arrays import BoolArray, Float32Array
from tertium.encoders.pieces import Places
from tertium.schema import Rule
from tertium.spans import Severity, Span
from tertium.text.scripts import WITHOUT_BLANKS, share_in

Way = Literal["mqm", "esa", "words"]
LOGITS: Mapping[Way, slice] = {"mqm": slice(0, 3), "esa": slice(3, 6), "words": slice(6, 8)}
CATEGORIES = ("accuracy", "omission", "fluency", "terminology", "style", "other")
NAMED = slice(9, 9 + len(CATEGORIES))  # behind a logit of no category, which nothing taught
TAGS = NAMED.stop
# What is kept of a piece: by each way the chance that it is wrong, of those that grade errors how
# much of that is major, and a category.
WRONG: Mapping[Way, int] = {"mqm": 0, "esa": 1, "words": 2}
MAJOR: Mapping[Way, int] = {"mqm": 3, "esa": 4}
CATEGORY = 5
FINDINGS = 6
SURE = 0.5  # how likely a category must be to be named
CHANCE = Rule(lambda x: 0 < x < 1, "between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class SpanThresholds:
    """The chance from which a piece is wrong, and the share of it from which that is major."""

    wrong: Annotated[float, CHANCE]
    major: Annotated[float, CHANCE] = 0.5


@dataclass(frozen=True, kw_only=True)
class ViewThresholds:
    """The same by what a translation is judged by."""

    source: SpanThresholds
    reference: SpanThresholds
    both: SpanThresholds


@dataclass(frozen=True, kw_only=True)
class WayThresholds:
    """The same by the way to mark, chosen on judgments that were held out."""

    mqm: ViewThresholds
    esa: ViewThresholds
    words: ViewThresholds


def find_errors(logits: Float32Array) -> Float32Array:
    """What is kept of each piece, (pieces, TAGS) -> (pieces, FINDINGS); nothing without tags."""
    if not logits.shape[1]:
        return np.zeros((0, FINDINGS), dtype=np.float32)
    found = np.zeros((len(logits), FINDINGS), dtype=np.float32)
    for way, part in LOGITS.items():
        chances = _softmax(logits[:, part])
        found[:, WRONG[way]] = 1 - chances[:, 0]
        if way in MAJOR:
            found[:, MAJOR[way]] = chances[:, 2] / (chances[:, 1] + chances[:, 2])
    named = _softmax(logits[:, NAMED])
    found[:, CATEGORY] = np.where(named.max(axis=1) >= SURE, 1 + named.argmax(axis=1), 0)
    return found


def mark_errors(
    text: str, places: Places, findings: Float32Array, way: Way, thresholds: SpanThresholds
) -> tuple[Span, ...]:
    """The errors of a text: runs of words of which a piece is wrong, major where one of them is.

    `places` are those of the pieces; what is behind the last that was read is not marked.
    """
    wrong = findings[:, WRONG[way]] >= thresholds.wrong
    return tuple(
        Span(
            start,
            end,
            severity=_severity(own, way, thresholds),
            category=_category(own),
            chance=min(1.0, round(float(own[:, WRONG[way]].max()), 4)),
        )
        for start, end, run in _runs(text, places, complete_words(text, places, wrong))
        for own in [findings[run][wrong[run]]]  # pieces that only complete a word say nothing
    )


def complete_words(text: str, places: Places, wrong: BoolArray) -> BoolArray:
    """Which pieces are wrong, (pieces,), where all of a word are that has a wrong one.

    People mark words. A text without blanks has none that could be told.

    >>> complete_words("we cats sat", [(0, 2), (2, 6), (6, 7), (7, 11)], np.array([0, 0, 1, 0]) > 0)
    array([False,  True,  True, False])
    """
    if not wrong.any() or share_in(text, WITHOUT_BLANKS) > 0.5:
        return wrong
    words, count = [0], 0  # of each character, behind a first that is none; 0 between words
    for letter in text:
        inside = unicodedata.category(letter)[0] in "LMN"
        count += inside and not words[-1]
        words.append(count if inside else 0)
    pieces = places[: len(wrong)]
    owners = [next(filter(None, words[start + 1 : end + 1]), 0) for start, end in pieces]
    bad = {owner for owner, own in zip(owners, wrong, strict=True) if owner and own}
    whole: BoolArray = wrong | np.array([owner in bad for owner in owners])
    return whole


def _runs(text: str, places: Places, wrong: BoolArray) -> Iterator[tuple[int, int, slice]]:
    """Neighboring wrong pieces: where they begin and end in the text, and which they are."""
    steps = np.flatnonzero(np.diff(wrong.astype(np.int8), prepend=0, append=0))
    for first, last in steps.reshape(-1, 2):
        start, end = trim(text, places[first][0], places[last - 1][1])
        if start < end:
            yield start, end, slice(first, last)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """A stretch of text without the blanks at its ends, and with the marks on its last letter.

    Pieces are those of composed letters: one that ends in an accent of its own ends before it.

    >>> trim("a cat sat", 1, 6), trim("a cafe\\u0301.", 1, 6)
    ((2, 5), (2, 7))
    """
    marks = takewhile(lambda letter: unicodedata.category(letter)[0] == "M", text[end:])
    end += sum(1 for _ in marks)
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _severity(findings: Float32Array, way: Way, thresholds: SpanThresholds) -> Severity:
    if way not in MAJOR:
        return "bad"
    return "major" if (findings[:, MAJOR[way]] >= thresholds.major).any() else "minor"


def _category(findings: Float32Array) -> str:
    """The category that most of the pieces name, where one does."""
    counts = np.bincount(findings[:, CATEGORY].astype(np.int64), minlength=1 + len(CATEGORIES))
    counts[0] = 0
    return CATEGORIES[int(counts.argmax()) - 1] if counts.any() else ""


def _softmax(logits: Float32Array) -> Float32Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-1e9))
    shares: Float32Array = powers / powers.sum(axis=1, keepdims=True)
    return shares
