"""Rows a second and memory of `tertium corpus` from 1 to 10 million rows, and on Ray.

    python -m benchmarks corpora local --rows 1000000 10000000
    python -m benchmarks corpora local --metric tertium-small --rows 2000 20000
    python -m benchmarks corpora ray --rows 200000
    python -m benchmarks corpora ray --metric bertscore:encoder=minilm --rows 2000
    python -m benchmarks corpora ray --metric tertium-small --gpus 0.5 --options "--device cuda"
    python -m benchmarks corpora ray --metric tertium-small --rows 600 3600 --no-script

Rows are the bundled example's with source, one reference and a number in all texts, so that none
occurs twice. Each run is a process of its own; memory is the greatest sum over it and all that it
started of what they hold alone or share (PSS), also in each tenth of the time, and seconds of
processors are of all of these, too: they are what other work on a machine leaves alone. With two
numbers of rows on Ray, what lies between them is shown: a run under way, apart from its beginning.
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
from itertools import cycle, islice, product
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
    parser.add_argument("--options", default="", help="more, of `tertium corpus` and `score`")
    parser.add_argument("--gpus", type=float, default=0, help="of each actor")
    parser.add_argument("--engines", nargs="+", default=["local", "ray"])
    parser.add_argument("--no-script", action="store_true", help="without a script by hand")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tertium-bench-") as folder:
        if args.what == "local":
            compare_local(Path(folder), args)
        else:
            compare_ray(Path(folder), args)


def compare_local(folder: Path, args: argparse.Namespace) -> None:
    """`tertium corpus` on more and more rows, beside `tertium score`."""
    few = make_corpus(folder / "few.jsonl", min(SCORED, *args.rows))
    show("tertium score", min(SCORED, *args.rows), watch(score_command(few, args, folder)))
    for count in args.rows:
        file = make_corpus(folder / f"{count}.jsonl", count)
        show("tertium corpus", count, watch(corpus_command(file, args, folder / f"{count}")))
        file.unlink()
        shutil.rmtree(folder / f"{count}")


def compare_ray(folder: Path, args: argparse.Namespace) -> None:
    """One and two workers of Ray, the local engine, and a script that a user would write."""
    files = {count: make_corpus(folder / f"{count}.jsonl", count) for count in args.rows}
    for engine, workers in product(args.engines, (1, 2)):
        more = ["--engine", engine, "--workers", str(workers)]
        more += ["--worker-gpus", str(args.gpus)] if engine == "ray" and args.gpus else []
        compare_sizes(
            f"{engine}, {workers} of them",
            {
                count: [*corpus_command(file, args, folder / f"{engine}{workers}-{count}"), *more]
                for count, file in files.items()
            },
        )
    if not args.no_script:
        name = "sacrebleu" if args.metric == "chrf" else "bert-score"
        script = [sys.executable, "-m", "benchmarks.ray_script", name]
        compare_sizes(
            f"ray.data and {name} by hand, 2 of them",
            {
                count: [*script, str(file), str(folder / f"other-{count}")]
                for count, file in files.items()
            },
        )


def compare_sizes(what: str, commands: dict[int, list[str]]) -> None:
    """A command on each number of rows, and what the rows beyond the fewest took."""
    seen: dict[int, Watched] = {}
    for count, command in sorted(commands.items()):
        seen[count] = watch(command)
        show(what, count, seen[count])
    if len(seen) > 1:
        few, many = min(seen), max(seen)
        beyond, seconds = many - few, seen[many].seconds - seen[few].seconds
        print(
            f"{what}: {beyond:,} rows beyond {few:,} in {seconds:.1f} s, "
            f"{beyond / seconds:,.1f} a second; {seen[few].seconds - few * seconds / beyond:.0f} s "
            "before the first",
            flush=True,
        )


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
    """Rows without end, no two alike."""
    rows = [record for _, record in read_jsonl(EXAMPLE) if record["mt"].strip()]
    pieces = []
    for row in rows:
        texts: dict[str, Any] = {name: _mark(row[name]) for name in ("src", "mt")}
        texts["ref"] = _mark(row["ref"][0])
        pieces.append(json.dumps(texts, ensure_ascii=False).split("<number>"))
    for number, parts in enumerate(cycle(pieces), start=1):
        yield str(number).join(parts) + "\n"


def _mark(text: str) -> str:
    """A text with a place for a number in its middle."""
    words = text.split()
    return " ".join([*words[: len(words) // 2], "<number>", *words[len(words) // 2 :]])


@dataclass(frozen=True)
class Watched:
    """The seconds of a command, those of processors, and its greatest memory in bytes."""

    seconds: float
    work: float
    memory: int
    tenths: tuple[int, ...]  # the greatest memory in each tenth of the time


def watch(command: list[str]) -> Watched:
    """Run a command and look at it and all that it started, up to four times a second."""
    begun, held, work = time.perf_counter(), list[int](), dict[int, float]()
    before = os.times()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as process,
    ):
        while process.poll() is None:
            looked = time.perf_counter()
            alive = family(process.pid)
            held.append(sum(map(memory_of, alive)))
            work |= {pid: work_of(pid) or work.get(pid, 0.0) for pid in alive}
            # the system counts pages for each look: a twentieth of the time at most
            time.sleep(max(0.25, 20 * (time.perf_counter() - looked)))
        if process.returncode:
            errors.seek(0)
            sys.exit(errors.read().decode()[-2000:])
    after = os.times()
    waited = after.children_user + after.children_system
    waited -= before.children_user + before.children_system
    # what children of children did is known to who waited for them, and Ray waits for none
    tenths = tuple(max(held[i * len(held) // 10 :][: len(held) // 10 + 1]) for i in range(10))
    work_done = max(waited, sum(work.values()))
    return Watched(time.perf_counter() - begun, work_done, max(held), tenths)


def work_of(process: int) -> float:
    """The seconds of processors of a process itself, 0 where it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def show(what: str, rows: int, found: Watched) -> None:
    print(
        f"{what}: {rows:,} rows in {found.seconds:.0f} s, {rows / found.seconds:,.0f} a second; "
        f"{found.work:.0f} s of processors, {rows / found.work:,.0f} rows for each; "
        f"{found.memory / 1e6:.0f} MB ({' '.join(f'{m / 1e6:.0f}' for m in found.tenths)}); "
        f"load {os.getloadavg()[0]:.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
