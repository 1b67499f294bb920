"""A pytest plugin that runs tests on many mutants, each in a process forked after collection.

`MUTANT_JOBS` is a JSON file: workers, folder of outputs, and a list of (place, tests with their
CPU seconds). Each job runs its tests until one fails, with the mutant of its place on. A line of
`results.tsv` has the place and the test that failed, or nothing. A test that ends its process or
takes far more time than it did without mutants counts as failed. A test that also fails without a
mutant is ignored. Without a list, all tests run once without mutants: `tests.tsv`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.forks import group_items, used_seconds

NO_MUTANT = -1
MUTANT_OF_PARENT = "MUTANT" in os.environ  # then no process is without it
MAX_DATA = 8 << 30  # bytes of memory of a process; a mutant may allocate without end
SLACK, SLACK_SECONDS = 10, 20  # CPU time that a test may take, relative to its time and in addition
MAX_SECONDS = 600.0  # CPU time of a test without a mutant
MAX_SILENCE = 900  # seconds until a test that waits for something is stopped
FAILED, PASSED, STARTED = "failed", "passed", "started"


class Job(NamedTuple):
    """Tests to run on the mutant of a place, in this order."""

    place: int
    tests: list[tuple[str, float]]  # with CPU seconds


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if session.testsfailed:
        return None  # modules that cannot be imported: pytest reports them
    options = json.loads(Path(os.environ["MUTANT_JOBS"]).read_text("utf-8"))
    gc.collect()
    gc.freeze()
    run = Run(session, Path(options["outputs"]), options["jobs"] is None)
    jobs = [Job(place, [*map(tuple, tests)]) for place, tests in options["jobs"] or ()]
    jobs = run.list_groups() if options["jobs"] is None else jobs
    run.run_jobs(deque(jobs), options["workers"])
    return True


class Run:
    """Processes of jobs, and what is known about tests that fail without a mutant."""

    def __init__(self, session: pytest.Session, outputs: Path, is_reach: bool) -> None:
        self.session, self.outputs, self.is_reach = session, outputs, is_reach
        self.items = {item.nodeid: item for item in session.items}
        self.is_reliable: dict[str, bool] = {}
        self.waiting: dict[str, list[Job]] = {}  # for the test to run without a mutant

    def list_groups(self) -> list[Job]:
        """Return jobs for all groups of tests without a result, the slowest ones last."""
        file = self.outputs / "tests.tsv"
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        tests = {line.split("\t")[1] for line in lines if not line.startswith(STARTED)}
        items = [item for item in self.session.items if item.nodeid not in tests]
        return [
            Job(NO_MUTANT, [(item.nodeid, MAX_SECONDS) for item in group])
            for group in reversed(group_items(items))
        ]

    def run_jobs(self, jobs: deque[Job], workers: int) -> None:
        processes: dict[int, tuple[Job, Path]] = {}
        while jobs or processes:
            while jobs and len(processes) < workers:
                job = jobs.popleft()
                folder = Path(tempfile.mkdtemp(prefix="mutant-", dir=self.outputs))
                processes[self.fork(job, folder)] = job, folder
            for pid, (job, folder) in [*processes.items()]:
                if has_ended(pid, folder / "log"):
                    del processes[pid]
                    jobs.extendleft(self.finish(job, folder))
            time.sleep(0.05)

    def fork(self, job: Job, folder: Path) -> int:
        (folder / "log").touch()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.setsid()
                self.run_tests(job, folder)
                code = 0
            finally:
                os._exit(code)
        return pid

    def run_tests(self, job: Job, folder: Path) -> None:
        """Run the tests of a job in this process, until one fails on a mutant."""
        switch, config = sys.modules["tertium.mutant_switch"], self.session.config
        switch.active = job.place  # type: ignore[attr-defined]
        os.environ["MUTANT"] = str(job.place)  # for processes that tests start
        config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_DATA, MAX_DATA))
        config.pluginmanager.unregister(name="terminalreporter")
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        outcome = Outcome()
        config.pluginmanager.register(outcome)
        tests = [(test, seconds) for test, seconds in job.tests if test in self.items]
        items = [(self.items[test], seconds) for test, seconds in tests]
        caches = find_caches()
        with (folder / "log").open("a", encoding="utf-8") as log:
            for (item, seconds), following in pairwise([*items, (None, 0.0)]):
                print(STARTED, item.nodeid, 0, sep="\t", file=log, flush=True)
                limit = int(time.process_time() + SLACK * seconds + SLACK_SECONDS)
                resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
                before, outcome.is_failed = used_seconds(), False
                if self.is_reach or item is items[0][0]:
                    for clear in caches:  # a test whose values are cached reaches no place
                        clear()
                config.hook.pytest_runtest_protocol(item=item, nextitem=following[0])
                seconds = used_seconds() - before
                word = FAILED if outcome.is_failed else PASSED
                print(word, item.nodeid, f"{seconds:.3f}", sep="\t", file=log, flush=True)
                if outcome.is_failed and not self.is_reach:
                    break

    def finish(self, job: Job, folder: Path) -> list[Job]:
        """Record what a process found, and return the jobs that follow from it."""
        lines = [line.split("\t") for line in (folder / "log").read_text("utf-8").splitlines()]
        shutil.rmtree(folder, ignore_errors=True)
        if self.is_reach:
            self.append("tests.tsv", *("\t".join(line) for line in lines))
            return []
        killer = lines[-1][1] if lines and lines[-1][0] != PASSED else ""
        if job.place == NO_MUTANT:
            test = job.tests[0][0]
            self.is_reliable[test] = not killer
            decisions = [self.decide(other, test) for other in self.waiting.pop(test)]
            return [*chain.from_iterable(decisions)]
        return self.decide(job, killer)

    def decide(self, job: Job, killer: str) -> list[Job]:
        """Record a result; first run the test without a mutant if this was not done yet."""
        if killer and killer not in self.is_reliable and not MUTANT_OF_PARENT:
            self.waiting.setdefault(killer, []).append(job)
            is_first = len(self.waiting[killer]) == 1
            return [Job(NO_MUTANT, [t for t in job.tests if t[0] == killer])] if is_first else []
        if not killer or self.is_reliable.get(killer, True):
            self.append("results.tsv", f"{job.place}\t{killer}")
            return []
        position = [name for name, _ in job.tests].index(killer)
        return [Job(job.place, job.tests[position + 1 :])]

    def append(self, name: str, *lines: str) -> None:
        with (self.outputs / name).open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))


class Outcome:
    """Remembers whether a test failed."""

    is_failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.is_failed |= report.failed


def has_ended(pid: int, log: Path) -> bool:
    """Return whether a process ended; stop it if it is silent, and all that it started."""
    if time.time() - log.stat().st_mtime > MAX_SILENCE:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    elif os.waitpid(pid, os.WNOHANG) == (0, 0):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return True


def find_caches() -> list[Any]:
    """Return the functions that clear the caches of functions, except those of loaded models."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tertium.")]
    values = [value for module in modules for value in vars(module).values()]
    classes = [value for value in values if isinstance(value, type)]
    values += [member for value in classes for member in vars(value).values()]
    kind = type(functools.lru_cache(abs))
    caches = {id(value): value for value in values if isinstance(value, kind)}
    return [f.cache_clear for f in caches.values() if "load" not in f.__name__]
