"""Fault injection: kills, damaged caches, hostile folders, missing permissions, races."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.faults import archives, caches, corpora, folders, kills, permissions, races

Log = Callable[[str], None]


class Tally:
    """Counts of cases by kind and result, and the failures."""

    def __init__(self, log: Log) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.failures: list[str] = []
        self._log = log

    def attempt(self, kind: str, case: str, test: Callable[[], Any]) -> str:
        """Run one case; record an exception as a failure and continue."""
        try:
            result = str(test() or "passed")
        except Exception as error:  # any exception is a failure
            result = "FAILED"
            self.failures.append(f"{kind}, {case}: {type(error).__name__}: {error}"[:600])
            self._log(self.failures[-1])
        self.counts.setdefault(kind, Counter())[result] += 1
        return result

    def table(self) -> str:
        """Format kinds and counts as a Markdown table."""
        lines = ["| kind | cases | of these | failed |", "| --- | ---: | --- | ---: |"]
        for kind, counts in self.counts.items():
            parts = ", ".join(
                f"{n:,} {result}" for result, n in counts.items() if result != "FAILED"
            )
            lines.append(f"| {kind} | {counts.total():,} | {parts} | {counts['FAILED']} |")
        total = sum(counts.total() for counts in self.counts.values())
        lines.append(f"| all | {total:,} | | {len(self.failures)} |")
        return "\n".join(lines)


JOBS = (*kills.JOBS, *corpora.JOBS)


def run_kills(
    tally: Tally,
    home: Path,
    count: int,
    rng: random.Random,
    jobs: Sequence[Callable[[Path], kills.Job]] = JOBS,
) -> None:
    """Perform `count` effective kills, distributed over the jobs."""
    if any(job in kills.JOBS for job in jobs):
        kills.warm_up()
    for number, make in enumerate(jobs):
        share = count // len(jobs) + (number < count % len(jobs))
        effective_kills = 0
        for attempt in range(4 * share):
            if effective_kills == share:
                break
            folder = home / f"kill-{number}-{attempt}"
            job: list[kills.Job] = []

            def test() -> str:
                job.append(make(folder))  # noqa: B023 (called at once)
                hit = job[0].kill_once(rng)  # noqa: B023
                return "killed" if hit else "finished first"

            name = str(getattr(make, "name", make))
            effective_kills += (
                tally.attempt(f"kill -9: {name}", str(attempt), test) != "finished first"
            )
            shutil.rmtree(folder, ignore_errors=True)


def run_caches(tally: Tally, home: Path, times: int, rng: random.Random) -> None:
    kills.warm_up()
    for name in caches.DAMAGES:
        for time in range(times):
            folder = home / f"cache-{name.replace(' ', '-')}-{time}"
            tally.attempt(
                f"cache: {name}", str(time), lambda n=name, f=folder: caches.try_damage(n, f, rng)
            )
    for time in range(times):
        folder = home / f"limit-{time}"
        tally.attempt(
            "cache: files that cannot grow",
            str(time),
            lambda f=folder: caches.try_file_limit(f, rng),
        )
        tally.attempt(
            "cache: two writers, eight readers",
            str(time),
            lambda t=time: caches.share_cache(home / f"shared-{t}"),
        )


def run_folders(tally: Tally, home: Path, share: float, rng: random.Random) -> None:
    """Try a share of all hostile model folders."""
    for original in folders.valid_folders(home / "valid"):
        assert folders.try_folder(original) == "scored", original
        cases = {
            "config.json": folders.config_cases(original),
            "weights": folders.weight_cases(original, rng),
        }
        for part, part_cases in cases.items():
            for case, change in part_cases:
                if rng.random() < share:
                    tally.attempt(
                        f"model folder: {part}",
                        case,
                        lambda o=original, c=change: folders.try_case(o, c, home),
                    )


def run_archives(tally: Tally, home: Path, times: int, rng: random.Random) -> None:
    for number, (name, case) in enumerate(archives.ARCHIVES.items()):
        folder = home / f"archive-{number}" / "in"
        tally.attempt("archive", name, lambda c=case, f=folder: archives.try_archive(c, f))
    for name in archives.DAMAGES:
        for time in range(times):
            folder = home / f"judgments-{name.replace(' ', '-')}-{time}"
            tally.attempt(
                "judgment folder",
                f"{name} {time}",
                lambda n=name, f=folder: archives.try_judgments(n, f, rng),
            )


def run_corpora(tally: Tally, home: Path, times: int, rng: random.Random) -> None:
    """Damage finished corpus runs and resume them."""
    for name in corpora.DAMAGES:
        for time in range(times):
            folder = home / f"corpus-{name.replace(' ', '-')}-{time}"
            tally.attempt(
                f"corpus: {name}",
                str(time),
                lambda n=name, f=folder: corpora.try_damage(n, f, rng),
            )


def run_permissions(tally: Tally, home: Path) -> None:
    """Run each command without a permission that it needs."""
    for case in permissions.CASES:
        name = case.__name__.replace("_", " ")
        folder = home / f"permission-{case.__name__}"
        tally.attempt("no permission", name, lambda c=case, f=folder: permissions.try_command(c, f))


def run_races(tally: Tally, home: Path, times: int, rng: random.Random) -> None:
    """Read models and text files while other processes write them."""
    for time in range(times):
        for writers in (1, 2):
            tally.attempt(
                f"model read during saving: {writers} writers",
                str(time),
                lambda w=writers, t=time: races.read_while_saving(
                    home / f"race-{w}-{t}", writers=w
                ),
            )
        for reader in races.READERS:
            tally.attempt(
                f"file read during writing: {reader}",
                str(time),
                lambda r=reader, t=time: races.read_while_writing(r, home / f"text-{r}-{t}", rng),
            )


def run_short(home: Path, kills: int) -> Tally:
    """Kill some jobs once, damage a cache in each way once, and try each missing permission."""
    tally = Tally(print)
    run_kills(tally, home, kills, random.Random(11), JOBS[:kills])
    run_caches(tally, home, 1, random.Random(12))
    run_permissions(tally, home)
    run_races(tally, home, 1, random.Random(16))
    return tally


def run(home: Path, *, kills: int, times: int, share: float, seed: int, log: Log) -> Tally:
    """Run all kinds: kills, each fault `times` times, and a share of hostile folders."""
    tally = Tally(log)
    parts: list[Callable[[random.Random], None]] = [
        lambda rng: run_folders(tally, home, share, rng),
        lambda rng: run_archives(tally, home, times, rng),
        lambda rng: run_caches(tally, home, times, rng),
        lambda rng: run_kills(tally, home, kills, rng),
        lambda rng: run_permissions(tally, home),
        lambda rng: run_races(tally, home, times, rng),
        lambda rng: run_corpora(tally, home, times, rng),
    ]
    for number, part in enumerate(parts):
        part(random.Random(f"{seed} {number}"))
        log(json.dumps({kind: counts.total() for kind, counts in tally.counts.items()}))
    return tally
