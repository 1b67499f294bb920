"""`python -m benchmarks --write`: outputs are recorded one by one and shown on the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import benchmarks.__main__ as command
import pytest
from benchmarks.record import END, START


@pytest.fixture
def fake_benchmarks(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Register two benchmarks that print these lines."""
    lines = {"first": "tertium 1 s, rival 2 s, ratio 2.0", "second": "memory 5 MB"}
    for name in lines:
        module = ModuleType(f"benchmarks.{name}", f"What {name} is\nabout.\n\nMore.")
        module.main = lambda name=name: print(lines[name], sys.argv[1:])  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(command, "list_benchmarks", lambda: list(lines))
    return lines


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    command.main()


def test_page_shows_recorded_runs(
    fake_benchmarks: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Benchmarks\n\nBy hand.\n\n{START}\nold\n{END}\n\nBelow.\n")
    run(monkeypatch, "--write", str(page))
    assert fake_benchmarks["first"] in capsys.readouterr().out
    text = page.read_text()
    assert "old" not in text
    for part in ("By hand.", "Below.", "What first is about."):
        assert part in text
    fake_benchmarks["second"] = "memory 4 MB"
    run(monkeypatch, "--write", str(page), "second", "--rows", "3")
    assert "`python -m benchmarks second --rows 3`" in page.read_text()
    entries = json.loads((tmp_path / "benchmarks.json").read_text())
    assert fake_benchmarks["first"] in entries["first"]["output"][-1]
    entry = entries["second"]
    assert entry["output"] == ["memory 4 MB ['--rows', '3']"]
    assert entry["code"].startswith("tertium ")
    assert "cores" in entry["machine"]


def test_parts_of_a_benchmark_are_recorded_separately(
    fake_benchmarks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    for arguments in (["local"], ["ray", "--rows", "3"], ["ray", "--rows", "4"], ["--rows", "5"]):
        run(monkeypatch, "--write", str(page), "first", *arguments)
    entries = json.loads((tmp_path / "page.json").read_text())
    assert list(entries) == ["first", "first local", "first ray"]
    text = page.read_text()
    assert '<a id="first-ray"></a>first ray' in text
    assert "`python -m benchmarks first ray --rows 4`" in text
    assert "--rows 3" not in text


def test_page_without_markers_keeps_its_text(
    fake_benchmarks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Mine\n")
    run(monkeypatch, "--write", str(page), "first")
    assert page.read_text().startswith("# Mine\n")
    assert "What first is about." in page.read_text()


def test_unknown_benchmark_exits(
    fake_benchmarks: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="unknown benchmark 'third'"):
        run(monkeypatch, "third")
    with pytest.raises(SystemExit, match="needs a file"):
        run(monkeypatch, "--write")
