"""TER: translation edit rate with block shifts (Snover et al. 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.runtime import track_progress
from tertium.core.segment import Segment
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.text_warnings import Flags
from tertium.metrics.base.word_tokenizers import flag_unsegmented
from tertium.metrics.lexical.sacrebleu_adapter import sacrebleu_signature
from tertium.text.ter_edits import count_edits


@dataclass(frozen=True, kw_only=True)
class TER(Metric):
    """Edits per reference word, in percent; lower is better and 0 is perfect.

        TER = 100 min_r edits(hypothesis, r) / mean_r |r|

    An edit inserts, deletes or substitutes a word, or shifts a block of words. The score can exceed
    100. For empty references it is 100, or 0 if the hypothesis is empty too. Scores equal
    sacrebleu's on every input; the search is our own and many times faster.

    Settings:

    - `normalized`: split off punctuation, as Tercom does. `no_punct`: remove punctuation.
    - `asian_support`: extend both to Chinese and Japanese characters.
    - `case_sensitive`: distinguish upper and lower case.

    The statistics count edits by kind. `tertium.text.ter_edits.count_edits` counts them for one
    pair of texts with custom costs.

    See also: word error rate is TER without shifts.

    >>> TER().sentence_score("on the mat sat a cat", ["a cat sat on the mat"])
    33.33333333333333
    """

    name: ClassVar[str] = "ter"
    title: ClassVar[str] = "TER"
    higher_is_better: ClassVar[bool] = False
    decimals: ClassVar[int] = 2
    citation: ClassVar[str] = """\
@inproceedings{snover-etal-2006-study,
    title = "A Study of Translation Edit Rate with Targeted Human Annotation",
    author = "Snover, Matthew and Dorr, Bonnie and Schwartz, Rich and Micciulla, Linnea and
        Makhoul, John",
    booktitle = "Proceedings of AMTA", year = "2006", pages = "223--231"
}"""

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            "edits",
            "reference_length",
            "insertions",
            "deletions",
            "substitutions",
            "shifts",
            "hypothesis_length",
        )

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

        tokenizer = TercomTokenizer(**asdict(self))

        def tokenize(text: str) -> str:
            return tokenizer(text.rstrip())

        @cache
        def row(hypothesis: str, references: tuple[str, ...]) -> list[float]:
            # As in sacrebleu; tokenizing twice can differ from tokenizing once.
            texts = tuple(tokenize(tokenize(reference)) for reference in references)
            return best_edits(tokenize(hypothesis), texts)

        rows = [row(s.hypothesis, s.references) for s in track_progress(segments, self.title)]
        return np.array(rows, dtype=np.float64)

    def reduce(self, totals: FloatArray) -> FloatArray:
        edits = totals[..., 0]
        length = totals[..., 1]
        rate = np.divide(edits, length, out=np.zeros_like(edits), where=length > 0)
        return 100 * np.where((length <= 0) & (edits > 0), 1.0, rate)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        splits_characters = self.normalized and self.asian_support
        unsegmented = {} if splits_characters else flag_unsegmented(segments)
        return super().flags(segments) | unsegmented

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        from sacrebleu.metrics.ter import TER as SacreTER

        return sacrebleu_signature(SacreTER(**asdict(self)))

    def verbose(self, totals: FloatArray) -> str:
        edits, length, insertions, deletions, substitutions, shifts, _ = totals
        return (
            f"{edits:.0f} edits (ins = {insertions:.0f} del = {deletions:.0f} "
            f"sub = {substitutions:.0f} shift = {shifts:.0f}) ref_len = {length:.1f}"
        )


def best_edits(hypothesis: str, references: Sequence[str]) -> list[float]:
    """Return the statistics of a hypothesis and its references, all tokenized.

    >>> best_edits("a cat sat", ["the cat was sitting", "a cat was sitting"])
    [2, 4.0, 1, 0, 1, 0, 3]
    """
    words = hypothesis.split()
    targets = [reference.split() for reference in references]
    best = min((count_edits(words, target) for target in targets), key=lambda edits: edits.total)
    length = sum(len(target) for target in targets) / len(targets)
    return [best.total, length, *best, len(words)]
