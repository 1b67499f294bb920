"""Components of variance in public human evaluations, by protocol, as in people/variance.json.

python -m benchmarks annotation variance [--store]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.spans import error_weight
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.record_files import read_records
from tertium.people.power import COMPONENTS, VarianceComponents

HUMAN_PREFIXES = ("ref", "human")  # system names of human translations start with these
SETS = {
    "esa": ("modern/train/esa/wmt24", "modern/dev/esa/wmt24"),
    "mqm": ("modern/train/mqm/news20", "modern/train/mqm/news21", "modern/dev/mqm/ted21"),
    "da": ("modern/train/da/wmt20", "modern/train/da/wmt22", "modern/dev/da/wmt22"),
}
UNITS = {
    "esa": "points (0 to 100)",
    "mqm": "MQM points",
    "da": "points (0 to 100)",
    "ranking": "share of comparisons won minus lost",
}
RAW_DA_DEVIATION = 24.0  # points of a rater's scores in da/wmt22liv; other sets are z-scores
VARIANCE_FILE = Path("src/tertium/people/variance.json")
MIN_CELLS = 30  # segments judged for both systems


def select_close_pairs(differences: ArrayLike, share: float = 2 / 3) -> BoolArray:
    """Mark the system pairs with the smallest differences, for which campaigns are planned."""
    sizes = np.abs(np.asarray(differences, dtype=np.float64))
    close: BoolArray = sizes <= np.quantile(sizes, share)
    return close


@dataclass(frozen=True, kw_only=True)
class HumanTable:
    """Scores and numbers of raters (systems, segments), NaN if not judged; documents as numbers."""

    name: str
    systems: tuple[str, ...]
    scores: FloatArray
    raters: FloatArray
    documents: IntArray
    rows: list[dict[str, Any]]


def read_table(path: Path) -> HumanTable:
    rows = [
        record
        for _, record in read_records(path)
        if not record["system"].lower().startswith(HUMAN_PREFIXES)
    ]
    systems = tuple(sorted({row["system"] for row in rows}))
    keys = sorted({(row.get("doc", ""), row["segment"]) for row in rows})
    column = {key: n for n, key in enumerate(keys)}
    scores, raters = np.full((2, len(systems), len(keys)), np.nan)
    for row in rows:
        place = systems.index(row["system"]), column[row.get("doc", ""), row["segment"]]
        scores[place], raters[place] = row["score"], row.get("raters", 1)
    names = [document or str(n) for n, (document, _) in enumerate(keys)]
    documents = np.unique(names, return_inverse=True)[1]
    name = f"{path.parent.parent.name}/{path.parent.name}/{path.name.split('.')[0]}"
    return HumanTable(
        name=name, systems=systems, scores=scores, raters=raters, documents=documents, rows=rows
    )


def read_tables(protocol: str) -> Iterator[HumanTable]:
    root = DatasetFolder.open().root
    for folder in SETS[protocol]:
        for path in sorted((root / folder).glob("*.jsonl.gz")):
            yield read_table(path)


def close_differences(table: HumanTable) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Return centered differences of similar systems, raters, pairs and segments, all (n,)."""
    pairs = [
        (a, b)
        for a, b in combinations(range(len(table.systems)), 2)
        if (~np.isnan(table.scores[a] - table.scores[b])).sum() >= MIN_CELLS
    ]
    means = [float(np.nanmean(table.scores[a] - table.scores[b])) for a, b in pairs]
    parts: list[tuple[FloatArray, FloatArray, IntArray, IntArray]] = []
    for number in np.flatnonzero(select_close_pairs(means)):
        a, b = pairs[number]
        difference = table.scores[a] - table.scores[b] - means[number]
        is_shared = ~np.isnan(difference) & (table.raters[a] == table.raters[b])
        segments = np.flatnonzero(is_shared)
        parts.append(
            (
                difference[segments],
                table.raters[a][segments],
                np.full(len(segments), number),
                segments,
            )
        )
    values, raters, pair, segments = (np.concatenate(column) for column in zip(*parts, strict=True))
    return values, raters, pair, segments


def moments_by_raters(table: HumanTable) -> dict[int, tuple[float, float, int]]:
    """Return (variance, covariance within documents, count) by number of raters."""
    values, raters, pair, segments = close_differences(table)
    moments = {}
    for count in (1, 2, 3):
        mask = raters == count
        if mask.sum() < 2000:
            continue
        product, pairs = pair_products(values[mask], pair[mask], table.documents[segments[mask]])
        covariance = product / pairs if pairs else np.nan
        moments[count] = float(np.mean(values[mask] ** 2)), float(covariance), int(mask.sum())
    return moments


def fit_shares(moments: dict[int, tuple[float, float, int]]) -> FloatArray:
    """Fit variance = document + segment + (rater + noise) / k over numbers k of raters."""
    inverse = np.array([1 / count for count in moments])
    design = np.stack([np.ones(len(inverse)), inverse], axis=1)
    weights = np.sqrt([entry[2] for entry in moments.values()])[:, None]
    fits = [
        np.linalg.lstsq(design * weights, np.array(column) * weights[:, 0], rcond=None)[0]
        for column in list(zip(*moments.values(), strict=True))[:2]
    ]
    (stable, repeated), (document, rater) = np.maximum(fits, 0.0)
    parts = np.array([document, rater, max(0.0, stable - document), max(0.0, repeated - rater)])
    shares: FloatArray = parts / parts.sum()
    return shares


def estimate_from_counts(protocol: str, scale: float = 1.0) -> dict[str, Any]:
    """Estimate components from averaged scores: shares where the number of raters varies."""
    moments = {table.name: moments_by_raters(table) for table in read_tables(protocol)}
    shares = np.mean([fit_shares(entry) for entry in moments.values() if len(entry) > 1], axis=0)
    repeated = shares[1] + shares[3]
    totals = {
        name: variance / (1 - repeated + repeated / count)
        for name, entry in moments.items()
        for count, (variance, _, _) in [next(iter(entry.items()), (1, (np.nan, 0.0, 0)))]
    }
    totals = {name: total * scale**2 for name, total in totals.items() if total == total}
    return describe_components(shares * np.mean([*totals.values()]), totals)


def describe_components(parts: FloatArray, totals: dict[str, float]) -> dict[str, Any]:
    values = {name: round(float(part), 4) for name, part in zip(COMPONENTS, parts, strict=True)}
    return values | {"sets": {name: round(total, 2) for name, total in sorted(totals.items())}}


def estimate_mqm() -> dict[str, Any]:
    """Estimate components of MQM: shares from the three raters of news20, totals of all sets."""
    shares, totals = [], {}
    for table in read_tables("mqm"):
        if np.nanmin(table.raters) > 1:
            components = fit_rater_scores(table)
            shares.append([getattr(components, name) / components.total for name in COMPONENTS])
            totals[table.name] = components.total
        else:
            totals[table.name] = float(np.mean(close_differences(table)[0] ** 2))
    return describe_components(np.mean(shares, axis=0) * np.mean([*totals.values()]), totals)


def fit_rater_scores(table: HumanTable) -> VarianceComponents:
    """Fit the components to the scores of single raters, from the errors that each marked."""
    cells: dict[tuple[str, str], dict[str, FloatArray]] = {}
    for row in table.rows:
        scores = np.zeros(int(row["raters"]))
        for error in [*row.get("spans", ()), *row.get("missing", ())]:
            weight = error_weight(error["severity"], error.get("category", ""))
            scores[int(error["rater"])] -= weight
        cells.setdefault((row["doc"], row["segment"]), {})[row["system"]] = scores
    documents = {name: n for n, name in enumerate(dict.fromkeys(doc for doc, _ in cells))}
    values, labels = [], []
    for number, (a, b) in enumerate(combinations(table.systems, 2)):
        for segment, (key, own) in enumerate(cells.items()):
            if a in own and b in own and len(own[a]) == len(own[b]):
                for rater, value in enumerate(own[a] - own[b]):
                    values.append(value)
                    labels.append((number, documents[key[0]], segment, rater))
    numbers = np.array(labels).T
    means = np.bincount(numbers[0], values) / np.bincount(numbers[0])
    close = select_close_pairs(means)[numbers[0]]
    return fit_components((np.array(values) - means[numbers[0]])[close], numbers[:, close])


def fit_components(values: FloatArray, labels: IntArray) -> VarianceComponents:
    """Fit the components of centered differences by the method of moments.

    Two raters on a segment share document + segment, one rater on two segments of a document shares
    document + rater, and two raters on two such segments share the document. The rows of the labels
    (4, differences) are numbers of the pair of systems, document, segment and rater.
    """
    pair, document, segment, rater = labels
    total = float(np.mean(values**2))
    same_segment = pair_products(values, pair, segment)
    same_rater = pair_products(values, pair, document, rater)
    other_rater = pair_products(values, pair, document) - same_rater - same_segment
    both, one_rater, two_raters = map(_mean_product, (same_segment, same_rater, other_rater))
    shared = min(one_rater or 0.0, both or np.inf) if two_raters is None else two_raters
    document_variance = max(0.0, shared)
    rater_variance = max(0.0, (one_rater or 0.0) - document_variance)
    segment_variance = max(0.0, (total if both is None else both) - document_variance)
    parts = np.array([document_variance, rater_variance, segment_variance, 0.0])
    parts[3] = max(0.0, total - parts.sum())
    scaled = parts * total / parts.sum() if parts.any() else parts
    return VarianceComponents(**dict(zip(COMPONENTS, scaled.tolist(), strict=True)))


def pair_products(values: FloatArray, *groups: IntArray) -> FloatArray:
    """Return the sum of products of different members of a group, and their number, (2,)."""
    label = np.unique(np.stack(groups), axis=1, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(label).astype(np.float64)
    sums, squares = np.bincount(label, values), np.bincount(label, values**2)
    return np.array([np.sum(sums**2 - squares), np.sum(counts * (counts - 1))])


def _mean_product(products: FloatArray) -> float | None:
    return float(products[0] / products[1]) if products[1] > 0.5 else None


def estimate_ranking() -> dict[str, Any]:
    """Estimate components of comparisons (1, 0 or -1) from the judges of WMT16."""
    totals, shares = {}, []
    for path in sorted((DatasetFolder.open().root / "rankings/wmt16").glob("*.judgements.tsv.gz")):
        values, labels = [], []
        for _, row in read_records(path):
            a, b = row["system_a"], row["system_b"]
            value = {"a": 1.0, "b": -1.0, "tie": 0.0}[row["preference"]]
            values.append(value if a < b else -value)
            labels.append((f"{min(a, b)}\t{max(a, b)}", row["segment"], row["judge"]))
        columns = zip(*labels, strict=True)
        pair, segment, judge = (np.unique(c, return_inverse=True)[1] for c in columns)
        means = np.bincount(pair, values) / np.bincount(pair)
        close = select_close_pairs(means)[pair]
        numbers = np.stack([pair, segment, segment, judge])[:, close]
        components = fit_components((np.array(values) - means[pair])[close], numbers)
        name = f"rankings/wmt16/{path.name.split('.')[0]}"
        totals[name] = components.total
        shared = components.document + components.segment  # one segment is a document here
        shares.append([0.0, 0.0, shared / components.total, 1 - shared / components.total])
    return describe_components(np.mean(shares, axis=0) * np.mean([*totals.values()]), totals)


def main() -> None:
    protocols = {
        "esa": estimate_from_counts("esa"),
        "mqm": estimate_mqm(),
        "da": estimate_from_counts("da", RAW_DA_DEVIATION),
        "ranking": estimate_ranking(),
    }
    for name, entry in protocols.items():
        total = sum(entry[part] for part in COMPONENTS)
        shares = ", ".join(f"{part} {100 * entry[part] / total:.0f} %" for part in COMPONENTS)
        low, high = min(entry["sets"].values()), max(entry["sets"].values())
        print(f"{name}: total {total:.3g} ({low:.3g} to {high:.3g}); {shares}")
        entry |= {"unit": UNITS[name], "origin": f"{len(entry['sets'])} public sets"}
    if "--store" in sys.argv:
        content = {"made_by": "python -m benchmarks annotation variance --store"}
        text = json.dumps({**content, "protocols": protocols}, indent=1)
        VARIANCE_FILE.write_text(text + "\n", encoding="utf-8")
