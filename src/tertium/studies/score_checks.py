"""Diagnostics on scores: sentinels, chance level, best systems, domains, interference.

Sentinels are regressions that read only the source, only the translation or only the reference, so
they cannot measure translation quality. If they agree with human scores, a metric may do so for the
wrong reason (Perrella et al. 2024, "Guardians of the Machine Translation Meta-Evaluation: Sentinel
Metrics Fall In!", ACL). Ours are ridge regressions on surface features (length, digits, capitals,
punctuation, repeated words, hashed character trigrams), cross-fitted to human scores in five folds
of the items.
"""

from __future__ import annotations

import zlib

import numpy as np

from tertium.core.arrays import FloatArray, divide, nan_mean
from tertium.core.errors import DataError, TertiumError
from tertium.core.resampling import make_rng, shuffle
from tertium.data.slices import slice_items
from tertium.meta.agreement import Grouping
from tertium.models.ridge import fit_ridge_weights
from tertium.studies.diagnostic_data import (
    DiagnosticData,
    DiagnosticRow,
    average,
    weighted_means,
)

FOLDS, HASHES = 5, 256
RIDGE = 10.0  # ridge strength, for standardized features
MIN_TEXTS = 50
SHUFFLES = 5  # shuffles of a metric's scores, averaged to the chance level
MIN_SYSTEMS = 4
MIN_JUDGED = 20  # translations of a slice
MAX_SLICES = 40

Rows = dict[str, DiagnosticRow]


def check_sentinels(data: DiagnosticData) -> Rows:
    """Measure Pearson's r of metrics and sentinels, over all translations and within items."""
    if len(data.texts) < MIN_TEXTS:
        raise DataError(f"sentinels need {MIN_TEXTS} judged texts, got {len(data.texts)}")
    target = np.array([data.human[data.positions[cell]] for cell in data.texts])
    folds = np.array([data.hash_names(item) % FOLDS for _, item in data.texts])
    texts = {
        "source only": [segment.source or "" for segment in data.texts.values()],
        "reference only": ["".join(segment.references[:1]) for segment in data.texts.values()],
        "translation only": [segment.hypothesis for segment in data.texts.values()],
    }
    sentinels = {name: cross_fit(own, target, folds) for name, own in texts.items() if any(own)}
    tables = {**data.score_tables, **data.make_tables([*data.texts], sentinels)}
    groupings: dict[str, Grouping] = {"all translations": "none"}
    if data.has_several_outputs.sum() * 2 >= data.has_several_outputs.size:
        groupings["within an item"] = "item"
    agreements = [data.agreement(tables, "pearson", own) for own in groupings.values()]
    values = np.stack([own.values for own in agreements], axis=-1)
    draws = np.stack([own.draws for own in agreements], axis=-1)
    return {
        name: DiagnosticRow(tuple(groupings), values[n], draws[:, n])
        for n, name in enumerate(tables)
    }


def cross_fit(texts: list[str], target: FloatArray, folds: np.ndarray) -> FloatArray:
    """Predict each text by a ridge regression that was fitted on the other folds."""
    distinct, row_of = np.unique(np.array(texts), return_inverse=True)
    distinct_features = np.stack([surface_features(text) for text in distinct.tolist()])
    features = distinct_features[row_of]
    predicted = np.empty(len(texts))
    for fold in np.unique(folds):
        held_out = folds == fold
        if held_out.all():
            raise DataError("all translations are of one item")
        middle, spread = features[~held_out].mean(axis=0), features[~held_out].std(axis=0)
        standardized = (distinct_features - middle) / np.where(spread > 0, spread, 1.0)
        training, mean = standardized[row_of[~held_out]], target[~held_out].mean()
        [weights] = fit_ridge_weights(training, target[~held_out] - mean, [RIDGE / len(training)])
        # predict distinct texts, so that equal texts have exactly equal predictions
        predicted[held_out] = mean + (standardized @ weights)[row_of[held_out]]
    return predicted


def surface_features(text: str) -> FloatArray:
    """Return the surface features of a text, (8 + HASHES,)."""
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


def check_chance(data: DiagnosticData) -> Rows:
    """Measure acc_eq* of a metric, of its scores shuffled within items, and of a constant score."""
    _require_several_outputs(data)
    rng = make_rng(data.seed)
    is_judged = ~np.isnan(data.human)

    def shuffle_outputs(table: FloatArray) -> FloatArray:
        shuffled = table.copy()
        for item in np.flatnonzero(data.has_several_outputs):
            cells = is_judged[:, item], item
            shuffled[cells] = shuffle(table[cells], rng)
        return shuffled

    tables = data.score_tables
    shuffles = [
        {name: shuffle_outputs(own) for name, own in tables.items()} for _ in range(SHUFFLES)
    ]
    constant = {name: np.where(is_judged, 0.0, np.nan) for name in tables}
    return {
        "the metric": data.agreement(tables, "acc-eq*", "item"),
        "a constant score": data.agreement(constant, "acc-eq*", "item"),
        "its shuffled scores": average([data.agreement(s, "acc-eq*", "item") for s in shuffles]),
    }


def _require_several_outputs(data: DiagnosticData) -> None:
    if not data.has_several_outputs.any():
        raise DataError("no item has two judged translations")


def check_best_systems(data: DiagnosticData) -> Rows:
    """Measure pairwise accuracy among all systems and among the best by human score."""
    human = nan_mean(data.human)
    count = int((~np.isnan(human)).sum())
    if count < MIN_SYSTEMS:
        raise DataError(f"needs {MIN_SYSTEMS} judged systems, got {count}")
    weights = data.weights(data.aligned.items)
    human_draws = weighted_means(data.human, weights)[:, None]  # (resamples, 1, systems)
    # A resample changes system scores by as much as the means of segment scores.
    changes = weighted_means(data.aligned.scores, weights) - nan_mean(data.aligned.scores)
    score_draws = data.aligned.system_scores + np.nan_to_num(changes)
    order = np.argsort(-human, kind="stable")  # unjudged systems are last
    sizes = {"all systems": count, "the better half": count // 2, "the best 4": MIN_SYSTEMS}
    rows = {}
    for name, size in sizes.items():
        best = order[: max(size, MIN_SYSTEMS)]
        values = share_in_order(human[best], data.aligned.system_scores[:, best])
        draws = share_in_order(human_draws[..., best], score_draws[..., best])
        rows[name] = DiagnosticRow(data.aligned.metrics, values, draws)
    return rows


def share_in_order(human: FloatArray, scores: FloatArray) -> FloatArray:
    """Return the share of pairs (..., systems) in human order; human ties are left out."""
    first, second = np.triu_indices(human.shape[-1], 1)
    human_lead = np.sign(human[..., first] - human[..., second])
    metric_lead = np.sign(scores[..., first] - scores[..., second])
    is_counted = (human_lead != 0) & ~np.isnan(metric_lead)
    return divide((is_counted & (human_lead == metric_lead)).sum(-1), is_counted.sum(-1))


def check_domains(data: DiagnosticData) -> Rows:
    """Measure Pearson's r by domain; by document or length if there are no usable domains."""
    for column in ("domain", "document", "length"):
        try:
            slicing = slice_items(data.human_data, data.aligned.items, column)
        except TertiumError:
            continue
        masks = {name: slicing.mask(name) for name in slicing.names}
        large = {
            n: mask
            for n, mask in masks.items()
            if np.isfinite(data.human[:, mask]).sum() >= MIN_JUDGED
        }
        if len(large) > 1 and len(masks) <= MAX_SLICES:
            rows = {}
            for name, mask in large.items():
                tables = {n: np.where(mask, own, np.nan) for n, own in data.score_tables.items()}
                rows[name] = data.agreement(tables, "pearson", "none")
            return rows
    raise DataError(f"no two domains, documents or lengths have {MIN_JUDGED} judged translations")


def check_interference(data: DiagnosticData) -> Rows:
    """Measure the gain of outputs that each metric prefers, under metrics and human scores."""
    _require_several_outputs(data)
    both = ~np.isnan(data.human) & ~np.isnan(data.aligned.scores).any(axis=0)
    both &= both.sum(axis=0) > 1
    if not both.any():
        raise DataError("no item has two translations with a score of every metric")
    scores = np.where(both, data.aligned.scores, np.nan)
    best = scores == np.fmax.reduce(scores, axis=1)[:, None]  # ties share the choice
    items = both.any(axis=0)
    rows = {}
    for name, table in {**data.score_tables, "human scores": data.human}.items():
        centered = np.where(both, table, np.nan)
        centered -= nan_mean(centered.T)
        spread = float(np.nanstd(centered)) or 1.0
        gains = np.where(best, centered / spread, np.nan)[..., items]
        rows[f"under {name}"] = data.means(
            nan_mean(np.swapaxes(gains, 1, 2)),
            np.array(data.aligned.items)[items].tolist(),
            [f"chosen by {metric}" for metric in data.aligned.metrics],
        )
    return rows
