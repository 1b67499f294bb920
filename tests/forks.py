"""Tests in processes that are forked after collection: nothing is collected or imported twice.

    python -m pytest -p tests.forks --forks auto

Tests of one group (`xdist_group`) run in one process, group after group as they stand; whichever
process is free takes the next. What the suite loads before forking (`pytest_before_forks`) is
shared by all of them. `--spent 20` says what cost most processor time, `--spent-to FILE` what each
test cost.
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

MOST = 4  # processes: each holds models of its own beside those that were loaded before
SPENT = pytest.StashKey[dict[str, float]]()  # processor seconds by test


class Hooks:
    """What a conftest may answer."""

    @pytest.hookspec(historic=False)
    def pytest_before_forks(self, session: pytest.Session) -> None:
        """Load what all processes would load."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)
    parser.addoption(
        "--forks", default="1", help="processes to run tests in, or auto: a core's and one"
    )
    parser.addoption("--spent", type=int, default=0, help="modules and tests to name as dearest")
    parser.addoption("--spent-to", help="file for the processor seconds of each test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """What is collected and loaded stays: looking for garbage among it would take seconds."""
    if count_processes(session) > 1:
        gc.disable()


def count_processes(session: pytest.Session) -> int:
    """As many as were asked for; one where a process cannot be forked after imports.

    `auto` is one more than cores: tests wait for disks, browsers and clusters.
    """
    asked = session.config.getoption("forks")
    if not sys.platform.startswith("linux") or session.config.option.collectonly:
        return 1
    return min(MOST, len(os.sched_getaffinity(0)) + 1) if asked == "auto" else int(asked)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = count_processes(session)
    failed = session.testsfailed and not session.config.option.continue_on_collection_errors
    if count < 2 or failed:
        gc.enable()
        return None  # as ever, here
    spent = session.config.stash[SPENT] = {"collecting": seconds_spent()}
    session.config.hook.pytest_before_forks(session=session)
    spent["loading"] = seconds_spent() - spent["collecting"]
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    gc.freeze()  # or every process would copy what it only looks through
    gc.enable()
    groups, turn = in_groups(session.items), Value("i", 0)
    workers = [Worker(session, groups, turn) for _ in range(count)]
    try:
        listen(session, workers)
        report_lost(session, chain.from_iterable(groups[turn.value :]))
    finally:
        for worker in workers:
            worker.end()
    return True


def seconds_spent() -> float:
    """Processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    spent = config.stash.get(SPENT, None)
    if not spent:
        return
    modules: dict[str, float] = {}
    for name, seconds in spent.items():
        module = name.partition("::")[0]
        modules[module] = modules.get(module, 0) + seconds
    terminalreporter.section(f"{sum(spent.values()):.0f} processor seconds")
    for table in (modules, spent):
        dearest = sorted(table.items(), key=lambda row: -row[1])[: config.getoption("spent")]
        for name, seconds in dearest:
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
    if file := config.getoption("spent_to"):
        lines = [f"{seconds:.3f}\t{name}\n" for name, seconds in spent.items()]
        Path(file).write_text("".join(lines), encoding="utf-8")


def in_groups(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Items by group, groups in the order of their first items."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        groups.setdefault(mark.args[0] if mark else item.nodeid, []).append(item)
    return list(groups.values())


class Worker:
    """A forked process as its parent sees it: what it was given and has not yet told of."""

    def __init__(self, session: pytest.Session, groups: list[list[pytest.Item]], turn: Any) -> None:
        self.groups = groups
        self.open: dict[str, pytest.Item] = {}
        self.ended = False
        self.pipe, end = Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            self.pipe.close()
            work(session, groups, turn, end)
        end.close()

    def end(self) -> None:
        """Wait for the process; one that has not told that it is done is stopped."""
        if not self.ended:
            os.kill(self.pid, 15)
        os.waitpid(self.pid, 0)


def listen(session: pytest.Session, workers: list[Worker]) -> None:
    """Hand on what the processes tell until all are done, or enough has failed."""
    hook, by_pipe = session.config.hook, {worker.pipe: worker for worker in workers}
    while by_pipe:
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                kind, value = worker.pipe.recv()
            except EOFError:
                kind, value = "died", None
            if kind in ("done", "died"):
                worker.ended = True
                del by_pipe[worker.pipe]
                report_lost(session, worker.open.values())
            elif kind == "group":
                worker.open |= {item.nodeid: item for item in worker.groups[value]}
            elif kind == "report":
                report = hook.pytest_report_from_serializable(config=session.config, data=value)
                hook.pytest_runtest_logreport(report=report)
            elif kind == "finished":
                nodeid, seconds = value
                item = worker.open.pop(nodeid)
                session.config.stash[SPENT][nodeid] = seconds
                hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            elif kind == "warning":
                hook.pytest_warning_recorded.call_historic(kwargs=value)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


def report_lost(session: pytest.Session, items: Iterable[pytest.Item]) -> None:
    """What a process was given and did not tell of has failed, and so has what none has taken."""
    for item in items:
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"the process that ran {item.nodeid} ended before it told how",
            when="call",
        )
        session.config.hook.pytest_runtest_logreport(report=report)


def work(
    session: pytest.Session, groups: list[list[pytest.Item]], turn: Any, pipe: Connection
) -> None:
    """Run groups until none is left, and end this process."""
    code = 1
    try:
        plugins = session.config.pluginmanager
        plugins.unregister(name="terminalreporter")
        Teller(session.config, pipe)
        capture = plugins.getplugin("capturemanager")  # or both would write into one file
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        items = chain.from_iterable(take_groups(groups, turn, pipe))
        for item, following in pairwise(chain(items, [None])):
            before = seconds_spent()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            pipe.send(("finished", (item.nodeid, seconds_spent() - before)))
        pipe.send(("done", None))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def take_groups(
    groups: list[list[pytest.Item]], turn: Any, pipe: Connection
) -> Iterator[list[pytest.Item]]:
    """The next group that no process has taken, as long as there is one."""
    while True:
        with turn.get_lock():
            number, turn.value = turn.value, turn.value + 1
        if number >= len(groups):
            return
        pipe.send(("group", number))
        yield groups[number]


class Teller:
    """Tells the parent what happens in a forked process."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self.config, self.pipe, self.starting = config, pipe, True
        config.pluginmanager.register(self)
        self.starting = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self.config.hook
        data = hook.pytest_report_to_serializable(config=self.config, report=report)
        self.pipe.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        if self.starting:  # those of the collection are told again to whoever asks late
            return
        one = warning_message
        told = warnings.WarningMessage(str(one.message), one.category, one.filename, one.lineno)
        kwargs = {"when": when, "nodeid": nodeid, "location": location, "warning_message": told}
        self.pipe.send(("warning", kwargs))
