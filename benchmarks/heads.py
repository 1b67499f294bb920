"""Cost of a trained head relative to its encoder: WMT17 de-en, 11 systems x 3,004 segments.

Each distinct text is encoded once; then only the head is timed. Also prints the time from text to
score for 3,000 translations of one system. Use --segments for a smaller run.
"""

from __future__ import annotations

import argparse
import time

import torch

from benchmarks.corpus import wmt17
from tertium.core.runtime import runtime
from tertium.encoders import load_encoder
from tertium.encoders.cached_encoding import stream_embeddings
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import distinct_texts

HEADS = ("bilstm", "bilstm-attention", "esim")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    testset = wmt17(args.segments)
    rows = [s for system in testset.systems for s in testset.segments(system)]
    encoder = load_encoder("minilm@all")
    encoder.encode(["a text that loads the model"])
    one = testset.segments(next(iter(testset.systems)))[:3000]
    for name in HEADS:
        load_metric(name).score(one[:1])  # loads the weights
    with runtime(cache=False, threads=args.threads):
        started = time.perf_counter()
        for _ in stream_embeddings(encoder, distinct_texts(rows, "reference"), sentences=False):
            pass
        seconds = time.perf_counter() - started
        print(f"{len(testset.systems)} systems x {len(testset)} segments, {args.threads} threads")
        print(f"encoder alone {seconds:.0f} s", flush=True)
        for name in HEADS:
            started = time.perf_counter()
            load_metric(name).score(rows)
            total = time.perf_counter() - started
            print(f"with {name} {total:.0f} s: {total / seconds:.2f} times", flush=True)
        for name in HEADS:
            started = time.perf_counter()
            load_metric(name).score(one)
            print(f"{name}: {len(one)} translations in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
