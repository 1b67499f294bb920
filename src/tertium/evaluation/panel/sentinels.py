"""Sentinels: regressions that read only the source, only the translation or only the reference.

One that sees nothing else cannot know a translation's quality; as far as it agrees with people, so
may a metric for the wrong reason (Perrella et al. 2024, "Guardians of the Machine Translation
Meta-Evaluation: Sentinel Metrics Fall In!", ACL). Ours are ridge regressions on surface
features (length, digits, capitals, punctuation, words repeated, hashed character trigrams). They
are fitted to people's scores in five parts of the items and score the part that they did not see.
"""

from __future__ import annotations

import zlib

import numpy as np

from tertium.arrays import FloatArray
from tertium.evaluation.panel.case import Case, Doubt, NotAsked
from tertium.segment import Segment

FOLDS, HASHES = 5, 256
STRENGTH = 10.0  # of the ridge, in units of standardised features
FEWEST = 50


def ask_sentinels(case: Case) -> Doubt:
    """Metrics beside sentinels, over all translations and within the translations of an item."""
    cells = list(case.texts)
    if len(cells) < FEWEST:
        raise NotAsked(f"sentinels learn from {FEWEST} judged texts or more, of {len(cells)}")
    places = np.array([case.place(cell) for cell in cells]).T  # (2, cells)
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
