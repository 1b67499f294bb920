"""Commands import only what they use."""

from __future__ import annotations

import pytest
from tests.architecture.shape import list_imports

from tertium.core.registry import METRICS, RANKERS

METRIC_CLASSES = [*METRICS.builtin.values(), *RANKERS.builtin.values()]


@pytest.mark.parametrize("name", ["svr", "bilstm", "pairwise", "tertium-multi"])
def test_training_imports_one_metric(name: str) -> None:
    """Its class, and for tertium-multi that of the trained metric."""
    imported = list_imports(["train", name, "--help"])
    module = {**METRICS.builtin, **RANKERS.builtin}[name].partition(":")[0]
    others = {path.partition(":")[0] for path in METRIC_CLASSES}
    family = module.rpartition(".")[0]
    assert module in imported
    assert {path for path in others & imported if not path.startswith(family)} == set()
