"""Memory of scoring 20,000 and 100,000 segments: bounded, whatever their number.

    python -m benchmarks memory [--metrics bertscore sss:encoder=use] [--segments 20000 100000]

Segments are distinct outputs of the WMT17 systems into English with their references. Each run is a
process of its own, starts with an empty store on disk, and is watched for its peak of resident
memory; what the process held with the model loaded and the texts read is taken off. Some segments
are then scored alone, without the store, to show that each score came back in its place.
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
from tertium.cache.vector_cache import clear_memory
from tertium.execution import runtime
from tertium.metrics.base.loading import load_metric
from tertium.segment import Segment

METRICS = ("bertscore", "sss:encoder=use")
COUNTS = (20_000, 100_000)
CHECKED = 20


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
                run = process.submit(watch, metric, count, args.threads, args.device)
                print(run.result(), flush=True)


def watch(spec: str, count: int, threads: int, device: str) -> str:
    """Score so many segments in this process, and say what it took."""
    segments = [Segment(hypothesis=h, references=(r,)) for h, r in islice(into_english(), count)]
    metric = load_metric(spec)
    with tempfile.TemporaryDirectory() as folder, runtime(device=device, threads=threads):
        os.environ["TERTIUM_CACHE"] = folder
        metric.score(segments[:1])
        found = measure(lambda: metric.score(segments))
        scores = found.value.segments
    places = np.linspace(0, len(segments) - 1, CHECKED).astype(int)
    with runtime(device=device, threads=threads, cache=False):
        clear_memory()
        again = np.array([metric.score([segments[place]]).segments[0] for place in places])
    worst = np.abs(again - scores[places]).max()
    return (
        f"{spec}: {len(segments):,} segments, {found.megabytes:.0f} MB above the model, "
        f"{found.processor:.0f} s of processors; {CHECKED} scored alone differ by {worst:.0e}"
    )


if __name__ == "__main__":
    main()
