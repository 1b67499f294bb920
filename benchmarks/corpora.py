"""Throughput and memory of `tertium corpus` from 1 to 10 million rows.

    python -m benchmarks corpora local --rows 1000000 10000000
    python -m benchmarks corpora local --metric tertium-small --rows 2000 20000

Rows come from the bundled example; a number in each text makes them distinct. Each run is a
separate process. Memory is the peak proportional set size (PSS) of the process tree, overall and in
each tenth of the run. CPU seconds include child processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from tertium.core.atomic import write_text
from tertium.data.record_files import read_jsonl

EXAMPLE = Path(__file__).parent.parent / "examples" / "examples.jsonl"
MAX_SCORED_ROWS = 200_000  # `tertium score` reads all rows into memory


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="local", choices=("local",))
    parser.add_argument("--metric", default="chrf")
    parser.add_argument("--rows", nargs="+", type=int, default=[200_000, 1_000_000])
    parser.add_argument("--part-rows", type=int, default=100_000)
    parser.add_argument(
        "--options", default="", help="more options of `tertium corpus` and `score`"
    )
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tertium-bench-") as folder:
        compare_local(Path(folder), args)


def compare_local(folder: Path, args: argparse.Namespace) -> None:
    """Run `tertium corpus` on growing inputs, and `tertium score` for comparison."""
    few = make_corpus(folder / "few.jsonl", min(MAX_SCORED_ROWS, *args.rows))
    print_usage(
        "tertium score",
        min(MAX_SCORED_ROWS, *args.rows),
        run_and_measure(score_command(few, args, folder)),
    )
    for count in args.rows:
        file = make_corpus(folder / f"{count}.jsonl", count)
        print_usage(
            "tertium corpus",
            count,
            run_and_measure(corpus_command(file, args, folder / f"{count}")),
        )
        file.unlink()
        shutil.rmtree(folder / f"{count}")


def corpus_command(file: Path, args: argparse.Namespace, out: Path) -> list[str]:
    options = ["-m", args.metric, "-o", str(out), "--part-rows", str(args.part_rows)]
    options += ["--no-cache", "-q", "-f", "json", *args.options.split()]
    return [sys.executable, "-m", "tertium", "corpus", str(file), *options]


def score_command(file: Path, args: argparse.Namespace, folder: Path) -> list[str]:
    options = ["-m", args.metric, "-o", str(folder / "scores.tsv"), "--no-cache", "-q", "-b"]
    options += args.options.split()
    return [sys.executable, "-m", "tertium", "score", "-t", str(file), *options]


def make_corpus(path: Path, count: int) -> Path:
    write_text(path, islice(lines(), count), durable=False)
    return path


def lines() -> Iterator[str]:
    """Yield an endless stream of distinct rows."""
    rows = [record for _, record in read_jsonl(EXAMPLE) if record["mt"].strip()]
    pieces = []
    for row in rows:
        texts: dict[str, Any] = {name: insert_number(row[name]) for name in ("src", "mt")}
        texts["ref"] = insert_number(row["ref"][0])
        pieces.append(json.dumps(texts, ensure_ascii=False).split("<number>"))
    for number, parts in enumerate(cycle(pieces), start=1):
        yield str(number).join(parts) + "\n"


def insert_number(text: str) -> str:
    """Return the text with a number placeholder in the middle."""
    words = text.split()
    return " ".join([*words[: len(words) // 2], "<number>", *words[len(words) // 2 :]])


@dataclass(frozen=True)
class ProcessUsage:
    """Elapsed seconds, CPU seconds and peak memory in bytes of a command."""

    seconds: float
    cpu_seconds: float
    memory: int
    memory_by_tenth: tuple[int, ...]  # peak memory in each tenth of the run


def run_and_measure(command: list[str]) -> ProcessUsage:
    """Run a command and sample its process tree up to four times a second."""
    started, memory_samples, cpu_seconds = time.perf_counter(), list[int](), dict[int, float]()
    before = os.times()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as process,
    ):
        while process.poll() is None:
            sample_start = time.perf_counter()
            pids = process_tree(process.pid)
            memory_samples.append(sum(map(process_memory, pids)))
            cpu_seconds |= {
                pid: process_cpu_seconds(pid) or cpu_seconds.get(pid, 0.0) for pid in pids
            }
            # sampling is slow: spend at most a twentieth of the time on it
            time.sleep(max(0.25, 20 * (time.perf_counter() - sample_start)))
        if process.returncode:
            errors.seek(0)
            sys.exit(errors.read().decode()[-2000:])
    after = os.times()
    children_cpu = after.children_user + after.children_system
    children_cpu -= before.children_user + before.children_system
    # CPU time of grandchildren is known only to parents that wait for them
    memory_by_tenth = tuple(
        max(memory_samples[i * len(memory_samples) // 10 :][: len(memory_samples) // 10 + 1])
        for i in range(10)
    )
    work_done = max(children_cpu, sum(cpu_seconds.values()))
    return ProcessUsage(
        time.perf_counter() - started, work_done, max(memory_samples), memory_by_tenth
    )


def process_cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process without children; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def process_tree(process: int) -> list[int]:
    """Return a process and all its descendants."""
    usage = [process]
    for parent in usage:
        for file in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                usage += [int(child) for child in file.read_text().split()]
            except OSError:
                continue
    return usage


def process_memory(process: int) -> int:
    """Return the proportional set size of a process in bytes."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    match = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def print_usage(label: str, rows: int, usage: ProcessUsage) -> None:
    tenths = " ".join(f"{memory / 1e6:.0f}" for memory in usage.memory_by_tenth)
    print(
        f"{label}: {rows:,} rows in {usage.seconds:.0f} s, {rows / usage.seconds:,.0f} per second; "
        f"{usage.cpu_seconds:.0f} s CPU, {rows / usage.cpu_seconds:,.0f} rows per CPU second; "
        f"{usage.memory / 1e6:.0f} MB ({tenths}); load {os.getloadavg()[0]:.0f}",
        flush=True,
    )
