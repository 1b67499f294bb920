"""A metric has few public members; what only few metrics can do are protocols."""

from __future__ import annotations

from tertium.metrics.base.compatibility_calls import CompatibilityCalls
from tertium.metrics.base.metric import Metric

LIMIT = 15
CALLS = {"corpus_score", "sentence_score", "predict", "compute"}  # of other tools


def public_members(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_metrics_have_few_public_members() -> None:
    members = public_members(Metric) - CALLS
    assert len(members) <= LIMIT, sorted(members)


def test_calls_of_other_tools_are_one_mixin() -> None:
    assert public_members(CompatibilityCalls) - CALLS == {"score", "mark_errors"}
