"""`tertium models` and `tertium cache` print what there is and act only when told to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tertium.cache.record import Part
from tertium.cache.store import FILE, Store
from tertium.cli import main


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "-f", "json"]) == 0
    records = {record["name"]: record for record in json.loads(capsys.readouterr().out)}
    assert {"minilm", "mpnet", "use", "glove"} <= set(records)
    assert records["mpnet"]["install"] == "tertium models install mpnet"
    assert records["use"]["languages"].split()[:2] == ["ar", "de"]
    assert main(["models"]) == 0
    assert "all-mpnet-base-v2" in capsys.readouterr().out


def test_installing_needs_a_known_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "install"]) == 2
    assert main(["models", "install", "mpnett"]) == 2
    assert main(["models", "list", "mpnet"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert "did you mean 'mpnet'" in said[1]
    assert "tertium models install mpnet" in said[2]


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    store = Store(tmp_path / FILE, 1 << 30)
    part = Part(np.ones((1, 4), dtype=np.float32), ("a",), False)
    store.write("transformer-2:abcdef:tokens:4:fp32", {"a": part})
    store.close()
    return tmp_path


def test_cache_info_and_clear(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "info", "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["texts"] == {"transformer-2:abcdef:tokens:4:fp32": 1}
    assert record["bytes"] > 10_000
    assert main(["cache", "info"]) == 0
    assert "abcdef tokens 4 fp32" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "MB freed" in capsys.readouterr().out
    assert not (filled / FILE).exists()
    assert main(["cache", "info", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == {}


def test_a_damaged_cache_is_said_and_cleared(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (filled / FILE).write_bytes(b"rubbish" * 1000)
    assert main(["cache", "info"]) == 2
    assert "`tertium cache clear` starts a new one" in capsys.readouterr().err
    assert main(["cache", "clear"]) == 0
    assert main(["cache", "info"]) == 0
