"""Memory of scoring 20,000 and 100,000 segments: bounded for any number.

    python -m benchmarks memory [--metrics bertscore sss:encoder=use] [--segments 20000 100000]

Segments are distinct outputs of the WMT17 systems into English. Each run is a separate process with
an empty disk cache. Reported is the peak resident memory above the process with model and texts
loaded. Some segments are scored again alone, without cache, to check their scores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import islice

import numpy as np

from benchmarks.corpus import into_english
from benchmarks.measure import measure
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics.base.loading import load_metric

METRICS = ("bertscore", "sss:encoder=use")
COUNTS = (20_000, 100_000)
CHECKED_SEGMENTS = 20


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", nargs="+", default=METRICS)
    parser.add_argument("--segments", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args(arguments)
    fresh = multiprocessing.get_context("spawn")
    for metric in args.metrics:
        for count in args.segments:
            with ProcessPoolExecutor(1, mp_context=fresh) as process:
                run = process.submit(measure_scoring, metric, count, args.threads, args.device)
                print(run.result(), flush=True)


def measure_scoring(spec: str, count: int, threads: int, device: str) -> str:
    """Score segments in this process and return a line with its cost."""
    segments = [Segment(hypothesis=h, references=(r,)) for h, r in islice(into_english(), count)]
    metric = load_metric(spec)
    with tempfile.TemporaryDirectory() as folder, runtime(device=device, threads=threads):
        os.environ["TERTIUM_CACHE"] = folder
        metric.score(segments[:1])
        measurement = measure(lambda: metric.score(segments))
        scores = measurement.value.segments
    rows = np.linspace(0, len(segments) - 1, CHECKED_SEGMENTS).astype(int)
    with runtime(device=device, threads=threads, cache=False):
        clear_memory()
        rescored = np.array([metric.score([segments[place]]).segments[0] for place in rows])
    worst = np.abs(rescored - scores[rows]).max()
    return (
        f"{spec}: {len(segments):,} segments, {measurement.megabytes:.0f} MB above the model, "
        f"{measurement.cpu_seconds:.0f} s CPU; "
        f"{CHECKED_SEGMENTS} scored alone differ by {worst:.0e}"
    )
