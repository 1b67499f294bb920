"""Fault injection: kills, damaged caches, hostile folders, missing permissions, races."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
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


Case = tuple[str, str, Callable[[Path], Any]]  # kind, name, and a test in a new folder


def run_cases(tally: Tally, home: Path, cases: Sequence[Case], times: int = 1) -> None:
    """Run each case a number of times."""
    for number, (kind, name, test) in enumerate(cases):
        for time in range(times):
            folder = home / f"{kind.split(':')[0]}-{number}-{time}".replace(" ", "-")
            tally.attempt(kind, f"{name} {time}", partial(test, folder))


def run_caches(tally: Tally, home: Path, times: int, rng: random.Random) -> None:
    kills.warm_up()
    cases: list[Case] = [
        (f"cache: {name}", name, lambda folder, name=name: caches.try_damage(name, folder, rng))
        for name in caches.DAMAGES
    ]
    limit = "cache: files that cannot grow"
    cases.append((limit, "", lambda folder: caches.try_file_limit(folder, rng)))
    cases.append(("cache: two writers, eight readers", "", caches.share_cache))
    run_cases(tally, home, cases, times)


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
    hostile: list[Case] = [
        ("archive", name, lambda folder, case=case: archives.try_archive(case, folder / "in"))
        for name, case in archives.ARCHIVES.items()
    ]
    run_cases(tally, home, hostile)
    damaged: list[Case] = [
        ("judgments", name, lambda folder, name=name: archives.try_judgments(name, folder, rng))
        for name in archives.DAMAGES
    ]
    run_cases(tally, home, damaged, times)


def run_corpora(tally: Tally, home: Path, times: int, rng: random.Random) -> None:
    """Damage finished corpus runs and resume them."""
    cases: list[Case] = [
        (f"corpus: {name}", name, lambda folder, name=name: corpora.try_damage(name, folder, rng))
        for name in corpora.DAMAGES
    ]
    run_cases(tally, home, cases, times)


def run_permissions(tally: Tally, home: Path) -> None:
    """Run each command without a permission that it needs."""
    cases: list[Case] = [
        ("no permission", name, partial(permissions.try_command, name))
        for name in permissions.CASES
    ]
    run_cases(tally, home, cases)


def run_races(tally: Tally, home: Path, times: int, rng: random.Random) -> None:
    """Read models and text files while other processes write them."""
    cases: list[Case] = [
        (f"model read during saving: {n}", "", partial(races.read_while_saving, writers=n))
        for n in (1, 2)
    ]
    for reader in races.READERS:
        kind = f"file read during writing: {reader}"
        cases.append((kind, "", lambda folder, r=reader: races.read_while_writing(r, folder, rng)))
    run_cases(tally, home, cases, times)


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
