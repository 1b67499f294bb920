"""Texts that are odd in a way that scores suffer from: counted in warnings, never mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from unicodedata import is_normalized, normalize

from tertium.segment import Segment
from tertium.text.language_identification import are_english, is_not_english

ENGLISH = frozenset({"en"})  # the languages of an encoder that knows no other
TOKENIZED = (" .", " 。")  # how a text ends that a tokenizer cut; a blank before "?" is French
TOKENIZED_TEXTS = tuple(
    f"{side} ends in a tokenized period" for side in ("hypothesis", "reference")
)


def count_not_english(segments: Sequence[Segment]) -> int:
    """How many segments have references that are not English, for metrics that know no other.

    All are where they are not English together: of 15,000 samples of English references, from one
    to 300 lines, none was taken for another language, of others all of ten lines or more. Else
    those that are clearly in another language, as in a test set of several.
    """
    first = [segment.references[0] for segment in segments if segment.references]
    return sum(map(is_not_english, first)) if are_english(first) else len(first)


def count_odd_texts(segments: Sequence[Segment]) -> dict[str, int]:
    """How many segments are odd in a way that any score suffers from; only counts above zero."""
    tokenized = [
        sum(_is_tokenized(s.hypothesis) for s in segments),
        sum(any(map(_is_tokenized, s.references)) for s in segments),
    ]
    counts = {
        "empty hypothesis": sum(not s.hypothesis.strip() for s in segments),
        "empty reference": sum(any(not r.strip() for r in s.references) for s in segments),
        "hypothesis equals source": sum(
            s.source is not None and bool(s.source.strip()) and s.hypothesis == s.source
            for s in segments
        ),
        "words of the reference in another Unicode form": sum(map(_differ_in_form, segments)),
        **dict(zip(TOKENIZED_TEXTS, tokenized, strict=True)),
    }
    return {kind: count for kind, count in counts.items() if count}


def leave_tokenized(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts without those of tokenized texts, for a metric that is given such on purpose."""
    return {kind: count for kind, count in counts.items() if kind not in TOKENIZED_TEXTS}


def _is_tokenized(text: str) -> bool:
    """Whether a text is not as people write it: sacrebleu asks the same of 100 lines.

    >>> _is_tokenized("A dog barks ."), _is_tokenized("A dog barks ..."), _is_tokenized(" . ")
    (True, False, False)
    """
    return text.strip().endswith(TOKENIZED)


def _differ_in_form(segment: Segment) -> bool:
    """Whether words would match if letters with accents were composed alike (NFC, NFD).

    >>> _differ_in_form(Segment("Cafe\\u0301", references=("Caf\\u00e9",)))
    True
    """
    texts = (segment.hypothesis, *segment.references)
    if all(text.isascii() or is_normalized("NFC", text) for text in texts):
        return False
    words = [{*text.split()} for text in texts]
    composed = [{normalize("NFC", word) for word in own} for own in words]
    pairs = zip(words[1:], composed[1:], strict=True)
    return any(len(words[0] & own) < len(composed[0] & alike) for own, alike in pairs)
