"""BERTScore over 11 systems against bert-score called per system, and what encoding costs.

python -m benchmarks.encoding                     the speed table, fp32 and bf16, cold and warm
python -m benchmarks.encoding share               how much of the matrix-product peak is reached
python -m benchmarks.encoding memory              100,000 segments in bounded memory
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.corpus import wmt17
from benchmarks.measure import measure
from tertium.data.testset import TestSet
from tertium.encoders import load_encoder, pairwise, runtime
from tertium.encoders.batching import padded_share, plan_batches
from tertium.encoders.body import BUDGETS, OVERHEADS
from tertium.encoders.cache import open_store
from tertium.encoders.memory import forget
from tertium.encoders.stream import Chunk
from tertium.encoders.transformer import Transformer
from tertium.metrics.metric import load_metric
from tertium.scoring import score_systems

GROUPS = {
    "matrix products": ("addmm", "linear", "mm", "matmul", "_linear_pointwise"),
    "attention": ("_scaled_dot_product", "baddbmm", "bmm", "softmax", "_softmax"),
    "activation": ("gelu", "tanh"),
    "normalisation": ("native_layer_norm", "layer_norm"),
    "copies and sums": ("copy_", "add", "index", "where", "cat", "clone", "contiguous"),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("speed", "share", "memory"), default="speed")
    parser.add_argument("--encoder", default="minilm@4")
    parser.add_argument("--segments", type=int, help="use only the first N segments")
    parser.add_argument("--systems", type=int, default=11)
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    with runtime(device="cpu", threads=args.threads):
        {"speed": speed, "share": share, "memory": memory}[args.part](args)


def speed(args: argparse.Namespace) -> None:
    """The whole metric, as a user calls it, beside the package."""
    whole = wmt17(args.segments)
    chosen = dict(list(whole.systems.items())[: args.systems])
    testset = TestSet(systems=chosen, references=whole.references)
    first = TestSet(systems=dict([next(iter(chosen.items()))]), references=whole.references)
    peer = peer_scorer(args.encoder)
    print(f"{len(chosen)} systems x {len(whole)} segments, {args.encoder}, {args.threads} threads")
    alone = timed(lambda: peer(first))
    base = timed(lambda: peer(testset))
    report("bert-score, one system", alone, alone)
    report("bert-score, all systems", base, base)
    for precision in args.precision:
        compare(our_scorer(args.encoder, precision), precision, first, testset, alone, base)


def compare(
    ours: Callable[[TestSet], Any],
    precision: str,
    first: TestSet,
    testset: TestSet,
    alone: Timed,
    base: Timed,
) -> None:
    """One precision: a system, all systems with an empty and a full store, and without one."""
    with fresh_cache():
        report(f"tertium {precision}, one system, cold", timed(lambda: ours(first)), alone)
    with fresh_cache():
        cold = timed(lambda: ours(testset))
        report(f"tertium {precision}, cold", cold, base)
        settle()
        report(f"tertium {precision}, warm", timed(lambda: ours(testset)), base)
    with runtime(cache=False):
        forget()
        report(f"tertium {precision}, no cache", timed(lambda: ours(testset)), base)
    worst = np.abs(cold.value - base.value).max()
    print(f"{'':36}largest difference of a segment from bert-score {worst:.1e}")


def peer_scorer(name: str) -> Callable[[TestSet], Any]:
    """The package's F1 of every segment, one call a system, its model loaded beforehand."""
    from bert_score import BERTScorer

    encoder = load_encoder(name)
    assert isinstance(encoder, Transformer)
    scorer = BERTScorer(
        model_type=str(encoder.weights.folder), num_layers=int(encoder.layer), device="cpu"
    )

    def call(testset: TestSet) -> Any:
        references = [row[0] for row in testset.references]
        rows = [scorer.score(list(t), references)[2].numpy() for t in testset.systems.values()]
        return np.stack(rows)

    return call


def our_scorer(name: str, precision: str) -> Callable[[TestSet], Any]:
    metric = load_metric(f"bertscore:encoder={name},precision={precision}")
    load_encoder(name, precision=precision).encode(["load the model"])  # type: ignore[arg-type]

    def call(testset: TestSet) -> Any:
        return np.stack([scores.segments for scores in score_systems(testset, metric)])

    return call


@dataclass(frozen=True)
class Timed:
    """A measured call, with the seconds of all processors, which a busy machine leaves alone."""

    value: Any
    seconds: float
    processor: float
    megabytes: float


def timed(call: Callable[[], Any]) -> Timed:
    start = time.process_time()
    found = measure(call)
    return Timed(found.value, found.seconds, time.process_time() - start, found.megabytes)


def report(label: str, found: Timed, base: Timed) -> None:
    print(
        f"{label:36}{found.seconds:8.1f} s {base.seconds / found.seconds:6.2f} x"
        f"{found.processor:10.1f} s of processors {base.processor / found.processor:6.2f} x"
        f"{found.megabytes:8.0f} MB",
        flush=True,
    )


@contextmanager
def fresh_cache() -> Iterator[None]:
    """An empty store in a folder of its own, and nothing in memory."""
    before = os.environ.get("TERTIUM_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TERTIUM_CACHE"] = folder
        forget()
        try:
            yield
            settle()
        finally:
            os.environ.pop("TERTIUM_CACHE")
            if before is not None:
                os.environ["TERTIUM_CACHE"] = before


def settle() -> None:
    """Wait for what is being written, and drop what memory holds."""
    store = open_store()
    if store is not None:
        store.flush()
    forget()


def share(args: argparse.Namespace) -> None:
    """Arithmetic per second of encoding, beside that of a large matrix product.

    With one thread by the processor's clock, which other programs do not disturb.
    """
    clock = time.process_time if args.threads == 1 else time.perf_counter
    texts = next(iter(wmt17(args.segments or 1000).systems.values()))
    for precision in args.precision:
        encoder = load_encoder(args.encoder, precision=precision)
        assert isinstance(encoder, Transformer)
        encoder.encode(["load the model"])
        lengths = [len(p) + 2 for p in encoder.body.tokenizer(texts)]
        peak = product_peak(encoder.settings.hidden, precision, clock)
        work = operations(encoder, np.array(lengths)) / 1e9
        encode = partial(encoder.encode, texts, sentences=False)
        best = fastest(encode, 3, clock)
        reached = work / best
        batches = plan_batches(lengths, budget=BUDGETS["cpu"], overhead=OVERHEADS["cpu"])
        print(
            f"{precision}: {len(texts) / best:.0f} texts/s, {reached:.0f} of {peak:.0f} "
            f"GFLOP/s ({reached / peak:.0%}), padding {padded_share(lengths, batches):.1%}"
        )
        for group, part in time_by_group(encoder, texts).items():
            print(f"    {group:20}{part:6.1%}")


def fastest(call: Callable[[], Any], times: int, clock: Callable[[], float]) -> float:
    """The least seconds of several calls."""
    best = np.inf
    for _ in range(times):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


def product_peak(hidden: int, precision: str, clock: Callable[[], float]) -> float:
    """GFLOP/s of the best of many products shaped like a feed-forward layer."""
    from tertium.encoders.precision import lower_precision

    layer = torch.nn.Sequential(torch.nn.Linear(hidden, 4 * hidden))
    lower_precision(layer, precision, "cpu")
    x = torch.randn(1024, hidden)
    x = x if precision == "fp32" else x.bfloat16()
    with torch.inference_mode():
        best = fastest(lambda: layer(x), 50, clock)
    return 2 * 1024 * hidden * 4 * hidden / best / 1e9


def operations(encoder: Transformer, lengths: np.ndarray) -> float:
    """Multiplications and additions of a BERT-like pass as deep as the encoder's layer."""
    d = encoder.settings.hidden
    products = 2 * lengths.sum() * (4 * d * d + 8 * d * d)
    attention = 4 * d * (lengths.astype(float) ** 2).sum()
    return int(encoder.layer) * float(products + attention)


def time_by_group(encoder: Transformer, texts: Any) -> dict[str, float]:
    """The share of time in kinds of operations, by torch's profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        encoder.encode(texts, sentences=False)
    spent: dict[str, float] = dict.fromkeys([*GROUPS, "other"], 0.0)
    for event in profile.key_averages():
        name = event.key.rpartition("::")[2]
        group = next((g for g, keys in GROUPS.items() if name.startswith(keys)), "other")
        spent[group] += event.self_cpu_time_total
    total = sum(spent.values())
    return {group: part / total for group, part in spent.items()}


def memory(args: argparse.Namespace) -> None:
    """100,000 distinct comparisons through one layer: memory does not depend on depth."""
    testset = wmt17()
    outputs = [text for texts in testset.systems.values() for text in texts]
    references = [row[0] for row in testset.references] * len(testset.systems)
    marks = ["", " .", " !", " ?"]
    encoder = load_encoder(f"{args.encoder.partition('@')[0]}@1")
    encoder.encode(["load the model"])

    def cosine(chunk: Chunk) -> Any:
        vectors, offsets = chunk.texts.vectors, chunk.texts.offsets[:-1]
        means = np.add.reduceat(vectors, offsets, axis=0)
        return (means[chunk.left] * means[chunk.right]).sum(axis=1)

    for count in (args.segments or 100_000) // 4, args.segments or 100_000:
        left = [text + mark for mark in marks for text in outputs][:count]
        right = [text + mark for mark in marks for text in references][:count]
        with fresh_cache():
            found = timed(lambda: pairwise(encoder, left, right, cosine))  # noqa: B023
        print(f"{count} segments: {found.seconds:.0f} s, {found.megabytes:.0f} MB above the model")


if __name__ == "__main__":
    main()
