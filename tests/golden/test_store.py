"""Golden files are compared with the tolerance of their rule, and recorded without noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.golden import store
from tests.golden.transcripts import Transcript

OLD: dict[str, Any] = {
    "both": {"signature": "a", "rows": [{"score": 0.5}, {"score": 2.0, "spans": [[0, 1, "x"]]}]}
}


def change(row: int, **values: Any) -> dict[str, Any]:
    """Return a copy with other values in a row."""
    changed = json.loads(json.dumps(OLD))
    changed["both"]["rows"][row] |= values
    return changed


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(store.RECORDING, raising=False)
    path = tmp_path / "a.json"
    store.write_file(path, store.format_json(OLD))
    return path


def test_differences_name_their_place(golden: Path) -> None:
    store.check_golden(golden, change(0), "exact")
    store.check_golden(golden, change(0, score=0.500001), "fp32")
    with pytest.raises(AssertionError):
        store.check_golden(golden, change(0, score=0.5001), "fp32")
    with pytest.raises(AssertionError, match=r"both rows\[0\] score: 0.5 was recorded"):
        store.check_golden(golden, change(0, score=0.5000000001), "exact")
    with pytest.raises(AssertionError, match=r"both rows\[0\] warnings: None was recorded"):
        store.check_golden(golden, change(0, warnings=["empty"]), "fp32")


@pytest.mark.parametrize("is_same_machine", [True, False])
def test_int8_is_exact_on_the_machine_that_recorded_it(
    golden: Path, is_same_machine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "is_recording_machine", lambda: is_same_machine)
    found = change(1, score=2.01, spans=[])
    if is_same_machine:
        with pytest.raises(AssertionError):
            store.check_golden(golden, found, "int8")
    else:
        store.check_golden(golden, found, "int8")
        with pytest.raises(AssertionError):
            store.check_golden(golden, change(1, score=3.0), "int8")


def test_recording_keeps_values_that_match(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(store.RECORDING, "1")
    found = change(0, score=0.7)
    found["both"]["rows"][1]["score"] = 2.000001
    store.check_golden(golden, found, "fp32")
    assert json.loads(golden.read_text()) == change(0, score=0.7)


def run_step(transcript: Transcript, command: str, text: str) -> None:
    with transcript.step(command) as shown:
        shown["stdout"] = text
        Path("out.txt").write_text(text)


@pytest.mark.parametrize("name", ["tertium-small", "chrf"])
def test_transcripts_are_compared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "golden" / "a.txt.gz"
    monkeypatch.setattr(store, "is_recording_machine", lambda: True)
    monkeypatch.setenv(store.RECORDING, "1")
    recorded = Transcript()
    run_step(recorded, f"score -m {name}", "0.5000001 of 3, 10 rows per second")
    recorded.check(path)
    monkeypatch.delenv(store.RECORDING)
    recorded.check(path)
    for text, is_same in {
        "0.5000001 of 3, 12 rows per second": True,
        "0.5000002 of 3, 10 rows per second": name == "tertium-small",
        "0.5000001 of 4, 10 rows per second": False,
        "0.5100001 of 3, 10 rows per second": False,
    }.items():
        found = Transcript()
        run_step(found, f"score -m {name}", text)
        found.steps[0] = found.steps[0].replace("changed", "wrote")
        if is_same:
            found.check(path)
        else:
            with pytest.raises(AssertionError, match=r"in \$ score"):
                found.check(path)
