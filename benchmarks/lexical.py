"""BLEU, chrF and TER of 11 systems and their paired bootstrap, compared with sacrebleu.

    python -m benchmarks lexical [--segments 500] [--metrics chrf] [--sentences 600]

All systems are scored metric by metric, then tested. Single sentences alternate between
`tertium.compat.sacrebleu` and sacrebleu.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import sacrebleu
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.chrf import CHRF as SacreChrF
from sacrebleu.metrics.ter import TER as SacreTER
from sacrebleu.significance import PairedTest

from benchmarks.corpus import wmt17
from benchmarks.measure import Measurement, measure, sum_measurements
from tertium.compat import sacrebleu as compat
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare, compare_evaluation
from tertium.evaluation.scoring import score

SACREBLEU_METRICS = {
    "bleu": (SacreBLEU, "BLEU"),
    "chrf": (SacreChrF, "chrF2"),
    "ter": (SacreTER, "TER"),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, help="use only the first N segments")
    parser.add_argument(
        "--metrics", nargs="+", default=list(SACREBLEU_METRICS), choices=SACREBLEU_METRICS
    )
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument(
        "--sentences", type=int, default=600, help="sentences scored one at a time (default: 600)"
    )
    args = parser.parse_args(arguments)
    testset = wmt17(args.segments)
    names = " ".join(args.metrics)
    print(f"{len(testset.systems)} systems x {len(testset)} segments: {names}")
    measure_sentences(testset, args.metrics, args.sentences)
    measure_scoring(testset, args.metrics)
    measure_tests(testset, args.metrics, args.resamples)


def measure_sentences(testset: TestSet, metrics: Sequence[str], count: int) -> None:
    """Score sentences one at a time with both packages."""
    outputs = [text for texts in testset.systems.values() for text in texts]
    references = [row for _ in testset.systems for row in testset.references]
    step = max(1, len(outputs) // count)
    rows = list(zip(outputs[::step], references[::step], strict=True))[:count]
    for name in metrics:
        calls = [getattr(tool, f"sentence_{name}") for tool in (compat, sacrebleu)]
        for call in calls:
            call("a sentence that imports what is needed", ["one"])
        turns: list[list[Measurement[list[Any]]]] = [[], []]
        for start in range(0, len(rows), 20):  # short turns: both see the same load
            for side, call in zip(turns, calls, strict=True):
                side.append(measure(partial(score_each, call, rows[start : start + 20])))
        ours, theirs = ([str(value) for turn in side for value in turn.value] for side in turns)
        equal = "equal" if ours == theirs else "DIFFERENT"
        report(
            f"{len(rows)} sentences one by one, {name}, {equal} scores",
            *map(sum_measurements, turns),
        )


def score_each(call: Callable[..., Any], rows: Sequence[tuple[str, Sequence[str]]]) -> list[Any]:
    """Return the scores of sentences with their references."""
    return [call(text, list(references)) for text, references in rows]


def measure_scoring(testset: TestSet, metrics: Sequence[str]) -> None:
    """Score all systems with both packages and check that the scores are equal."""
    references = [[row[0] for row in testset.references]]
    outputs = [list(texts) for texts in testset.systems.values()]

    def peer_scores(name: str) -> list[float]:
        sacrebleu_metric = SACREBLEU_METRICS[name][0](references=references)
        return [sacrebleu_metric.corpus_score(texts, None).score for texts in outputs]

    ours, theirs = [], []
    for name in metrics:
        ours.append(measure(partial(score, testset, [name])))
        theirs.append(measure(partial(peer_scores, name)))
        mine = [s.system for s in ours[-1].value.metric_scores(name)]
        equal = "equal" if mine == theirs[-1].value else "DIFFERENT"
        report(f"{name}, {equal} scores", ours[-1], theirs[-1])
    report("scoring", sum_measurements(ours), sum_measurements(theirs))


def measure_tests(testset: TestSet, metrics: Sequence[str], resamples: int) -> None:
    """Run the paired bootstrap with both packages, with and without scoring."""
    references = [[row[0] for row in testset.references]]
    systems = [(name, list(texts)) for name, texts in testset.systems.items()]
    sacrebleu_metrics = {
        name: cache_statistics(SACREBLEU_METRICS[name][0](references=references))
        for name in metrics
    }

    def peer_test() -> Any:
        test = PairedTest(
            list(systems), sacrebleu_metrics, references=None, test_type="bs", n_samples=resamples
        )
        return test()

    full_test = measure(lambda: compare(testset, metrics, resamples=resamples))
    sacrebleu_metric = measure(peer_test)
    evaluation = score(testset, metrics)
    ours_test_only = measure(lambda: compare_evaluation(evaluation, resamples=resamples))
    test_only = measure(peer_test)
    report("paired bootstrap with scoring", full_test, sacrebleu_metric)
    report("paired bootstrap alone", ours_test_only, test_only)
    _, expected = sacrebleu_metric.value
    for name in metrics:
        gaps = [
            abs(
                ours_test_only.value.p_value(name, system)
                - expected[SACREBLEU_METRICS[name][1]][place].p_value
            )
            for place, system in enumerate(testset.systems)
            if place
        ]
        print(f"  {name}: p-values differ by at most {max(gaps):.4f}")


def cache_statistics(sacrebleu_metric: Any) -> Any:
    """Make a sacrebleu metric count each list of hypotheses only once."""
    count = sacrebleu_metric._extract_corpus_statistics
    statistics: dict[tuple[str, ...], Any] = {}

    def cached_statistics(hypotheses: Sequence[str], references: None) -> Any:
        key = tuple(hypotheses)
        if key not in statistics:
            statistics[key] = count(hypotheses, references)
        return statistics[key]

    sacrebleu_metric._extract_corpus_statistics = cached_statistics
    return sacrebleu_metric


def report(label: str, ours: Measurement[Any], theirs: Measurement[Any]) -> None:
    """Print time, CPU time, ratios and memory of both."""
    print(
        f"{label}: tertium {ours.seconds:.2f} s, sacrebleu {theirs.seconds:.2f} s, "
        f"ratio {theirs.seconds / ours.seconds:.1f}; CPU {ours.cpu_seconds:.2f} s and "
        f"{theirs.cpu_seconds:.2f} s, ratio {theirs.cpu_seconds / ours.cpu_seconds:.1f}; "
        f"memory {ours.megabytes:.0f} MB against {theirs.megabytes:.0f} MB"
    )
