"""Commands import only what they use."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.architecture.shape import HEAVY_MODULES, list_imports

from tertium.core.registry import METRICS, RANKERS

MAX_MODULES = 60  # of our own, for a plain score
METRIC_CLASSES = [*METRICS.builtin.values(), *RANKERS.builtin.values()]


def test_a_plain_score_imports_few_modules(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a cat\nthe dog ran\n")
    imported = list_imports(["score", "-t", str(text), "-r", str(text), "-m", "chrf", "-q"])
    ours = sorted(name for name in imported if name.partition(".")[0] == "tertium")
    assert len(ours) <= MAX_MODULES, ours
    assert imported.isdisjoint(HEAVY_MODULES)


def test_the_help_imports_no_command() -> None:
    imported = list_imports(["--help"])
    assert {name for name in imported if name.startswith("tertium.")} <= {
        "tertium.cli",
        "tertium.core",
        "tertium.core.errors",
        "tertium.core.extras",
        "tertium.version",
    }


@pytest.mark.parametrize("name", ["svr", "bilstm", "pairwise", "tertium-multi"])
def test_training_imports_one_metric(name: str) -> None:
    """Its class, and for tertium-multi that of the trained metric."""
    imported = list_imports(["train", name, "--help"])
    module = {**METRICS.builtin, **RANKERS.builtin}[name].partition(":")[0]
    others = {path.partition(":")[0] for path in METRIC_CLASSES}
    family = module.rpartition(".")[0]
    assert module in imported
    assert {path for path in others & imported if not path.startswith(family)} == set()
