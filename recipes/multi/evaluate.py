"""Measure a network of `fine_tune` by the value that chooses between networks.

The value is the mean of r, accuracy within a source and accuracy of systems, over the groups of
`CHOICE_SETS` and over the three input modes (`choice_value`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recipes.multi.batching import build_batch, send
from recipes.multi.network import MODES, Batch, MultiNetwork
from recipes.multi.sampling import PackedRows

CHOICE_SETS = {
    "wmt22": ("dev:da/wmt22/uk-en",),
    "wmt24": ("dev:esa/wmt24/",),
    "wmt25": ("dev:soft/",),  # scores of an LLM judge, not of people
}
OLDER_SETS = {
    "wmt15": ("dev:da/wmt15/",),
    "livonian": ("dev:da/wmt22liv/", "dev:da/wmt22/liv"),
    "mqm": ("dev:mqm/ted21/", "dev:mqm/qe22dev"),
    "qe20": ("dev:qe/mlqe-dev/", "dev:qe/mlqe-test20", "dev:qe/mlqe-test21"),
    "qe22": ("dev:qe/qe22",),
    "qe24": ("dev:qe/qe24",),
}


def forward(
    data: PackedRows, rows: NDArray[np.int64], mode: NDArray[np.int64]
) -> tuple[Batch, Tensor, Tensor]:
    """Return the batch, the surface features and the modes of rows, on the device."""
    texts = data.texts_of(rows, mode)
    batch = build_batch(texts, data.pool)
    device = data.pool.device
    return batch, send(data.surface(rows, mode), device), send(mode, device)


@torch.no_grad()
def predict(
    network: MultiNetwork,
    data: PackedRows,
    rows: NDArray[np.int64],
    mode: int,
    budget: int = 120_000,
) -> NDArray[np.float64]:
    """Return the scores of rows in one input mode."""
    modes = np.full(len(rows), mode)
    texts = data.texts_of(rows, modes)
    sizes = np.where(texts >= 0, data.pool.lengths[texts] + 2, 0).sum(1)
    order = np.argsort(-sizes, kind="stable")
    result, at = np.zeros(len(rows)), 0
    while at < len(rows):
        count = max(1, min(budget // int(sizes[order[at]]), len(rows) - at))
        chosen = order[at : at + count]
        scores, _, _ = network.score(*forward(data, rows[chosen], modes[chosen]))
        result[chosen] = scores.float().cpu().numpy()
        at += count
    return result


def pair_accuracy(human: NDArray[Any], metric: NDArray[Any], groups: NDArray[Any]) -> float:
    """Return the share of pairs within groups in the order of people; ties of people left out."""
    right = total = 0.0
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        if len(rows) > 1:
            h = np.sign(human[rows][:, None] - human[rows][None])
            m = np.sign(metric[rows][:, None] - metric[rows][None])
            upper = np.triu(h != 0, 1)
            total += int(upper.sum())
            right += float(((h == m) & upper).sum() + 0.5 * ((m == 0) & upper).sum())
    return right / total if total else float("nan")


def measure(network: MultiNetwork, data: PackedRows) -> dict[str, dict[str, list[float]]]:
    """Return r, accuracy within a source and accuracy of systems, by set and input mode."""
    network.eval()
    figures: dict[str, dict[str, list[float]]] = {}
    sets: dict[str, list[int]] = {}
    for number, name in enumerate(data.names):
        if name.startswith("dev:"):
            merged = name.startswith(("dev:strings", "dev:commands", "dev:flores"))
            sets.setdefault(name.split("/")[0] if merged else name, []).append(number)
    for name, numbers in sets.items():
        rows = data.rows_of(numbers)
        figures[name] = {}
        for mode, title in enumerate(MODES):
            chosen = rows if mode == 0 else rows[data.columns["reference"][rows] >= 0]
            if len(chosen) < 4 or (mode and name.startswith(("dev:strings", "dev:commands"))):
                continue
            scores = predict(network, data, chosen, mode)
            human = data.columns["within"][chosen].astype(float)
            groups, system = data.columns["group"][chosen], data.columns["system"][chosen]
            labels = data.columns["score"][chosen]
            r = float("nan") if np.isnan(labels).any() else float(np.corrcoef(labels, scores)[0, 1])
            figures[name][title] = [
                r,
                pair_accuracy(human, scores, groups),
                system_accuracy(human, scores, system, groups),
            ]
    network.train()
    return figures


def system_accuracy(human: Any, metric: Any, system: Any, groups: Any) -> float:
    """Return the share of pairs of systems in the order of people, on sources of both."""
    names, index = np.unique(system, return_inverse=True)
    sources, column = np.unique(groups, return_inverse=True)
    if len(names) < 3 or len(sources) < 10:
        return float("nan")
    tables = []
    for values in (human, metric):
        table = np.full((len(names), len(sources)), np.nan)
        table[index, column] = values
        tables.append(table)
    right = total = 0.0
    for a in range(len(names)):
        for b in range(a):
            shared = ~np.isnan(tables[0][a] + tables[0][b])
            if shared.sum() < 10:
                continue
            h, m = (np.sign(np.mean(t[a][shared] - t[b][shared])) for t in tables)
            total += 1
            right += float(h == m)
    return right / total if total else float("nan")


def summarize(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """Return means over the sets of each group, by input mode, and the value to choose by."""
    summary: dict[str, Any] = {}
    for title, groups in (("choice", CHOICE_SETS), ("older", OLDER_SETS)):
        for group, prefixes in groups.items():
            for mode in MODES:
                own = [f[mode] for n, f in figures.items() if n.startswith(prefixes) and mode in f]
                if own:
                    with np.errstate(all="ignore"):
                        means = np.nanmean(np.array(own, float), 0)
                    summary[f"{title} {group} {mode}"] = [round(float(v), 4) for v in means]
    unseen = [
        figures[f"dev:soft/{pair}"]["source"]
        for pair in ("en-sv", "en-th")
        if f"dev:soft/{pair}" in figures
    ]
    if unseen:
        summary["unseen pairs source"] = [round(float(v), 4) for v in np.mean(unseen, 0)]
    for kind in ("strings", "commands", "flores"):
        for mode in MODES:
            shares = [
                f[mode][1] for n, f in figures.items() if n.startswith(f"dev:{kind}") and mode in f
            ]
            if shares:
                summary[f"{kind} {mode}"] = round(float(np.nanmean(shares)), 4)
    summary["value"] = choice_value(summary)
    old = {
        m: [v[0] for k, v in summary.items() if k.startswith("older") and k.endswith(m)]
        for m in MODES
    }
    summary["older r"] = {m: round(float(np.nanmean(v)), 4) for m, v in old.items() if v}
    return summary


def choice_value(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean of the three figures over the modern groups, by input mode and overall."""
    by_mode = {}
    for mode in MODES:
        own = [v for k, v in summary.items() if k.startswith("choice") and k.endswith(mode)]
        if own:
            by_mode[mode] = round(float(np.nanmean(np.array(own))), 4)
    return {**by_mode, "all": round(float(np.mean(list(by_mode.values()))), 4)}
