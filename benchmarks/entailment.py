"""Cost of entailment features: time per pair with and without cached analyses, cores, memory.

python -m benchmarks.entailment                   milliseconds per pair on one core, by step
python -m benchmarks.entailment cores             a batch on one core and on all
python -m benchmarks.entailment memory            100,000 pairs in bounded memory
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.corpus import wmt17
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.metrics.base.lexical_features import LexicalFeatures
from tertium.metrics.lexical.meteor_metric import METEOR
from tertium.metrics.linguistics.dependency_parser import load_parser
from tertium.metrics.regression.entailment.feature_extraction import (
    EntailmentFeatures,
    load_sentences,
    sentence_cache,
)
from tertium.metrics.regression.metric_features import MetricColumns
from tertium.metrics.regression.parallel_extraction import extract_features
from tertium.metrics.regression.regression_metrics import RTER

PAIRS = 300


def make_pairs(count: int) -> list[Segment]:
    """Return distinct pairs of WMT17 de-en; a number makes additional ones distinct."""
    testset = wmt17()
    segments = [s for system in testset.systems for s in testset.segments(system)]
    unique = list(dict.fromkeys(segments))
    rounds = -(-count // len(unique))
    repeats = range(1, rounds)
    numbered = [Segment(f"{s.hypothesis} {n}", None, s.references) for n in repeats for s in unique]
    return [*unique, *numbered][:count]


def print_time(label: str, work: Callable[[], object], count: int) -> None:
    """Print elapsed and CPU time per pair."""
    elapsed, busy = time.perf_counter(), time.process_time()
    work()
    elapsed, busy = time.perf_counter() - elapsed, time.process_time() - busy
    each = 1e3 / count
    print(f"{label:40s} {each * elapsed:8.2f} ms {each * busy:8.2f} ms CPU", flush=True)


def time_steps(segments: Sequence[Segment]) -> None:
    """Time each step on one core; parser, dictionary and vectors are loaded beforehand."""
    warm, fresh = segments[:50], segments[50:]
    features, lexical, meteor = EntailmentFeatures(), LexicalFeatures(), MetricColumns(METEOR())
    for part in (features, lexical, meteor):
        part(warm)
    texts = [text for s in fresh for text in (s.hypothesis, s.references[0])]
    n = len(fresh)
    with runtime(threads=1, cache=False):
        print_time(
            "entailment, nothing cached, one by one", lambda: [features([s]) for s in fresh], n
        )
        sentence_cache.cache_clear()
        print_time("parsing alone, in batches", lambda: load_parser().analyze(texts), n)
        load_sentences(texts)
        print_time("entailment, analyses cached", lambda: features(fresh), n)
        print_time("BLEU, NIST and TER columns", lambda: lexical(fresh), n)
        print_time("METEOR column", lambda: meteor(fresh), n)
    with runtime(threads=1):
        sentence_cache.cache_clear()
        load_parser().analyze(texts)
        print_time("entailment, analyses on disk", lambda: features(fresh), n)


def time_cores(segments: Sequence[Segment]) -> None:
    """Compare one process with one process per core, on different halves of a batch.

    Rows are cached, so the same half would cost nothing the second time.
    """
    half = len(segments) // 2
    with runtime(cache=False):
        EntailmentFeatures()(segments[:50])
        for threads, part in ((1, segments[:half]), (None, segments[half:])):
            sentence_cache.cache_clear()
            with runtime(threads=threads):
                label = f"batch of {len(part)}, {threads or 'all'} core(s)"
                print_time(label, partial(extract_features, EntailmentFeatures(), part), len(part))


def measure_memory(segments: Sequence[Segment]) -> None:
    """Print the peak memory of scoring many pairs, for this process and its children.

    Pairs combine translations with references of other segments, so most analyses are cached.
    """
    count = len(segments)
    side = math.isqrt(count - 1) + 1
    texts = list(dict.fromkeys(s.hypothesis for s in segments))[:side]
    references = list(dict.fromkeys(s.references for s in segments))[:side]
    crossed = [Segment(text, None, r) for text in texts for r in references][:count]
    metric = RTER()
    metric.score(crossed[:600])
    for share in (0.1, 0.5, 1.0):
        subset = crossed[: int(share * len(crossed))]
        print_time(f"{len(subset)} pairs", lambda subset=subset: metric.score(subset), len(subset))  # type: ignore[misc]
        own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        child_peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"peak {own_peak // 1024} MB, largest child {child_peak // 1024} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("steps", "cores", "memory"), default="steps")
    parser.add_argument("--pairs", type=int)
    args = parser.parse_args()
    runs = {
        "steps": (time_steps, PAIRS + 50),
        "cores": (time_cores, 2000),
        "memory": (measure_memory, 100_000),
    }
    run, count = runs[args.part]
    run(make_pairs(args.pairs or count))


if __name__ == "__main__":
    main()
