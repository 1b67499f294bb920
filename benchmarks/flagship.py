"""tertium-small compared with bert-score: new segments, and segments from a warm cache.

    python -m benchmarks flagship [--systems 4] [--segments 250] [--precision fp32 bf16]

WMT17 de-en. bert-score runs system by system on untuned minilm (last layer), a network of the same
size; tertium encodes each distinct text once. Speed is printed per second and per CPU second;
ratios use CPU seconds.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.corpus import wmt17
from benchmarks.measure import Measurement, measure
from tertium.core.runtime import runtime
from tertium.encoders import load_encoder
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics.bundled.tertium_small import TertiumSmall


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=4)
    parser.add_argument("--segments", type=int, default=250)
    parser.add_argument("--precision", nargs="+", default=["fp32"])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    testset = wmt17(args.segments)
    systems = list(testset.systems)[: args.systems]
    segments = [testset.segments(name) for name in systems]
    count = sum(map(len, segments))
    rows = [segment for system_segments in segments for segment in system_segments]
    print(f"{len(systems)} systems x {len(testset)} segments, {args.threads} threads")
    scorer = load_bert_score()
    baseline = measure(
        lambda: [bert_score(scorer, system_segments) for system_segments in segments]
    )
    print_speed("bert-score, system by system", baseline, count, baseline)
    for precision in args.precision:
        metric = TertiumSmall(precision=precision)
        metric.reader([("a text that loads the model", None, "a text")])
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.dict("os.environ", {"TERTIUM_CACHE": folder}),
            runtime(threads=args.threads),
        ):
            metric.score(rows[:1])  # unpacks and checks the model in this cache
            clear_memory()
            new = measure(partial(metric.score, rows))
            print_speed(f"tertium-small {precision}, new", new, count, baseline)
            clear_memory()
            warm = measure(partial(metric.score, rows))
            print_speed(f"tertium-small {precision}, warm", warm, count, baseline)


def load_bert_score() -> Any:
    """Return a bert-score scorer after a warm-up call."""
    from bert_score import BERTScorer

    folder = str(load_encoder("minilm").weights.folder)  # type: ignore[attr-defined]
    scorer = BERTScorer(model_type=folder, num_layers=6)
    scorer.score(["a text that loads the model"], ["a text"])
    return scorer


def bert_score(scorer: Any, segments: list[Any]) -> Any:
    """Return the F1 of one system, called as users call it."""
    texts = [s.hypothesis for s in segments], [s.references[0] for s in segments]
    return scorer.score(*texts)[2]


def print_speed(
    label: str, measurement: Measurement[Any], count: int, baseline: Measurement[Any]
) -> None:
    per_second, per_cpu = count / measurement.seconds, count / measurement.cpu_seconds
    print(
        f"{label:32}{per_second:9.0f} /s{per_cpu:9.0f} /s per CPU"
        f"{baseline.cpu_seconds / measurement.cpu_seconds:8.2f} x",
        flush=True,
    )
