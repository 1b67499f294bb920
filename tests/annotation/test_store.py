"""The event log: nothing is lost or stored twice, whatever happens to the server."""

from __future__ import annotations

import secrets
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError
from tertium.people.annotation_store import Event, EventStore


def make_event(person: str = "anna", **body: object) -> Event:
    return Event(secrets.token_hex(16), person, {"kind": "open", **body})


def test_events_are_read_in_the_order_of_arrival(tmp_path: Path) -> None:
    events = [make_event(task=n) for n in range(5)]
    store = EventStore(tmp_path / "a.db", "id")
    assert store.append(events[:2]) == store.append(events[2:]) == []
    store.close()
    seen: list[Event] = []
    again = EventStore(tmp_path / "a.db", "id", seen.append)
    assert [event.id for event in again.events()] == [event.id for event in events]
    assert seen == [*again.events()]


def test_a_changed_clock_does_not_change_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EventStore(tmp_path / "a.db", "id")
    for n, now in enumerate((2e9, 1e9, 3e9)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        store.append([make_event(task=n)])
    assert [event.body["task"] for event in store.events()] == [0, 1, 2]


def test_threads_store_their_events_together(tmp_path: Path) -> None:
    store = EventStore(tmp_path / "a.db", "id")

    def work(name: str) -> None:
        for n in range(6):
            store.append([make_event(name, task=n)])

    threads = [threading.Thread(target=work, args=(f"r{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [*store.events()]
    for n in range(8):
        assert [e.body["task"] for e in events if e.person == f"r{n}"] == [*range(6)]


def test_other_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(DataError, match="database of another program"):
        EventStore(tmp_path / "other.db", "id")
    store = EventStore(tmp_path / "newer.db", "id")
    store._database.execute("PRAGMA user_version = 2")
    store.close()
    with pytest.raises(DataError, match="of version 2; this tertium reads version 1"):
        EventStore(tmp_path / "newer.db", "id")


def test_no_event_is_confirmed_after_an_unexpected_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EventStore(tmp_path / "a.db", "id")

    def fail(*arguments: object) -> None:
        raise RuntimeError("unexpected")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_insert", fail)
        with pytest.raises(RuntimeError, match="unexpected"):
            store.append([make_event()])
    assert store.append([make_event()]) == []
    assert len([*store.events()]) == 1


WRITER = """
    import sys
    from tertium.people.annotation_store import Event, EventStore

    store = EventStore(__import__("pathlib").Path(sys.argv[1]), "id")
    for line in sys.stdin:
        name, number = line.split()
        store.append([Event(name, "anna", {"kind": "open", "task": int(number)})])
        print(name, flush=True)
"""


def test_confirmed_events_survive_kill_9_at_random_moments(tmp_path: Path) -> None:
    """A client sends what was not confirmed again, as the page does."""
    generator = np.random.default_rng(5)
    waiting = {secrets.token_hex(16): n for n in range(80)}
    sent = [*waiting]
    for kill_after in (12, 25, 3, 0):  # confirmed events; 0: no kill
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path / "a.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{name} {n}\n" for name, n in waiting.items()))
        process.stdin.flush()  # left open until a kill: the writer waits for more events
        confirmed = [
            process.stdout.readline().strip() for _ in range(min(kill_after, len(waiting)))
        ]
        if kill_after:
            time.sleep(generator.uniform(0, 0.01))
            process.kill()
        process.stdin.close()
        confirmed += process.stdout.read().split()
        assert process.wait() == (-signal.SIGKILL if kill_after else 0)
        stored = {event.id for event in EventStore(tmp_path / "a.db", "id").events()}
        assert {*confirmed} <= stored
        waiting = {name: n for name, n in waiting.items() if name not in confirmed}
    assert not waiting
    store = EventStore(tmp_path / "a.db", "id")
    assert [event.id for event in store.events()] == sent
    assert store._database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
