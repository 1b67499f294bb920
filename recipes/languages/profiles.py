"""Compute `tertium/text/language_profiles.json`: n-grams and words that separate languages.

python -m recipes.languages.profiles DATA src/tertium/text/language_profiles.json
"""

from __future__ import annotations

import base64
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from recipes.languages.lines import language_lines
from tertium.core.arrays import FloatArray
from tertium.core.atomic import write_text
from tertium.text.language_identification import LANGUAGE_BY_SCRIPT, WORD_PATTERN, character_ngrams
from tertium.text.scripts import main_script

WEIGHT_SCALE = 16  # weights are integers: this many per natural logarithm
NGRAMS_PER_SCRIPT = 1500
CANDIDATES_PER_SCRIPT = 6 * NGRAMS_PER_SCRIPT
WORDS_PER_LANGUAGE = 60  # the most frequent ones
UNSEEN_FREQUENCY = 2e-6  # relative frequency of an unseen n-gram
UNSEEN_WORD_FREQUENCY = 5e-5


def main(data: Path, target: Path) -> None:
    texts = language_lines(data)
    by_script: dict[str, list[str]] = defaultdict(list)
    for language in sorted(texts):
        script = Counter(map(main_script, texts[language][:100])).most_common(1)[0][0]
        by_script[script].append(language)
    profiles = {
        script: build_profile(languages, texts)
        for script, languages in sorted(by_script.items())
        if script not in LANGUAGE_BY_SCRIPT
    }
    write_text(target, json.dumps(profiles, ensure_ascii=False, separators=(",", ":")) + "\n")


def build_profile(languages: list[str], texts: dict[str, list[str]]) -> dict[str, Any]:
    frequencies = [_ngram_frequencies(texts[language]) for language in languages]
    overall: Counter[str] = Counter()
    for frequency in frequencies:
        overall.update(frequency)
    candidates = [gram for gram, _ in overall.most_common(CANDIDATES_PER_SCRIPT)]
    table = np.array(
        [[frequency.get(gram, 0.0) for frequency in frequencies] for gram in candidates]
    )
    mean = table.mean(axis=1, keepdims=True)
    information = (table * np.log((table + 1e-7) / (mean + 1e-7))).sum(axis=1)
    chosen = np.argsort(-information, kind="stable")[:NGRAMS_PER_SCRIPT]
    words, word_table = _word_table([texts[language] for language in languages])
    return {
        "languages": languages,
        "ngrams": [candidates[place] for place in chosen],
        "weights": _encode_weights(table[chosen], UNSEEN_FREQUENCY),
        "words": words,
        "word_weights": _encode_weights(word_table, UNSEEN_WORD_FREQUENCY),
    }


def _word_table(texts: list[list[str]]) -> tuple[list[str], FloatArray]:
    """Return the most frequent words of all languages and their frequencies in each."""
    frequencies = [
        _frequencies(word for text in own for word in WORD_PATTERN.findall(text.lower()))
        for own in texts
    ]
    frequent = {
        word
        for own in frequencies
        for word in sorted(own, key=lambda word: (-own[word], word))[:WORDS_PER_LANGUAGE]
    }
    words = sorted(frequent)
    return words, np.array([[own.get(word, 0.0) for own in frequencies] for word in words])


def _encode_weights(table: FloatArray, unseen: float) -> str:
    """Return how much more often each row occurs in a language than in others, as bytes."""
    logs = np.log(table + unseen)
    logs -= logs.mean(axis=1, keepdims=True)
    weights = np.clip(np.round(WEIGHT_SCALE * logs), -127, 127).astype(np.int8)
    return base64.b64encode(weights.tobytes()).decode()


def _ngram_frequencies(texts: list[str]) -> dict[str, float]:
    return _frequencies(gram for text in texts for gram in character_ngrams(text))


def _frequencies(items: Iterable[str]) -> dict[str, float]:
    counts = Counter(items)
    total = counts.total()
    return {item: count / total for item, count in counts.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
