"""Measure which share of small faults in the code the tests notice.

    python -m tests.mutants choose   # choose places at random, once: places.jsonl
    python -m tests.mutants measure  # write the baseline, baseline.tsv, and print a table
    python -m tests.mutants compare  # the same for HEAD: a table of before and after

A mutant is the package with one fault: `<` for `<=`, 1 for 0, a condition that never holds.
All mutants are compiled into a copy of the package, and a switch turns one of them on
(`switch`). So tests are collected once; each mutant then runs in a forked process, until a
test fails (`forked_runs`). Only tests that reach the place run: one of each function first,
those that reach few other places before others, up to `--budget` CPU seconds. A mutant that no
test notices runs once more in a new process if its place is also reached when tests are collected.

`compare` first runs the test that noticed the mutant before. Only if some of these tests are gone
or pass, it runs all tests once to see which of them reach the places, and continues with these.
Mutants that no test noticed before run again with `--survivors`. `--reach COMMIT` runs the tests
that reached the places in a commit that was measured before: faster, but without new tests.

Tests of `tests/architecture` do not count: they compare style and sizes. The copy and the results
are in `--scratch`; an interrupted command continues there. It measures commits, not working trees.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tests.mutants.places import KINDS, PLACES, choose_places, insert_switches, read_places

ROOT = Path(__file__).parents[2]
BASELINE = Path(__file__).parent / "baseline.tsv"
MAX_SECONDS = 60.0  # CPU time of a test that noticed a mutant before
IGNORED_TESTS = ("tests/architecture", "tests/mutants")
Jobs = list[tuple[int, list[tuple[str, float]]]]


class Measurement:
    """The mutants of one commit, in a folder with the copy and all results."""

    def __init__(self, commit: str, scratch: Path, workers: int, reach: str = "") -> None:
        self.workers, self.folder = workers, scratch / find_commit(commit)
        self.reach = scratch / find_commit(reach or commit) / "reach"
        self.copy, numbers = self.folder / "copy", self.folder / "places.json"
        if not numbers.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            run_git("clone", "-q", "--shared", str(ROOT), str(self.copy))
            run_git("-C", str(self.copy), "checkout", "-q", self.folder.name)
            shutil.copytree(Path(__file__).parent, self.copy / "tests/mutants", dirs_exist_ok=True)
            again = insert_switches(self.copy / "src/tertium", read_places())
            numbers.write_text(json.dumps(sorted(again)), "utf-8")
        self.places: list[int] = json.loads(numbers.read_text("utf-8"))

    def run_before(self, killers: dict[int, str]) -> dict[int, str]:
        """Run the tests that noticed mutants before; return the places with their test, or ''."""
        tests = {place: test for place, test in killers.items() if test and place in self.places}
        jobs: Jobs = [(place, [(test, MAX_SECONDS)]) for place, test in tests.items()]
        return self.run("before", jobs)

    def run_reaching(self, places: Iterable[int], budget: float) -> dict[int, str]:
        """Run the tests that reach each place; return the places with their test, or ''."""
        places_of, seconds = self.read_reach()
        jobs: Jobs = [(place, choose_tests(place, places_of, seconds, budget)) for place in places]
        name = f"{self.reach.parent.name}-{budget:g}"
        killers = self.run(name, jobs)
        for place, tests in jobs:
            if place in places_of[""] and tests and not killers[place]:
                killers |= self.run(f"{name}-alone", [(place, tests)], is_alone=True)
        return killers

    def read_reach(self) -> tuple[dict[str, set[int]], dict[str, float]]:
        """Return the places that each test reaches, and the CPU seconds of tests that pass.

        The test "" stands for the collection of tests. All tests run once, if they did not yet.
        """
        if not (self.reach / "reach.tsv").exists():
            if self.reach.parent != self.folder:
                sys.exit(f"no tests of {self.reach.parent.name} were recorded in {self.reach}")
            self.run("reach", None)
            (self.reach / "recorded.tsv").rename(self.reach / "reach.tsv")
        places_of = defaultdict(set)
        for place, test in set(read_table(self.reach / "reach.tsv")):
            places_of[test].add(int(place))
        rows = read_table(self.reach / "tests.tsv")
        return places_of, {test: float(time) for word, test, time in rows if word == "passed"}

    def run(self, name: str, jobs: Jobs | None, *, is_alone: bool = False) -> dict[int, str]:
        """Run jobs without a result in a pytest process, and return the results of all jobs.

        `is_alone` turns the mutant on before tests are collected, and collects only their files.
        """
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        results = read_results(folder)
        jobs_left = jobs and [job for job in jobs if job[0] not in results]
        if jobs is None or jobs_left:
            options = {"workers": self.workers, "outputs": str(folder), "jobs": jobs_left}
            (folder / "jobs.json").write_text(json.dumps(options), "utf-8")
            environment = {
                **os.environ,
                "PYTHONPATH": str(self.copy / "src"),
                "MUTANT_JOBS": str(folder / "jobs.json"),
            }
            files: list[str] = []
            if jobs is None:
                environment["MUTANT_REACH"] = str(folder / "recorded.tsv")
            if is_alone:
                environment["MUTANT"] = str(jobs[0][0])
                files = sorted({test.partition("::")[0] for test, _ in jobs[0][1]})
            command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *files]
            command += ["-p", "tests.mutants.forked_runs", "-p", "no:cacheprovider"]
            command += ["--hypothesis-seed=0", *(f"--ignore={path}" for path in IGNORED_TESTS)]
            with (folder / "log.txt").open("w") as log:
                subprocess.run(command, cwd=self.copy, env=environment, stdout=log, stderr=log)
            results = read_results(folder)
            if is_alone and jobs[0][0] not in results:
                results[jobs[0][0]] = f"collection of {', '.join(files)}"
            if any(place not in results for place, _ in jobs or ()):
                sys.exit(f"pytest ended early; see {folder / 'log.txt'}")
        return {place: results[place] for place, _ in jobs or ()}


def find_commit(name: str) -> str:
    command = ["git", "rev-parse", "--short", f"{name}^{{commit}}"]
    return subprocess.check_output(command, cwd=ROOT, text=True).strip()


def run_git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


def read_table(path: Path) -> list[tuple[str, ...]]:
    if not path.exists():
        return []
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]


def read_results(folder: Path) -> dict[int, str]:
    return {int(place): test for place, test in read_table(folder / "results.tsv")}


def choose_tests(
    place: int, places_of: dict[str, set[int]], seconds: dict[str, float], budget: float
) -> list[tuple[str, float]]:
    """Return the tests that reach a place within a budget of CPU seconds, the best ones first.

    One test of each function comes first, then a second one. Tests that reach few other places
    come before others, then fast ones.
    """
    tests = [test for test in seconds if place in places_of[test]]
    tests.sort(key=lambda test: (len(places_of[test]), seconds[test]))
    counts: Counter[str] = Counter()
    ranks = {}
    for test in tests:
        function = test.partition("[")[0]
        ranks[test] = counts[function]
        counts[function] += 1
    chosen: list[tuple[str, float]] = []
    for test in sorted(tests, key=ranks.__getitem__):
        if not chosen or seconds[test] <= budget:
            budget -= seconds[test]
            chosen.append((test, seconds[test]))
    return chosen


def format_table(before: dict[int, str], after: dict[int, str]) -> str:
    """Return a Markdown table of noticed mutants by kind and package.

    Both counts of noticed mutants are without places that are gone.
    """
    places = read_places()
    groups: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for number in sorted(before, key=lambda number: places[number].package):
        groups[places[number].kind].append(number)
        groups.setdefault(f"`{places[number].package or '(modules)'}`", []).append(number)
    groups["all"] = [*before]
    lines = ["| | places | gone | noticed before | after |", "| --- |" + " ---: |" * 4]
    for name, numbers in groups.items():
        current = [number for number in numbers if number in after]
        counts = [sum(bool(results[number]) for number in current) for results in (before, after)]
        cells = [name, len(numbers), len(numbers) - len(current), *counts]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def list_missed(results: dict[int, str]) -> str:
    places = read_places()
    return "\n".join(
        f"{number} {places[number].file} {places[number].function} {places[number].change}"
        for number, test in sorted(results.items())
        if not test
    )


def measure(arguments: argparse.Namespace) -> None:
    """Write the baseline and print its table."""
    measurement = Measurement(arguments.commit, arguments.scratch, arguments.workers)
    results = measurement.run_reaching(measurement.places[: arguments.count], arguments.budget)
    lines = [f"{number}\t{test}\n" for number, test in sorted(results.items())]
    BASELINE.write_text("".join(lines), "utf-8")
    print(f"{format_table(results, results)}\n\nNot noticed:\n{list_missed(results)}")


def compare(arguments: argparse.Namespace) -> None:
    """Print the table of the baseline and of a commit."""
    before = {int(place): test for place, test in read_table(BASELINE)}
    measurement = Measurement(
        arguments.commit, arguments.scratch, arguments.workers, arguments.reach
    )
    after = {place: "" for place in measurement.places if place in before}
    after |= measurement.run_before(before)
    lost = [place for place in after if not after[place]]
    if not arguments.survivors:
        lost = [place for place in lost if before[place]]
    if lost:
        after |= measurement.run_reaching(lost, arguments.budget)
    missed = {place: test for place, test in after.items() if before[place]}
    print(f"{format_table(before, after)}\n\nNoticed before, not now:\n{list_missed(missed)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("command", choices=("choose", "measure", "compare"))
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "mutants")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget", type=float, default=60, help="CPU seconds of tests of a mutant")
    parser.add_argument("--count", type=int, help="measure only the first places")
    parser.add_argument("--survivors", action="store_true", help="also run mutants missed before")
    parser.add_argument("--reach", default="", help="commit whose tests were recorded")
    arguments = parser.parse_args()
    if arguments.command == "choose":
        rows = [asdict(place) for place in choose_places(ROOT / "src/tertium")]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        PLACES.write_text("".join(lines), "utf-8")
    else:
        {"measure": measure, "compare": compare}[arguments.command](arguments)


if __name__ == "__main__":
    main()
