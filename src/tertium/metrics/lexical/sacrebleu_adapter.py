"""Adapter to sacrebleu: its statistics and signatures.

Statistics come from sacrebleu's own functions, so scores are identical. References and repeated
hypotheses are processed once for all systems of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import UnknownNameError
from tertium.core.runtime import progress_task
from tertium.core.segment import Segment

MAX_NGRAM_ORDER = 100  # longer n-grams are hardly ever shared


def sacrebleu_statistics(scorer: Any, segments: Sequence[Segment], title: str) -> FloatArray:
    """Return sacrebleu's statistics of each segment, (n, k), computed once per distinct segment."""
    groups: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for n, segment in enumerate(segments):
        groups.setdefault(segment.references, {}).setdefault(segment.hypothesis, []).append(n)
    rows: list[list[float]] = [[] for _ in segments]
    with progress_task(title, total=len(segments)) as advance:
        for references, hypotheses in groups.items():
            info = scorer._extract_reference_info([*map(scorer._preprocess_segment, references)])
            for hypothesis, equal in hypotheses.items():
                text = scorer._preprocess_segment(hypothesis)
                row = scorer._compute_segment_statistics(text, info)
                for n in equal:
                    rows[n] = row
            advance(sum(map(len, hypotheses.values())))
    return np.array(rows, dtype=np.float64)


def number_words(texts: Iterable[Sequence[str]]) -> tuple[IntArray, IntArray]:
    """Return the words of all texts as numbers, one after the other, and the text lengths.

    >>> number_words([["a", "cat"], ["a", "dog"]])
    (array([0, 1, 0, 2]), array([2, 2]))
    """
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in text] for text in texts]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.fromiter(chain.from_iterable(rows), np.int64, count=lengths.sum()), lengths


def check_tokenizer(name: str) -> None:
    """Raise an error unless this is one of sacrebleu's tokenizers."""
    from sacrebleu.metrics.bleu import BLEU as SacreBLEU

    if name not in SacreBLEU.TOKENIZERS:
        raise UnknownNameError("tokenizer", name, SacreBLEU.TOKENIZERS)


@lru_cache(maxsize=16, typed=True)
def load_sacrebleu_bleu(**settings: Any) -> Any:
    """Return sacrebleu's BLEU with these settings, cached: its tokenizer may be a large model."""
    from sacrebleu.metrics.bleu import BLEU as SacreBLEU

    from tertium.metrics.base.word_tokenizers import explain_tokenizer

    with explain_tokenizer(settings["tokenize"]):
        return SacreBLEU(force=True, **settings)


def sacrebleu_signature(scorer: Any) -> Mapping[str, str]:
    """Return the fields of sacrebleu's signature, without those that tertium adds itself."""
    scorer.num_refs = 1
    info = scorer.get_signature().info
    names = {True: "yes", False: "no"}
    fields = {
        key: names.get(value, value) if isinstance(value, bool) else str(value)
        for key, value in info.items()
        if value is not None and key not in ("nrefs", "version")
    }
    return {**fields, "sacrebleu": info["version"]}
