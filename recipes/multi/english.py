"""Score the English distillation rows with tertium-base.

python -m recipes.multi.english --parts parts/ --run run/
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipes.multi import tables
from recipes.multi.store import ARCHIVE, read_lines, read_outputs
from recipes.multi.tables import Parts
from tertium.execution import Precision, runtime
from tertium.metrics.flagship.tertium_base import TertiumBase

CHUNK_PAIRS = 40_000
Floats = NDArray[np.float32]
Pair = tuple[str, str]  # hypothesis, reference


def ranking_pairs(parts: Parts) -> list[Pair | None]:
    """Return hypothesis and reference of all compared outputs, which are English."""
    store, _ = parts.rankings
    lines = read_lines(parts.folder / "rankings/texts.xz")
    hypothesis, reference = store.columns["hypothesis"], store.columns["reference"]
    rows = tables.compared_rows(store)
    return [(lines[hypothesis[row]], lines[reference[row]]) for row in rows]


def output_pairs(parts: Parts, rows: int) -> list[Pair | None]:
    """Return hypothesis and reference of FLORES outputs; None where not into English."""
    names, blocks = read_outputs(parts.folder / "outputs" / ARCHIVE)
    lines, systems = parts.outputs.sample(rows)
    english = parts.outputs.into_english(systems)
    columns = parts.outputs.systems[systems]
    return [
        (blocks[names[own]][line], blocks[names[target]][line]) if present else None
        for line, (own, _, target), present in zip(lines, columns, english, strict=True)
    ]


def score(pairs: Sequence[Pair | None], path: Path, device: str, precision: Precision) -> None:
    """Write raw scores after every chunk; NaN where there is no pair (yet)."""
    result: Floats = np.full(len(pairs), np.nan, np.float32)
    present = np.flatnonzero([pair is not None for pair in pairs])
    metric = TertiumBase(precision=precision)
    started = time.monotonic()
    for n in range(0, len(present), CHUNK_PAIRS):
        chosen = present[n : n + CHUNK_PAIRS]
        texts = [pair for place in chosen if (pair := pairs[place])]
        with runtime(device=device, token_budget=32_768 if device.startswith("cuda") else None):
            result[chosen] = metric.run_network([h for h, _ in texts], [r for _, r in texts])
        partial = path.with_suffix(".part.npy")
        np.save(partial, result)
        partial.rename(path)
        seconds = round(time.monotonic() - started)
        print(
            json.dumps({path.stem: n + len(chosen), "of": len(present), "s": seconds}), flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=Path, required=True, help="folder of packed data")
    parser.add_argument("--run", type=Path, required=True, help="output folder")
    parser.add_argument("--rows", type=int, default=tables.DISTILLED_OUTPUTS, help="FLORES outputs")
    parser.add_argument("--device", default="cuda", help="cpu or cuda (default: cuda)")
    parser.add_argument(
        "--precision", choices=("fp32", "bf16"), default="bf16", help="default: bf16"
    )
    args = parser.parse_args()
    args.run.mkdir(parents=True, exist_ok=True)
    parts = Parts(args.parts, "cpu")
    score(ranking_pairs(parts), args.run / "english-rankings.npy", args.device, args.precision)
    score(
        output_pairs(parts, args.rows),
        args.run / "english-outputs.npy",
        args.device,
        args.precision,
    )


if __name__ == "__main__":
    main()
