"""sacrebleu's functions and classes, with its arguments, its attributes and its numbers.

Replace `import sacrebleu` by `from tertium.compat import sacrebleu`, and `sacrebleu.metrics` by
`tertium.compat.sacrebleu.metrics`. What changes is the speed of TER, and the signature, which names
tertium as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tertium.compat.sacrebleu.metrics import BLEU, CHRF, TER, Score, Streams

__all__ = [
    "BLEU",
    "CHRF",
    "TER",
    "Score",
    "corpus_bleu",
    "corpus_chrf",
    "corpus_ter",
    "sentence_bleu",
    "sentence_chrf",
    "sentence_ter",
]


def corpus_bleu(
    hypotheses: Sequence[str],
    references: Streams,
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    force: bool = False,
    lowercase: bool = False,
    tokenize: str = "13a",
    use_effective_order: bool = False,
) -> Score:
    """BLEU of a corpus.

    >>> print(corpus_bleu(["the cat sat on the mat"], [["the cat sat on a mat"]]))
    BLEU = 53.73 83.3/60.0/50.0/33.3 (BP = 1.000 ratio = 1.000 hyp_len = 6 ref_len = 6)
    """
    scorer = BLEU(
        lowercase, force, tokenize, smooth_method, smooth_value, effective_order=use_effective_order
    )
    return scorer.corpus_score(hypotheses, references)


def sentence_bleu(
    hypothesis: str,
    references: Sequence[str],
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    lowercase: bool = False,
    tokenize: str = "13a",
    use_effective_order: bool = True,
) -> Score:
    """BLEU of one sentence, by default with effective order."""
    scorer = BLEU(
        lowercase, False, tokenize, smooth_method, smooth_value, effective_order=use_effective_order
    )
    return scorer.sentence_score(hypothesis, references)


def corpus_chrf(
    hypotheses: Sequence[str],
    references: Streams,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> Score:
    """chrF of a corpus."""
    scorer = CHRF(
        char_order, word_order, beta, whitespace=not remove_whitespace, eps_smoothing=eps_smoothing
    )
    return scorer.corpus_score(hypotheses, references)


def sentence_chrf(
    hypothesis: str,
    references: Sequence[str],
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> Score:
    """chrF of one sentence."""
    scorer = CHRF(
        char_order, word_order, beta, whitespace=not remove_whitespace, eps_smoothing=eps_smoothing
    )
    return scorer.sentence_score(hypothesis, references)


def corpus_ter(hypotheses: Sequence[str], references: Streams, **options: Any) -> Score:
    """TER of a corpus; options as of `TER`."""
    return TER(**options).corpus_score(hypotheses, references)


def sentence_ter(hypothesis: str, references: Sequence[str], **options: Any) -> Score:
    """TER of one sentence; options as of `TER`."""
    return TER(**options).sentence_score(hypothesis, references)
