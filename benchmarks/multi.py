"""tertium-multi beside a 24-layer XLM-R of 560 million weights, the size that learned metrics have.

    python -m benchmarks multi [--rows 400] [--rival-rows 24] [--precision fp32 bf16] [--view both]

Judgments of da/wmt15 cs-en, none scored before. The rival is COMET's arithmetic, not its scores:
weights at random through transformers, each text of a row in a pass (`texts`), or source and
hypothesis joined as reference-free ones read them (`joined`), padded batches of similar length.
Rows are counted by the second and by the second of one processor; ratios are of the latter.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Measurement, measure, resident
from tertium.cache.vector_cache import clear_memory
from tertium.execution import runtime
from tertium.metrics.flagship.score_correction import Row
from tertium.metrics.flagship.tertium_multi import TertiumMulti

BATCH = 16
LARGE: dict[str, Any] = {
    "vocab_size": 250_002,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--rival-rows", type=int, default=24)
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--view", choices=("source", "reference", "both"), default="source")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    rows = read_rows(args.rows, args.view)
    lengths = count_pieces(rows)
    print(
        f"{len(rows)} rows by {args.view}, {np.mean([sum(n) for n in lengths]):.0f} pieces each, "
        f"{args.threads} threads"
    )
    ours = {precision: time_ours(rows, precision, args.threads) for precision in args.precision}
    some = lengths[: args.rival_rows]
    for way in ("texts", "joined"):
        rival = time_rival(some, way)
        cost = rival.processor / len(some)
        show(f"XLM-R large, {way}", rival, len(some), cost)
        for precision, measured in ours.items():
            show(f"tertium-multi {precision}", measured, len(rows), cost)


def read_rows(count: int, view: str) -> list[Row]:
    path = Path(os.environ["TERTIUM_DATA"]) / "da/wmt15/cs-en.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines][:count]
    return [
        (
            one["hypothesis"],
            one["source"] if view != "reference" else None,
            one["reference"] if view != "source" else None,
        )
        for one in records
    ]


def count_pieces(rows: Sequence[Row]) -> list[tuple[int, ...]]:
    """The sizes of each row's texts, special pieces among them; XLM-R has the same pieces."""
    metric = TertiumMulti()
    return [
        tuple(len(places) + 2 for places in metric.piece_offsets([t for t in row if t is not None]))
        for row in rows
    ]


def time_ours(rows: list[Row], precision: Any, threads: int) -> Measurement[Any]:
    gc.collect()
    metric = TertiumMulti(precision=precision)
    before = resident()
    with runtime(cache=False, memory=0, threads=threads):
        loaded = measure(lambda: metric.raw_scores(rows[:2]))
        clear_memory()
        between = resident() - before
        scored = measure(partial(metric.raw_scores, rows))
    peak = max(loaded.megabytes, between / 1e6 + scored.megabytes)
    print(
        f"tertium-multi {precision}: {peak:.0f} MB with weights, {loaded.seconds:.1f} s to load",
        flush=True,
    )
    return scored


def time_rival(lengths: Sequence[tuple[int, ...]], way: str) -> Measurement[Any]:
    """Passes over texts of these lengths, numbers at random."""
    from transformers import XLMRobertaConfig, XLMRobertaModel

    with torch.device("meta"):
        model = XLMRobertaModel(XLMRobertaConfig(**LARGE), add_pooling_layer=False)
    model.to_empty(device="cpu").eval()
    for weight in model.parameters():
        weight.data.normal_(0, 0.02)
    for name, buffer in model.named_buffers():
        buffer.copy_(torch.arange(514) if "position" in name else torch.zeros(()))
    sizes = [n for row in lengths for n in row] if way == "texts" else [sum(r) for r in lengths]

    def run() -> None:
        with torch.inference_mode():
            ordered = sorted(sizes)
            for start in range(0, len(ordered), BATCH):
                batch = ordered[start : start + BATCH]
                ids = torch.randint(5, 250_000, (len(batch), max(batch)))
                mask = torch.arange(max(batch)) < torch.tensor(batch)[:, None]
                model(input_ids=ids, attention_mask=mask.long())

    return measure(run)


def show(label: str, found: Measurement[Any], count: int, cost: float) -> None:
    print(
        f"{label:24}{count / found.seconds:9.1f} /s{count / found.processor:9.1f} /s of a processor"
        f"{cost * count / found.processor:8.1f} x",
        flush=True,
    )


if __name__ == "__main__":
    main()
