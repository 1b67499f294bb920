"""Cost of entailment features: time per pair with and without cached analyses, on one core."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from benchmarks.corpus import wmt17
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.metrics.base.lexical_features import LexicalFeatures
from tertium.metrics.lexical.meteor_metric import METEOR
from tertium.metrics.linguistics.dependency_parser import load_parser
from tertium.metrics.regression.entailment.feature_extraction import (
    EntailmentFeatures,
)
from tertium.metrics.regression.regression_metrics import MetricColumns

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
        print_time("parsing alone, in batches", lambda: load_parser().analyze(texts), n)
        print_time("BLEU, NIST and TER columns", lambda: lexical(fresh), n)
        print_time("METEOR column", lambda: meteor(fresh), n)
    with runtime(threads=1):
        load_parser().analyze(texts)
        print_time("entailment, analyses on disk", lambda: features(fresh), n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS + 50)
    time_steps(make_pairs(parser.parse_args().pairs))
