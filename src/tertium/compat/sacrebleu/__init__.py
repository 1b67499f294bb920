"""sacrebleu's functions and classes, with the same arguments, attributes and numbers.

Replace `import sacrebleu` by `from tertium.compat import sacrebleu`, and `sacrebleu.MODULE` by
`tertium.compat.sacrebleu.MODULE`. Scores are computed from tertium's counts; `significance`,
`tokenizers`, `dataset`, `utils` and `version` are sacrebleu's own. Differences: corpus chrF, corpus
TER and sentence TER are faster, signatures also name tertium, and texts of different lengths are
an error.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import sacrebleu as original
from sacrebleu import tokenizers

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

SHARED_MODULES = (  # importable under the name of this package; classes stay the same
    *("dataset", "significance", "utils", "version", "metrics.helpers", "metrics.lib_ter"),
    *("tokenizers", *(f"tokenizers.{module.name}" for module in iter_modules(tokenizers.__path__))),
)
for path in SHARED_MODULES:
    parent, _, name = f"{__name__}.{path}".rpartition(".")
    module = sys.modules[f"{parent}.{name}"] = import_module(f"sacrebleu.{path}")
    setattr(sys.modules[parent], name, module)


def __getattr__(name: str) -> Any:
    """Return what is not replaced here, such as `DATASETS` and `smart_open`, from sacrebleu."""
    return getattr(original, name)
