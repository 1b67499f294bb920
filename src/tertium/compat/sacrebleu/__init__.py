"""sacrebleu's functions and classes, with the same arguments, attributes and numbers.

Replace `import sacrebleu` by `from tertium.compat import sacrebleu`, and `sacrebleu.MODULE` by
`tertium.compat.sacrebleu.MODULE`. Scores are computed from tertium's counts; `significance`,
`tokenizers`, `dataset`, `utils` and `version` are sacrebleu's own. Differences: corpus chrF, corpus
TER and sentence TER are faster, signatures also name tertium, and texts of different lengths are
an error.
"""

from __future__ import annotations

from typing import Any

import sacrebleu as original

from tertium.compat.sacrebleu.compat import (
    corpus_bleu,
    corpus_chrf,
    corpus_ter,
    raw_corpus_bleu,
    sentence_bleu,
    sentence_chrf,
    sentence_ter,
)
from tertium.compat.sacrebleu.metrics import BLEU, CHRF, TER

__all__ = [  # repeated for type checkers
    "BLEU",
    "CHRF",
    "TER",
    "corpus_bleu",
    "corpus_chrf",
    "corpus_ter",
    "raw_corpus_bleu",
    "sentence_bleu",
    "sentence_chrf",
    "sentence_ter",
    *original.__all__,
]


def __getattr__(name: str) -> Any:
    """Return what is not replaced here, such as `DATASETS` and `smart_open`, from sacrebleu."""
    return getattr(original, name)
