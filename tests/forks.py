"""A pytest plugin that runs tests in processes forked after collection.

    python -m pytest -p tests.forks --forks auto

It exists because forked processes share collected tests, imported libraries and loaded models,
which every process of pytest-xdist would import and load again.

Tests of one group (`xdist_group`) run in one process. Groups are processed in order; the next free
process takes the next group. Models loaded in `pytest_before_forks` are shared by all processes.
`--spent 20` lists the tests with the most CPU time, `--spent-to FILE` writes the time of each test.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from multiprocessing import Pipe, Value
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

MAX_PROCESSES = 4  # each also loads models of its own
CPU_SECONDS = pytest.StashKey[dict[str, float]]()  # by test


class Hooks:
    """Hooks that a conftest may implement."""

    @pytest.hookspec(historic=False)
    def pytest_before_forks(self, session: pytest.Session) -> None:
        """Load models and modules that all processes need."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)
    parser.addoption("--forks", default="1", help="number of processes, or auto: cores + 1")
    parser.addoption("--spent", type=int, default=0, help="how many slow modules and tests to list")
    parser.addoption("--spent-to", help="file for the CPU seconds of each test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Disable garbage collection, which would take seconds: collected tests stay in memory."""
    if count_processes(session) > 1:
        gc.disable()


def count_processes(session: pytest.Session) -> int:
    """Return the requested number of processes; 1 if processes cannot be forked after imports.

    `auto` is one more than the cores, since tests wait for disks, browsers and clusters.
    """
    requested = session.config.getoption("forks")
    if not sys.platform.startswith("linux") or session.config.option.collectonly:
        return 1
    if requested == "auto":
        return min(MAX_PROCESSES, len(os.sched_getaffinity(0)) + 1)
    return int(requested)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = count_processes(session)
    failed = session.testsfailed and not session.config.option.continue_on_collection_errors
    if count < 2 or failed:
        gc.enable()
        return None  # pytest runs the tests in this process
    cpu_seconds = session.config.stash[CPU_SECONDS] = {"collecting": used_seconds()}
    session.config.hook.pytest_before_forks(session=session)
    cpu_seconds["loading"] = used_seconds() - cpu_seconds["collecting"]
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    gc.freeze()  # otherwise garbage collection would copy shared pages
    gc.enable()
    groups, next_group = group_items(session.items), Value("i", 0)
    workers = [Worker(session, groups, next_group) for _ in range(count)]
    try:
        receive_messages(session, workers)
        report_lost(session, chain.from_iterable(groups[next_group.value :]))
    finally:
        for worker in workers:
            worker.stop()
    return True


def used_seconds() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    return sum(os.times()[:4])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    cpu_seconds = config.stash.get(CPU_SECONDS, None)
    if not cpu_seconds:
        return
    modules: dict[str, float] = {}
    for name, seconds in cpu_seconds.items():
        module = name.partition("::")[0]
        modules[module] = modules.get(module, 0) + seconds
    terminalreporter.section(f"{sum(cpu_seconds.values()):.0f} CPU seconds")
    for table in (modules, cpu_seconds):
        slowest = sorted(table.items(), key=lambda row: -row[1])[: config.getoption("spent")]
        for name, seconds in slowest:
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
    if file := config.getoption("spent_to"):
        lines = [f"{seconds:.3f}\t{name}\n" for name, seconds in cpu_seconds.items()]
        Path(file).write_text("".join(lines), encoding="utf-8")


def group_items(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Group items by their xdist group, in the order of first items."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        groups.setdefault(mark.args[0] if mark else item.nodeid, []).append(item)
    return list(groups.values())


class Worker:
    """The parent's view of a forked process, with the tests that it has not yet reported."""

    def __init__(
        self, session: pytest.Session, groups: list[list[pytest.Item]], next_group: Any
    ) -> None:
        self.groups = groups
        self.pending: dict[str, pytest.Item] = {}
        self.has_ended = False
        self.pipe, child_pipe = Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            self.pipe.close()
            run_groups(session, groups, next_group, child_pipe)
        child_pipe.close()

    def stop(self) -> None:
        """Wait for the process; terminate it if it has not finished."""
        if not self.has_ended:
            os.kill(self.pid, 15)
        os.waitpid(self.pid, 0)


def receive_messages(session: pytest.Session, workers: list[Worker]) -> None:
    """Forward messages of the processes to pytest until all are done, or too many tests failed."""
    hook, by_pipe = session.config.hook, {worker.pipe: worker for worker in workers}
    while by_pipe:
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[pipe]
            try:
                kind, value = worker.pipe.recv()
            except EOFError:
                kind, value = "died", None
            if kind in ("done", "died"):
                worker.has_ended = True
                del by_pipe[worker.pipe]
                report_lost(session, worker.pending.values())
            elif kind == "group":
                worker.pending |= {item.nodeid: item for item in worker.groups[value]}
            elif kind == "report":
                report = hook.pytest_report_from_serializable(config=session.config, data=value)
                hook.pytest_runtest_logreport(report=report)
            elif kind == "finished":
                nodeid, seconds = value
                item = worker.pending.pop(nodeid)
                session.config.stash[CPU_SECONDS][nodeid] = seconds
                hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            elif kind == "warning":
                hook.pytest_warning_recorded.call_historic(kwargs=value)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


def report_lost(session: pytest.Session, items: Iterable[pytest.Item]) -> None:
    """Report tests as failed that a process did not report, or that no process has taken."""
    for item in items:
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"the process of {item.nodeid} ended before it reported a result",
            when="call",
        )
        session.config.hook.pytest_runtest_logreport(report=report)


def run_groups(
    session: pytest.Session, groups: list[list[pytest.Item]], next_group: Any, pipe: Connection
) -> None:
    """Run groups until none is left, then exit this process."""
    code = 1
    try:
        plugins = session.config.pluginmanager
        plugins.unregister(name="terminalreporter")
        Reporter(session.config, pipe)
        capture = plugins.getplugin("capturemanager")  # otherwise both would write to one file
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        items = chain.from_iterable(take_groups(groups, next_group, pipe))
        for item, following in pairwise(chain(items, [None])):
            before = used_seconds()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            pipe.send(("finished", (item.nodeid, used_seconds() - before)))
        pipe.send(("done", None))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def take_groups(
    groups: list[list[pytest.Item]], next_group: Any, pipe: Connection
) -> Iterator[list[pytest.Item]]:
    """Yield groups that no process has taken."""
    while True:
        with next_group.get_lock():
            number, next_group.value = next_group.value, next_group.value + 1
        if number >= len(groups):
            return
        pipe.send(("group", number))
        yield groups[number]


class Reporter:
    """Sends the reports and warnings of a forked process to its parent."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self.config, self.pipe, self.is_registering = config, pipe, True
        config.pluginmanager.register(self)
        self.is_registering = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self.config.hook
        data = hook.pytest_report_to_serializable(config=self.config, report=report)
        self.pipe.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        if self.is_registering:  # warnings of the collection are replayed on registration
            return
        w = warning_message
        copy = warnings.WarningMessage(str(w.message), w.category, w.filename, w.lineno)
        kwargs = {"when": when, "nodeid": nodeid, "location": location, "warning_message": copy}
        self.pipe.send(("warning", kwargs))
