"""Doubts that scores alone answer: chance, the best systems, domains, and chosen outputs."""

from __future__ import annotations

import numpy as np

from tertium.arrays import FloatArray, generator
from tertium.data.slices import slice_items
from tertium.errors import TertiumError
from tertium.evaluation.panel.case import (
    MOST_POOLED,
    Case,
    Doubt,
    NotAsked,
    weighted_means,
)
from tertium.meta.tasks import mean_known

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
    """The first column with several slices of enough judgements, and people's scores in each."""
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
        best = np.where(both, table, -np.inf).argmax(axis=0)  # the first of equals
        gains.append([judge[best[items], items] for judge in judges])
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
    result: FloatArray = centred / spread if spread else centred
    return result
