"""Diagnostics that change texts and score them again: length, bad outputs, references, order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.data.challenge_sets import wrong_language_sentence
from tertium.studies.diagnostic import (
    Diagnostic,
    DiagnosticData,
    NotApplicableError,
    weighted_correlations,
    weighted_means,
)
from tertium.text.language_identification import identify_language
from tertium.text.scripts import is_unspaced_script

JOINED = (1, 2, 4, 8)  # numbers of joined segments
GOOD_SHARE = 0.25  # share of translations, by human score, that count as good


def check_length(data: DiagnosticData) -> Diagnostic:
    """Check that the mean score stays the same if good translations are joined."""
    cells = sorted(data.sample(len(data.texts)), key=lambda e: -data.human[data.positions[e[0]]])
    best = cells[: max(8, int(GOOD_SHARE * len(cells)))]
    good = sorted(best, key=lambda e: data.hash_names(*e[0]))[:128]
    longest = max(JOINED)
    if len(good) < 2 * longest:
        raise NotApplicableError(f"fewer than {2 * longest} translations to join")
    segments = [segment for _, segment in good[: len(good) // longest * longest]]
    means = []  # of the longest texts, (joined, metrics, texts)
    for size in JOINED:
        joined = [join_segments(segments[n : n + size]) for n in range(0, len(segments), size)]
        scores = data.score(joined)
        means.append(scores.reshape(len(scores), -1, longest // size).mean(axis=-1))
    spread = data.score([segment for _, segment in data.sample()]).std(axis=1)
    unit = np.where(spread > 0, spread, 1.0)
    changes = np.stack(means) - means[0]
    names = [str(n) for n in range(changes.shape[-1])]
    return Diagnostic(
        name="length",
        question="Does the score depend on text length?",
        rows=tuple("one segment" if n == 1 else f"{n} segments joined" for n in JOINED),
        series=data.scorer_names,
        values=changes.mean(axis=-1) / unit,
        draws=weighted_means(changes, data.weights(names)) / unit,
        label="change of the mean score, in standard deviations",
        reference_value=0.0,
        notes=(f"joined texts are among the best {GOOD_SHARE:.0%} by human score",),
    )


def join_segments(segments: list[Segment]) -> Segment:
    """Join hypotheses, sources, and as many references as all segments have."""

    def join(texts: list[str]) -> str:
        return ("" if is_unspaced_script(texts[0]) else " ").join(texts)

    sources = [segment.source for segment in segments if segment.source is not None]
    fewest = min(len(segment.references) for segment in segments)
    return Segment(
        join([segment.hypothesis for segment in segments]),
        join(sources) if len(sources) == len(segments) else None,
        tuple(join([s.references[n] for s in segments]) for n in range(fewest)),
    )


def check_bad_outputs(data: DiagnosticData) -> Diagnostic:
    """Compare scores of outputs that are not translations with those of real ones."""
    cells = data.sample()
    segments = [segment for _, segment in cells]
    unrelated = [_another_translation(n, cells) for n in range(len(cells))]
    target = identify_language(" ".join(segment.hypothesis for segment in segments[:20]))
    source = identify_language(" ".join(segment.source or "" for segment in segments[:20]))
    outputs = {"empty": [""] * len(cells), "fluent but unrelated": unrelated}
    if all(segment.source is not None for segment in segments):
        outputs["source copied"] = [segment.source or "" for segment in segments]
    outputs["unrelated, in another language"] = [
        wrong_language_sentence(n, (source, target)) for n in range(len(cells))
    ]
    real = np.sort(data.score(segments), axis=1)
    shares = []  # (outputs, metrics, cells)
    for texts in outputs.values():
        changed = [replace(s, hypothesis=text) for s, text in zip(segments, texts, strict=True)]
        scores = data.score(changed)
        below = [np.searchsorted(own, new, "left") for own, new in zip(real, scores, strict=True)]
        shares.append(np.array(below) / len(cells))
    return Diagnostic(
        name="bad outputs",
        question="Are outputs that are not translations scored low?",
        rows=tuple(outputs),
        series=data.scorer_names,
        values=np.array(shares).mean(axis=-1),
        draws=weighted_means(np.array(shares), data.weights([item for (_, item), _ in cells])),
        label="share of real translations that score lower",
        reference_value=0.0,
        axis_range=(0.0, 1.0),
    )


def _another_translation(n: int, cells: list[tuple[tuple[str, str], Segment]]) -> str:
    (_, item), own = cells[n]
    for step in range(1, len(cells)):
        (_, other), segment = cells[(n + step) % len(cells)]
        if other != item and segment.hypothesis != own.hypothesis:
            return segment.hypothesis
    raise NotApplicableError("all translations are of one item")


def check_references(data: DiagnosticData) -> Diagnostic:
    """Measure human agreement with another text in place of the reference."""
    cells = [entry for entry in data.sample() if entry[1].references]
    if len(cells) < 10:
        raise NotApplicableError("there are no references")
    best = _best_outputs(data)
    other_cells = [(cell, s) for cell, s in cells if best.get(cell[1], (cell[0], ""))[0] != cell[0]]
    human = np.array([data.human[data.positions[cell]] for cell, _ in other_cells or cells])
    rows = {"the reference": [s for _, s in other_cells or cells]}
    for number in range(1, min(len(s.references) for _, s in cells)):
        rows[f"reference {number + 1} alone"] = [
            replace(s, references=(s.references[number],)) for _, s in other_cells or cells
        ]
    if other_cells:
        rows["the best system's output"] = [
            replace(s, references=(best[cell[1]][1],)) for cell, s in other_cells
        ]
    own = rows["the reference"]
    shifted = [*own[len(own) // 2 :], *own[: len(own) // 2]]
    rows["the reference of another segment"] = [
        replace(s, references=other.references) for s, other in zip(own, shifted, strict=True)
    ]
    scores = [data.score(changed) for changed in rows.values()]
    weights = data.weights([item for (_, item), _ in other_cells or cells])
    draws = [weighted_correlations(own, human, weights) for own in scores]
    return Diagnostic(
        name="references",
        question="How does it depend on the reference?",
        rows=tuple(rows),
        series=data.scorer_names,
        values=np.array([_correlations(own, human) for own in scores]),
        draws=np.stack(draws, axis=1),
        label="Pearson r with human scores",
        reference_value=0.0,
        notes=(f"the same {len(human)} translations in every row",),
    )


def _best_outputs(data: DiagnosticData) -> dict[str, tuple[str, str]]:
    """Return by item the output of the best system by human score, if there are several."""
    if not data.has_several_outputs.any():
        return {}
    text_systems = {system for system, _ in data.texts}
    rows = [n for n, system in enumerate(data.aligned.systems) if system in text_systems]
    means = np.nanmean(np.where(data.has_several_outputs, data.human, np.nan)[rows], axis=1)
    best = data.aligned.systems[rows[int(np.nanargmax(means))]]
    return {
        item: (system, s.hypothesis) for (system, item), s in data.texts.items() if system == best
    }


def _correlations(scores: FloatArray, human: FloatArray) -> list[float]:
    return [
        float(np.corrcoef(own, human)[0, 1]) if own.std() and human.std() else np.nan
        for own in scores
    ]


def check_order(data: DiagnosticData) -> Diagnostic:
    """Check that scores do not change if translations are scored in reverse order or one by one."""
    segments = [segment for _, segment in data.sample(50)]
    batch = data.score(segments)
    backwards = data.score(segments[::-1])[:, ::-1]
    alone = np.concatenate([data.score([segment]) for segment in segments[:10]], axis=1)
    values = [np.abs(batch - backwards).max(axis=1), np.abs(batch[:, :10] - alone).max(axis=1)]
    return Diagnostic(
        name="order",
        question="Does a score depend on the other segments of the batch?",
        rows=("in reverse order", "one by one"),
        series=data.scorer_names,
        values=np.array(values),
        label="largest change of a score",
        reference_value=0.0,
    )
