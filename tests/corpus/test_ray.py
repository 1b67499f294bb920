"""The corpus on a real Ray cluster: equal output, one-line errors, killed workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from threading import Thread

import pytest
from tests.corpus.ray_cluster import ray_cluster  # noqa: F401 (a fixture)
from tests.corpus.samples import (
    example_rows,
    read_shards,
    shard_bytes,
    write_jsonl,
    write_parquet,
    write_tsv,
)
from tests.docs.pages import DOCS, steps
from tests.docs.workspace import build, run_command

import tertium
from tertium.core.errors import TertiumError
from tertium.corpus.corpus_run import RowOptions
from tertium.corpus.engines import WorkerPool

pytestmark = pytest.mark.usefixtures("ray_cluster")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = example_rows(300)
    write_jsonl(tmp_path / "in" / "a.jsonl", [*rows[:120], {"mt": "no reference"}])
    write_tsv(tmp_path / "in" / "b.tsv.gz", rows[120:200])
    write_parquet(tmp_path / "in" / "c.parquet", rows[200:])
    return tmp_path / "in"


def test_ray_writes_the_same_as_one_process(corpus: Path, tmp_path: Path) -> None:
    run = {"metrics": ["chrf", "bleu"], "keep": "chrf > 20", "part_rows": 40}
    local = tertium.score_corpus(corpus, output=tmp_path / "local", workers=1, **run)
    found = tertium.score_corpus(
        corpus, output=tmp_path / "ray", workers=WorkerPool(engine="ray"), **run
    )
    assert shard_bytes(tmp_path / "ray") == shard_bytes(tmp_path / "local")
    assert found.metrics == local.metrics
    assert (found.rows, found.kept, found.bad) == (local.rows, local.kept, local.bad)
    assert found.engine == "ray"
    with pytest.raises(TertiumError, match=r"a.jsonl, row 121: .*needs references"):
        tertium.score_corpus(
            corpus,
            "chrf",
            tmp_path / "strict",
            rows=RowOptions(strict=True),
            workers=WorkerPool(engine="ray", workers=1),
        )


def test_relative_paths_mean_the_same_to_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster was started in another folder than the command."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data" / "a.jsonl", example_rows(6))
    tertium.score_corpus("data", "chrf", "out", workers=WorkerPool(engine="ray", workers=1))
    assert len(read_shards(tmp_path / "out")) == 6


def test_the_commands_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path)
    monkeypatch.chdir(tmp_path)
    guide = (DOCS / "guides" / "corpus.md").read_text(encoding="utf-8")
    here = [s.code for s in steps(guide) if "--ray local" in s.code and "examples/" in s.code]
    assert here
    for command in here:
        run_command(command)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs Linux: it looks for processes")
def test_a_killed_worker_costs_no_row(corpus: Path, tmp_path: Path) -> None:
    """Ray restarts the actor and repeats the part; the shard is written once."""
    tertium.score_corpus(corpus, "chrf", tmp_path / "local", part_rows=10, workers=1)
    killed: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + 120
        while not killed and time.monotonic() < deadline:
            if (tmp_path / "ray" / "_done").is_dir():
                killed.extend(actor_processes()[:1])
                for process in killed:
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)

    killer = Thread(target=kill)
    killer.start()
    tertium.score_corpus(
        corpus, "chrf", tmp_path / "ray", part_rows=10, workers=WorkerPool(engine="ray", workers=2)
    )
    killer.join()
    assert killed
    assert shard_bytes(tmp_path / "ray") == shard_bytes(tmp_path / "local")


def actor_processes() -> list[int]:
    """The Ray worker processes of this user."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"MapWorker" in command and b"PartActor" in command:
            found.append(int(folder.name))
    return found
