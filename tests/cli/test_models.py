"""`tertium list models` and `tertium setup cache`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tertium.cli import main
from tertium.core.cached_files import CACHE_KINDS
from tertium.core.store import Store
from tertium.encoders.vector_cache import FILE, CacheEntry, encode_entry


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "models", "-f", "json"]) == 0
    records = {record["name"]: record for record in json.loads(capsys.readouterr().out)}
    assert {"minilm", "mpnet", "use", "glove"} <= set(records)
    assert records["mpnet"]["install"] == "tertium setup install mpnet"
    assert records["use"]["languages"].split()[:2] == ["ar", "de"]
    assert main(["list", "models"]) == 0
    assert "all-mpnet-base-v2" in capsys.readouterr().out


def test_installing_needs_a_known_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "install"]) == 2
    assert main(["setup", "install", "mpnett"]) == 2
    message = capsys.readouterr().err.splitlines()
    assert len(message) == 2
    assert "arguments are required: NAME (see `tertium setup install --help`)" in message[0]
    assert "did you mean 'mpnet'" in message[1]


def test_setup_shows_what_is_installed_and_the_command_for_the_rest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    monkeypatch.setattr("tertium.metrics.setup_commands.is_installed", lambda *_: False)
    assert main(["setup", "-f", "json"]) == 0
    rows = {record["name"]: record for record in json.loads(capsys.readouterr().out)}
    places = {name: record["location, or command to install"] for name, record in rows.items()}
    assert Path(places["tertium"]).is_dir()
    assert 'tertium[judge]"' in places["extra judge"]
    assert rows["extra judge"]["content"] == "httpx2"
    assert {"tertium-models", "mpnet", "wordnet"} <= {*places}
    assert (rows["cache"]["content"], places["cache"]) == ("0.0 MB", str(tmp_path))


@pytest.mark.parametrize("words", ["models", "cache clear", "cite bleu", "data"])
def test_removed_commands_name_their_replacement(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    name = words.split()[0]
    assert f"`tertium {name}` was removed: use `tertium " in capsys.readouterr().err


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    store = Store(tmp_path / FILE, 1 << 30)
    part = CacheEntry(np.ones((1, 4), dtype=np.float32), ("a",), False)
    store.write("transformer-2:abcdef:tokens:4:fp32", {"a": encode_entry(part, "a")})
    store.close()
    return tmp_path


def test_cache_info_and_clear(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "cache", "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["texts"] == {"transformer-2:abcdef:tokens:4:fp32": 1}
    assert record["bytes"] > 10_000
    assert main(["setup", "cache"]) == 0
    assert "abcdef:tokens:4:fp32" in capsys.readouterr().out
    assert main(["setup", "cache", "clear", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(filled), "freed": record["bytes"]}
    assert not (filled / FILE).exists()
    assert main(["setup", "cache", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == {}


@pytest.fixture
def every_kind(filled: Path) -> Path:
    """A cache folder with a file of each kind, oldest first, and two unknown files."""
    digest = "0123456789abcdef"
    (filled / FILE).rename(filled / "aside")
    for age, name in enumerate(
        (
            "analyses-1-en-3.8.sqlite",
            "answers-1.sqlite",
            "rows-1.sqlite",
            f"indexes/wordnet-{digest}.npz",
            f"word-vectors/{2 * digest}.npy",
            "hashes-1.sqlite",
            f"reproduce/{digest}/config.json",
            f"rows/.tertium-{digest}.part",
            "rows/mine.npz",
            "notes.txt",
        )
    ):
        (filled / name).parent.mkdir(parents=True, exist_ok=True)
        (filled / name).write_bytes(bytes(1000))
        os.utime(filled / name, (1000 + age, 1000 + age))
    (filled / "aside").rename(filled / FILE)
    return filled


def test_each_kind_of_cached_file_is_listed_and_cleared(
    every_kind: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["setup", "cache", "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record["kinds"]) == set(CACHE_KINDS)
    assert all(kind["files"] == 1 for kind in record["kinds"].values())
    assert {Path(name).name for name in record["foreign"]} == {"mine.npz", "notes.txt"}
    assert main(["setup", "cache"]) == 0
    assert "not written by tertium, ignored" in capsys.readouterr().out
    assert main(["setup", "cache", "clear", "rows", "trained"]) == 0
    names = {p.name for p in every_kind.rglob("*") if p.is_file()}
    assert {"mine.npz", "notes.txt", "hashes-1.sqlite", FILE} <= names
    assert not {"config.json", "rows-1.sqlite"} & names
    assert main(["setup", "cache", "clear"]) == 0
    left = {p.name for p in every_kind.rglob("*") if p.is_file()}
    assert left == {"mine.npz", "notes.txt"}


def test_limit_removes_vectors_and_then_the_oldest_files(
    every_kind: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["setup", "cache", "limit", "10M"]) == 0
    assert "0.0 MB freed" in capsys.readouterr().out
    assert main(["setup", "cache", "limit", "4000"]) == 0
    names = {p.name for p in every_kind.rglob("*") if p.is_file()}
    assert not {"analyses-1-en-3.8.sqlite", "rows-1.sqlite"} & names
    assert {"hashes-1.sqlite", "config.json", "mine.npz", "notes.txt"} <= names
    assert FILE not in names
    assert main(["setup", "cache", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out.split("freed", 1)[1].split("\n", 1)[1])["texts"] == {}


def test_unknown_kind_or_size_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "cache", "clear", "row"]) == 2
    assert main(["setup", "cache", "limit", "much"]) == 2
    assert main(["setup", "cache", "limit"]) == 2
    assert main(["setup", "cache", "rows"]) == 2
    assert main(["setup", "install", "glove", "--agree"]) == 2
    message = capsys.readouterr().err.splitlines()
    assert len(message) == 5
    assert "did you mean 'rows'" in message[0]
    assert "expected bytes" in message[1]
    assert "--agree was removed: leave it out" in message[4]


@pytest.mark.parametrize("action", ["", "clear", "limit 5M"])
def test_cache_path_that_is_a_file_is_an_error(
    action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "mine.txt"))
    assert main(["setup", "cache", *action.split()]) == 2
    assert "mine.txt is a file: set TERTIUM_CACHE to a folder" in capsys.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_unwritable_cache_is_an_error(
    filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (filled / FILE).write_bytes(b"rubbish" * 1000)
    monkeypatch.setattr("tertium.core.store.os.access", lambda path, mode: False)
    assert main(["setup", "cache"]) == 2
    assert "is not writable; set TERTIUM_CACHE to another folder" in capsys.readouterr().err


def test_damaged_cache_is_reported_and_cleared(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (filled / FILE).write_bytes(b"rubbish" * 1000)
    assert main(["setup", "cache"]) == 2
    assert "`tertium setup cache clear` starts a new one" in capsys.readouterr().err
    assert main(["setup", "cache", "clear"]) == 0
    assert main(["setup", "cache"]) == 0
