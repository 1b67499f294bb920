"""Measure agreement with human judgments on held-out sets, error spans and damage detection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from recipes.multi.damage import Damager
from recipes.multi.network import SCALES, MultiNetwork, Texts, make_layout, move_batch
from recipes.multi.packed_rows import (
    HELD_OUT_LINES,
    INPUT_MODES,
    Documents,
    Outputs,
    material_of,
    row_texts,
)
from recipes.multi.store import Store

Floats = NDArray[np.float64]
MAX_PIECES = 510
TAG_SCHEMES, BINS = ("mqm", "esa", "word"), 100


@dataclass
class Predictions:
    """Scores (rows, scales), log variances, the logit of no error, and tag logits."""

    scores: Floats
    spreads: Floats
    clean: Floats
    tags: list[NDArray[np.float32]]


@torch.no_grad()
def predict(
    network: MultiNetwork,
    texts: Sequence[Texts],
    device: str,
    *,
    budget: int = 100_000,
    with_tags: bool = False,
) -> Predictions:
    """Run the network on rows in batches of similar length."""
    network.eval()
    count = len(texts)
    scores, spreads, clean = np.zeros((count, len(SCALES))), np.zeros((count, 3)), np.zeros(count)
    tags: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * (count if with_tags else 0)
    cost = np.array([sum(len(t) + 2 for t in row if t is not None) for row in texts])
    order = np.argsort(-cost, kind="stable")
    at = 0
    while at < count:
        size = max(1, min(budget // max(int(cost[order[at]]), 1), count - at))
        chosen = order[at : at + size]
        batch = move_batch(make_layout([truncate(texts[n]) for n in chosen]), device)
        predictions = network(batch)
        scores[chosen] = predictions.scores.float().cpu().numpy()
        spreads[chosen] = predictions.spreads.float().cpu().numpy()
        clean[chosen] = predictions.clean.float().cpu().numpy()
        if with_tags:
            row_tags = predictions.tags.float().cpu().numpy()
            for n, row in zip(chosen, row_tags, strict=True):
                tags[n] = row[1 : 1 + hypothesis_length(texts[n])]
        at += size
    network.train()
    return Predictions(scores, spreads, clean, tags)


def hypothesis_length(texts: Texts) -> int:
    """Return the number of pieces of a hypothesis."""
    return 0 if texts[0] is None else len(texts[0])


def truncate(texts: Texts) -> Texts:
    """Truncate texts to the positions of the encoder."""
    return tuple(None if text is None else text[:MAX_PIECES] for text in texts)


def select_texts(texts: Texts, mode: str) -> Texts | None:
    """Return the texts of an input mode, or None where one of them is missing."""
    with_source, with_reference = INPUT_MODES[mode]
    hypothesis, source, reference = texts
    if (with_source and source is None) or (with_reference and reference is None):
        return None
    return hypothesis, source if with_source else None, reference if with_reference else None


def da_scores(predictions: Predictions) -> Floats:
    """Return the scores on the direct assessment scale."""
    return np.asarray(predictions.scores[:, 0])


def pearson(a: Floats, b: Floats) -> float:
    """Return Pearson's r; NaN for constant or very short input."""
    if len(a) < 3 or a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def sample_rows(store: Store, number: int, limit: int | None) -> NDArray[np.int64]:
    """Return the rows of a dataset, at most `limit` of them."""
    rows = np.flatnonzero(store.columns["set"] == number)
    if limit is not None and len(rows) > limit:
        rows = np.sort(np.random.default_rng(7).choice(rows, limit, replace=False))
    return rows


Predictor = Callable[[Sequence[Texts]], Predictions]


def measure_sets(
    predictor: Predictor,
    store: Store,
    part: str,
    limit: int | None = None,
    raw_scores: dict[str, NDArray[np.float32]] | None = None,
) -> dict[str, dict[str, dict[str, float]]]:
    """Return dataset -> input mode -> Pearson's r of each scale and of their mean.

    All datasets go through the network together to fill batches. `raw_scores` collects scores
    (rows, scales) with the human score as last column.
    """
    jobs: list[tuple[str, str, NDArray[np.int64]]] = []
    texts: list[Texts] = []
    compared = set(store.columns["comparisons"][:, 2].tolist())
    for number, name in enumerate(store.names):
        if not name.startswith(part) or number in compared:
            continue
        rows = sample_rows(store, number, limit)
        for mode in INPUT_MODES:
            shown_texts = [(row, select_texts(row_texts(store, row), mode)) for row in rows]
            visible = [
                (row, visible_text) for row, visible_text in shown_texts if visible_text is not None
            ]
            if len(visible) >= 50:
                jobs.append((name, mode, np.array([row for row, _ in visible])))
                texts += [visible_text for _, visible_text in visible]
    predictions = predictor(texts)
    result: dict[str, dict[str, dict[str, float]]] = {}
    at = 0
    for name, mode, rows in jobs:
        part_scores, at = predictions.scores[at : at + len(rows)], at + len(rows)
        human = store.columns["score"][rows].astype(float)
        figures = {s: pearson(part_scores[:, n], human) for n, s in enumerate(SCALES)}
        figures["mean"] = pearson(part_scores.mean(1), human)
        if raw_scores is not None:
            raw_scores[f"{name} {mode}"] = np.column_stack([part_scores, human]).astype(np.float32)
        result.setdefault(name, {})[mode] = figures
    return result


def measure_paragraphs(
    predictor: Predictor, store: Store, part: str, limit: int = 1500
) -> dict[str, dict[str, float]]:
    """Return dataset -> input mode -> Pearson's r on joined neighboring segments."""
    documents = Documents(store)
    result: dict[str, dict[str, float]] = {}
    for number, name in enumerate(store.names):
        rows = [r for r in sample_rows(store, number, None) if store.columns["document"][r] >= 0]
        if not name.startswith(part) or not rows:
            continue
        done: set[int] = set()
        joined = []
        for row in sorted(rows, key=lambda r: documents.rank[r]):
            if row not in done:
                group = documents.neighbors(int(row), 10)
                done.update(group)
                if len(group) > 2:
                    joined.append(documents.join(group))
        joined = joined[:limit]
        human = np.array([score for _, score in joined])
        for mode in INPUT_MODES:
            shown_texts = [select_texts(texts, mode) for texts, _ in joined]
            visible = [n for n, texts in enumerate(shown_texts) if texts is not None]
            if len(visible) >= 50:
                predictions = predictor([shown_texts[n] for n in visible])  # type: ignore[misc]
                result.setdefault(name, {})[mode] = pearson(da_scores(predictions), human[visible])
    return result


def measure_comparisons(
    predictor: Predictor, store: Store, part: str
) -> dict[str, dict[str, float]]:
    """Return strict Kendall's tau over all human comparisons without ties."""
    left, right, judge, outcome = store.columns["comparisons"].T
    result: dict[str, dict[str, float]] = {}
    rows = np.unique(np.concatenate([left, right]))
    place = {int(row): n for n, row in enumerate(rows)}
    a, b = (np.array([place[int(r)] for r in side]) for side in (left, right))
    for mode in INPUT_MODES:
        scores = da_scores(predictor([select_texts(row_texts(store, r), mode) for r in rows]))  # type: ignore[misc]
        agree = np.sign(scores[a] - scores[b]) * outcome
        for number in np.unique(judge):
            is_own = (judge == number) & (outcome != 0)
            if store.names[number].startswith(part) and is_own.any():
                tau = float(((agree[is_own] > 0) * 2.0 - 1).mean())
                result.setdefault(store.names[number], {})[mode] = tau
    return result


def iter_damage_pairs(
    outputs: Outputs, damager: Damager, count: int
) -> Iterator[tuple[str, Texts, Texts]]:
    """Yield kind of damage, an output of the held-out lines, and its damaged version."""
    rng = np.random.default_rng(11)
    for kind, (_, make) in damager.kinds.items():
        match_count = 0
        for _ in range(12 * count):
            if match_count == count:
                break
            line = int(rng.integers(outputs.lines - HELD_OUT_LINES, outputs.lines))
            other = int(rng.integers(outputs.lines - HELD_OUT_LINES, outputs.lines))
            system = int(rng.integers(len(outputs.systems)))
            third = outputs.column[outputs.languages[int(rng.integers(len(outputs.languages)))]]
            if third in outputs.systems[system]:
                continue
            texts = outputs.texts(line, system)
            unrelated = outputs.text(other, outputs.systems[system][0])
            material = material_of(texts, unrelated, outputs.text(line, third))
            damaged = make(material, rng)
            if damaged is not None and not np.array_equal(damaged.text, texts[0]):  # type: ignore[arg-type]
                yield kind, texts, (damaged.text, *texts[1:])
                match_count += 1


def measure_damage(
    predictor: Predictor, outputs: Outputs, damager: Damager, count: int = 150
) -> dict[str, dict[str, float]]:
    """Return kind -> input mode -> share of damaged texts that score below the original.

    Uses the last lines of FLORES, which are excluded from training.
    """
    drawn = list(iter_damage_pairs(outputs, damager, count))
    kinds = [kind for kind, _, _ in drawn]
    intact, damaged = [texts for _, texts, _ in drawn], [texts for _, _, texts in drawn]
    result: dict[str, dict[str, float]] = {}
    for mode in INPUT_MODES:
        before, after = (
            da_scores(predictor([select_texts(t, mode) for t in texts]))  # type: ignore[misc]
            for texts in (intact, damaged)
        )
        for kind in dict.fromkeys(kinds):
            is_own = np.array([k == kind for k in kinds])
            result.setdefault(kind, {})[mode] = float((before[is_own] > after[is_own]).mean())
    return result


def measure_spans(
    predictor: Predictor, store: Store, part: str, limit: int = 2500
) -> dict[str, dict[str, Any]]:
    """Return piece-level F1 of error spans at every threshold, and of marking everything."""
    marks: dict[int, list[tuple[int, int]]] = {}
    for row, start, end, *_ in store.columns["marks"]:
        marks.setdefault(int(row), []).append((int(start), int(end)))
    result: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(store.names):
        rows = [r for r in sample_rows(store, number, limit) if store.columns["marked"][r]]
        if not name.startswith(part) or len(rows) < 50:
            continue
        for mode in INPUT_MODES:
            visible = [(r, select_texts(row_texts(store, r), mode)) for r in rows]
            visible = [(r, texts) for r, texts in visible if texts is not None]
            if len(visible) >= 50:
                figures = measure_span_f1(predictor, visible, marks)  # type: ignore[arg-type]
                result[f"{name} {mode}"] = figures
    return result


def measure_span_f1(
    predictor: Predictor, rows: Sequence[tuple[int, Texts]], marks: dict[int, list[tuple[int, int]]]
) -> dict[str, Any]:
    """Return the F1 of one dataset and input mode at every threshold."""
    predictions = predictor([texts for _, texts in rows])
    truth, probabilities = [], []
    for (row, texts), logits in zip(rows, predictions.tags, strict=True):
        wrong = np.zeros(hypothesis_length(texts), np.bool_)
        for start, end in marks.get(row, ()):
            wrong[start:end] = True
        truth.append(wrong)
        probabilities.append(error_probabilities(logits))
    wrong, base = np.concatenate(truth), float(np.concatenate(truth).mean())
    p = np.concatenate(probabilities)  # (pieces, tag schemes)
    columns = np.column_stack([p, p.mean(1)])
    figures: dict[str, Any] = {"rate": base, "everything": 2 * base / (1 + base)}
    for name, column in zip((*TAG_SCHEMES, "mean"), columns.T, strict=True):
        bins = np.minimum((column * BINS).astype(int), BINS - 1)
        marked = np.bincount(bins, minlength=BINS)[::-1].cumsum()[::-1]  # above each threshold
        hits = np.bincount(bins[wrong], minlength=BINS)[::-1].cumsum()[::-1]
        f1 = 2 * hits / np.maximum(marked + wrong.sum(), 1)
        figures[name] = {
            "f1": float(f1.max()),
            "threshold": int(f1.argmax()) / BINS,
            "by threshold": f1.round(4).tolist(),
            "marked": (marked / len(wrong)).round(4).tolist(),
        }
    return figures


def error_probabilities(logits: NDArray[np.float32]) -> Floats:
    """Return the probability of an error for each tag scheme, (pieces, schemes)."""
    probabilities = []
    for first, size in ((0, 3), (3, 3), (6, 2)):
        part = logits[:, first : first + size]
        part = np.exp(part - part.max(1, keepdims=True, initial=-1e9))
        probabilities.append(1 - part[:, 0] / part.sum(1))
    return np.stack(probabilities, 1).astype(float)


def summarize(
    figures: dict[str, dict[str, dict[str, float]]], scale: str = "da"
) -> dict[str, float]:
    """Return the mean over datasets for each group and input mode, and the overall mean."""
    groups: dict[str, list[float]] = {}
    for name, modes in figures.items():
        group = name.split("/")[0].split(":")[1]
        for mode, scales in modes.items():
            groups.setdefault(f"{group} {mode}", []).append(scales[scale])
    means = {name: float(np.nanmean(values)) for name, values in groups.items()}
    return {**means, "mean": float(np.nanmean(list(means.values())))}
