"""Variance, power and choice of segments in public human evaluations.

python -m benchmarks annotation variance    components by protocol, as in people/variance.json
python -m benchmarks annotation power       predicted power, and power on samples of WMT24 ESA
python -m benchmarks annotation choice      system rankings from chosen segments of WMT24 ESA
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.resampling import assign_clusters, make_rng
from tertium.core.spans import error_weight
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.record_files import read_records
from tertium.meta.correlation import spearman
from tertium.people.power import Design, compute_power, effective_document_size
from tertium.people.sampling import METHODS, choose_segments
from tertium.people.variance import (
    COMPONENTS,
    VarianceComponents,
    fit_components,
    pair_products,
)

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
SEED = 2024
MAX_CHOICE_SEGMENTS = 634  # as many as most sets have
DRAWS = 200
SAMPLE_SIZES = (50, 100, 200, 400)
POWER_BINS = (1.0, 2.0, 4.0, 8.0)  # differences in points
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
    columns: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


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
    components, _ = fit_components((np.array(values) - means[numbers[0]])[close], numbers[:, close])
    return components


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
        components, _ = fit_components((np.array(values) - means[pair])[close], numbers)
        name = f"rankings/wmt16/{path.name.split('.')[0]}"
        totals[name] = components.total
        shared = components.document + components.segment  # one segment is a document here
        shares.append([0.0, 0.0, shared / components.total, 1 - shared / components.total])
    return describe_components(np.mean(shares, axis=0) * np.mean([*totals.values()]), totals)


def measure_variance() -> None:
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


def measure_power() -> None:
    """Compare predicted power with how often samples of WMT24 ESA find the better system."""
    stored = json.loads(VARIANCE_FILE.read_text(encoding="utf-8"))["protocols"]["esa"]
    shares = VarianceComponents(**{name: stored[name] for name in COMPONENTS})
    rng = make_rng(SEED)
    results: dict[tuple[str, int, int], list[tuple[float, float, float]]] = {}
    for table in read_tables("esa"):
        raters = int(Counter(table.raters[~np.isnan(table.raters)].tolist()).most_common(1)[0][0])
        other_totals = [total for name, total in stored["sets"].items() if name != table.name]
        public = shares.scale_to(float(np.mean(other_totals)), "other language pairs")
        pilot = shares.scale_to(stored["sets"][table.name], "same language pair")
        for a, b in combinations(range(len(table.systems)), 2):
            difference = table.scores[a] - table.scores[b]
            has_both = ~np.isnan(difference)
            values, documents = difference[has_both], table.documents[has_both]
            _, documents = np.unique(documents, return_inverse=True)
            true = float(values.mean())
            size_bin = int(np.searchsorted(POWER_BINS, abs(true)))
            document_size = len(values) / (documents.max() + 1)
            for sampling, segments_per_document, effective_size in (
                ("segments", 1.0, 1.0),
                ("documents", document_size, effective_document_size([*map(str, documents)])),
            ):
                for count in SAMPLE_SIZES:
                    design = Design(
                        protocol="esa",
                        raters=raters,
                        segments_per_document=segments_per_document,
                        effective_document_size=effective_size,
                    )
                    observed = observe_power(
                        values, documents, count, rng, by_document=sampling == "documents"
                    )
                    predicted = [
                        float(compute_power(true, count, variance, design))
                        for variance in (public, pilot)
                    ]
                    results.setdefault((sampling, size_bin, count), []).append(
                        (observed, predicted[0], predicted[1])
                    )
    print("sampling\tdifference\tpairs\tsegments\tobserved\tpredicted\tpredicted with pilot")
    edges = (0.0, *POWER_BINS, np.inf)
    for (sampling, size_bin, count), rows in sorted(results.items()):
        low, high = edges[size_bin], edges[size_bin + 1]
        means = "\t".join(f"{100 * value:.0f}" for value in np.mean(rows, axis=0))
        print(f"{sampling}\t{low:g} to {high:g}\t{len(rows)}\t{count}\t{means}")
    for sampling in ("segments", "documents"):
        own = np.concatenate([rows for key, rows in results.items() if key[0] == sampling])
        errors = np.abs(own[:, 1:] - own[:, :1]).mean(axis=0)
        bias = (own[:, 1:] - own[:, :1]).mean(axis=0)
        print(f"{sampling}: mean absolute error {errors.round(3)}, bias {bias.round(3)}")


def observe_power(
    values: FloatArray,
    documents: IntArray,
    count: int,
    rng: np.random.Generator,
    *,
    by_document: bool,
) -> float:
    """Return how often a test on drawn segments or documents finds the true difference."""
    from scipy.stats import t

    if not by_document:
        drawn = values[rng.integers(len(values), size=(DRAWS, count))]
        errors = drawn.std(axis=1, ddof=1) / np.sqrt(count)
        effect, freedom = drawn.mean(axis=1) / np.maximum(errors, 1e-12), count - 1
    else:
        sizes = np.bincount(documents).astype(np.float64)
        sums = np.bincount(documents, values)
        number = max(2, round(count / float(sizes.mean())))
        chosen = rng.integers(len(sizes), size=(DRAWS, number))
        means = sums[chosen].sum(axis=1) / sizes[chosen].sum(axis=1)
        residuals = sums[chosen] - means[:, None] * sizes[chosen]
        spread = (residuals**2).sum(axis=1) * number / (number - 1)
        errors = np.sqrt(spread) / sizes[chosen].sum(axis=1)
        effect, freedom = means / np.maximum(errors, 1e-12), number - 1
    is_right = np.sign(effect) == np.sign(values.mean())
    return float(np.mean((np.abs(effect) > t.isf(0.025, freedom)) & is_right))


def measure_choice() -> None:
    """Compare ways to choose segments by the rankings and clusters of the systems they give."""
    count = next((int(word) for word in sys.argv[2:] if word.isdecimal()), 100)
    rng = make_rng(SEED)
    results: dict[str, list[tuple[float, float, float, float]]] = {}
    tables = [*read_tables("esa")]
    for table in tables:
        table = complete_segments(table, MAX_CHOICE_SEGMENTS, rng)
        true = table.scores.mean(axis=1)
        strata = [(str(n),) for n in table.documents]
        for method in METHODS:
            for _ in range(DRAWS):
                chosen = choose_segments(
                    len(table.documents),
                    count,
                    rng,
                    method=method,
                    documents=[*map(str, table.documents)],
                    strata=strata,
                )
                row = rank_from_sample(table.scores[:, chosen], true)
                results.setdefault(method, []).append(row)
    print(f"{count} segments, {len(tables)} sets, {DRAWS} draws")
    print("choice\tSpearman\tclusters\terror of a mean\tbias of all means")
    for label, rows in results.items():
        means = np.mean(rows, axis=0)
        print(f"{label}\t{means[0]:.3f}\t{means[1]:.2f}\t{means[2]:.2f}\t{means[3]:+.2f}")


def complete_segments(table: HumanTable, limit: int, rng: np.random.Generator) -> HumanTable:
    """Keep segments judged for all systems (without systems that were judged rarely)."""
    has_score = ~np.isnan(table.scores)
    systems = np.flatnonzero(has_score.mean(axis=1) > 0.9)
    keys = segment_keys(table)
    references = find_references(table)
    has_reference = np.array([bool(references.get(key)) for key in keys])
    columns = np.flatnonzero(has_score[systems].all(axis=0) & has_reference)
    if len(columns) > limit:
        columns = np.sort(rng.choice(columns, limit, replace=False))
    return replace(
        table,
        systems=tuple(table.systems[n] for n in systems),
        scores=table.scores[np.ix_(systems, columns)],
        raters=table.raters[np.ix_(systems, columns)],
        documents=table.documents[columns],
        columns=columns,
    )


def segment_keys(table: HumanTable) -> list[tuple[str, str]]:
    return sorted({(row.get("doc", ""), row["segment"]) for row in table.rows})


def find_references(table: HumanTable) -> dict[tuple[str, str], str]:
    return {
        (row.get("doc", ""), row["segment"]): row["reference"]
        for row in table.rows
        if row.get("reference")
    }


def rank_from_sample(chosen: FloatArray, true: FloatArray) -> tuple[float, float, float, float]:
    """Return Spearman's rho with all segments, clusters, and errors of the system means."""
    means = chosen.mean(axis=1)
    order = np.argsort(-means, kind="stable")
    differences = chosen[order][:, None] - chosen[order][None]
    standard_errors = differences.std(axis=-1, ddof=1) / differences.shape[-1] ** 0.5
    effects = differences.mean(axis=-1) / np.maximum(1e-12, standard_errors)
    clusters = assign_clusters(2 * ndtr(-np.abs(effects)))
    rho = float(spearman(true, means))
    errors = means - true
    return rho, clusters[-1], float(np.abs(errors).mean()), float(errors.mean())


def main() -> None:
    commands = {
        "variance": measure_variance,
        "power": measure_power,
        "choice": measure_choice,
    }
    for name in [word for word in sys.argv[1:2] if word in commands] or commands:
        commands[name]()


if __name__ == "__main__":
    main()
