"""Doubts that change texts and score them again: length, bad outputs, references, and order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.challenge import foreign_sentence
from tertium.evaluation.panel.case import (
    Case,
    Doubt,
    NotAsked,
    weighted_correlations,
    weighted_means,
)
from tertium.segment import Segment
from tertium.text.damage import is_unspaced
from tertium.text.language_identification import identify

JOINED = (1, 2, 4, 8)  # segments put one behind the other
GOOD = 0.25  # the share of translations, by people, that pass for free of errors


def ask_length(case: Case) -> Doubt:
    """The best translations put one behind the other: their score should stay what it was."""
    cells = sorted(case.sample(len(case.texts)), key=lambda e: -case.human[case.places[e[0]]])
    good = sorted(cells[: max(8, int(GOOD * len(cells)))], key=lambda e: case.lot(*e[0]))[:128]
    longest = max(JOINED)
    if len(good) < 2 * longest:
        raise NotAsked(f"fewer than {2 * longest} translations to join")
    segments = [segment for _, segment in good[: len(good) // longest * longest]]
    means = []  # of the longest texts, (joined, metrics, texts)
    for size in JOINED:
        joined = [join_segments(segments[n : n + size]) for n in range(0, len(segments), size)]
        scores = case.score(joined)
        means.append(scores.reshape(len(scores), -1, longest // size).mean(axis=-1))
    spread = case.score([segment for _, segment in case.sample()]).std(axis=1)
    unit = np.where(spread > 0, spread, 1.0)
    changes = np.stack(means) - means[0]
    names = [str(n) for n in range(changes.shape[-1])]
    return Doubt(
        name="length",
        question="Do long texts keep their score?",
        rows=tuple("one segment" if n == 1 else f"{n} segments joined" for n in JOINED),
        series=case.scorers,
        values=changes.mean(axis=-1) / unit,
        draws=weighted_means(changes, case.weights(names)) / unit,
        label="change of the mean score, in standard deviations of translations",
        rule=0.0,
        notes=(f"joined are translations among the best {GOOD:.0%} by people",),
    )


def join_segments(segments: list[Segment]) -> Segment:
    """Segments one behind the other: hypotheses, sources, and as many references as all have."""

    def join(texts: list[str]) -> str:
        return ("" if is_unspaced(texts[0]) else " ").join(texts)

    sources = [segment.source for segment in segments if segment.source is not None]
    fewest = min(len(segment.references) for segment in segments)
    return Segment(
        join([segment.hypothesis for segment in segments]),
        join(sources) if len(sources) == len(segments) else None,
        tuple(join([s.references[n] for s in segments]) for n in range(fewest)),
    )


def ask_bad_outputs(case: Case) -> Doubt:
    """Where outputs that are no translation stand among the real ones."""
    cells = case.sample()
    segments = [segment for _, segment in cells]
    others = [_another_translation(case, n, cells) for n in range(len(cells))]
    target = identify(" ".join(segment.hypothesis for segment in segments[:20]))
    source = identify(" ".join(segment.source or "" for segment in segments[:20]))
    outputs = {"empty": [""] * len(cells), "fluent but unrelated": others}
    if all(segment.source is not None for segment in segments):
        outputs["source copied"] = [segment.source or "" for segment in segments]
    outputs["unrelated, in another language"] = [
        foreign_sentence(n, (source, target)) for n in range(len(cells))
    ]
    real = np.sort(case.score(segments), axis=1)
    shares = []  # (outputs, metrics, cells)
    for texts in outputs.values():
        changed = [replace(s, hypothesis=text) for s, text in zip(segments, texts, strict=True)]
        scores = case.score(changed)
        below = [np.searchsorted(own, new, "left") for own, new in zip(real, scores, strict=True)]
        shares.append(np.array(below) / len(cells))
    return Doubt(
        name="bad outputs",
        question="Does it see that this is no translation?",
        rows=tuple(outputs),
        series=case.scorers,
        values=np.array(shares).mean(axis=-1),
        draws=weighted_means(np.array(shares), case.weights([item for (_, item), _ in cells])),
        label="share of real translations that score lower",
        rule=0.0,
        span=(0.0, 1.0),
    )


def _another_translation(case: Case, n: int, cells: list[tuple[tuple[str, str], Segment]]) -> str:
    """The translation of another item, the next in the sample."""
    (_, item), own = cells[n]
    for step in range(1, len(cells)):
        (_, other), segment = cells[(n + step) % len(cells)]
        if other != item and segment.hypothesis != own.hypothesis:
            return segment.hypothesis
    raise NotAsked("all translations are of one item")


def ask_references(case: Case) -> Doubt:
    """Agreement with people where another text stands in the place of the reference."""
    cells = [entry for entry in case.sample() if entry[1].references]
    if len(cells) < 10:
        raise NotAsked("there are no references")
    best = _best_outputs(case)
    kept = [(cell, s) for cell, s in cells if best.get(cell[1], (cell[0], ""))[0] != cell[0]]
    people = np.array([case.human[case.places[cell]] for cell, _ in kept or cells])
    rows = {"the reference": [s for _, s in kept or cells]}
    for number in range(1, min(len(s.references) for _, s in cells)):
        rows[f"reference {number + 1} alone"] = [
            replace(s, references=(s.references[number],)) for _, s in kept or cells
        ]
    if kept:
        rows["the best system's output"] = [
            replace(s, references=(best[cell[1]][1],)) for cell, s in kept
        ]
    own = rows["the reference"]
    shifted = [*own[len(own) // 2 :], *own[: len(own) // 2]]
    rows["the reference of another segment"] = [
        replace(s, references=other.references) for s, other in zip(own, shifted, strict=True)
    ]
    scores = [case.score(changed) for changed in rows.values()]
    weights = case.weights([item for (_, item), _ in kept or cells])
    draws = [weighted_correlations(own, people, weights) for own in scores]
    return Doubt(
        name="references",
        question="What does it take from the reference?",
        rows=tuple(rows),
        series=case.scorers,
        values=np.array([_correlations(own, people) for own in scores]),
        draws=np.stack(draws, axis=1),
        label="Pearson r with people",
        rule=0.0,
        notes=(f"the same {len(people)} translations in every row",),
    )


def _best_outputs(case: Case) -> dict[str, tuple[str, str]]:
    """By item what the best system by people made of it, where there are several systems."""
    if not case.several.any():
        return {}
    known = {system for system, _ in case.texts}
    rows = [n for n, system in enumerate(case.judged.systems) if system in known]
    means = np.nanmean(np.where(case.several, case.human, np.nan)[rows], axis=1)
    best = case.judged.systems[rows[int(np.nanargmax(means))]]
    return {
        item: (system, s.hypothesis) for (system, item), s in case.texts.items() if system == best
    }


def _correlations(scores: FloatArray, people: FloatArray) -> list[float]:
    return [
        float(np.corrcoef(own, people)[0, 1]) if own.std() and people.std() else np.nan
        for own in scores
    ]


def ask_order(case: Case) -> Doubt:
    """The same translations scored backwards and one by one: nothing should change."""
    segments = [segment for _, segment in case.sample(50)]
    whole = case.score(segments)
    backwards = case.score(segments[::-1])[:, ::-1]
    alone = np.concatenate([case.score([segment]) for segment in segments[:10]], axis=1)
    values = [np.abs(whole - backwards).max(axis=1), np.abs(whole[:, :10] - alone).max(axis=1)]
    return Doubt(
        name="order",
        question="Does a score depend on its neighbors?",
        rows=("scored backwards", "scored alone"),
        series=case.scorers,
        values=np.array(values),
        label="largest change of a score",
        rule=0.0,
    )
