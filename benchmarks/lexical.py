"""BLEU, chrF and TER of 11 systems, and their paired bootstrap, against sacrebleu.

    python -m benchmarks lexical [--segments 500] [--metrics chrf] [--sentences 600]

All systems are scored metric by metric, then tested; `sentences` are given one at a time to
`tertium.compat.sacrebleu` and to sacrebleu, which take turns.
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
from benchmarks.measure import Measurement, measure, together
from tertium.compat import sacrebleu as compat
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare, compare_evaluation
from tertium.evaluation.scoring import score

PEERS = {"bleu": (SacreBLEU, "BLEU"), "chrf": (SacreChrF, "chrF2"), "ter": (SacreTER, "TER")}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, help="use only the first N segments")
    parser.add_argument("--metrics", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--sentences", type=int, default=600, help="of those one at a time")
    args = parser.parse_args(arguments)
    testset = wmt17(args.segments)
    named = " ".join(args.metrics)
    print(f"{len(testset.systems)} systems x {len(testset)} segments: {named}")
    measure_sentences(testset, args.metrics, args.sentences)
    measure_scoring(testset, args.metrics)
    measure_tests(testset, args.metrics, args.resamples)


def measure_sentences(testset: TestSet, metrics: Sequence[str], count: int) -> None:
    """Score sentences one at a time by sacrebleu's functions, ours and its own."""
    outputs = [text for texts in testset.systems.values() for text in texts]
    references = [row for _ in testset.systems for row in testset.references]
    step = max(1, len(outputs) // count)
    rows = list(zip(outputs[::step], references[::step], strict=True))[:count]
    for name in metrics:
        calls = [getattr(tool, f"sentence_{name}") for tool in (compat, sacrebleu)]
        for call in calls:
            call("a sentence that imports what is needed", ["one"])
        turns: list[list[Measurement[list[Any]]]] = [[], []]
        for start in range(0, len(rows), 20):  # short, so that both meet the same moments
            for side, call in zip(turns, calls, strict=True):
                side.append(measure(partial(score_each, call, rows[start : start + 20])))
        ours, theirs = ([str(value) for turn in side for value in turn.value] for side in turns)
        equal = "equal" if ours == theirs else "DIFFERENT"
        report(f"{len(rows)} sentences one by one, {name}, {equal} scores", *map(together, turns))


def score_each(call: Callable[..., Any], rows: Sequence[tuple[str, Sequence[str]]]) -> list[Any]:
    """The scores of sentences, each with its references."""
    return [call(text, list(references)) for text, references in rows]


def measure_scoring(testset: TestSet, metrics: Sequence[str]) -> None:
    """Score all systems by both, metric by metric, and say whether the scores are equal."""
    references = [[row[0] for row in testset.references]]
    outputs = [list(texts) for texts in testset.systems.values()]

    def peer_scores(name: str) -> list[float]:
        peer = PEERS[name][0](references=references)
        return [peer.corpus_score(texts, None).score for texts in outputs]

    ours, theirs = [], []
    for name in metrics:
        ours.append(measure(partial(score, testset, [name])))
        theirs.append(measure(partial(peer_scores, name)))
        mine = [s.system for s in ours[-1].value.metric_scores(name)]
        equal = "equal" if mine == theirs[-1].value else "DIFFERENT"
        report(f"{name}, {equal} scores", ours[-1], theirs[-1])
    report("scoring", together(ours), together(theirs))


def measure_tests(testset: TestSet, metrics: Sequence[str], resamples: int) -> None:
    """Test all systems by both, with and without the scoring, and say how far p-values differ."""
    references = [[row[0] for row in testset.references]]
    systems = [(name, list(texts)) for name, texts in testset.systems.items()]
    peers = {name: remember(PEERS[name][0](references=references)) for name in metrics}

    def peer_test() -> Any:
        test = PairedTest(
            list(systems), peers, references=None, test_type="bs", n_samples=resamples
        )
        return test()

    whole = measure(lambda: compare(testset, metrics, resamples=resamples))
    peer = measure(peer_test)
    evaluation = score(testset, metrics)
    tested = measure(lambda: compare_evaluation(evaluation, resamples=resamples))
    only = measure(peer_test)
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


def remember(peer: Any) -> Any:
    """A metric of sacrebleu that counts each list of hypotheses once."""
    count = peer._extract_corpus_statistics
    known: dict[tuple[str, ...], Any] = {}

    def recall(hypotheses: Sequence[str], references: None) -> Any:
        key = tuple(hypotheses)
        if key not in known:
            known[key] = count(hypotheses, references)
        return known[key]

    peer._extract_corpus_statistics = recall
    return peer


def report(what: str, ours: Measurement[Any], theirs: Measurement[Any]) -> None:
    """One line: seconds of both and of their processors, ratios, memory of both."""
    print(
        f"{what}: tertium {ours.seconds:.2f} s, sacrebleu {theirs.seconds:.2f} s, "
        f"ratio {theirs.seconds / ours.seconds:.1f}; of processors {ours.processor:.2f} s and "
        f"{theirs.processor:.2f} s, ratio {theirs.processor / ours.processor:.1f}; "
        f"memory {ours.megabytes:.0f} MB against {theirs.megabytes:.0f} MB"
    )


if __name__ == "__main__":
    main()
