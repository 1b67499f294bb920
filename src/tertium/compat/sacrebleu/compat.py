"""sacrebleu's functions (`sacrebleu.compat`), which the package exports too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

from tertium.compat.sacrebleu.metrics import BLEU, CHRF, TER, BLEUScore, CHRFScore, TERScore
from tertium.compat.sacrebleu.metrics.base import Streams

Scorer = TypeVar("Scorer", BLEU, CHRF, TER)


@lru_cache(maxsize=16, typed=True)
def _scorer(cls: type[Scorer], *settings: Any, **keywords: Any) -> Scorer:
    """Return a cached scorer: creating one takes longer than scoring a sentence."""
    return cls(*settings, **keywords)


def corpus_bleu(
    hypotheses: Sequence[str],
    references: Streams,
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    force: bool = False,
    lowercase: bool = False,
    tokenize: str = "13a",
    use_effective_order: bool = False,
) -> BLEUScore:
    """Compute corpus BLEU.

    >>> print(corpus_bleu(["the cat sat on the mat"], [["the cat sat on a mat"]]))
    BLEU = 53.73 83.3/60.0/50.0/33.3 (BP = 1.000 ratio = 1.000 hyp_len = 6 ref_len = 6)
    """
    settings = (lowercase, force, tokenize, smooth_method, smooth_value)
    scorer = _scorer(BLEU, *settings, effective_order=use_effective_order)
    score: BLEUScore = scorer.corpus_score(hypotheses, references)
    return score


def raw_corpus_bleu(
    hypotheses: Sequence[str], references: Streams, smooth_value: float | None = 0.1
) -> BLEUScore:
    """Compute corpus BLEU of tokenized texts, with effective order and floor smoothing."""
    return corpus_bleu(
        hypotheses, references, "floor", smooth_value, True, False, "none", use_effective_order=True
    )


def sentence_bleu(
    hypothesis: str,
    references: Sequence[str],
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    lowercase: bool = False,
    tokenize: str = "13a",
    use_effective_order: bool = True,
) -> BLEUScore:
    """Compute sentence BLEU, by default with effective order."""
    settings = (lowercase, False, tokenize, smooth_method, smooth_value)
    scorer = _scorer(BLEU, *settings, effective_order=use_effective_order)
    score: BLEUScore = scorer.sentence_score(hypothesis, references)
    return score


def corpus_chrf(
    hypotheses: Sequence[str],
    references: Streams,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> CHRFScore:
    """Compute corpus chrF."""
    settings = (char_order, word_order, beta, False, not remove_whitespace, eps_smoothing)
    scorer = _scorer(CHRF, *settings)
    score: CHRFScore = scorer.corpus_score(hypotheses, references)
    return score


def sentence_chrf(
    hypothesis: str,
    references: Sequence[str],
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    remove_whitespace: bool = True,
    eps_smoothing: bool = False,
) -> CHRFScore:
    """Compute sentence chrF."""
    settings = (char_order, word_order, beta, False, not remove_whitespace, eps_smoothing)
    scorer = _scorer(CHRF, *settings)
    score: CHRFScore = scorer.sentence_score(hypothesis, references)
    return score


def corpus_ter(
    hypotheses: Sequence[str],
    references: Streams,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> TERScore:
    """Compute corpus TER."""
    scorer = _scorer(TER, normalized, no_punct, asian_support, case_sensitive)
    score: TERScore = scorer.corpus_score(hypotheses, references)
    return score


def sentence_ter(
    hypothesis: str,
    references: Sequence[str],
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> TERScore:
    """Compute sentence TER."""
    scorer = _scorer(TER, normalized, no_punct, asian_support, case_sensitive)
    score: TERScore = scorer.sentence_score(hypothesis, references)
    return score
