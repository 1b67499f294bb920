"""tertium-multi compared with a 24-layer XLM-R of 560 million weights, as in COMET.

    python -m benchmarks multi [--rows 400] [--rival-rows 24] [--precision fp32 bf16] [--view both]

Rows are judgments of da/wmt15 cs-en, not cached. The baseline has the cost of COMET, not its
scores: random weights in transformers, one pass per text (`texts`), or source and hypothesis joined
as in reference-free models (`joined`), in padded batches of similar length. Speed is printed per
second and per CPU second; ratios use CPU seconds.
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

from benchmarks.measure import Measurement, measure, resident_memory
from tertium.core.runtime import runtime
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics.bundled.input_rows import Row
from tertium.metrics.bundled.tertium_multi import TertiumMulti

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
    measurements = {
        precision: time_tertium(rows, precision, args.threads) for precision in args.precision
    }
    baseline_lengths = lengths[: args.rival_rows]
    for variant in ("texts", "joined"):
        baseline = time_baseline(baseline_lengths, variant)
        cost = baseline.cpu_seconds / len(baseline_lengths)
        print_speed(f"XLM-R large, {variant}", baseline, len(baseline_lengths), cost)
        for precision, measured in measurements.items():
            print_speed(f"tertium-multi {precision}", measured, len(rows), cost)


def read_rows(count: int, mode: str) -> list[Row]:
    path = Path(os.environ["TERTIUM_DATA"]) / "da/wmt15/cs-en.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines][:count]
    return [
        (
            record["hypothesis"],
            record["source"] if mode != "reference" else None,
            record["reference"] if mode != "source" else None,
        )
        for record in records
    ]


def count_pieces(rows: Sequence[Row]) -> list[tuple[int, ...]]:
    """Return the lengths of each row's texts with special tokens; XLM-R has the same ones."""
    metric = TertiumMulti()
    return [
        tuple(
            len(places) + 2
            for places in metric.reader.tokenizer.token_offsets([t for t in row if t is not None])
        )
        for row in rows
    ]


def time_tertium(rows: list[Row], precision: Any, threads: int) -> Measurement[Any]:
    gc.collect()
    metric = TertiumMulti(precision=precision)
    before = resident_memory()
    with runtime(cache=False, memory=0, threads=threads):
        loaded = measure(lambda: metric.raw_scores(rows[:2]))
        clear_memory()
        between = resident_memory() - before
        scored = measure(partial(metric.raw_scores, rows))
    peak = max(loaded.megabytes, between / 1e6 + scored.megabytes)
    print(
        f"tertium-multi {precision}: {peak:.0f} MB with weights, {loaded.seconds:.1f} s to load",
        flush=True,
    )
    return scored


def time_baseline(lengths: Sequence[tuple[int, ...]], variant: str) -> Measurement[Any]:
    """Time passes over random piece ids of these lengths."""
    from transformers import XLMRobertaConfig, XLMRobertaModel

    with torch.device("meta"):
        model = XLMRobertaModel(XLMRobertaConfig(**LARGE), add_pooling_layer=False)
    model.to_empty(device="cpu").eval()
    for weight in model.parameters():
        weight.data.normal_(0, 0.02)
    for name, buffer in model.named_buffers():
        buffer.copy_(torch.arange(514) if "position" in name else torch.zeros(()))
    sizes = [n for row in lengths for n in row] if variant == "texts" else [sum(r) for r in lengths]

    def run() -> None:
        with torch.inference_mode():
            ordered = sorted(sizes)
            for start in range(0, len(ordered), BATCH):
                batch = ordered[start : start + BATCH]
                ids = torch.randint(5, 250_000, (len(batch), max(batch)))
                mask = torch.arange(max(batch)) < torch.tensor(batch)[:, None]
                model(input_ids=ids, attention_mask=mask.long())

    return measure(run)


def print_speed(label: str, measurement: Measurement[Any], count: int, cost: float) -> None:
    per_second, per_cpu = count / measurement.seconds, count / measurement.cpu_seconds
    print(
        f"{label:24}{per_second:9.1f} /s{per_cpu:9.1f} /s per CPU"
        f"{cost * count / measurement.cpu_seconds:8.1f} x",
        flush=True,
    )
