"""Budgets: reservations of concurrent requests, also of several processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tertium.core.errors import BudgetError
from tertium.metrics.judge.budget import Budget, CostLedger


def test_ledgers_of_one_file_share_cost_and_reservations(tmp_path: Path) -> None:
    first, second = (CostLedger(str(tmp_path / "ledger.sqlite")) for _ in range(2))
    assert first.reserve(6.0, 10.0)
    assert not second.reserve(6.0, 10.0)
    assert second.reserve(4.0, 10.0)
    assert (first.active_requests, first.cost) == (2, 0.0)
    first.settle(6.0, 1.5)
    assert (second.active_requests, second.cost) == (1, 1.5)
    second.settle(4.0, 0.0)
    assert second.reserve(8.5, 10.0), "reservations leave no rounding error behind"


def test_processes_wait_for_each_other_and_never_exceed_the_budget(tmp_path: Path) -> None:
    path, peaks = str(tmp_path / "ledger.sqlite"), []
    ledgers = [CostLedger(path) for _ in range(2)]
    active: list[float] = []

    async def send(budget: Budget) -> None:
        async with budget.reserve(4.0) as reservation:
            active.append(4.0)
            peaks.append(budget.ledger.cost + sum(active))
            await asyncio.sleep(0.002)
            reservation.cost = 0.5
            active.pop()

    async def run() -> list[object]:
        budgets = [Budget(ledger, 10.0) for ledger in ledgers]
        requests = [send(budgets[n % 2]) for n in range(20)]
        return await asyncio.gather(*requests, return_exceptions=True)

    results = asyncio.run(run())
    # 13 answers cost 6.5; another request may cost 4
    assert [r for r in results if r is None] == [None] * 13
    errors = [r for r in results if r is not None]
    assert all(isinstance(error, BudgetError) for error in errors)
    assert "6.5 used, and the next request may cost 4" in str(errors[0])
    assert max(peaks) <= 10.0
    assert ledgers[0].cost == 6.5


def test_without_a_limit_the_cost_is_counted() -> None:
    async def send() -> None:
        async with Budget(ledger, None).reserve(3.0) as reservation:
            reservation.cost = 2.0

    ledger = CostLedger(cost=1.0)
    asyncio.run(send())
    assert ledger.cost == 3.0


def test_an_interrupted_block_ends_its_reservation() -> None:
    async def send() -> None:
        async with Budget(ledger, 5.0).reserve(5.0) as reservation:
            reservation.cost = reservation.bound
            raise KeyboardInterrupt

    ledger = CostLedger()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(send())
    assert (ledger.cost, ledger.active_requests) == (5.0, 0)
