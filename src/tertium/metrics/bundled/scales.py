"""Scales that turn raw network scores into human scores: direct assessment (DA) and MQM.

The `config.json` of a model stores, for each scale, a monotone map from raw scores to 0..1, the
spread of human scores around it, and percentiles of WMT system outputs. DA raters grade a text as a
whole. MQM annotators add up errors, so of two texts of equal quality the longer one loses more. The
MQM scale therefore maps an error sum, computed from raw scores and lengths.

Error spans from the piece-level logits of tertium-multi.

Each piece has logits for three annotation schemes: MQM and ESA (no error, minor, major) and
post-editing word tags (good, bad). Further logits predict coarse error categories. Annotators mark
very different amounts under each scheme, and so do annotators of different languages. Thresholds
are chosen for each scheme, input mode and family of the target language (`config.json`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import log
from typing import Literal, TypeVar

import numpy as np

from tertium.core.arrays import BoolArray, Float32Array, FloatArray
from tertium.core.segment import Against
from tertium.core.spans import Severity, Span
from tertium.encoders.tokenizer import TokenOffsets
from tertium.text.scripts import UNSPACED_SCRIPTS, script_share

Numbers = tuple[float, ...]  # increasing
MAX_ERROR_SUM = 8.0  # the calibrated score is close to 0 here
RATE_SMOOTHING = 0.2  # width, in raw score, of the bend in the error rate near the best score


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Knots of the monotone map from raw scores to 0..1."""

    raw: Numbers
    score: Numbers


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Standard deviation of human scores around a calibrated score."""

    score: Numbers
    deviation: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Percentiles of the scores of `segments` WMT system outputs."""

    score: Numbers
    percent: Numbers
    segments: int


@dataclass(frozen=True, kw_only=True)
class LengthPenalty:
    """Penalty `cost` log(words) on raw scores, with `least` to `most` words."""

    cost: float
    least: int
    most: int

    def shift(self, references: Sequence[str]) -> FloatArray:
        """Return the value to add to the raw score of each reference.

        >>> penalty = LengthPenalty(cost=0.5, least=2, most=8)
        >>> penalty.shift(["a b c d", "b " * 8, "c " * 99]).round(3)
        array([-0.693, -1.04 , -1.04 ])
        """
        words = [min(max(len(text.split()), self.least), self.most) for text in references]
        return np.array([-self.cost * log(count) for count in words])

    def __str__(self) -> str:
        return f"length{self.cost:g}"


@dataclass(frozen=True, kw_only=True)
class ErrorPenalty:
    """Negative expected error sum of a text, from its raw score and its length.

        sum = rate (length / whole)^power      rate = (d + sqrt(d^2 + .04)) / 2      d = best - raw

    The rate falls linearly with the raw score and bends towards 0 near the `best` one. A text of
    the length `whole` at a rate of 1 has about as many errors as MQM counts at most.
    """

    best: float
    power: float
    whole: float

    def __call__(
        self, raw: FloatArray, lengths: FloatArray, failed: BoolArray | bool = False
    ) -> FloatArray:
        """Return minus the error sum, so that higher is better, (n,).

        `failed` marks texts that are not a translation at all: they get at least `MAX_ERROR_SUM`.

        >>> penalty = ErrorPenalty(best=1.0, power=0.5, whole=40)
        >>> failed = np.array([False, False, False, True])
        >>> penalty(np.array([0.0, 0.0, -1.0, 0.0]), np.array([40, 160, 40, 40]), failed).round(2)
        array([-1.01, -2.02, -2.  , -8.  ])
        """
        distance = self.best - raw
        rate = (distance + np.hypot(distance, RATE_SMOOTHING)) / 2
        total = -rate * (lengths / self.whole) ** self.power
        return np.where(failed, np.minimum(total, -MAX_ERROR_SUM), total)


@dataclass(frozen=True, kw_only=True)
class HumanScale:
    """A scale of human scores: calibration, uncertainty and percentiles."""

    calibration: Calibration
    uncertainty: Uncertainty
    percentiles: Percentiles

    def calibrate(self, raw: FloatArray) -> FloatArray:
        """Map raw scores into (0, 1), strictly increasing."""
        knots = self.calibration
        inner = np.interp(raw, knots.raw, knots.score)
        low = knots.raw[0]
        high = knots.raw[-1]
        below = knots.score[0] * np.exp(np.minimum(raw - low, 0.0))
        above = 1 - (1 - knots.score[-1]) * np.exp(-np.maximum(raw - high, 0.0))
        mapped: FloatArray = np.where(raw < low, below, np.where(raw > high, above, inner))
        return mapped

    def deviation(self, scores: FloatArray) -> FloatArray:
        """Return the standard deviation of held-out human scores around each score."""
        values: FloatArray = np.interp(scores, self.uncertainty.score, self.uncertainty.deviation)
        return values

    def percentile(self, scores: FloatArray) -> FloatArray:
        """Return the percentage of WMT system outputs that score lower."""
        values: FloatArray = np.interp(scores, self.percentiles.score, self.percentiles.percent)
        return values


@dataclass(frozen=True, kw_only=True)
class MqmScale(HumanScale):
    """MQM (expert) scale over error sums: 1 means no error, 0 the maximum MQM penalty."""

    errors: ErrorPenalty


@dataclass(frozen=True, kw_only=True)
class NoErrorProbability:
    """Probability that a text has no error: 1 / (1 + (sum / half)^slope).

    >>> probability = NoErrorProbability(half=0.1, slope=2.0)
    >>> probability(np.array([-0.05, -0.1, -0.2])).round(2).tolist()
    [0.8, 0.5, 0.2]
    """

    half: float
    slope: float

    def __call__(self, negative_sums: FloatArray) -> FloatArray:
        """Map the output of `ErrorPenalty`, (n,), to probabilities."""
        probabilities: FloatArray = 1 / (1 + (-negative_sums / self.half) ** self.slope)
        return probabilities


AnnotationScheme = Literal["mqm", "esa", "words"]
LOGITS: Mapping[AnnotationScheme, slice] = {
    "mqm": slice(0, 3),
    "esa": slice(3, 6),
    "words": slice(6, 8),
}
CATEGORIES = ("accuracy", "omission", "fluency", "terminology", "style", "other")
CATEGORY_LOGITS = slice(9, 9 + len(CATEGORIES))  # logit 8, no category, is untrained
TAGS = CATEGORY_LOGITS.stop
# Columns of the probabilities of a piece: error probability by scheme, share of major errors in it
# for schemes with severities, and the category (0 for no category).
WRONG: Mapping[AnnotationScheme, int] = {"mqm": 0, "esa": 1, "words": 2}
MAJOR: Mapping[AnnotationScheme, int] = {"mqm": 3, "esa": 4}
CATEGORY = 5
Values = TypeVar("Values", BoolArray, Float32Array)
ERROR_COLUMNS = 6
MIN_CATEGORY_PROBABILITY = 0.5


@dataclass(frozen=True, kw_only=True)
class SpanThresholds:
    """Minimum error probability of a wrong piece, and minimum share of major errors in it.

    With `wrong`, spans have the best F1. With `precise`, annotators confirm at least half of what
    is marked; it is None if no threshold reaches that, or if it was not measured.
    """

    wrong: float
    major: float = 0.5
    precise: float | None = None

    def for_display(self) -> SpanThresholds | None:
        """Return the thresholds of spans that are shown by default, or None if none are."""
        return None if self.precise is None else replace(self, wrong=self.precise)


OTHER_FAMILIES = "other"
# Thresholds by annotation scheme, input mode and family of the target language, chosen on held-out
# annotations.
Thresholds = Mapping[AnnotationScheme, Mapping[Against, Mapping[str, SpanThresholds]]]


def error_probabilities(logits: Float32Array) -> Float32Array:
    """Convert logits to error probabilities, (pieces, TAGS) -> (pieces, ERROR_COLUMNS)."""
    errors = np.zeros((len(logits), ERROR_COLUMNS), dtype=np.float32)
    for scheme, part in LOGITS.items():
        probabilities = _softmax(logits[:, part])
        errors[:, WRONG[scheme]] = 1 - probabilities[:, 0]
        if scheme in MAJOR:
            minor = probabilities[:, 1]
            major = probabilities[:, 2]
            errors[:, MAJOR[scheme]] = major / (minor + major)
    categories = _softmax(logits[:, CATEGORY_LOGITS])
    is_certain = categories.max(axis=1) >= MIN_CATEGORY_PROBABILITY
    errors[:, CATEGORY] = np.where(is_certain, 1 + categories.argmax(axis=1), 0)
    return errors


def extract_spans(
    text: str,
    places: TokenOffsets,
    errors: Float32Array,
    scheme: AnnotationScheme,
    thresholds: SpanThresholds,
) -> tuple[Span, ...]:
    """Return the error spans of a text: runs of words with a wrong piece.

    A span is major if one of its wrong pieces is. `places` are the offsets of the pieces; pieces
    beyond the rows of `errors` were not read and are not marked.
    """
    wrong = errors[:, WRONG[scheme]] >= thresholds.wrong
    return tuple(
        Span(
            start,
            end,
            severity=_severity(own, scheme, thresholds),
            category=_category(own),
            chance=min(1.0, round(float(own[:, WRONG[scheme]].max()), 4)),
        )
        for start, end, run in find_runs(text, places, extend_to_words(text, places, wrong))
        for own in [errors[run][wrong[run]]]  # without pieces that only complete a word
    )


def extend_to_words(text: str, places: TokenOffsets, values: Values) -> Values:
    """Give all pieces of each word its highest value, since annotators mark words.

    Values are flags of wrong pieces, or their probabilities. Texts in unspaced scripts are returned
    unchanged.

    >>> places, wrong = [(0, 2), (2, 6), (6, 7), (7, 11)], np.array([0, 0, 1, 0]) > 0
    >>> extend_to_words("we cats sat", places, wrong)
    array([False,  True,  True, False])
    """
    if not values.any() or script_share(text, UNSPACED_SCRIPTS) > 0.5:
        return values
    words, count = [0], 0  # word number of each character, shifted by one; 0 between words
    for letter in text:
        is_in_word = unicodedata.category(letter)[0] in "LMN"
        count += is_in_word and not words[-1]
        words.append(count if is_in_word else 0)
    pieces = places[: len(values)]
    owners = np.array(
        [next(filter(None, words[start + 1 : end + 1]), 0) for start, end in pieces], dtype=np.int64
    )
    highest = np.zeros(count + 1, dtype=values.dtype)
    np.maximum.at(highest, owners, values)
    return np.where(owners > 0, highest[owners], values)


def find_runs(text: str, places: TokenOffsets, bad: BoolArray) -> Iterator[tuple[int, int, slice]]:
    """Yield runs of adjacent wrong pieces: start and end in the text, and the pieces."""
    steps = np.flatnonzero(np.diff(bad.astype(np.int8), prepend=0, append=0))
    for first, last in steps.reshape(-1, 2):
        start, end = trim_span(text, places[first][0], places[last - 1][1])
        if start < end:
            yield start, end, slice(first, last)


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip blanks at both ends of a span and include combining marks of its last letter.

    Pieces come from composed letters, so a piece may end before a separate accent.

    >>> trim_span("a cat sat", 1, 6), trim_span("a cafe\\u0301.", 1, 6)
    ((2, 5), (2, 7))
    """
    marks = takewhile(lambda letter: unicodedata.category(letter)[0] == "M", text[end:])
    end += sum(1 for _ in marks)
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _severity(errors: Float32Array, scheme: AnnotationScheme, limits: SpanThresholds) -> Severity:
    if scheme not in MAJOR:
        return "bad"
    return "major" if (errors[:, MAJOR[scheme]] >= limits.major).any() else "minor"


def _category(errors: Float32Array) -> str:
    counts = np.bincount(errors[:, CATEGORY].astype(np.int64), minlength=1 + len(CATEGORIES))
    counts[0] = 0
    return CATEGORIES[int(counts.argmax()) - 1] if counts.any() else ""


def _softmax(logits: Float32Array) -> Float32Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-1e9))
    shares: Float32Array = powers / powers.sum(axis=1, keepdims=True)
    return shares
