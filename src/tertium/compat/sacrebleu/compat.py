"""sacrebleu's functions (`sacrebleu.compat`), which the package exports too.

They are the functions of sacrebleu with the classes of this package in place of its own.

>>> print(corpus_bleu(["the cat sat on the mat"], [["the cat sat on a mat"]]))
BLEU = 53.73 83.3/60.0/50.0/33.3 (BP = 1.000 ratio = 1.000 hyp_len = 6 ref_len = 6)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

from sacrebleu import compat

from tertium.compat.sacrebleu.metrics import METRICS

# Scorers are kept: creating one takes longer than scoring a sentence.
_NAMES: dict[str, Any] = {
    name: lru_cache(maxsize=16, typed=True)(scorer) for name, scorer in METRICS.items()
}


def _replace_classes(name: str) -> Callable[..., Any]:
    """Return a function of sacrebleu that finds the classes of this package under their names."""
    theirs = getattr(compat, name)
    ours = FunctionType(theirs.__code__, _NAMES, name, theirs.__defaults__)
    ours.__doc__ = theirs.__doc__
    ours.__module__ = __name__
    _NAMES[name] = ours  # other functions call it
    return ours


corpus_bleu = _replace_classes("corpus_bleu")
raw_corpus_bleu = _replace_classes("raw_corpus_bleu")
sentence_bleu = _replace_classes("sentence_bleu")
corpus_chrf = _replace_classes("corpus_chrf")
sentence_chrf = _replace_classes("sentence_chrf")
corpus_ter = _replace_classes("corpus_ter")
sentence_ter = _replace_classes("sentence_ter")
