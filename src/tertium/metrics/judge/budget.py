"""The budget of a run: cost and reservations, shared by all processes of the run.

The cost of a request is known only after its answer. Until then an upper bound of it is reserved,
so that concurrent requests cannot exceed the budget together. The sums are one row of an SQLite
database: in memory, or in a file that the processes of a corpus run share.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tertium.core.errors import BudgetError

POLL_SECONDS = 0.02  # between attempts while other requests hold the rest of the budget
LOCK_TIMEOUT = 60.0  # seconds to wait for another process


class CostLedger:
    """Cost of finished requests, and upper bounds for those in progress."""

    def __init__(self, path: str = "", cost: float = 0.0) -> None:
        self.database = sqlite3.connect(
            path or ":memory:", LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        self.database.execute("PRAGMA synchronous = OFF")  # of use only while the run lasts
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, "
            "cost REAL DEFAULT 0, reserved REAL DEFAULT 0, requests INTEGER DEFAULT 0)"
        )
        self.database.execute("INSERT OR IGNORE INTO ledger (id, cost) VALUES (0, ?)", [cost])

    def close(self) -> None:
        self.database.close()

    @property
    def cost(self) -> float:
        """Cost of finished requests; one without reported tokens counts with its maximum."""
        return float(self._read("cost"))

    @property
    def active_requests(self) -> int:
        return int(self._read("requests"))

    def reserve(self, bound: float, budget: float | None) -> bool:
        """Reserve the maximum cost of a request; return False if it exceeds the budget."""
        change = "UPDATE ledger SET reserved = reserved + ?, requests = requests + 1"
        if budget is None:
            self.database.execute(change, [bound])
            return True
        condition = " WHERE cost + reserved + ? <= ?"
        return self.database.execute(change + condition, [bound, bound, budget]).rowcount == 1

    def settle(self, bound: float, cost: float) -> None:
        """Replace a reservation by the actual cost."""
        self.database.execute(
            "UPDATE ledger SET reserved = CASE requests WHEN 1 THEN 0 ELSE reserved - ? END, "
            "cost = cost + ?, requests = requests - 1",
            [bound, cost],
        )

    def _read(self, column: str) -> float:
        (value,) = self.database.execute(f"SELECT {column} FROM ledger").fetchone()
        return value  # type: ignore[no-any-return]


class Reservation:
    """The maximum cost of a request in progress; `cost` is set when it is known."""

    def __init__(self, bound: float) -> None:
        self.bound, self.cost = bound, 0.0


class Budget:
    """Admits requests of one client as long as their maximum cost fits into the budget."""

    def __init__(self, ledger: CostLedger, limit: float | None) -> None:
        self.ledger, self.limit = ledger, limit
        self.queue = asyncio.Lock()  # one waits for the ledger, the others for their turn

    @asynccontextmanager
    async def reserve(self, bound: float) -> AsyncIterator[Reservation]:
        """Reserve the bound until the block ends; then its `cost` counts instead.

        If the bound does not fit, wait for requests in progress: they mostly cost less than their
        bounds. Raise `BudgetError` if no request is in progress.
        """
        async with self.queue:
            while True:
                is_last = not self.ledger.active_requests  # read first: others may finish now
                if self.ledger.reserve(bound, self.limit):
                    break
                if is_last:
                    raise self._error(bound)
                await asyncio.sleep(POLL_SECONDS)
        reservation = Reservation(bound)
        try:
            yield reservation
        finally:
            self.ledger.settle(bound, reservation.cost)

    def _error(self, bound: float) -> BudgetError:
        return BudgetError(
            f"judge: the budget of {self.limit:g} is reached: {self.ledger.cost:.6g} used, and "
            f"the next request may cost {bound:.3g}; answers so far are cached: run the same "
            "command with a new --budget to continue"
        )
