"""Budgets: loans of requests in progress, one budget for several processes, killed workers."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.corpus.ray_cluster import ray_cluster  # noqa: F401 (a fixture)
from tests.metrics.judge.fake_server import (
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    FakeServer,
    forget_answers,
    run_server,
)

import tertium
from tertium.core.errors import TertiumError
from tertium.corpus.engines import WorkerPool
from tertium.metrics.base.judge_run import (
    Budget,
    BudgetError,
    JudgeConnection,
    RemoteBudget,
    judge_server,
    share_budget,
)

WORKERS = 4
COST_OF_ONE = (PROMPT_TOKENS + COMPLETION_TOKENS) / 1e6  # with prices of 1 and 1
LARGEST_LOAN = 0.0045  # of a request with at most 100 tokens in its answer


def test_loans_never_exceed_the_budget() -> None:
    budget = Budget(10.0)
    first, second = budget.borrow(6.0), budget.borrow(4.0)
    assert first is not None
    assert second is not None
    assert budget.borrow(1.0) is None, "the requests in progress may cost less"
    budget.settle(first, 1.5)
    assert budget.cost == 1.5
    budget.settle(second)
    assert budget.cost == 5.5, "an unknown cost is that of the loan"
    with pytest.raises(BudgetError, match=r"budget of 10 is reached: 5\.5 used, .* may cost 5"):
        budget.borrow(5.0)
    assert budget.borrow(4.5) is not None, "loans leave no rounding error behind"


def test_workers_share_a_budget_and_loans_of_a_lost_one_are_spent() -> None:
    budget = Budget(10.0)
    with share_budget(budget) as address:
        first, second = RemoteBudget(address), RemoteBudget(address)
        loan = first.borrow(6.0)
        assert second.borrow(6.0) is None
        assert first.borrow(1.0) is not None
        first._stream.close()
        wait_until(lambda: budget.cost == 7.0)
        assert loan is not None
        with pytest.raises(BudgetError, match="7 used"):
            second.borrow(6.0)
        number = second.borrow(3.0)
        assert number is not None
        second.settle(number, 0.5)
    assert (budget.cost, budget.loans) == (7.5, {})


def test_a_wrong_secret_is_refused() -> None:
    budget = Budget(10.0)
    with share_budget(budget) as (host, port, _):
        with pytest.raises(ValueError, match="Expecting value"):
            RemoteBudget((host, port, "a guess")).borrow(1.0)
        assert budget.loans == {}


def wait_until(condition: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


class PaidRun:
    """A corpus of a few rows that workers send to a server."""

    def __init__(self, folder: Path, server: FakeServer, rows: int = 16) -> None:
        self.server, self.folder, self.rows = server, folder, rows
        server.latency = 0.02  # so that all workers get parts
        texts = [f"sentence number {n:02}" for n in range(rows)]
        lines = [json.dumps({"src": f"Satz {n}", "mt": text}) for n, text in enumerate(texts)]
        (folder / "rows.jsonl").write_text("\n".join(lines))

    def score(
        self, budget: float, *, workers: int | WorkerPool = WORKERS, resume: bool = False
    ) -> int:
        """Score the corpus; return the number of rows with a score."""
        connection = JudgeConnection(
            judge_url=self.server.url, price=(1.0, 1.0), budget=budget, concurrency=WORKERS
        )
        paid_before = self.paid
        with judge_server(connection) as run:
            try:
                summary = tertium.score_corpus(
                    self.folder / "rows.jsonl",
                    "judge:model=tiny,max_tokens=100",
                    self.folder / "scored",
                    part_rows=2,
                    workers=workers,
                    resume=resume,
                )
            finally:
                assert self.paid - paid_before <= run.budget.cost + 1e-12
        return sum(tally.count for tally in summary.metrics.values())

    @property
    def paid(self) -> float:
        return self.server.completions.total() * COST_OF_ONE


@pytest.fixture
def paid_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    pytest.importorskip("httpx2")
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    forget_answers()
    with run_server() as server:
        yield PaidRun(tmp_path, server)


def test_workers_spend_a_budget_that_suffices_to_the_end(paid_run: PaidRun) -> None:
    """A worker is not refused because others hold a part of the budget."""
    budget = paid_run.rows * COST_OF_ONE + LARGEST_LOAN
    assert paid_run.score(budget) == paid_run.rows
    assert paid_run.paid <= budget
    assert len(paid_run.server.requests) == paid_run.rows


def test_workers_never_exceed_a_budget_together(paid_run: PaidRun) -> None:
    budget = 6.5 * COST_OF_ONE + LARGEST_LOAN
    with pytest.raises(BudgetError, match="with --resume"):
        paid_run.score(budget)
    assert 6 * COST_OF_ONE <= paid_run.paid <= budget
    forget_answers()
    assert paid_run.score(1.0, workers=1, resume=True) == paid_run.rows
    assert set(paid_run.server.completions.values()) == {1}, "nothing is paid twice"


def test_ray_actors_never_exceed_a_budget_together(
    paid_run: PaidRun, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("ray_cluster")  # started now, it has the cache of this test
    budget = 6.5 * COST_OF_ONE + LARGEST_LOAN
    with pytest.raises(BudgetError, match="with --resume"):
        paid_run.score(budget, workers=WorkerPool(engine="ray", workers=2))
    assert 6 * COST_OF_ONE <= paid_run.paid <= budget


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs Linux or macOS")
def test_a_killed_worker_does_not_exceed_the_budget(paid_run: PaidRun) -> None:
    budget, killed = 12 * COST_OF_ONE + LARGEST_LOAN, []

    def kill() -> None:
        wait_until(lambda: paid_run.server.completions.total() > 4, 120)
        worker = multiprocessing.active_children()[0]
        killed.append(worker)
        os.kill(worker.pid or 0, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(TertiumError):
        paid_run.score(budget)
    assert killed
    assert paid_run.paid <= budget
