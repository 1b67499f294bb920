"""Three local Ray nodes, started as in the guide, score an object store; one node dies."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.corpus.object_store import ObjectStore, object_store
from tests.corpus.samples import example_rows, read_shards, shard_bytes, write_jsonl
from tests.docs.pages import DOCS, steps

import tertium

pytestmark = pytest.mark.slow
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_AUTH_MODE": "token",  # of these nodes alone
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}


def commands(beginning: str = "ray ", naming: str = "") -> list[list[str]]:
    """The commands of the guide with this prefix that contain a text, as words."""
    guide = (DOCS / "guides" / "corpus.md").read_text(encoding="utf-8")
    lines = [step.code for step in steps(guide) if step.code.startswith(beginning)]
    return [shlex.split(line) for line in lines if naming in line]


def run_tertium(words: list[str], folder: Path, **more: str) -> str:
    """Run a tertium command in a folder; return its error output if it fails."""
    environment = {**os.environ, **SETTINGS, **more}
    done = subprocess.run(
        [sys.executable, "-m", "tertium", *words],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.stderr if done.returncode else ""


def processes_of(folder: Path) -> dict[int, bytes]:
    """The processes whose command line contains a folder: those of one cluster."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and int(entry.name) != os.getpid():
            found[int(entry.name)] = command
    return found


def start(command: list[str]) -> str:
    """Start a node and return the output of Ray."""
    environment = {**os.environ, **SETTINGS}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"Ray does not start here: {done.stderr[-300:]}")
    return done.stdout + done.stderr


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An object store that nodes started later use as S3."""
    with object_store() as store:
        settings = {
            "ACCESS_KEY_ID": "k",
            "SECRET_ACCESS_KEY": "s",
            "EC2_METADATA_DISABLED": "true",
            "DEFAULT_REGION": "us-east-1",
            "ENDPOINT_URL": f"http://127.0.0.1:{store.server_port}",
        }
        for name, value in settings.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        yield store


@pytest.fixture
def nodes() -> Iterator[tuple[str, Path]]:
    """The address of a head with two more nodes, and the folder of their processes."""
    pytest.importorskip("ray", reason="needs tertium[ray]")
    ray = shutil.which("ray", path=str(Path(sys.executable).parent))
    folder = Path(f"/tmp/tertium-{os.getpid()}")  # socket paths must be short
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    head, other = ([str(ray), *words[1:]] for words in commands())
    more = ["--num-cpus=1", "--object-store-memory=80000000"]
    head[head.index("6379")] = port
    try:
        output = start([*head, *more, "--include-dashboard=false", f"--temp-dir={folder}"])
        address = re.findall(r"--address='([^']+)'", output)[0]
        for _ in range(2):
            start([address if word == "HEAD:6379" else word for word in (*other, *more)])
        yield address, folder
    finally:
        for process in processes_of(folder):
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_node_that_dies_costs_no_row(nodes: tuple[str, Path], tmp_path: Path) -> None:
    address, folder = nodes
    file = write_jsonl(tmp_path / "in.jsonl", example_rows(1200))
    tertium.score_corpus(file, "chrf", tmp_path / "local", part_rows=20, workers=1)
    killed: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + 300
        while not killed and time.monotonic() < deadline:
            time.sleep(0.05)
            if len(list((tmp_path / "ray" / "_done").glob("*"))) > 5:
                raylets = [
                    p
                    for p, c in processes_of(folder).items()
                    if c.split(b"\0")[0].endswith(b"raylet")
                ]
                killed.append(max(raylets))  # the last node started, never the head
                os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    command = ["corpus", str(file), "-m", "chrf", "-o", str(tmp_path / "ray"), "--part-rows", "20"]
    ray = ["--ray", address, "--workers", "3", "-q"]
    failed = run_tertium([*command, *ray], tmp_path)
    killer.join()
    assert not failed
    assert killed
    assert shard_bytes(tmp_path / "ray") == shard_bytes(tmp_path / "local")


def test_the_command_of_the_guide_for_a_cluster_runs(
    bucket: ObjectStore, nodes: tuple[str, Path], tmp_path: Path
) -> None:
    """Run the command unchanged: Ray finds the address, and the bucket is read as on AWS."""
    file = write_jsonl(tmp_path / "a.jsonl", example_rows(6))
    bucket.objects["bucket/pairs/a.jsonl"] = file.read_bytes()
    [words] = commands("tertium corpus s3://")
    assert not run_tertium(words[1:], tmp_path, RAY_ADDRESS=nodes[0])
    tertium.score_corpus(file, "chrf", tmp_path / "local", workers=1)
    shard = (tmp_path / "local" / "a.parquet").read_bytes()
    assert bucket.objects["bucket/scored/a.parquet"] == shard


def test_the_command_of_the_guide_for_a_gpu_runs_where_there_is_one(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    write_jsonl(tmp_path / "data" / "a.jsonl", example_rows(6))
    [words] = commands("tertium corpus data", "--device cuda")
    failed = run_tertium(words[1:], tmp_path)
    if torch.cuda.is_available():
        assert not failed
        assert len(read_shards(tmp_path / "out")) == 6
    else:
        assert failed.splitlines()[-1].endswith("here: choose cpu (gpus=0) or auto")
