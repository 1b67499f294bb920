"""Networks in int8 compared with fp32, with the tools they replace, and the time to a first score.

    python -m benchmarks int8 [--segments 120] [--rows 200] [--threads 1]

Runs `encoding speed` (BERTScore, 4 systems), `encoding share`, `flagship` (tertium-small) and
`multi` (tertium-multi with a reference) in both precisions, then new processes that compute one
score. Use ratios of CPU seconds: both sides slow down on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks import encoding, flagship, multi

PRECISIONS = ("--precision", "fp32", "int8")
FIRST_SCORE = 'import tertium; tertium.load_metric("{}").sentence_score("A text.", ["The text."])'
STARTS = 5  # of each new process


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=120)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(arguments)
    threads, segments = f"--threads={args.threads}", f"--segments={args.segments}"
    systems = "--systems=4"
    encoding.main(["speed", systems, segments, "--slices=6", threads, *PRECISIONS])
    encoding.main(["share", segments, threads, *PRECISIONS])
    flagship.main([systems, segments, threads, *PRECISIONS])
    rows = f"--rows={args.rows}"
    multi.main(["--view=reference", rows, "--rival-rows=12", threads, *PRECISIONS])
    measure_first_scores()


def measure_first_scores() -> None:
    """Print CPU seconds of new processes up to a first score, without a cache."""
    codes = {"import torch": "import torch"}
    codes |= {name: FIRST_SCORE.format(name) for name in ("tertium-small", "tertium-multi")}
    seconds: dict[str, list[float]] = {label: [] for label in codes}
    for _ in range(STARTS):
        for label, code in codes.items():
            with tempfile.TemporaryDirectory() as folder:
                seconds[label].append(time_process(code, {**os.environ, "TERTIUM_CACHE": folder}))
    for label, values in seconds.items():
        print(f"{label}: {np.median(values):.1f} s CPU of a new process, least {min(values):.1f} s")


def time_process(code: str, environment: dict[str, str]) -> float:
    """Return the CPU seconds of a new Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
