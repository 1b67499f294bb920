"""People beside metrics: a metric cannot agree with people better than they agree with each other.

One rater of each translation, held out, or a second campaign are a row of the table like a
metric's; its name begins with `people`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from tertium.arrays import generator
from tertium.data.judgements import Evidence, JudgementSet
from tertium.errors import DataError, UsageError
from tertium.scores import ScoreMatrix
from tertium.segment import Judgement

RATER = "rater"  # what is given instead of files
PEOPLE = "people"
ONE_RATER = "translation of one rater, who cannot be held out"


def hold_out_rater(
    people: Evidence, level: str, *, seed: int = 12345
) -> tuple[Evidence, ScoreMatrix]:
    """The judgements less one rater of each translation, drawn by lot, and what those raters said.

    Translations with one rating leave nothing to compare; they are left out and counted.
    """
    if not isinstance(people, JudgementSet):
        raise UsageError(
            f"{people.title}: a rater can be held out where people scored translations"
        )
    cells: dict[tuple[str, str], list[Judgement]] = {}
    for judgement in people.judgements:
        cells.setdefault((judgement.system, judgement.item), []).append(judgement)
    rng = generator(seed)
    held: list[Judgement] = []
    kept: list[Judgement] = []
    for ratings in cells.values():
        place = int(rng.integers(len(ratings)))
        if len({rating.annotator for rating in ratings}) > 1:
            held.append(ratings[place])
            kept += ratings[:place] + ratings[place + 1 :]
    if not held:
        raise DataError(
            f"{people.title}: no translation has ratings of two annotators, so none is held out; "
            "give a second campaign, --ceiling FILE"
        )
    alone = len(cells) - len(held)
    left_out = Counter(people.left_out) + Counter({ONE_RATER: alone} if alone else {})
    rest = replace(people, judgements=tuple(kept), left_out=dict(left_out))
    others = replace(people, judgements=tuple(held)).matrix(level)
    return rest, replace(others, name=f"{PEOPLE}: held-out rater")


def second_campaign(
    people: Mapping[str, Evidence], others: Mapping[str, Evidence], level: str
) -> dict[str, ScoreMatrix]:
    """What a second campaign said of the sets of a first, by the name of the set."""
    by_lp = {entry.lp: entry for entry in others.values()}
    rows = {}
    for name, entry in people.items():
        other = others.get(name) or by_lp.get(entry.lp)
        if other is None and len(people) == len(others) == 1:
            other = next(iter(others.values()))
        if other is None:
            raise DataError(f"{name}: --ceiling has no judgements of this language pair")
        matrix = other.matrix(level)
        if matrix is None:
            raise UsageError(f"{other.title}: a ceiling needs human scores of segments")
        rows[name] = replace(matrix, name=f"{PEOPLE}: {other.name}")
    return rows
