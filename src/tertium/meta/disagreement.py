"""Where two metrics part on good translations (Shimanaka et al. 2018, section 4.4).

Of the translations people rate best, which does only one of two metrics rate high? A metric rates
high what stands in the same share of its own scores. Traits of the texts then tell what kind of
translation each of them misses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import BoolArray, FloatArray
from tertium.errors import LengthError, UsageError


@dataclass(frozen=True, kw_only=True, eq=False)
class Disagreement:
    """Masks over judgements, (n,): what people rate best, and what each metric rates high."""

    best: BoolArray
    first: BoolArray
    second: BoolArray

    def counts(self, trait: BoolArray | None = None) -> dict[str, int]:
        """How many of the best have a trait, by who rates them high."""
        best = self.best if trait is None else self.best & trait
        return {
            "only first": int((best & self.first & ~self.second).sum()),
            "only second": int((best & ~self.first & self.second).sum()),
            "both": int((best & self.first & self.second).sum()),
            "neither": int((best & ~self.first & ~self.second).sum()),
        }

    def table(self, traits: Mapping[str, BoolArray]) -> dict[str, dict[str, int]]:
        """The counts of all, and of those with each trait."""
        return {"all": self.counts()} | {name: self.counts(mask) for name, mask in traits.items()}


def disagreement(
    human: FloatArray,
    first: FloatArray,
    second: FloatArray,
    groups: Sequence[str],
    *,
    share: float = 0.2,
) -> Disagreement:
    """Compare two metrics on the top `share` of each group (language pair) by human score.

    >>> human = np.array([5.0, 4, 3, 2, 1])
    >>> found = disagreement(human, human, -human, ["cs-en"] * 5, share=0.2)
    >>> found.counts()
    {'only first': 1, 'only second': 0, 'both': 0, 'neither': 0}
    """
    if not len(human) == len(first) == len(second) == len(groups):
        raise LengthError(
            f"{len(human)} human scores, {len(first)} and {len(second)} metric scores, "
            f"{len(groups)} groups: they must be as many"
        )
    if not 0 < share < 1:
        raise UsageError(f"a share of {share:g}: expected between 0 and 1")
    return Disagreement(
        best=top(human, groups, share),
        first=top(first, groups, share),
        second=top(second, groups, share),
    )


def top(scores: FloatArray, groups: Sequence[str], share: float) -> BoolArray:
    """The highest `share` of each group; of equal scores at the edge the earlier."""
    names = np.asarray(groups)
    result = np.zeros(len(scores), dtype=bool)
    for name in dict.fromkeys(groups):
        rows = np.flatnonzero(names == name)
        order = rows[np.argsort(-scores[rows], kind="stable")]
        result[order[: round(share * len(rows))]] = True
    return result
