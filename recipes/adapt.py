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
from pathlib import Path
from typing import Any

import numpy as np

from recipes.multi.evaluate import pair_accuracy
from recipes.multi.judgments import read_rows
from tertium.arrays import FloatArray
from tertium.errors import DataError
from tertium.metrics.flagship import head_adaptation as adaptation
from tertium.metrics.flagship.adapted_multi import STRENGTHS
from tertium.metrics.flagship.row_features import Row
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, InputMode, TertiumMulti

SETS = ("esa/wmt24/cs-uk", "esa/wmt24/en-is", "da/wmt22/uk-en")
SIZES, SEEDS = (50, 200, 1_000, 5_000), (1, 2, 3)
TEST_SHARE, MAX_ROWS, CHUNK = 0.3, 8_000, 512


def select_texts(record: dict[str, Any], mode: InputMode) -> Row:
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


def measure(scores: FloatArray, human: FloatArray, sources: Any) -> list[float]:
    r = float(np.corrcoef(scores, human)[0, 1])
    return [round(r, 4), round(pair_accuracy(human, scores, sources), 4)]


def adapt(
    values: FloatArray, human: FloatArray, sources: Any, shipped: tuple[FloatArray, float]
) -> adaptation.Adaptation | None:
    """Return the adapted head, or None if it is refused."""
    try:
        study = adaptation.cross_validate(values, human, sources, shipped, STRENGTHS, 1)
        adaptation.check_gain(study, len(human))
    except DataError:
        return None
    raw = values @ shipped[0] + shipped[1]
    return adaptation.HeadRidge(values, raw, human).adaptation(*shipped, study.best)


def learning_curve(path: Path, mode: InputMode, processes: int) -> dict[str, Any]:
    """Return the agreement of the shipped model, and of adapted ones by size of the sample."""
    records = [r for r in read_rows(path) if r.get("reference")]
    names, sources = np.unique([r["source"] for r in records], return_inverse=True)
    order = np.random.default_rng(0).permutation(len(names))
    rank = np.argsort(order)[sources]
    chosen = np.argsort(rank, kind="stable")[:MAX_ROWS]  # the first sources in random order
    records, sources, rank = [records[n] for n in chosen], sources[chosen], rank[chosen]
    values = head_values([select_texts(r, mode) for r in records], processes).astype(np.float64)
    human = np.array([r["score"] for r in records], dtype=np.float64)
    weights, bias = TertiumMulti().reader.last_layer(INPUT_MODES.index(mode))
    shipped = weights.astype(np.float64), bias
    is_test = rank < TEST_SHARE * (rank.max() + 1)
    test = values[is_test], human[is_test], sources[is_test]
    result: dict[str, Any] = {"shipped": measure(test[0] @ shipped[0], *test[1:])}
    pool = np.unique(sources[~is_test])
    for size in SIZES:
        figures, refused, rows = [], 0, 0
        for seed in SEEDS if size < len(human) / 3 else SEEDS[:1]:
            parts, count = [], 0
            for source in np.random.default_rng(seed).permutation(pool):
                if count >= size:
                    break
                own = np.flatnonzero(sources == source)
                parts.append(own)
                count += len(own)
            sample = np.concatenate(parts)[:size]
            adapted = adapt(values[sample], human[sample], sources[sample], shipped)
            refused, rows = refused + (adapted is None), len(sample)
            scores = adapted.predict(test[0]) if adapted else test[0] @ shipped[0]
            figures.append(measure(scores, *test[1:]))
        result[str(size)] = {
            "rows": rows,
            "figures": np.mean(figures, 0).round(4).tolist(),
            "refused": f"{refused} of {len(figures)}",
        }
        print(path.name, mode, size, result[str(size)], flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of human judgments")
    parser.add_argument("--processes", type=int, default=1, help="default: 1")
    parser.add_argument("-o", "--output", type=Path, help="JSON file of all figures")
    args = parser.parse_args()
    modes: tuple[InputMode, ...] = ("source", "both")
    curves = {
        f"{name} {mode}": learning_curve(
            args.data / f"modern/dev/{name}.jsonl.gz", mode, args.processes
        )
        for name in SETS
        for mode in modes
    }
    print(json.dumps(curves, indent=1))
    if args.output:
        args.output.write_text(json.dumps(curves, indent=1))


if __name__ == "__main__":
    main()
