"""Rows a second and memory of `tertium corpus` from 1 to 10 million rows, and on Ray.

    python -m benchmarks corpora local --rows 1000000 10000000
    python -m benchmarks corpora local --metric tertium-small --rows 2000 20000
    python -m benchmarks corpora ray --rows 200000
    python -m benchmarks corpora ray --metric bertscore:encoder=minilm --rows 2000

Rows are the bundled example's with one reference and a number in both texts, so that none occurs
twice. Each run is a process of its own; memory is the greatest sum over it and its children of what
they hold alone or share (PSS). Seconds of processors are what other work on a machine leaves alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

from tertium.atomic import write_text
from tertium.data.formats import read_jsonl

EXAMPLE = Path(__file__).parent.parent / "examples" / "examples.jsonl"
SCORED = 200_000  # rows at most that `tertium score` is given: it reads them all


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="local", choices=("local", "ray"))
    parser.add_argument("--metric", default="chrf")
    parser.add_argument("--rows", nargs="+", type=int, default=[200_000, 1_000_000])
    parser.add_argument("--part-rows", type=int, default=100_000)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tertium-bench-") as folder:
        if args.what == "local":
            compare_local(Path(folder), args.metric, args.rows, args.part_rows)
        else:
            compare_ray(Path(folder), args.metric, args.rows[0], args.part_rows)


def compare_local(folder: Path, metric: str, counts: list[int], part_rows: int) -> None:
    """`tertium corpus` on more and more rows, beside `tertium score`."""
    few = make_corpus(folder / "few.jsonl", min(SCORED, *counts))
    show("tertium score", min(SCORED, *counts), *watch(score_command(few, metric, folder)))
    for count in counts:
        file = make_corpus(folder / f"{count}.jsonl", count)
        command = corpus_command(file, metric, folder / f"{count}", part_rows)
        show("tertium corpus", count, *watch(command))
        file.unlink()


def compare_ray(folder: Path, metric: str, count: int, part_rows: int) -> None:
    """One and two workers of Ray, the local engine, and a script that a user would write.

    Workers of Ray are no children of the driver, so that time alone is shown, start included.
    """
    file = make_corpus(folder / "in.jsonl", count)
    commands = {}
    for engine, workers in product(("local", "ray"), (1, 2)):
        made = corpus_command(file, metric, folder / f"{engine}{workers}", part_rows)
        commands[f"{engine}, {workers}"] = [*made, "--engine", engine, "--workers", str(workers)]
    name = "sacrebleu" if metric == "chrf" else "bert-score"
    script = [sys.executable, "-m", "benchmarks.ray_script", name, str(file), str(folder / "other")]
    commands[f"ray.data and {name}, 2"] = script
    for what, command in commands.items():
        seconds = watch(command)[0]
        print(f"{what} workers: {count:,} rows in {seconds:.1f} s; load {os.getloadavg()[0]:.0f}")


def corpus_command(file: Path, metric: str, out: Path, part_rows: int) -> list[str]:
    options = ["-m", metric, "-o", str(out), "--part-rows", str(part_rows), "--no-cache"]
    return [sys.executable, "-m", "tertium", "corpus", str(file), *options, "-q", "-f", "json"]


def score_command(file: Path, metric: str, folder: Path) -> list[str]:
    options = ["-m", metric, "-o", str(folder / "scores.tsv"), "--no-cache", "-q", "-b"]
    return [sys.executable, "-m", "tertium", "score", "-t", str(file), *options]


def make_corpus(path: Path, count: int) -> Path:
    write_text(path, islice(lines(), count), durable=False)
    return path


def lines() -> Iterator[str]:
    """Rows without end, no two alike."""
    rows = [record for _, record in read_jsonl(EXAMPLE) if record["mt"].strip()]
    pieces = []
    for row in rows:
        texts: dict[str, Any] = {"mt": _mark(row["mt"]), "ref": _mark(row["ref"][0])}
        pieces.append(json.dumps(texts, ensure_ascii=False).split("<number>"))
    number = 0
    while True:
        for start, middle, end in pieces:
            number += 1
            yield f"{start}{number}{middle}{number}{end}\n"


def _mark(text: str) -> str:
    """A text with a place for a number in its middle."""
    words = text.split()
    return " ".join([*words[: len(words) // 2], "<number>", *words[len(words) // 2 :]])


def watch(command: list[str]) -> tuple[float, float, float]:
    """The seconds of a command, those of its processors, and its greatest memory in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun, peak = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(memory_of, family(process.pid))))
            time.sleep(0.25)
        if process.returncode:
            assert process.stderr is not None
            sys.exit(process.stderr.read().decode()[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - begun, work, peak / 1e6


def family(process: int) -> list[int]:
    """A process and all that it started."""
    found = [process]
    for parent in found:
        for file in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in file.read_text().split()]
            except OSError:
                continue
    return found


def memory_of(process: int) -> int:
    """The bytes a process holds, those that it shares by its share."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    match = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def show(what: str, rows: int, seconds: float, work: float, megabytes: float) -> None:
    load = os.getloadavg()[0]
    print(
        f"{what}: {rows:,} rows in {seconds:.0f} s, {rows / seconds:,.0f} a second; "
        f"{work:.0f} s of processors, {rows / work:,.0f} rows for each; "
        f"{megabytes:.0f} MB; load {load:.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
