"""BLEU, chrF and TER of 11 systems, and their paired bootstrap, against sacrebleu."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.chrf import CHRF as SacreChrF
from sacrebleu.metrics.ter import TER as SacreTER
from sacrebleu.significance import PairedTest

from benchmarks.corpus import wmt17
from benchmarks.measure import Measured, measure
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare, compare_evaluation
from tertium.evaluation.scoring import Evaluation, score

PEERS = {"bleu": (SacreBLEU, "BLEU"), "chrf": (SacreChrF, "chrF2"), "ter": (SacreTER, "TER")}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, help="use only the first N segments")
    parser.add_argument("--metrics", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--resamples", type=int, default=1000)
    args = parser.parse_args(arguments)
    testset = wmt17(args.segments)
    named = " ".join(args.metrics)
    print(f"{len(testset.systems)} systems x {len(testset)} segments: {named}")
    ours, theirs = measure_scoring(testset, args.metrics)
    measure_tests(testset, args.metrics, args.resamples, ours, theirs)


def measure_scoring(
    testset: TestSet, metrics: Sequence[str]
) -> tuple[Measured[Evaluation], Measured[Any]]:
    """Score all systems by both, and say whether the scores are equal."""
    references = [[row[0] for row in testset.references]]
    outputs = [list(texts) for texts in testset.systems.values()]

    def peer_scores() -> dict[str, list[float]]:
        return {
            name: [
                peer.corpus_score(texts, None).score
                for peer in [PEERS[name][0](references=references)]
                for texts in outputs
            ]
            for name in metrics
        }

    ours = measure(lambda: score(testset, metrics))
    theirs = measure(peer_scores)
    report("scoring", ours, theirs)
    for name in metrics:
        mine = [s.system for s in ours.value.of_metric(name)]
        print(f"  {name}: {'equal' if mine == theirs.value[name] else 'DIFFERENT'} scores")
    return ours, theirs


def measure_tests(
    testset: TestSet,
    metrics: Sequence[str],
    resamples: int,
    ours: Measured[Evaluation],
    theirs: Measured[Any],
) -> None:
    """Test all systems by both, with and without the scoring, and say how far p-values differ."""
    references = [[row[0] for row in testset.references]]
    systems = [(name, list(texts)) for name, texts in testset.systems.items()]

    def peer_test() -> Any:
        peers = {n: PEERS[n][0](references=references) for n in metrics}
        return PairedTest(
            list(systems), peers, references=None, test_type="bs", n_samples=resamples
        )()

    tested = measure(lambda: compare_evaluation(ours.value, resamples=resamples))
    whole = measure(lambda: compare(testset, metrics, resamples=resamples))
    peer = measure(peer_test)
    only = replace(
        peer,
        seconds=peer.seconds - theirs.seconds,
        processor=peer.processor - theirs.processor,
    )
    report("paired bootstrap, whole", whole, peer)
    report("paired bootstrap alone", tested, only)
    _, expected = peer.value
    for name in metrics:
        gaps = [
            abs(tested.value.p_value(name, system) - expected[PEERS[name][1]][place].p_value)
            for place, system in enumerate(testset.systems)
            if place
        ]
        print(f"  {name}: p-values differ by at most {max(gaps):.4f}")


def report(what: str, ours: Measured[Any], theirs: Measured[Any]) -> None:
    """One line: seconds of both and of their processors, ratios, memory of both."""
    print(
        f"{what}: tertium {ours.seconds:.2f} s, sacrebleu {theirs.seconds:.2f} s, "
        f"ratio {theirs.seconds / ours.seconds:.1f}; of processors {ours.processor:.2f} s and "
        f"{theirs.processor:.2f} s, ratio {theirs.processor / ours.processor:.1f}; "
        f"memory {ours.megabytes:.0f} MB against {theirs.megabytes:.0f} MB"
    )


if __name__ == "__main__":
    main()
