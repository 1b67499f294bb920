"""tertium-small beside BERTScore's way: new segments, and segments from a warm cache.

    python -m benchmarks flagship [--systems 4] [--segments 250] [--precision fp32 bf16]

WMT17 de-en. bert-score is called system by system on untuned minilm at its last layer, the same
size of network; tertium encodes each distinct text once. Segments are counted by the second and by
the second of one processor; ratios are of the latter.
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
from tertium.cache.vector_cache import clear_memory
from tertium.cache.vector_store import open_vector_store
from tertium.encoders import load_encoder
from tertium.execution import runtime
from tertium.metrics.flagship.tertium_small import TertiumSmall


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
    rows = [segment for one in segments for segment in one]
    print(f"{len(systems)} systems x {len(testset)} segments, {args.threads} threads")
    scorer = load_bert_score()
    rival = measure(lambda: [bert_score(scorer, one) for one in segments])
    show("bert-score, system by system", rival, count, rival)
    for precision in args.precision:
        metric = TertiumSmall(precision=precision)
        metric.run_network(["a text that loads the model"], ["a text"])
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.dict("os.environ", {"TERTIUM_CACHE": folder}),
            runtime(threads=args.threads),
        ):
            metric.score(rows[:1])  # unpacks and checks the model in this cache
            clear_memory()
            new = measure(partial(metric.score, rows))
            show(f"tertium-small {precision}, new", new, count, rival)
            store = open_vector_store()
            if store is not None:
                store.flush()
            clear_memory()
            warm = measure(partial(metric.score, rows))
            show(f"tertium-small {precision}, warm", warm, count, rival)


def load_bert_score() -> Any:
    """Its scorer, which has read a text before it is timed."""
    from bert_score import BERTScorer

    folder = str(load_encoder("minilm").weights.folder)  # type: ignore[attr-defined]
    scorer = BERTScorer(model_type=folder, num_layers=6)
    scorer.score(["a text that loads the model"], ["a text"])
    return scorer


def bert_score(scorer: Any, segments: list[Any]) -> Any:
    """F1 of one system, called as its users call it."""
    texts = [s.hypothesis for s in segments], [s.references[0] for s in segments]
    return scorer.score(*texts)[2]


def show(label: str, found: Measurement[Any], count: int, rival: Measurement[Any]) -> None:
    print(
        f"{label:32}{count / found.seconds:9.0f} /s{count / found.processor:9.0f} /s of a processor"
        f"{rival.processor / found.processor:8.2f} x",
        flush=True,
    )


if __name__ == "__main__":
    main()
