"""Cost of a trained head relative to its encoder: WMT17 de-en, 11 systems x 3,004 segments.

Each distinct text is encoded once; then only the head is timed. Also prints the time from text to
score for 3,000 translations of one system. Use --segments for a smaller run.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

from benchmarks.corpus import wmt17
from tertium.core.runtime import runtime
from tertium.encoders import iter_chunks, load_encoder
from tertium.metrics.base.loading import load_metric
from tertium.metrics.heads.head_metric import load_scorer

HEADS = ("bilstm", "bilstm-attention", "esim")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    testset = wmt17(args.segments)
    rows = [s for system in testset.systems for s in testset.segments(system)]
    left, right = [s.hypothesis for s in rows], [s.references[0] for s in rows]
    encoder = load_encoder("minilm@all")
    encoder.encode(["a text that loads the model"])
    metrics: dict[str, Any] = {name: load_metric(name) for name in HEADS}
    scorers = {name: load_scorer(metric) for name, metric in metrics.items()}
    seconds_by_part = dict.fromkeys(("encoder", *HEADS), 0.0)
    with runtime(cache=False, threads=args.threads), torch.inference_mode():
        started = time.perf_counter()
        for chunk in iter_chunks(encoder, left, right):
            seconds_by_part["encoder"] += time.perf_counter() - started
            for name, scorer in scorers.items():
                started = time.perf_counter()
                scorer.scores(scorer.representations(chunk))
                seconds_by_part[name] += time.perf_counter() - started
            started = time.perf_counter()
        print(f"{len(testset.systems)} systems x {len(testset)} segments, {args.threads} threads")
        print(f"encoder alone {seconds_by_part['encoder']:.0f} s", flush=True)
        for name in HEADS:
            total = seconds_by_part["encoder"] + seconds_by_part[name]
            print(
                f"with {name} {total:.0f} s: {total / seconds_by_part['encoder']:.2f} times",
                flush=True,
            )
        one = testset.segments(next(iter(testset.systems)))[:3000]
        for name in HEADS:
            started = time.perf_counter()
            load_metric(name).score(one)
            print(f"{name}: {len(one)} translations in {time.perf_counter() - started:.0f} s")
