"""Checks of length: truncated, looping, too short, too long.

`length_ratios.json` holds for each language the mean and the standard deviation of the logarithm
of its length in characters relative to English, on parallel lines. It is made by
`python -m recipes.checks.lengths`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import compress
from operator import eq

from tertium.checks.check import (
    Findings,
    PairSettings,
    TranslationPair,
    declare_check,
)

MIN_RATIO_CHARACTERS = 25  # of the longer text; shorter ones vary too much
MIN_DEVIATIONS = -3.25
MAX_DEVIATIONS = 4.5  # translations add explanations more often
MIN_TAIL_DEVIATIONS = 3.5  # of a translation with more sentences than its source
SENTENCE = re.compile(r"\S[^.!?。！？؟।॥።។။۔։\n]*(?:[.!?؟।॥።។။۔։]+(?=\s|$|[\"'”’»)])|[。！？\n]|$)")
MEASURED_CHARACTERS = 130  # mean length of the lines that the ratios were measured on
MIN_LOOP_CHARACTERS = 24
LOOP = re.compile(r"(?=(\S.{0,59}?)(\1{3,}))")
SENTENCE_ENDS = tuple(".!?。！？؟।॥።។။۔։…:")
CLOSING = "\"'”’»“)]）」』 \u00a0"
OPEN_ENDS = (*",，、(（[«„", " -", " –")
# languages that often end a sentence without a mark
UNMARKED_LANGUAGES = frozenset({"th", "lo", "km", "my", "bo"})
PROBE = 8  # characters that are counted to find a loop


@cache
def length_ratios() -> Mapping[str, tuple[float, float]]:
    """Return the mean and deviation of log(length / length in English) by language."""
    text = files("tertium.checks").joinpath("length_ratios.json").read_text("utf-8")
    return {language: (row[0], row[1]) for language, row in json.loads(text).items()}


@cache
def expected_log_ratio(source: str, target: str) -> tuple[float, float] | None:
    """Return mean and deviation of log(target / source length), None for unknown languages."""
    ratios = length_ratios()
    if source not in ratios or target not in ratios:
        return None
    mean, deviation = ratios[source]
    their_mean, their_deviation = ratios[target]
    return their_mean - mean, max(deviation, their_deviation)


def length_deviations(pair: TranslationPair) -> float:
    """Return by how many standard deviations a translation is longer than expected."""
    lengths = len(pair.source), len(pair.hypothesis)
    return _length_deviations(lengths, pair.source_language, pair.target_language)


@lru_cache(1024)  # several checks of a batch ask for it
def _length_deviations(lengths: tuple[int, int], source: str, target: str) -> float:
    """Compute the deviations; shorter texts vary more, with the square root of 130 / length."""
    expected = expected_log_ratio(source, target)
    if expected is None or max(lengths) < MIN_RATIO_CHARACTERS or not all(lengths):
        return 0.0
    mean, deviation = expected
    longer = max(lengths[0], lengths[1] / math.exp(mean))
    deviation *= math.sqrt(max(1.0, MEASURED_CHARACTERS / longer))
    return (math.log(lengths[1] / lengths[0]) - mean) / deviation


@declare_check(
    "truncation",
    "major",
    "He came home, but nobody was there.",
    "Er kam heim, aber niemand war da.",
    "Er kam heim,",
    languages="all but Burmese, Khmer, Lao, Thai and Tibetan",
)
def find_truncation(pair: TranslationPair) -> Findings:
    """The translation does not end in the middle of a sentence."""
    source = pair.source.rstrip()
    target = pair.hypothesis.rstrip()
    if not target or target.endswith(SENTENCE_ENDS):
        return
    if pair.target_language in UNMARKED_LANGUAGES:
        return
    if target.endswith(OPEN_ENDS):
        is_cut = not source.endswith(OPEN_ENDS)
    elif target.rstrip(CLOSING).endswith(SENTENCE_ENDS):
        is_cut = False
    else:
        is_cut = source.rstrip(CLOSING).endswith(SENTENCE_ENDS) and length_deviations(pair) < -2
    if not is_cut:
        return
    start = len(target) - len(pair.words[-1])
    yield "hypothesis", start, len(target), "the translation seems to be cut"


@declare_check(
    "repetition",
    "major",
    "It is very, very big.",
    "Es ist sehr, sehr groß.",
    "Es ist sehr sehr sehr sehr sehr sehr groß.",
    reads_source=False,
)
def find_loops(pair: TranslationPair) -> Findings:
    """The translation does not repeat the same words again and again."""
    text = pair.hypothesis
    words = pair.words
    may_loop = pair.repeated_words > 1 and _repeats_evenly(words)
    if not may_loop and max(map(len, words), default=0) < MIN_LOOP_CHARACTERS:
        return
    for start in range(0, len(text) - PROBE, 2 * PROBE):
        if text.count(text[start : start + PROBE]) > 2:
            loop = _read_loop(text, max(0, start - 60))
            if loop is None or _read_loop(pair.source):
                continue
            unit = text[loop[0] : loop[1]][:30].strip()
            yield "hypothesis", *loop, f"{unit!r} repeats the same text"
            return


def _repeats_evenly(words: list[str]) -> bool:
    """Tell whether a word occurs three times at equal distances, as in any loop of words."""
    in_order = sorted(words)
    for word in {*compress(in_order, map(eq, in_order, in_order[2:]))}:
        places = {n for n, own in enumerate(words) if own == word}
        if any(2 * b - a in places for a in places for b in places if a < b):
            return True
    return False


def _read_loop(text: str, start: int = 0) -> tuple[int, int] | None:
    for match in LOOP.finditer(text, start):
        loop = match[1] + match[2]
        if len(loop) >= MIN_LOOP_CHARACTERS and any(map(str.isalpha, loop)):
            return match.start(), match.start() + len(loop)
    return None


@declare_check(
    "length-ratio",
    "major",
    "The parliament rejected the budget on Tuesday after a long debate about the costs of "
    "new schools, roads and hospitals in the poorest regions of the country.",
    "Das Parlament lehnte den Haushalt am Dienstag nach langer Debatte über die Kosten neuer "
    "Schulen, Straßen und Krankenhäuser in den ärmsten Regionen des Landes ab.",
    "Das Parlament tagte.",
    languages="59 languages",
)
def find_length_error(pair: TranslationPair) -> Findings:
    """The translation is not far shorter or longer than is usual for the two languages."""
    deviations = length_deviations(pair)
    if MIN_DEVIATIONS < deviations < MAX_DEVIATIONS:
        return
    kind = "short" if deviations < 0 else "long"
    lengths = f"{len(pair.hypothesis)} characters for {len(pair.source)}"
    yield "hypothesis", 0, len(pair.hypothesis), f"the translation is too {kind}: {lengths}"


@declare_check(
    "added-text",
    "major",
    "The door is open now.",
    "Die Tür ist jetzt offen.",
    "Die Tür ist jetzt offen. Der Vater kam gestern Abend sehr spät nach Hause und fand "
    "niemanden mehr. Am nächsten Morgen war alles anders.",
    languages="59 languages",
)
def find_added_text(pair: TranslationPair) -> Findings:
    """The translation has no sentences after the end of the source."""
    if length_deviations(pair) < MIN_TAIL_DEVIATIONS:
        return
    sentences = max(1, len(SENTENCE.findall(pair.source)))
    ends = [match.end() for match in SENTENCE.finditer(pair.hypothesis)]
    if len(ends) <= sentences or not pair.hypothesis[ends[sentences - 1] :].strip():
        return
    start = ends[sentences - 1]
    start += len(pair.hypothesis[start:]) - len(pair.hypothesis[start:].lstrip())
    count = f"{len(ends)} sentences for {sentences}"
    yield "hypothesis", start, len(pair.hypothesis), f"text is added: {count}"


@declare_check(
    "max-length",
    "major",
    "Save",
    "Sichern",
    "Speichern unter",
    reads_source=False,
    settings=PairSettings(max_length=8),
)
def find_excess_length(pair: TranslationPair) -> Findings:
    """The translation has at most as many characters as the settings allow (max_length)."""
    limit = pair.settings.max_length
    size = len(pair.hypothesis)
    if 0 < limit < size:
        yield "hypothesis", limit, size, f"{size} characters: at most {limit} are allowed"
