"""BLEU, chrF and TER of 11 systems, and their paired bootstrap, against sacrebleu."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.chrf import CHRF as SacreChrF
from sacrebleu.metrics.ter import TER as SacreTER
from sacrebleu.significance import PairedTest

from benchmarks.corpus import wmt17
from benchmarks.measure import Measured, measure
from tertium.evaluation.comparison import compare, compare_evaluation
from tertium.evaluation.scoring import score

PEERS = {"bleu": (SacreBLEU, "BLEU"), "chrf": (SacreChrF, "chrF2"), "ter": (SacreTER, "TER")}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, help="use only the first N segments")
    parser.add_argument("--metrics", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--resamples", type=int, default=1000)
    args = parser.parse_args(arguments)
    testset = wmt17(args.segments)
    references = [[row[0] for row in testset.references]]
    systems = [(name, list(texts)) for name, texts in testset.systems.items()]

    def peer_scores() -> dict[str, list[float]]:
        return {
            name: [
                peer.corpus_score(texts, None).score
                for peer in [PEERS[name][0](references=references)]
                for _, texts in systems
            ]
            for name in args.metrics
        }

    def peer_test() -> Any:
        metrics = {n: PEERS[n][0](references=references) for n in args.metrics}
        return PairedTest(
            list(systems), metrics, references=None, test_type="bs", n_samples=args.resamples
        )()

    print(f"{len(systems)} systems x {len(testset)} segments: {' '.join(args.metrics)}")
    ours = measure(lambda: score(testset, args.metrics))
    theirs = measure(peer_scores)
    report("scoring", ours, theirs)
    for name in args.metrics:
        mine = [s.system for s in ours.value.of_metric(name)]
        print(f"  {name}: {'equal' if mine == theirs.value[name] else 'DIFFERENT'} scores")

    tested = measure(lambda: compare_evaluation(ours.value, resamples=args.resamples))
    whole = measure(lambda: compare(testset, args.metrics, resamples=args.resamples))
    peer = measure(peer_test)
    only = replace(
        peer,
        seconds=peer.seconds - theirs.seconds,
        processor=peer.processor - theirs.processor,
    )
    report("paired bootstrap, whole", whole, peer)
    report("paired bootstrap alone", tested, only)
    _, expected = peer.value
    for name in args.metrics:
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
