"""TER: how many edits would repair a translation, block shifts among them (Snover et al. 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.metric import Metric
from tertium.metrics.lexical.sacre import count_unsplit, sacre_signature
from tertium.runtime import track
from tertium.segment import Segment
from tertium.text.edits import count_edits


@dataclass(frozen=True, kw_only=True)
class TER(Metric):
    """Edits per word of the reference, in percent; 0 is perfect, above 100 is possible.

        TER = 100 min_r edits(hypothesis, r) / mean_r |r|

    An edit inserts, deletes or substitutes a word, or shifts a block of words. The reference with
    the fewest edits counts, the average length divides. Scores equal sacrebleu's on every input, by
    a search of our own that is many times faster. Against empty references the score is 100, or 0
    for an empty hypothesis.

    `normalized` splits off punctuation as Tercom does, `no_punct` drops it, `asian_support` extends
    both to Chinese and Japanese characters; `case_sensitive` keeps capitals.

    The statistics count the edits by kind; `tertium.text.edits.count_edits` gives them for one pair
    of texts under costs of one's choice. Relatives: a word error rate has no shifts.

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
            tokenized: str = tokenizer(text.rstrip())
            return tokenized

        @cache
        def row(hypothesis: str, references: tuple[str, ...]) -> list[float]:
            # sacrebleu tokenizes references twice, which is not always the same as once.
            texts = tuple(tokenize(tokenize(reference)) for reference in references)
            return best_edits(tokenize(hypothesis), texts)

        rows = [row(s.hypothesis, s.references) for s in track(segments, self.title)]
        return np.array(rows, dtype=np.float64)

    def reduce(self, totals: FloatArray) -> FloatArray:
        edits, length = totals[..., 0], totals[..., 1]
        rate = np.divide(edits, length, out=np.zeros_like(edits), where=length > 0)
        return 100 * np.where((length <= 0) & (edits > 0), 1.0, rate)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        unsplit = count_unsplit(segments) if not (self.normalized and self.asian_support) else {}
        return super().warnings(segments) | unsplit

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        from sacrebleu.metrics.ter import TER as SacreTER

        return sacre_signature(SacreTER(**asdict(self)))

    def verbose(self, totals: FloatArray) -> str:
        edits, length, insertions, deletions, substitutions, shifts, _ = totals
        return (
            f"{edits:.0f} edits (ins = {insertions:.0f} del = {deletions:.0f} "
            f"sub = {substitutions:.0f} shift = {shifts:.0f}) ref_len = {length:.1f}"
        )


def best_edits(hypothesis: str, references: Sequence[str]) -> list[float]:
    """The row of statistics of a hypothesis and its references, as texts of words and spaces.

    >>> best_edits("a cat sat", ["the cat was sitting", "a cat was sitting"])
    [2, 4.0, 1, 0, 1, 0, 3]
    """
    words = hypothesis.split()
    targets = [reference.split() for reference in references]
    best = min((count_edits(words, target) for target in targets), key=lambda edits: edits.total)
    length = sum(len(target) for target in targets) / len(targets)
    return [best.total, length, *best, len(words)]
