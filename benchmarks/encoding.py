"""BERTScore of 11 systems compared with bert-score, and the cost of encoding.

    python -m benchmarks encoding                  speed table, cold and warm, and utilization
    python -m benchmarks encoding speed --systems 2 --segments 500 --precision fp32 bf16
    python -m benchmarks encoding share            reached share of the matrix-product peak
    python -m benchmarks encoding passes --encoder e5@12 minilm@6   compared with transformers

The texts are split into slices; bert-score and tertium alternate on each slice, so both see the
same load. CPU seconds count all threads. Models are loaded beforehand.
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
from benchmarks.measure import Measurement, measure, sum_measurements
from tertium.core.arrays import IntArray
from tertium.core.runtime import runtime
from tertium.data.testset import TestSet
from tertium.encoders import load_encoder
from tertium.encoders.transformer_encoder import TransformerEncoder
from tertium.encoders.transformer_layer import convert_linear_layers, cpu_has_bf16
from tertium.encoders.vector_cache import clear_memory
from tertium.evaluation.scoring import score
from tertium.metrics.base.loading import load_metric

Scorer = Callable[[TestSet], Any]

GROUPS = {
    "matrix products, with GELU": ("addmm", "linear", "mm", "matmul", "_linear_poi", "_int_mm"),
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
    parser.add_argument("--slices", type=int, default=4, help="number of turns (default: 4)")
    parser.add_argument("--precision", nargs="+", help="fp32, and bf16 where the CPU has it")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    args.precision = args.precision or ["fp32", *(["bf16"] if cpu_has_bf16() else [])]
    torch.set_num_threads(args.threads)
    with runtime(device="cpu", threads=args.threads):
        for name, part in (
            ("speed", compare_speed),
            ("share", measure_utilization),
            ("passes", compare_passes),
        ):
            for encoder in args.encoder if args.part in (name, "all") else ():
                part(encoder, args)


def compare_speed(name: str, args: argparse.Namespace) -> None:
    """Compare the complete metric with the bert-score package."""
    testset = wmt17(args.segments)
    chosen = list(testset.systems)[: args.systems]
    peer = bert_scorer(name)
    print(f"{len(chosen)} systems x {len(testset)} segments, {name}, {args.threads} threads")
    with tempfile.TemporaryDirectory() as folder:
        contenders = [
            Contender("bert-score, one system", peer, chosen[:1]),
            Contender("bert-score, all systems", peer, chosen),
        ]
        for precision in args.precision:
            ours = tertium_scorer(name, precision)
            store = Path(folder, precision)
            contenders += [
                Contender(
                    f"tertium {precision}, one system, cold", ours, chosen[:1], store / "one"
                ),
                Contender(f"tertium {precision}, all, cold", ours, chosen, store / "all"),
            ]
        for part in slices(testset, args.slices):
            for contender in contenders:
                contender.run_slice(part)
        for contender in contenders:
            report(
                contender.label,
                contender.cpu_time,
                contenders[contender.systems != chosen[:1]].cpu_time,
            )
        for contender in [contender for contender in contenders if contender.store is not None]:
            measure_warm(contender, testset, contenders[contender.systems != chosen[:1]])


def measure_warm(contender: Contender, testset: TestSet, base: Contender) -> None:
    """Time a run with a filled cache and print the largest score difference."""
    assert contender.store is not None
    with cache_folder(contender.store):
        warm = measure(lambda: contender.scorer(select_systems(testset, contender.systems)))
    report(contender.label.replace("cold", "warm"), warm, base.cpu_time)
    worst = np.abs(contender.scores - base.scores).max()
    print(f"{'':36}largest difference of a segment from bert-score {worst:.1e}")
    if not np.array_equal(warm.value, contender.scores):
        print(f"{'':36}warm and cold differ by {np.abs(warm.value - contender.scores).max():.1e}")


@dataclass
class Contender:
    """One way to score some systems, with the measurements of its slices.

    `store` is the cache folder, kept between slices; None disables the cache.
    """

    label: str
    scorer: Scorer
    systems: Sequence[str]
    store: Path | None = None
    turns: list[Measurement[Any]] = field(default_factory=list)

    def run_slice(self, part: TestSet) -> None:
        texts = select_systems(part, self.systems)
        with cache_folder(self.store):
            turn = measure(lambda: self.scorer(texts))
        self.turns.append(turn)
        seconds = f"{turn.seconds:.1f} s, {turn.cpu_seconds:.1f} s CPU"
        print(f"    {self.label}: {seconds}", flush=True)

    @property
    def scores(self) -> Any:
        return np.concatenate([turn.value for turn in self.turns], axis=1)

    @property
    def cpu_time(self) -> Measurement[None]:
        return sum_measurements(self.turns)


def select_systems(testset: TestSet, systems: Sequence[str]) -> TestSet:
    """Return a test set with some of its systems."""
    chosen = {name: testset.systems[name] for name in systems}
    return TestSet(systems=chosen, references=testset.references)


def slices(testset: TestSet, count: int) -> Iterator[TestSet]:
    """Yield consecutive slices of about equal size."""
    edges = np.linspace(0, len(testset), count + 1).astype(int).tolist()
    for start, stop in itertools.pairwise(edges):
        yield TestSet(
            systems={name: texts[start:stop] for name, texts in testset.systems.items()},
            references=testset.references[start:stop],
        )


def bert_scorer(name: str) -> Scorer:
    """Return a function that computes bert-score's F1, one call per system."""
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


def tertium_scorer(name: str, precision: str) -> Scorer:
    metric = load_metric(f"bertscore:encoder={name},precision={precision}")
    load_encoder(name, precision=precision).encode(["load the model"])  # type: ignore[arg-type]

    def call(testset: TestSet) -> Any:
        evaluation = score(testset, [metric])
        return np.stack([evaluation.scores[s][metric.spec].segments for s in testset.systems])

    return call


def report(label: str, measurement: Measurement[Any], base: Measurement[Any]) -> None:
    print(
        f"{label:36}{measurement.seconds:8.1f} s {base.seconds / measurement.seconds:6.2f} x"
        f"{measurement.cpu_seconds:10.1f} s CPU {base.cpu_seconds / measurement.cpu_seconds:6.2f} x"
        f"{measurement.megabytes:8.0f} MB",
        flush=True,
    )


@contextmanager
def cache_folder(folder: Path | None) -> Iterator[None]:
    """Use a vector store in this folder, or none, with an empty memory cache."""
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


def measure_utilization(name: str, args: argparse.Namespace) -> None:
    """Print GFLOP/s of encoding compared with a large matrix product.

    With one thread CPU time is used, which other programs do not affect.
    """
    clock = time.process_time if args.threads == 1 else time.perf_counter
    texts = next(iter(wmt17(args.segments or 1000).systems.values()))
    for precision in args.precision:
        encoder = load_encoder(name, precision=precision)
        assert isinstance(encoder, TransformerEncoder)
        encoder.encode(["load the model"])
        lengths = piece_counts(encoder, texts)
        peak = peak_gflops(encoder.settings.hidden, precision, clock)
        work = count_operations(encoder, lengths) / 1e9
        encode = partial(encoder.encode, texts, sentences=False)
        best = fastest(encode, 3, clock)
        reached = work / best
        print(
            f"{name} {precision}: {len(texts) / best:.0f} texts/s, {reached:.0f} of {peak:.0f} "
            f"GFLOP/s ({reached / peak:.0%})"
        )
        for group, part in time_by_group(encoder, texts).items():
            print(f"    {group:28}{part:6.1%}")


def compare_passes(name: str, args: argparse.Namespace) -> None:
    """Print texts per second of one pass, compared with transformers.

    Both alternate; transformers gets padded batches of 32 texts of similar length.
    """
    clock = time.process_time if args.threads == 1 else time.perf_counter
    texts = list(next(iter(wmt17(args.segments or 500).systems.values())))
    for precision in args.precision:
        encoder = load_encoder(name, precision=precision)
        assert isinstance(encoder, TransformerEncoder)
        contenders: dict[str, Callable[[], Any]] = {}
        contenders["transformers"] = transformers_pass(encoder, texts, precision)
        contenders["tertium"] = partial(encoder.encode, texts, sentences=False)
        lengths = piece_counts(encoder, texts)
        work = count_operations(encoder, lengths) / 1e9
        peak = peak_gflops(encoder.settings.hidden, precision, clock)
        best = dict.fromkeys(contenders, np.inf)
        for _ in range(3):
            for contender, call in contenders.items():
                best[contender] = min(best[contender], fastest(call, 1, clock))
        for contender, seconds in best.items():
            reached = work / seconds
            print(
                f"{name} {precision}, {contender}: {len(texts) / seconds:.0f} texts/s, "
                f"{reached:.0f} of {peak:.0f} GFLOP/s ({reached / peak:.0%})",
                flush=True,
            )


def transformers_pass(
    encoder: TransformerEncoder, texts: Sequence[str], precision: str
) -> Callable[[], None]:
    """Return a call of the transformers model on pretokenized texts."""
    from transformers import AutoModel

    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    model = AutoModel.from_pretrained(
        str(encoder.weights.folder), dtype=kind, add_pooling_layer=False
    ).eval()
    states = model.encoder.layer
    del states[int(encoder.layer) :]
    lengths = piece_counts(encoder, texts)
    order = np.argsort(lengths)
    batches = [lengths[order[n : n + 32]] for n in range(0, len(order), 32)]

    def call() -> None:
        with torch.inference_mode():
            for batch in batches:  # piece ids do not affect the time
                ids = torch.full((len(batch), int(batch.max())), 10)
                mask = torch.arange(ids.shape[1])[None] < torch.as_tensor(batch)[:, None]
                model(input_ids=ids, attention_mask=mask.long())

    return call


def piece_counts(encoder: TransformerEncoder, texts: Sequence[str]) -> IntArray:
    """Return the number of pieces of each text with special tokens and prefix, (texts,)."""
    tokenizer = encoder.tokenizer
    around = len(tokenizer.prefix_ids) + len(tokenizer.suffix_ids)
    return np.array([len(pieces) + around for pieces in tokenizer(texts)], dtype=np.int64)


def fastest(call: Callable[[], Any], times: int, clock: Callable[[], float]) -> float:
    """Return the minimum time of several calls in seconds."""
    best = np.inf
    for _ in range(times):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


def peak_gflops(hidden: int, precision: str, clock: Callable[[], float]) -> float:
    """Return the best GFLOP/s of a feed-forward product and a large square product."""
    best = 0.0
    for inner, outer in ((hidden, 4 * hidden), (2048, 2048)):
        x, linear = torch.randn(1024, inner), torch.nn.Linear(inner, outer)
        call: Callable[[], Any]
        if precision == "int8":
            call = partial(torch._int_mm, x.char(), linear.weight.char().T)
        else:
            layer = torch.nn.Sequential(linear)
            convert_linear_layers(layer, precision, "cpu")
            call = partial(layer, x if precision == "fp32" else x.bfloat16())
        with torch.inference_mode():
            seconds = fastest(call, 30, clock)
        best = max(best, 2 * 1024 * inner * outer / seconds / 1e9)
    return best


def count_operations(encoder: TransformerEncoder, lengths: np.ndarray) -> float:
    """Return the floating-point operations of a BERT-like pass."""
    d = encoder.settings.hidden
    products = 2 * lengths.sum() * (4 * d * d + 8 * d * d)
    attention = 4 * d * (lengths.astype(float) ** 2).sum()
    return int(encoder.layer) * float(products + attention)


@contextmanager
def single_thread() -> Iterator[None]:
    """Run passes in the calling thread, where the profiler sees them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with mock.patch("tertium.encoders.batching.map_on_threads", map):
            yield
    finally:
        torch.set_num_threads(threads)


def time_by_group(encoder: TransformerEncoder, texts: Any) -> dict[str, float]:
    """Return the share of time per kind of operation, from torch's profiler."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with single_thread(), torch.profiler.profile(activities=cpu) as profile:
        encoder.encode(texts, sentences=False)
    cpu_time: dict[str, float] = dict.fromkeys([*GROUPS, "other"], 0.0)
    for event in profile.key_averages():
        name = event.key.rpartition("::")[2]
        group = next((g for g, keys in GROUPS.items() if name.startswith(keys)), "other")
        cpu_time[group] += event.self_cpu_time_total
    total = sum(cpu_time.values())
    return {group: part / total for group, part in cpu_time.items()}
