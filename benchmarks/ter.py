"""TER of 11 systems, segment by segment, against sacrebleu."""

from __future__ import annotations

import argparse

from sacrebleu.metrics.ter import TER as SacreTER

from benchmarks.corpus import wmt17
from benchmarks.measure import measure
from tertium.metrics.lexical.ter import TER
from tertium.segment import Segment


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
        peer = SacreTER(references=[references])
        return [[row[0] for row in peer._extract_corpus_statistics(t, None)] for t in systems]

    print(f"TER: {len(systems)} systems x {len(references)} segments, one process")
    mine, peer = measure(ours), measure(theirs)
    different = sum(
        left != right
        for rows in zip(mine.value, peer.value, strict=True)
        for left, right in zip(*rows, strict=True)
    )
    print(f"  edits: {f'{different} segments DIFFERENT' if different else 'equal everywhere'}")
    print(
        f"  tertium {mine.seconds:.2f} s, sacrebleu {peer.seconds:.2f} s, "
        f"ratio {peer.seconds / mine.seconds:.1f}; "
        f"memory {mine.megabytes:.0f} MB against {peer.megabytes:.0f} MB"
    )


if __name__ == "__main__":
    main()
