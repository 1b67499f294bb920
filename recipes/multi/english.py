"""Scores of tertium-small on outputs into English, by many processes, part by part.

python -m recipes.multi.english --parts parts/ --run run/ --processes 10
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipes.multi.store import ARCHIVE, read_lines, read_outputs

PART = 2000
Job = tuple[str, int, list[str], list[str]]


def score_part(job: Job) -> None:
    from tertium.metrics.flagship.small import TertiumSmall

    folder, begin, hypotheses, references = job
    scores = TertiumSmall().judge(hypotheses, references).astype(np.float32)
    partial = Path(folder) / f"partial-{begin:08d}.npy"
    np.save(partial, scores)
    partial.rename(Path(folder) / f"part-{begin:08d}.npy")


def ranking_jobs(parts: Path, run: Path, most: int) -> list[Job]:
    with np.load(parts / "rankings/rows.npz") as stored:
        rows = np.unique(stored["comparisons"][:, :2])
        hypothesis, reference = stored["hypothesis"], stored["reference"]
    rows = np.random.default_rng(3).permutation(rows)[:most]
    lines = read_lines(parts / "rankings/texts.xz")
    texts = [(lines[hypothesis[row]], lines[reference[row]]) for row in rows]
    return _jobs(run / "english-rankings", rows, texts)


def output_jobs(parts: Path, run: Path, most: int) -> list[Job]:
    """The rows that `train teach` takes too: its sample is drawn with the same seed."""
    from recipes.multi.examples import Outputs

    outputs = Outputs(parts / "outputs")
    into_english = {
        n for n, (_, _, target) in enumerate(outputs.systems) if outputs.names[target] == "en"
    }
    sample = outputs.sample(10**9, np.random.default_rng(5))
    rows = np.array([r for r in sample[: 4 * most].tolist() if r[1] in into_english][:most])
    names, blocks = read_outputs(parts / "outputs" / ARCHIVE)
    texts = []
    for line, system in rows.tolist():
        own, _, target = outputs.systems[system]
        texts.append((blocks[names[own]][line], blocks[names[target]][line]))
    return _jobs(run / "english-outputs", rows, texts)


def _jobs(folder: Path, rows: NDArray[np.int64], texts: Sequence[tuple[str, str]]) -> list[Job]:
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "rows.npy", rows)
    return [
        (str(folder), n, [h for h, _ in texts[n : n + PART]], [r for _, r in texts[n : n + PART]])
        for n in range(0, len(texts), PART)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs=2, default=[150_000, 120_000])
    given = parser.parse_args()
    begin = time.monotonic()
    # spawned: each process reads the model for itself, and OMP_NUM_THREADS=1 holds in it
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for make, most in zip((ranking_jobs, output_jobs), given.rows, strict=True):
            if make is output_jobs:
                while not (given.parts / "outputs/READY").exists():
                    time.sleep(1)
            jobs = make(given.parts, given.run, most)
            for done, _ in enumerate(pool.imap_unordered(score_part, jobs), 1):
                if done % 10 == 0 or done == len(jobs):
                    spent = round(time.monotonic() - begin)
                    entry = {make.__name__: done, "of": len(jobs), "seconds": spent}
                    print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
