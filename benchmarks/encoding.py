"""BERTScore over 11 systems against bert-score called per system, and what encoding costs.

    python -m benchmarks encoding                  the speed table, cold and warm, and the share
    python -m benchmarks encoding speed --systems 2 --segments 500 --precision fp32 bf16
    python -m benchmarks encoding share            how much of the matrix-product peak is reached
    python -m benchmarks encoding passes --encoder e5@12 minilm@6   beside transformers' own

The texts are cut into slices of segments; on each slice bert-score and tertium take turns, so that
both meet the same moments of a busy machine. Processor seconds count the work of all threads and
leave out what other programs took. Models are loaded beforehand on both sides.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.corpus import wmt17
from benchmarks.measure import Measurement, measure, together
from tertium.arrays import IntArray
from tertium.cache.vector_cache import clear_memory
from tertium.cache.vector_store import open_vector_store
from tertium.data.testset import TestSet
from tertium.encoders import load_encoder
from tertium.encoders.linear_layers import convert_linear_layers, cpu_has_bf16
from tertium.encoders.transformer_encoder import TransformerEncoder
from tertium.evaluation.scoring import score_systems
from tertium.execution import runtime
from tertium.metrics.base.loading import load_metric

Scorer = Callable[[TestSet], Any]

GROUPS = {
    "matrix products, with GELU": ("addmm", "linear", "mm", "matmul", "_linear_pointwise"),
    "attention": ("_scaled_dot_product", "baddbmm", "bmm", "softmax", "_softmax"),
    "activation": ("gelu", "tanh"),
    "normalisation": ("native_layer_norm", "layer_norm"),
    "copies and sums": ("copy_", "add", "index", "where", "cat", "clone", "contiguous"),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "part", nargs="?", choices=("speed", "share", "passes", "all"), default="all"
    )
    parser.add_argument(
        "--encoder", nargs="+", default=["minilm@4"], help="such as minilm@4 or dir/FOLDER@4"
    )
    parser.add_argument("--segments", type=int, help="use only the first N segments")
    parser.add_argument("--systems", type=int, default=11)
    parser.add_argument("--slices", type=int, default=4, help="how often the sides take turns")
    parser.add_argument("--precision", nargs="+", help="fp32, and bf16 where the CPU has it")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    args.precision = args.precision or ["fp32", *(["bf16"] if cpu_has_bf16() else [])]
    torch.set_num_threads(args.threads)
    with runtime(device="cpu", threads=args.threads):
        for name, part in (("speed", speed), ("share", share), ("passes", passes)):
            for encoder in args.encoder if args.part in (name, "all") else ():
                part(encoder, args)


def speed(name: str, args: argparse.Namespace) -> None:
    """The whole metric, as a user calls it, beside the package."""
    whole = wmt17(args.segments)
    chosen = list(whole.systems)[: args.systems]
    peer = peer_scorer(name)
    print(f"{len(chosen)} systems x {len(whole)} segments, {name}, {args.threads} threads")
    with tempfile.TemporaryDirectory() as folder:
        sides = [
            Side("bert-score, one system", peer, chosen[:1]),
            Side("bert-score, all systems", peer, chosen),
        ]
        for precision in args.precision:
            ours = our_scorer(name, precision)
            store = Path(folder, precision)
            sides += [
                Side(f"tertium {precision}, one system, cold", ours, chosen[:1], store / "one"),
                Side(f"tertium {precision}, all, cold", ours, chosen, store / "all"),
            ]
        for part in slices(whole, args.slices):
            for side in sides:
                side.take(part)
        for side in sides:
            report(side.label, side.spent, sides[side.systems != chosen[:1]].spent)
        for side in [side for side in sides if side.store is not None]:
            warm_up(side, whole, sides[side.systems != chosen[:1]])


def warm_up(side: Side, whole: TestSet, base: Side) -> None:
    """A new run over all segments with the full store of a side, and how far scores are off."""
    assert side.store is not None
    with cache_at(side.store):
        warm = measure(lambda: side.scorer(some(whole, side.systems)))
    report(side.label.replace("cold", "warm"), warm, base.spent)
    worst = np.abs(side.scores - base.scores).max()
    print(f"{'':36}largest difference of a segment from bert-score {worst:.1e}")
    if not np.array_equal(warm.value, side.scores):
        print(f"{'':36}warm and cold differ by {np.abs(warm.value - side.scores).max():.1e}")


@dataclass
class Side:
    """One way to score some systems, and what it has spent so far, slice after slice.

    `store` is the folder of its cache, kept from slice to slice; without one it has none.
    """

    label: str
    scorer: Scorer
    systems: Sequence[str]
    store: Path | None = None
    turns: list[Measurement[Any]] = field(default_factory=list)

    def take(self, part: TestSet) -> None:
        texts = some(part, self.systems)
        with cache_at(self.store):
            turn = measure(lambda: settled(self.scorer(texts)))
        self.turns.append(turn)
        seconds = f"{turn.seconds:.1f} s, {turn.processor:.1f} s of processors"
        print(f"    {self.label}: {seconds}", flush=True)

    @property
    def scores(self) -> Any:
        return np.concatenate([turn.value for turn in self.turns], axis=1)

    @property
    def spent(self) -> Measurement[None]:
        return together(self.turns)


def some(testset: TestSet, systems: Sequence[str]) -> TestSet:
    """A test set with some of its systems."""
    chosen = {name: testset.systems[name] for name in systems}
    return TestSet(systems=chosen, references=testset.references)


def slices(testset: TestSet, count: int) -> Iterator[TestSet]:
    """A test set in consecutive parts of about equal size."""
    edges = np.linspace(0, len(testset), count + 1).astype(int).tolist()
    for start, stop in itertools.pairwise(edges):
        yield TestSet(
            systems={name: texts[start:stop] for name, texts in testset.systems.items()},
            references=testset.references[start:stop],
        )


def peer_scorer(name: str) -> Scorer:
    """The package's F1 of every segment, one call a system, its model loaded beforehand."""
    from bert_score import BERTScorer

    encoder = load_encoder(name)
    assert isinstance(encoder, TransformerEncoder)
    scorer = BERTScorer(
        model_type=str(encoder.weights.folder), num_layers=int(encoder.layer), device="cpu"
    )

    def call(testset: TestSet) -> Any:
        references = [row[0] for row in testset.references]
        rows = [scorer.score(list(t), references)[2].numpy() for t in testset.systems.values()]
        return np.stack(rows)

    return call


def our_scorer(name: str, precision: str) -> Scorer:
    metric = load_metric(f"bertscore:encoder={name},precision={precision}")
    load_encoder(name, precision=precision).encode(["load the model"])  # type: ignore[arg-type]

    def call(testset: TestSet) -> Any:
        return np.stack([scores.segments for scores in score_systems(testset, metric)])

    return call


def report(label: str, found: Measurement[Any], base: Measurement[Any]) -> None:
    print(
        f"{label:36}{found.seconds:8.1f} s {base.seconds / found.seconds:6.2f} x"
        f"{found.processor:10.1f} s of processors {base.processor / found.processor:6.2f} x"
        f"{found.megabytes:8.0f} MB",
        flush=True,
    )


@contextmanager
def cache_at(folder: Path | None) -> Iterator[None]:
    """A store in this folder, or none, and nothing in memory."""
    clear_memory()
    if folder is None:
        with runtime(cache=False):
            yield
        return
    before = os.environ.get("TERTIUM_CACHE")
    os.environ["TERTIUM_CACHE"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("TERTIUM_CACHE")
        if before is not None:
            os.environ["TERTIUM_CACHE"] = before


def settled(value: Any) -> Any:
    """The value, after all that was to be stored has been written."""
    store = open_vector_store()
    if store is not None:
        store.flush()
    return value


def share(name: str, args: argparse.Namespace) -> None:
    """Arithmetic per second of encoding, beside that of a large matrix product.

    With one thread by the processor's clock, which other programs do not disturb.
    """
    clock = time.process_time if args.threads == 1 else time.perf_counter
    texts = next(iter(wmt17(args.segments or 1000).systems.values()))
    for precision in args.precision:
        encoder = load_encoder(name, precision=precision)
        assert isinstance(encoder, TransformerEncoder)
        encoder.encode(["load the model"])
        lengths = lengths_of(encoder, texts)
        peak = product_peak(encoder.settings.hidden, precision, clock)
        work = operations(encoder, lengths) / 1e9
        encode = partial(encoder.encode, texts, sentences=False)
        best = fastest(encode, 3, clock)
        reached = work / best
        print(
            f"{name} {precision}: {len(texts) / best:.0f} texts/s, {reached:.0f} of {peak:.0f} "
            f"GFLOP/s ({reached / peak:.0%})"
        )
        for group, part in time_by_group(encoder, texts).items():
            print(f"    {group:28}{part:6.1%}")


def passes(name: str, args: argparse.Namespace) -> None:
    """Texts a second of one pass as deep as the encoder, beside transformers' on the same weights.

    Both sides take turns; transformers reads texts of like length in batches of 32, padded. With
    one thread by the processor's clock.
    """
    clock = time.process_time if args.threads == 1 else time.perf_counter
    texts = list(next(iter(wmt17(args.segments or 500).systems.values())))
    for precision in args.precision:
        encoder = load_encoder(name, precision=precision)
        assert isinstance(encoder, TransformerEncoder)
        sides: dict[str, Callable[[], Any]] = {}
        sides["transformers"] = peer_pass(encoder, texts, precision)
        sides["tertium"] = partial(encoder.encode, texts, sentences=False)
        lengths = lengths_of(encoder, texts)
        work = operations(encoder, lengths) / 1e9
        peak = product_peak(encoder.settings.hidden, precision, clock)
        best = dict.fromkeys(sides, np.inf)
        for _ in range(3):
            for side, call in sides.items():
                best[side] = min(best[side], fastest(call, 1, clock))
        for side, seconds in best.items():
            reached = work / seconds
            print(
                f"{name} {precision}, {side}: {len(texts) / seconds:.0f} texts/s, "
                f"{reached:.0f} of {peak:.0f} GFLOP/s ({reached / peak:.0%})",
                flush=True,
            )


def peer_pass(
    encoder: TransformerEncoder, texts: Sequence[str], precision: str
) -> Callable[[], None]:
    """A call of transformers' model on texts that are tokenized beforehand."""
    from transformers import AutoModel

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    model = AutoModel.from_pretrained(
        str(encoder.weights.folder), dtype=kind, add_pooling_layer=False
    ).eval()
    states = model.encoder.layer
    del states[int(encoder.layer) :]
    lengths = lengths_of(encoder, texts)
    order = np.argsort(lengths)
    batches = [lengths[order[n : n + 32]] for n in range(0, len(order), 32)]

    def call() -> None:
        with torch.inference_mode():
            for batch in batches:  # which pieces they are does not change the arithmetic
                ids = torch.full((len(batch), int(batch.max())), 10)
                mask = torch.arange(ids.shape[1])[None] < torch.as_tensor(batch)[:, None]
                model(input_ids=ids, attention_mask=mask.long())

    return call


def lengths_of(encoder: TransformerEncoder, texts: Sequence[str]) -> IntArray:
    """The pieces of each text that a pass reads, special tokens and prefix among them, (texts,)."""
    tokenizer = encoder.backbone.tokenizer
    around = len(tokenizer.prefix_ids) + len(tokenizer.suffix_ids)
    return np.array([len(pieces) + around for pieces in tokenizer(texts)], dtype=np.int64)


def fastest(call: Callable[[], Any], times: int, clock: Callable[[], float]) -> float:
    """The least seconds of several calls."""
    best = np.inf
    for _ in range(times):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


def product_peak(hidden: int, precision: str, clock: Callable[[], float]) -> float:
    """GFLOP/s of the best of many products: a feed-forward layer's, and a large square one."""
    best = 0.0
    for inner, outer in ((hidden, 4 * hidden), (2048, 2048)):
        layer = torch.nn.Sequential(torch.nn.Linear(inner, outer))
        convert_linear_layers(layer, precision, "cpu")
        x = torch.randn(1024, inner)
        x = x if precision == "fp32" else x.bfloat16()
        with torch.inference_mode():
            seconds = fastest(partial(layer, x), 30, clock)
        best = max(best, 2 * 1024 * inner * outer / seconds / 1e9)
    return best


def operations(encoder: TransformerEncoder, lengths: np.ndarray) -> float:
    """Multiplications and additions of a BERT-like pass as deep as the encoder's layer."""
    d = encoder.settings.hidden
    products = 2 * lengths.sum() * (4 * d * d + 8 * d * d)
    attention = 4 * d * (lengths.astype(float) ** 2).sum()
    return int(encoder.layer) * float(products + attention)


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Passes run where they are asked for: not every profiler sees the threads they have else."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with mock.patch("tertium.encoders.batch_invariance.map_single_threaded", map):
            yield
    finally:
        torch.set_num_threads(threads)


def time_by_group(encoder: TransformerEncoder, texts: Any) -> dict[str, float]:
    """The share of time in kinds of operations, by torch's profiler."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with on_one_thread(), torch.profiler.profile(activities=cpu) as profile:
        encoder.encode(texts, sentences=False)
    spent: dict[str, float] = dict.fromkeys([*GROUPS, "other"], 0.0)
    for event in profile.key_averages():
        name = event.key.rpartition("::")[2]
        group = next((g for g, keys in GROUPS.items() if name.startswith(keys)), "other")
        spent[group] += event.self_cpu_time_total
    total = sum(spent.values())
    return {group: part / total for group, part in spent.items()}


if __name__ == "__main__":
    main()
