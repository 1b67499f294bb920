"""`tertium list models`, `tertium setup` and `tertium setup cache`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from tertium.core.store import CACHE_KINDS, Store
from tertium.encoders.vector_cache import FILE, CacheEntry, encode_entry


def test_models_are_listed(run: Run) -> None:
    records = {record["name"]: record for record in run("list models -f json").json}
    assert {"minilm", "mpnet", "use", "glove"} <= set(records)
    assert records["mpnet"]["install"] == "tertium setup install mpnet"
    assert records["use"]["languages"].split()[:2] == ["ar", "de"]
    assert "all-mpnet-base-v2" in run("list models").out


def test_setup_shows_what_is_installed_and_the_command_for_the_rest(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    monkeypatch.setattr("tertium.metrics.list_commands.is_installed", lambda *_: False)
    rows = {record["name"]: record for record in run("setup -f json").json}
    places = {name: record["location, or command to install"] for name, record in rows.items()}
    assert Path(places["tertium"]).is_dir()
    assert 'tertium[judge]"' in places["extra judge"]
    assert rows["extra judge"]["content"] == "httpx2"
    assert {"tertium-models", "mpnet", "wordnet"} <= {*places}
    assert (rows["cache"]["content"], places["cache"]) == ("0.0 MB", str(tmp_path))


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    store = Store(tmp_path / FILE, 1 << 30)
    part = CacheEntry(np.ones((1, 4), dtype=np.float32), ("a",), False)
    store.write("transformer-2:abcdef:tokens:4:fp32", {"a": encode_entry(part, "a")})
    store.close()
    return tmp_path


def test_cache_info_and_clear(filled: Path, run: Run) -> None:
    record = run("setup cache -f json").json
    assert record["texts"] == {"transformer-2:abcdef:tokens:4:fp32": 1}
    assert record["bytes"] > 10_000
    assert "abcdef:tokens:4:fp32" in run("setup cache").out
    freed = run("setup cache clear -f json").json
    assert freed == {"path": str(filled), "freed": record["bytes"]}
    assert not (filled / FILE).exists()
    assert run("setup cache -f json").json["texts"] == {}


DIGEST = "0123456789abcdef"
CACHED = (  # a file of each kind, oldest first, and two unknown files
    "analyses-1-en-3.8.sqlite",
    "answers-1.sqlite",
    "rows-1.sqlite",
    f"indexes/wordnet-{DIGEST}.npz",
    f"word-vectors/{2 * DIGEST}.npy",
    "hashes-1.sqlite",
    f"reproduce/{DIGEST}/config.json",
    f"rows/.tertium-{DIGEST}.part",
    "rows/mine.npz",
    "notes.txt",
)


@pytest.fixture
def every_kind(filled: Path) -> Path:
    (filled / FILE).rename(filled / "aside")
    for age, name in enumerate(CACHED):
        (filled / name).parent.mkdir(parents=True, exist_ok=True)
        (filled / name).write_bytes(bytes(1000))
        os.utime(filled / name, (1000 + age, 1000 + age))
    (filled / "aside").rename(filled / FILE)
    return filled


def list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_each_kind_of_cached_file_is_listed_and_cleared(every_kind: Path, run: Run) -> None:
    record = run("setup cache -f json").json
    assert set(record["kinds"]) == set(CACHE_KINDS)
    assert all(kind["files"] == 1 for kind in record["kinds"].values())
    assert {Path(name).name for name in record["foreign"]} == {"mine.npz", "notes.txt"}
    assert "not written by tertium, ignored" in run("setup cache").out
    run("setup cache clear rows trained")
    names = list_names(every_kind)
    assert {"mine.npz", "notes.txt", "hashes-1.sqlite", FILE} <= names
    assert not {"config.json", "rows-1.sqlite"} & names
    run("setup cache clear")
    assert list_names(every_kind) == {"mine.npz", "notes.txt"}


def test_limit_removes_vectors_and_then_the_oldest_files(every_kind: Path, run: Run) -> None:
    assert "0.0 MB freed" in run("setup cache limit 10M").out
    run("setup cache limit 4000")
    names = list_names(every_kind)
    assert not {"analyses-1-en-3.8.sqlite", "rows-1.sqlite", FILE} & names
    assert {"hashes-1.sqlite", "config.json", "mine.npz", "notes.txt"} <= names
    assert run("setup cache -f json").json["texts"] == {}


@pytest.mark.parametrize("action", ["", "clear", "limit 5M"])
def test_cache_path_that_is_a_file_is_an_error(
    action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "mine.txt"))
    error = run(f"setup cache {action}", code=2).err
    assert "mine.txt is a file: set TERTIUM_CACHE to a folder" in error
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("variable", ["TERTIUM_CACHE", "XDG_CACHE_HOME"])
def test_unknown_home_folder_is_a_one_line_error(
    variable: str, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.delenv("TERTIUM_CACHE", raising=False)
    monkeypatch.setenv(variable, "~nosuchuser")
    error = run("setup cache", code=2).err
    assert f"{variable}=~nosuchuser: the home folder of this user is unknown" in error
    assert error.count("\n") == 1
