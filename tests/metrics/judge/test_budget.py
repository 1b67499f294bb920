"""Budgets: loans of requests in progress."""

from __future__ import annotations

import pytest

from tertium.metrics.base.judge_run import Budget, BudgetError


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
