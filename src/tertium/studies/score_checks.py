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

from tertium.core.arrays import FloatArray, nan_mean
from tertium.core.errors import TertiumError
from tertium.core.resampling import make_rng, shuffle
from tertium.core.segment import Segment
from tertium.data.slices import slice_items
from tertium.models.ridge import fit_ridge_weights
from tertium.studies.diagnostic import (
    MAX_POOLED,
    Diagnostic,
    DiagnosticData,
    NotApplicableError,
    weighted_means,
)

FOLDS, HASHES = 5, 256
RIDGE = 10.0  # ridge strength, for standardized features
MIN_TEXTS = 50


def check_single_text_models(data: DiagnosticData) -> Diagnostic:
    """Compare metrics with sentinels, over all translations and within items."""
    cells = list(data.texts)
    if len(cells) < MIN_TEXTS:
        raise NotApplicableError(f"sentinels need {MIN_TEXTS} judged texts, got {len(cells)}")
    positions = np.array([data.positions[cell] for cell in cells]).T  # (2, cells)
    target = data.human[tuple(positions)]
    folds = np.array([data.hash_names(item) % FOLDS for _, item in cells])
    rows = dict(data.score_tables)
    for side in ("source", "translation", "reference"):
        texts = [_side(data.texts[cell], side) for cell in cells]
        if any(texts):
            table = np.full(data.human.shape, np.nan)
            table[tuple(positions)] = cross_fit(texts, target, folds)
            rows[f"{side} only"] = table
    series = {"all translations": "none"}
    if data.has_several_outputs.sum() * 2 >= data.has_several_outputs.size:
        series["within an item"] = "item"
    agreements = [data.agreement(rows, "pearson", grouping=g) for g in series.values()]
    return Diagnostic(
        name="sentinels",
        question="Can human agreement be reached without comparing texts?",
        rows=tuple(rows),
        series=tuple(series),
        values=np.stack([own.values for own in agreements], axis=-1),
        draws=np.stack([own.replicates for own in agreements], axis=-1),
        label="Pearson r with human scores",
        reference_value=0.0,
        notes=(f"sentinels: ridge regressions on surface features, cross-fitted in {FOLDS} folds",),
    )


def _side(segment: Segment, side: str) -> str:
    if side == "translation":
        return segment.hypothesis
    return (segment.source or "") if side == "source" else "".join(segment.references[:1])


def cross_fit(texts: list[str], target: FloatArray, folds: np.ndarray) -> FloatArray:
    """Predict each text by a ridge regression that was fitted on the other folds."""
    distinct = list(dict.fromkeys(texts))
    number = {text: n for n, text in enumerate(distinct)}
    row_of = np.array([number[text] for text in texts])
    distinct_features = np.stack([surface_features(text) for text in distinct])
    features = distinct_features[row_of]
    predicted = np.empty(len(texts))
    for fold in np.unique(folds):
        held_out = folds == fold
        if held_out.all():
            raise NotApplicableError("all translations are of one item")
        middle, spread = features[~held_out].mean(axis=0), features[~held_out].std(axis=0)
        training = (features[~held_out] - middle) / np.where(spread > 0, spread, 1.0)
        mean = target[~held_out].mean()
        [weights] = fit_ridge_weights(training, target[~held_out] - mean, [RIDGE / len(training)])
        standardized = (distinct_features - middle) / np.where(spread > 0, spread, 1.0)
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


SHUFFLES = 5  # shuffles of a metric's scores, averaged to the chance level
MIN_SYSTEMS = 4
MIN_JUDGED = 20  # translations of a slice
MAX_SLICES = 40


def check_chance(data: DiagnosticData) -> Diagnostic:
    """Compare acc_eq* of a metric with that of its shuffled scores and of a constant score."""
    grouping, human, tables = _select_pairs(data)
    rng = make_rng(data.seed)
    is_known = ~np.isnan(human)
    groups = [np.nonzero(is_known)]  # cells that are shuffled with each other
    if grouping == "item":
        items = np.flatnonzero(is_known.sum(axis=0) > 1)
        groups = [(np.flatnonzero(is_known[:, n]), np.array([n])) for n in items]
    shuffled = {}
    for name, table in tables.items():
        for n in range(SHUFFLES):
            permuted = table.copy()
            for cells in groups:
                permuted[cells] = shuffle(table[cells], rng)
            shuffled[f"{name} {n}"] = permuted
    constant = {"all tied": np.where(is_known, 0.0, np.nan)}
    own, chance, tied = (
        data.agreement(part, "acc-eq*", grouping=grouping, human=human)
        for part in (tables, shuffled, constant)
    )
    rows = ("the metric", "its shuffled scores", "a constant score")
    return Diagnostic(
        name="chance",
        question="How far is acc_eq* above chance?",
        rows=rows,
        series=tuple(tables),
        values=_stack_levels(own.values, chance.values, tied.values),
        draws=_stack_levels(own.replicates, chance.replicates, tied.replicates),
        label="acc_eq*" + (" by item" if grouping == "item" else ""),
        axis_range=(0.0, 1.0),
        reference_value=float(chance.values.mean()),
    )


def _stack_levels(own: FloatArray, chance: FloatArray, tied: FloatArray) -> FloatArray:
    """Stack values of metrics, their shuffled scores and a constant score, (..., 3, metrics)."""
    shuffled = chance.reshape(*own.shape, SHUFFLES).mean(axis=-1)
    return np.stack([own, shuffled, np.broadcast_to(tied, own.shape)], axis=-2)


def _select_pairs(data: DiagnosticData) -> tuple[str, FloatArray, dict[str, FloatArray]]:
    """Return the grouping and the cells of pairs: within items, or all if few items qualify."""
    if data.has_several_outputs.sum() * 2 >= data.has_several_outputs.size:
        return "item", data.human, data.score_tables
    cells = np.argwhere(~np.isnan(data.human))
    if len(cells) < MIN_JUDGED:
        raise NotApplicableError(f"fewer than {MIN_JUDGED} judged translations")
    if len(cells) <= MAX_POOLED:
        return "none", data.human, data.score_tables
    systems, items = data.aligned.systems, data.aligned.items
    chosen = sorted(cells.tolist(), key=lambda c: data.hash_names(systems[c[0]], items[c[1]]))
    human = np.full(data.human.shape, np.nan)
    for row, column in chosen[:MAX_POOLED]:
        human[row, column] = data.human[row, column]
    return "none", human, data.score_tables


def check_best_systems(data: DiagnosticData) -> Diagnostic:
    """Measure pairwise accuracy among all systems and among the best by human score."""
    human = nan_mean(data.human)
    scored_systems = np.flatnonzero(~np.isnan(human))
    if len(scored_systems) < MIN_SYSTEMS:
        raise NotApplicableError(f"needs {MIN_SYSTEMS} judged systems, got {len(scored_systems)}")
    ranked = scored_systems[np.argsort(-human[scored_systems], kind="stable")]
    half = max(MIN_SYSTEMS, len(ranked) // 2)
    groups = {f"all {len(ranked)} systems": ranked, f"the best {half}": ranked[:half]}
    if half > MIN_SYSTEMS:
        groups[f"the best {MIN_SYSTEMS}"] = ranked[:MIN_SYSTEMS]
    values = [
        [_share_in_order(human[g], own[g]) for own in data.aligned.system_scores]
        for g in groups.values()
    ]
    # A resample changes system scores by as much as the means of segment scores.
    weights = data.weights(data.aligned.items)
    human_draws = weighted_means(data.human, weights)  # (resamples, systems)
    changes = weighted_means(data.aligned.scores, weights) - nan_mean(data.aligned.scores)
    # (resamples, metrics, systems)
    metric_draws = data.aligned.system_scores + np.nan_to_num(changes)
    draws = [
        [[_share_in_order(h[g], own[g]) for own in m] for g in groups.values()]
        for h, m in zip(human_draws, metric_draws, strict=True)
    ]
    return Diagnostic(
        name="best systems",
        question="Are the best systems ordered correctly?",
        rows=tuple(groups),
        series=data.metric_names,
        values=np.array(values),
        draws=np.array(draws),
        label="share of system pairs in human order",
        reference_value=0.5,
        axis_range=(0.0, 1.0),
    )


def _share_in_order(human: FloatArray, scores: FloatArray) -> float:
    """Return the share of pairs in the order of the human scores; human ties are left out."""
    first, second = np.triu_indices(len(human), 1)
    human_lead, metric_lead = human[first] - human[second], scores[first] - scores[second]
    counted = (human_lead != 0) & ~np.isnan(metric_lead)
    return (
        float((np.sign(human_lead) == np.sign(metric_lead))[counted].mean())
        if counted.any()
        else np.nan
    )


def check_domains(data: DiagnosticData) -> Diagnostic:
    """Compute Pearson's r by domain; by document or length if there are no usable domains."""
    column, parts = _slices(data)
    agreements = [
        data.agreement(data.score_tables, "pearson", grouping="none", human=human)
        for human in parts.values()
    ]
    return Diagnostic(
        name="domains",
        question=f"Is human agreement similar in every {column}?",
        rows=tuple(parts),
        series=data.metric_names,
        values=np.stack([own.values for own in agreements]),
        draws=np.stack([own.replicates for own in agreements], axis=1),
        label="Pearson r with human scores",
        reference_value=0.0,
    )


def _slices(data: DiagnosticData) -> tuple[str, dict[str, FloatArray]]:
    """Return the first column with several slices of enough judgments, and their human scores."""
    for column in ("domain", "document", "length"):
        try:
            slicing = slice_items(data.human_data, data.aligned.items, column)
        except TertiumError:
            continue
        parts = {name: np.where(slicing.mask(name), data.human, np.nan) for name in slicing.names}
        enough = {n: h for n, h in parts.items() if (~np.isnan(h)).sum() >= MIN_JUDGED}
        if len(enough) > 1 and len(parts) <= MAX_SLICES:
            return column, enough
    raise NotApplicableError(
        f"no two domains, documents or lengths have {MIN_JUDGED} judged translations"
    )


def check_interference(data: DiagnosticData) -> Diagnostic:
    """Compare how each metric and humans score preferred outputs, in standard deviations."""
    if not data.has_several_outputs.any():
        raise NotApplicableError("no item has two judged translations")
    both = ~np.isnan(data.human) & ~np.isnan(data.aligned.scores).any(axis=0)
    both &= both.sum(axis=0) > 1
    if not both.any():
        raise NotApplicableError("no item has two translations with a score of every metric")
    judges = [_deviations(table, both) for table in (*data.aligned.scores, data.human)]
    items = np.flatnonzero(both.any(axis=0))
    gains = []  # (chosen by, judges, items)
    for table in data.aligned.scores:
        scores = np.where(both, table, -np.inf)[:, items]
        best = both[:, items] & (scores == scores.max(axis=0))  # ties share the choice
        chosen = (np.where(best, judge[:, items], np.nan) for judge in judges)
        gains.append([nan_mean(outputs.T) for outputs in chosen])
    drawn = weighted_means(np.array(gains), data.weights([data.aligned.items[n] for n in items]))
    return Diagnostic(
        name="interference",
        question="Does it overrate the outputs it prefers?",
        rows=tuple(f"chosen by {name}" for name in data.metric_names),
        series=(*(f"under {name}" for name in data.metric_names), "under human scores"),
        values=np.array(gains).mean(axis=-1),
        draws=drawn,
        label="gain of the chosen outputs, in standard deviations",
        reference_value=0.0,
    )


def _deviations(table: FloatArray, cells: np.ndarray) -> FloatArray:
    """Center scores by item and scale them to standard deviations; NaN outside `cells`."""
    selected = np.where(cells, table, np.nan)
    centered = selected - nan_mean(selected.T)
    spread = float(np.nanstd(centered))
    return centered / spread if spread else centered
