"""Budgets: loans of requests in progress, and the budget of a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.metrics.judge.fake_server import (
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    FakeServer,
    forget_answers,
    run_server,
)

import tertium
from tertium.core.errors import UsageError
from tertium.metrics.base.judge_run import (
    Budget,
    BudgetError,
    JudgeConnection,
    judge_server,
)

CONCURRENCY = 2
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


class PaidRun:
    """A corpus of a few rows that are sent to a server."""

    def __init__(self, folder: Path, server: FakeServer, rows: int = 16) -> None:
        self.server, self.folder, self.rows = server, folder, rows
        server.latency = 0.02
        texts = [f"sentence number {n:02}" for n in range(rows)]
        lines = [json.dumps({"src": f"Satz {n}", "mt": text}) for n, text in enumerate(texts)]
        (folder / "rows.jsonl").write_text("\n".join(lines))

    def score(self, budget: float, *, workers: int | None = None, resume: bool = False) -> int:
        """Score the corpus; return the number of rows with a score."""
        connection = JudgeConnection(
            judge_url=self.server.url, price=(1.0, 1.0), budget=budget, concurrency=CONCURRENCY
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


def test_a_budget_that_suffices_is_spent_to_the_end(paid_run: PaidRun) -> None:
    """Requests in progress do not refuse others because they hold a part of the budget."""
    budget = paid_run.rows * COST_OF_ONE + LARGEST_LOAN
    assert paid_run.score(budget) == paid_run.rows
    assert paid_run.paid <= budget
    assert len(paid_run.server.requests) == paid_run.rows


def test_a_corpus_never_exceeds_its_budget(paid_run: PaidRun) -> None:
    budget = 6.5 * COST_OF_ONE + LARGEST_LOAN
    with pytest.raises(BudgetError, match="with --resume"):
        paid_run.score(budget)
    assert 6 * COST_OF_ONE <= paid_run.paid <= budget
    forget_answers()
    assert paid_run.score(1.0, resume=True) == paid_run.rows
    assert set(paid_run.server.completions.values()) == {1}, "nothing is paid twice"


def test_a_budget_is_spent_by_one_process(paid_run: PaidRun) -> None:
    with pytest.raises(UsageError, match="spent by one process: give --workers 1"):
        paid_run.score(1.0, workers=2)
    assert paid_run.paid == 0
