"""Segment-level TER of 11 systems, compared with sacrebleu."""

from __future__ import annotations

import argparse

from sacrebleu.metrics.ter import TER as SacreTER

from benchmarks.corpus import wmt17
from benchmarks.measure import measure
from tertium.core.segment import Segment
from tertium.metrics.lexical.ter_metric import TER


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="use only every Nth segment")
    args = parser.parse_args(arguments)
    testset = wmt17()
    references = [row[0] for row in testset.references][:: args.every]
    systems = [list(texts)[:: args.every] for texts in testset.systems.values()]

    def ours() -> list[list[float]]:
        return [
            TER()
            .score([Segment(h, None, (r,)) for h, r in zip(texts, references, strict=True)])
            .statistics[:, 0]
            .tolist()
            for texts in systems
        ]

    def theirs() -> list[list[float]]:
        theirs_measured = SacreTER(references=[references])
        return [
            [row[0] for row in theirs_measured._extract_corpus_statistics(t, None)] for t in systems
        ]

    print(f"TER: {len(systems)} systems x {len(references)} segments, one process")
    ours_measured, theirs_measured = measure(ours), measure(theirs)
    difference_count = sum(
        left != right
        for rows in zip(ours_measured.value, theirs_measured.value, strict=True)
        for left, right in zip(*rows, strict=True)
    )
    result = f"{difference_count} segments DIFFERENT" if difference_count else "equal everywhere"
    print(f"  edits: {result}")
    print(
        f"  tertium {ours_measured.seconds:.2f} s, sacrebleu {theirs_measured.seconds:.2f} s, "
        f"ratio {theirs_measured.seconds / ours_measured.seconds:.1f}; "
        f"memory {ours_measured.megabytes:.0f} MB against {theirs_measured.megabytes:.0f} MB"
    )
