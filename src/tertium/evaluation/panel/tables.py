"""Doubts that scores and single texts answer: sentinels, chance, the best systems, domains.

Sentinels are regressions that read only the source, only the translation or only the reference. One
that sees nothing else cannot know a translation's quality; as far as it agrees with people, so may
a metric for the wrong reason (Perrella et al. 2024, "Guardians of the Machine Translation
Meta-Evaluation: Sentinel Metrics Fall In!", ACL). Ours are ridge regressions on surface features
(length, digits, capitals, punctuation, words repeated, hashed character trigrams). They are fitted
to people's scores in five parts of the items and score the part that they did not see.
"""

from __future__ import annotations

import zlib

import numpy as np

from tertium.arrays import FloatArray, generator, mean_known
from tertium.data.slices import slice_items
from tertium.errors import TertiumError
from tertium.evaluation.panel.case import MOST_POOLED, Case, Doubt, NotAsked, weighted_means
from tertium.segment import Segment

FOLDS, HASHES = 5, 256
STRENGTH = 10.0  # of the ridge, in units of standardised features
FEWEST = 50


def ask_sentinels(case: Case) -> Doubt:
    """Metrics beside sentinels, over all translations and within the translations of an item."""
    cells = list(case.texts)
    if len(cells) < FEWEST:
        raise NotAsked(f"sentinels learn from {FEWEST} judged texts or more, of {len(cells)}")
    places = np.array([case.places[cell] for cell in cells]).T  # (2, cells)
    target = case.human[tuple(places)]
    folds = np.array([case.lot(item) % FOLDS for _, item in cells])
    rows = dict(case.tables)
    for side in ("source", "translation", "reference"):
        texts = [_side(case.texts[cell], side) for cell in cells]
        if any(texts):
            table = np.full(case.human.shape, np.nan)
            table[tuple(places)] = cross_fit(texts, target, folds)
            rows[f"{side} only"] = table
    series = {"all translations": "none"}
    if case.several.sum() * 2 >= case.several.size:
        series["within an item"] = "item"
    found = [case.agreement(rows, "pearson", by=by) for by in series.values()]
    return Doubt(
        name="sentinels",
        question="Could it agree with people without comparing anything?",
        rows=tuple(rows),
        series=tuple(series),
        values=np.stack([own.values for own in found], axis=-1),
        draws=np.stack([own.replicates for own in found], axis=-1),
        label="Pearson r with people",
        rule=0.0,
        notes=(f"sentinels: ridge regressions on surface features, cross-fitted in {FOLDS} parts",),
    )


def _side(segment: Segment, side: str) -> str:
    if side == "translation":
        return segment.hypothesis
    return (segment.source or "") if side == "source" else "".join(segment.references[:1])


def cross_fit(texts: list[str], target: FloatArray, folds: np.ndarray) -> FloatArray:
    """For each text what a ridge regression predicts that was fitted on the other parts."""
    distinct = list(dict.fromkeys(texts))
    number = {text: n for n, text in enumerate(distinct)}
    where = np.array([number[text] for text in texts])
    every = np.stack([surface_features(text) for text in distinct])
    features = every[where]
    predicted = np.empty(len(texts))
    for fold in np.unique(folds):
        held = folds == fold
        if held.all():
            raise NotAsked("all translations are of one item")
        middle, spread = features[~held].mean(axis=0), features[~held].std(axis=0)
        known = (features[~held] - middle) / np.where(spread > 0, spread, 1.0)
        mean = target[~held].mean()
        gram = known.T @ known + STRENGTH * np.eye(known.shape[1])
        weights = np.linalg.solve(gram, known.T @ (target[~held] - mean))
        shown = (every - middle) / np.where(spread > 0, spread, 1.0)
        predicted[held] = mean + (shown @ weights)[where[held]]  # equal texts, equal bits
    return predicted


def surface_features(text: str) -> FloatArray:
    """What a glance at a text tells, (8 + HASHES,)."""
    words, size = text.split(), max(len(text), 1)
    plain = [
        np.log1p(len(text)),
        np.log1p(len(words)),
        size / max(len(words), 1),
        sum(map(str.isdecimal, text)) / size,
        sum(map(str.isupper, text)) / size,
        sum(not (c.isalnum() or c.isspace()) for c in text) / size,
        len(set(words)) / max(len(words), 1),
        sum(not c.isascii() for c in text) / size,
    ]
    hashed = np.zeros(HASHES)
    for n in range(len(text) - 2):
        hashed[zlib.crc32(text[n : n + 3].lower().encode()) % HASHES] += 1
    return np.concatenate([plain, np.sqrt(hashed / size)])


SHUFFLES = 5  # of a metric's scores, whose mean is the level of chance
FEWEST_SYSTEMS = 4
FEWEST_JUDGED = 20  # translations of a slice
MOST_SLICES = 40


def ask_chance(case: Case) -> Doubt:
    """acc*eq of a metric, of its own scores shuffled, and of one score for all.

    Ties are calibrated on the data that are measured, so chance is not at one half.
    """
    by, human, tables = _pairable(case)
    rng = generator(case.seed)
    known = ~np.isnan(human)
    groups = [np.nonzero(known)]  # the cells that change places with each other
    if by == "item":
        items = np.flatnonzero(known.sum(axis=0) > 1)
        groups = [(np.flatnonzero(known[:, n]), np.array([n])) for n in items]
    shuffled = {}
    for name, table in tables.items():
        for n in range(SHUFFLES):
            mixed = table.copy()
            for cells in groups:
                mixed[cells] = rng.permutation(table[cells])
            shuffled[f"{name} {n}"] = mixed
    level = {"all tied": np.where(known, 0.0, np.nan)}
    own, chance, tied = (
        case.agreement(part, "acc-eq*", by=by, human=human) for part in (tables, shuffled, level)
    )
    rows = ("the metric", "its scores shuffled", "one score for all")
    return Doubt(
        name="chance",
        question="How far from chance is acc*eq?",
        rows=rows,
        series=tuple(tables),
        values=_levels(own.values, chance.values, tied.values),
        draws=_levels(own.replicates, chance.replicates, tied.replicates),
        label="acc*eq" + (" by item" if by == "item" else ""),
        span=(0.0, 1.0),
        rule=float(chance.values.mean()),
    )


def _levels(own: FloatArray, chance: FloatArray, tied: FloatArray) -> FloatArray:
    """What is of metrics, of all shuffles and of one score for all, (..., 3, metrics)."""
    shuffled = chance.reshape(*own.shape, SHUFFLES).mean(axis=-1)
    return np.stack([own, shuffled, np.broadcast_to(tied, own.shape)], axis=-2)


def _pairable(case: Case) -> tuple[str, FloatArray, dict[str, FloatArray]]:
    """How pairs are made, and the cells they are made of: of one item, or of any where few are."""
    if case.several.sum() * 2 >= case.several.size:
        return "item", case.human, case.tables
    known = np.argwhere(~np.isnan(case.human))
    if len(known) < FEWEST_JUDGED:
        raise NotAsked(f"fewer than {FEWEST_JUDGED} judged translations")
    if len(known) <= MOST_POOLED:
        return "none", case.human, case.tables
    systems, items = case.judged.systems, case.judged.items
    chosen = sorted(known.tolist(), key=lambda c: case.lot(systems[c[0]], items[c[1]]))
    human = np.full(case.human.shape, np.nan)
    for row, column in chosen[:MOST_POOLED]:
        human[row, column] = case.human[row, column]
    return "none", human, case.tables


def ask_best_systems(case: Case) -> Doubt:
    """Pairs of systems in people's order, among all and among the best by people."""
    people = mean_known(case.human)
    known = np.flatnonzero(~np.isnan(people))
    if len(known) < FEWEST_SYSTEMS:
        raise NotAsked(f"it takes {FEWEST_SYSTEMS} judged systems, and there are {len(known)}")
    ranked = known[np.argsort(-people[known], kind="stable")]
    half = max(FEWEST_SYSTEMS, len(ranked) // 2)
    groups = {f"all {len(ranked)} systems": ranked, f"the best {half}": ranked[:half]}
    if half > FEWEST_SYSTEMS:
        groups[f"the best {FEWEST_SYSTEMS}"] = ranked[:FEWEST_SYSTEMS]
    values = [
        [_in_order(people[g], own[g]) for own in case.judged.system_scores] for g in groups.values()
    ]
    # What a sample of items adds to the means of segments, it adds to scores of systems.
    weights = case.weights(case.judged.items)
    said = weighted_means(case.human, weights)  # (draws, systems)
    parts = weighted_means(case.judged.scores, weights) - mean_known(case.judged.scores)
    scored = case.judged.system_scores + np.nan_to_num(parts)  # (draws, metrics, systems)
    draws = [
        [[_in_order(h[g], own[g]) for own in m] for g in groups.values()]
        for h, m in zip(said, scored, strict=True)
    ]
    return Doubt(
        name="best systems",
        question="Does it still order the best systems?",
        rows=tuple(groups),
        series=case.names,
        values=np.array(values),
        draws=np.array(draws),
        label="share of pairs of systems in people's order",
        rule=0.5,
        span=(0.0, 1.0),
    )


def _in_order(people: FloatArray, scores: FloatArray) -> float:
    """The share of pairs that scores put in people's order; pairs that people tie do not count."""
    first, second = np.triu_indices(len(people), 1)
    ahead, said = people[first] - people[second], scores[first] - scores[second]
    counted = (ahead != 0) & ~np.isnan(said)
    return float((np.sign(ahead) == np.sign(said))[counted].mean()) if counted.any() else np.nan


def ask_domains(case: Case) -> Doubt:
    """Pearson's r domain by domain; by document or length where domains say too little."""
    column, parts = _slices(case)
    found = [
        case.agreement(case.tables, "pearson", by="none", human=human) for human in parts.values()
    ]
    return Doubt(
        name="domains",
        question=f"Does it agree with people in every {column}?",
        rows=tuple(parts),
        series=case.names,
        values=np.stack([own.values for own in found]),
        draws=np.stack([own.replicates for own in found], axis=1),
        label="Pearson r with people",
        rule=0.0,
    )


def _slices(case: Case) -> tuple[str, dict[str, FloatArray]]:
    """The first column with several slices of enough judgments, and people's scores in each."""
    for column in ("domain", "document", "length"):
        try:
            slicing = slice_items(case.people, case.judged.items, column)
        except TertiumError:
            continue
        parts = {name: np.where(slicing.mask(name), case.human, np.nan) for name in slicing.names}
        enough = {n: h for n, h in parts.items() if (~np.isnan(h)).sum() >= FEWEST_JUDGED}
        if len(enough) > 1 and len(parts) <= MOST_SLICES:
            return column, enough
    raise NotAsked(f"no two domains, documents or lengths have {FEWEST_JUDGED} judged translations")


def ask_interference(case: Case) -> Doubt:
    """Of each item the output that a metric prefers: what it, the others and people make of it.

    Values are in standard deviations above the mean output of the item, all outputs counted.
    """
    if not case.several.any():
        raise NotAsked("no item has two judged translations to choose from")
    both = ~np.isnan(case.human) & ~np.isnan(case.judged.scores).any(axis=0)
    both &= both.sum(axis=0) > 1
    if not both.any():
        raise NotAsked("no item has two translations with a score of every metric")
    judges = [
        *(_deviations(table, both) for table in case.judged.scores),
        _deviations(case.human, both),
    ]
    items = np.flatnonzero(both.any(axis=0))
    gains = []  # (chosen by, judges, items)
    for table in case.judged.scores:
        scores = np.where(both, table, -np.inf)[:, items]
        best = both[:, items] & (scores == scores.max(axis=0))  # of equals, each by its share
        chosen = (np.where(best, judge[:, items], np.nan) for judge in judges)
        gains.append([mean_known(outputs.T) for outputs in chosen])
    drawn = weighted_means(np.array(gains), case.weights([case.judged.items[n] for n in items]))
    return Doubt(
        name="interference",
        question="Does it overrate what it chose?",
        rows=tuple(f"chosen by {name}" for name in case.names),
        series=(*(f"under {name}" for name in case.names), "under people"),
        values=np.array(gains).mean(axis=-1),
        draws=drawn,
        label="gain of the chosen outputs, in standard deviations",
        rule=0.0,
    )


def _deviations(table: FloatArray, cells: np.ndarray) -> FloatArray:
    """Scores less the mean of their item, in standard deviations of all such, NaN elsewhere."""
    known = np.where(cells, table, np.nan)
    centred = known - mean_known(known.T)
    spread = float(np.nanstd(centred))
    return centred / spread if spread else centred
