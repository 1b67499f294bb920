"""What entailment features cost: a pair, first seen and with kept analyses; cores; memory.

python -m benchmarks.entailment                   milliseconds a pair on one core, by step
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
from tertium.execution import runtime
from tertium.linguistics.parser import load_parser
from tertium.metrics.base.lexical_features import LexicalFeatures
from tertium.metrics.lexical.meteor import METEOR
from tertium.metrics.regression.entailment.feature_extraction import (
    EntailmentFeatures,
    clear_sentence_cache,
    load_sentences,
)
from tertium.metrics.regression.parallel_extraction import extract_features
from tertium.metrics.regression.regression_metrics import RTER, MetricColumns
from tertium.segment import Segment

PAIRS = 300


def pairs(count: int) -> list[Segment]:
    """Distinct pairs of WMT17 de-en, system by system; numbered anew where there are not enough."""
    testset = wmt17()
    segments = [s for system in testset.systems for s in testset.segments(system)]
    unique = list(dict.fromkeys(segments))
    rounds = -(-count // len(unique))
    repeats = range(1, rounds)
    more = [Segment(f"{s.hypothesis} {n}", None, s.references) for n in repeats for s in unique]
    return [*unique, *more][:count]


def show(label: str, work: Callable[[], object], count: int) -> None:
    """Print the time of one pair, elapsed and of this process's CPU."""
    elapsed, busy = time.perf_counter(), time.process_time()
    work()
    elapsed, busy = time.perf_counter() - elapsed, time.process_time() - busy
    each = 1e3 / count
    print(f"{label:40s} {each * elapsed:8.2f} ms {each * busy:8.2f} ms CPU", flush=True)


def steps(segments: Sequence[Segment]) -> None:
    """One core, step by step; the parser, dictionary and vectors are loaded before."""
    warm, fresh = segments[:50], segments[50:]
    features, lexical, meteor = EntailmentFeatures(), LexicalFeatures(), MetricColumns(METEOR())
    for part in (features, lexical, meteor):
        part(warm)
    texts = [text for s in fresh for text in (s.hypothesis, s.references[0])]
    n = len(fresh)
    with runtime(threads=1, cache=False):
        show("entailment, nothing kept, one by one", lambda: [features([s]) for s in fresh], n)
        clear_sentence_cache()
        show("parsing alone, in batches", lambda: load_parser().analyze(texts), n)
        load_sentences(texts)
        show("entailment, analyses kept", lambda: features(fresh), n)
        show("BLEU, NIST and TER columns", lambda: lexical(fresh), n)
        show("METEOR column", lambda: meteor(fresh), n)
    with runtime(threads=1):
        clear_sentence_cache()
        load_parser().analyze(texts)
        show("entailment, analyses on disk", lambda: features(fresh), n)


def cores(segments: Sequence[Segment]) -> None:
    """One half of a batch in one process, the other in as many as there are cores: rows are kept,
    so that the same half would cost nothing the second time."""
    half = len(segments) // 2
    with runtime(cache=False):
        EntailmentFeatures()(segments[:50])
        for threads, part in ((1, segments[:half]), (None, segments[half:])):
            clear_sentence_cache()
            with runtime(threads=threads):
                label = f"batch of {len(part)}, {threads or 'all'} core(s)"
                show(label, partial(extract_features, EntailmentFeatures(), part), len(part))


def memory(segments: Sequence[Segment]) -> None:
    """The most memory that scoring many pairs needs, of this process and of its children.

    The pairs are those of each of some translations with each of some references, so that most
    analyses are there already; rows, scores and processes are as for any pairs.
    """
    count = len(segments)
    side = math.isqrt(count - 1) + 1
    texts = list(dict.fromkeys(s.hypothesis for s in segments))[:side]
    references = list(dict.fromkeys(s.references for s in segments))[:side]
    crossed = [Segment(text, None, r) for text in texts for r in references][:count]
    metric = RTER()
    metric.score(crossed[:600])
    for share in (0.1, 0.5, 1.0):
        some = crossed[: int(share * len(crossed))]
        show(f"{len(some)} pairs", lambda some=some: metric.score(some), len(some))  # type: ignore[misc]
        here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"peak {here // 1024} MB, largest child {child // 1024} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("steps", "cores", "memory"), default="steps")
    parser.add_argument("--pairs", type=int)
    args = parser.parse_args()
    runs = {"steps": (steps, PAIRS + 50), "cores": (cores, 2000), "memory": (memory, 100_000)}
    run, count = runs[args.what]
    run(pairs(args.pairs or count))


if __name__ == "__main__":
    main()
