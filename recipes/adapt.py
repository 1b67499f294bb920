"""Learning curves of `tertium train tertium-multi`: agreement after adapting to own human scores.

    python -m recipes.adapt --data DIR [--processes 2] [-o curves.json]

Of each set, the translations of 30 % of the sources are the test. Samples of the others, with all
translations of a source, are what a user would have judged. Adapted scores are compared with those
of tertium-multi by Pearson's r and by the share of pairs of translations of one source in the order
of people, ties of people left out. A refused training counts as tertium-multi.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from recipes.multi.evaluate import pair_accuracy
from recipes.multi.judgments import read_rows
from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.errors import DataError
from tertium.core.segment import Against
from tertium.metrics.bundled import adapted_multi as adaptation
from tertium.metrics.bundled.adapted_multi import STRENGTHS
from tertium.metrics.bundled.input_rows import INPUT_MODES, Row
from tertium.metrics.bundled.tertium_multi import TertiumMulti

SETS = ("esa/wmt24/cs-uk", "esa/wmt24/en-is", "da/wmt22/uk-en")
SIZES, SEEDS = (50, 200, 1_000, 5_000), (1, 2, 3)
TEST_SHARE, MAX_ROWS, CHUNK = 0.3, 8_000, 512


def select_texts(record: dict[str, Any], mode: Against) -> Row:
    return (
        record["hypothesis"],
        None if mode == "reference" else record["source"],
        None if mode == "source" else record["reference"],
    )


def _chunk_values(rows: Sequence[Row]) -> FloatArray:
    return np.array(TertiumMulti().reader.head_values(rows), dtype=np.float32)


def head_values(rows: Sequence[Row], processes: int) -> FloatArray:
    """Return the head values of rows, computed by several processes."""
    chunks = [rows[n : n + CHUNK] for n in range(0, len(rows), CHUNK)]
    if processes == 1:
        return np.concatenate(list(map(_chunk_values, chunks)))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return np.concatenate(pool.map(_chunk_values, chunks))


def adapt(data: adaptation.JudgedValues) -> adaptation.Adaptation | None:
    """Return the adapted head, or None if it is refused."""
    try:
        study = adaptation.cross_validate(data, STRENGTHS)
        adaptation.check_gain(study, len(data.targets))
    except DataError:
        return None
    return adaptation.adapt_head(data, [study.best])[0]


@dataclass(frozen=True)
class JudgedSet:
    """A set of judgments: the head values of its rows, and which rows are the test."""

    table: adaptation.JudgedValues
    is_test: BoolArray

    def measure(self, scores: FloatArray) -> list[float]:
        """Return r and the share of pairs in order of scores of the test."""
        human, sources = self.table.targets[self.is_test], self.table.sources[self.is_test]
        r = float(np.corrcoef(scores, human)[0, 1])
        return [round(r, 4), round(pair_accuracy(human, scores, sources), 4)]

    def draw(self, size: int, seed: int) -> IntArray:
        """Return rows of random sources that are not in the test."""
        parts, count = [], 0
        pool = np.unique(self.table.sources[~self.is_test])
        for source in np.random.default_rng(seed).permutation(pool):
            if count >= size:
                break
            parts.append(np.flatnonzero(self.table.sources == source))
            count += len(parts[-1])
        return np.concatenate(parts)[:size]


def read_set(path: Path, mode: Against, processes: int) -> JudgedSet:
    records = [r for r in read_rows(path) if r.get("reference")]
    names, sources = np.unique([r["source"] for r in records], return_inverse=True)
    order = np.random.default_rng(0).permutation(len(names))
    rank = np.argsort(order)[sources]
    chosen = np.argsort(rank, kind="stable")[:MAX_ROWS]  # the first sources in random order
    records, sources, rank = [records[n] for n in chosen], sources[chosen], rank[chosen]
    rows = [select_texts(r, mode) for r in records]
    weights, bias = TertiumMulti().reader.last_layer(INPUT_MODES.index(mode))
    table = adaptation.JudgedValues(
        values=head_values(rows, processes).astype(np.float64),
        targets=np.array([r["score"] for r in records], dtype=np.float64),
        sources=sources,
        shipped=(weights.astype(np.float64), bias),
    )
    return JudgedSet(table, rank < TEST_SHARE * (rank.max() + 1))


def learning_curve(data: JudgedSet, sizes: Sequence[int]) -> dict[str, Any]:
    """Return the agreement of adapted heads by size of the sample."""
    test, result = data.table.values[data.is_test], {}
    for size in sizes:
        figures, refused, rows = [], 0, 0
        for seed in SEEDS if size < len(data.is_test) / 3 else SEEDS[:1]:
            sample_table = data.table.take(data.draw(size, seed))
            adapted = adapt(sample_table)
            refused, rows = refused + (adapted is None), len(sample_table.targets)
            scores = adapted.predict(test) if adapted else test @ sample_table.shipped[0]
            figures.append(data.measure(scores))
        result[str(size)] = {
            "rows": rows,
            "figures": np.mean(figures, 0).round(4).tolist(),
            "refused": f"{refused} of {len(figures)}",
        }
        print(size, result[str(size)], flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of human judgments")
    parser.add_argument("--processes", type=int, default=1, help="default: 1")
    parser.add_argument("--sets", nargs="+", default=SETS, help="default: all three")
    parser.add_argument("--modes", nargs="+", default=("source", "both"), help="default: both")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("-o", "--output", type=Path, help="JSON file of all figures")
    args = parser.parse_args()
    curves: dict[str, Any] = {}
    for name, mode in product(args.sets, args.modes):
        data = read_set(args.data / f"modern/dev/{name}.jsonl.gz", mode, args.processes)
        test = data.table.values[data.is_test]
        curve: dict[str, Any] = {"shipped": data.measure(test @ data.table.shipped[0])}
        print(name, mode, curve, flush=True)
        curve |= learning_curve(data, args.sizes)
        curves[f"{name} {mode}"] = curve
    print(json.dumps(curves, indent=1))
    if args.output:
        args.output.write_text(json.dumps(curves, indent=1))


if __name__ == "__main__":
    main()
