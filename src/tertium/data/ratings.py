"""From raw ratings to scores: each annotator's scale evened out, averaged, or one held out.

Direct assessment (Graham et al. 2013) asks for a number from 0 to 100, and annotators use that
scale differently. WMT subtracts each annotator's mean and divides by the annotator's standard
deviation before it averages the ratings of a translation.

A metric cannot agree with people better than they agree with each other: one rater of each
translation, held out, or a second campaign are a row of a table like a metric's, whose name begins
with `people`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tertium.arrays import generator
from tertium.data.human import Evidence
from tertium.data.judgments import JudgmentSet, merge_marks
from tertium.errors import DataError, UsageError
from tertium.scores import ScoreMatrix
from tertium.segment import Judgment

NO_ANNOTATOR = "no annotator"
CONSTANT = "annotator with fewer than two different ratings"
TOO_FEW = "fewer ratings than asked for"
ONE_RATER = "translation of one rater, who cannot be held out"
RATER = "rater"  # what is given instead of the files of a second campaign
PEOPLE = "people"


def standardise(ratings: JudgmentSet) -> JudgmentSet:
    """Ratings as z-scores of their annotator: (rating - mean) / sd.

    Mean and sd are over all of the annotator's ratings in the set; sd is the sample's (n - 1 in the
    denominator), as in WMT. Ratings without annotator, and those of annotators who only ever gave
    one value, have no z-score: they are left out and counted.
    """
    groups: dict[str, list[float]] = {}
    for rating in ratings.judgments:
        groups.setdefault(rating.annotator, []).append(rating.score)
    scales = {
        annotator: (float(np.mean(scores)), float(np.std(scores, ddof=1)))
        for annotator, scores in groups.items()
        if annotator and min(scores) < max(scores)
    }
    kept, left_out = [], Counter(ratings.left_out)
    for rating in ratings.judgments:
        if rating.annotator in scales:
            mean, deviation = scales[rating.annotator]
            kept.append(replace(rating, score=(rating.score - mean) / deviation))
        else:
            left_out[CONSTANT if rating.annotator else NO_ANNOTATOR] += 1
    return replace(ratings, judgments=tuple(kept), left_out=dict(left_out))


def average(ratings: JudgmentSet, *, minimum: int = 1) -> JudgmentSet:
    """One judgment for each translation of an item: the mean of its ratings, all their markings.

    A translation is (language pair, item, system, text). WMT asks for 15 ratings at segment level;
    translations with fewer than `minimum` are left out, and their ratings counted.
    """
    groups: dict[Judgment, list[Judgment]] = {}
    for rating in ratings.judgments:
        key = replace(rating, score=0.0, annotator="", markings=None)
        groups.setdefault(key, []).append(rating)
    left_out = Counter(ratings.left_out)
    kept = []
    for key, own in groups.items():
        if len(own) >= minimum:
            score = float(np.mean([rating.score for rating in own]))
            kept.append(replace(key, score=score, markings=merge_marks(own)))
        else:
            left_out[TOO_FEW] += len(own)
    return replace(ratings, judgments=tuple(kept), left_out=dict(left_out))


def even_out(people: Evidence) -> JudgmentSet:
    """Evidence with z-scores of each annotator, which a matrix averages."""
    if not isinstance(people, JudgmentSet):
        raise UsageError(f"{people.name}: --standardise goes with ratings that name annotators")
    return standardise(people)


def hold_out_rater(
    people: Evidence, level: str, *, seed: int = 12345
) -> tuple[Evidence, ScoreMatrix]:
    """The judgments less one rater of each translation, drawn by lot, and what those raters said.

    Translations with one rating leave nothing to compare; they are left out and counted.
    """
    if not isinstance(people, JudgmentSet):
        raise UsageError(
            f"{people.title}: a rater can be held out where people scored translations"
        )
    cells: dict[tuple[str, str], list[Judgment]] = {}
    for judgment in people.judgments:
        cells.setdefault((judgment.system, judgment.item), []).append(judgment)
    rng = generator(seed)
    held: list[Judgment] = []
    kept: list[Judgment] = []
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
    rest = replace(people, judgments=tuple(kept), left_out=dict(left_out))
    others = replace(people, judgments=tuple(held)).matrix(level)
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
            raise DataError(f"{name}: --ceiling has no judgments of this language pair")
        matrix = other.matrix(level)
        if matrix is None:
            raise UsageError(f"{other.title}: a ceiling needs human scores of segments")
        rows[name] = replace(matrix, name=f"{PEOPLE}: {other.name}")
    return rows
