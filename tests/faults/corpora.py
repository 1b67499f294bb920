"""Corpus scoring whose driver or worker is killed, and which continues with `resume`."""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.corpus.samples import shard_bytes, write_jsonl, write_parquet, write_tsv
from tests.faults.children import Report, run
from tests.faults.kills import Job, texts

from tertium.core.errors import TertiumError
from tertium.corpus.corpus_run import score_corpus

ROWS = 900
PART_ROWS = 20


@functools.cache
def corpus() -> Path:
    """Write the input files of all runs, in three formats and with invalid rows."""
    folder = Path(tempfile.mkdtemp(prefix="tertium-corpus-"))
    rows = [
        {"id": n, "mt": segment.hypothesis, "ref": segment.references[0]}
        for n, segment in enumerate(texts(ROWS, 21))
    ]
    third = ROWS // 3
    bad = [{"id": n, "mt": n} for n in range(5)]
    write_jsonl(folder / "a.jsonl", [*rows[: third // 2], *bad, *rows[third // 2 : third]])
    write_tsv(folder / "b.tsv.gz", rows[third : 2 * third])
    write_parquet(folder / "c.parquet", rows[2 * third :])
    return folder


def score(folder: Path, workers: int) -> None:
    score_corpus(
        corpus(),
        ["chrf", "bleu"],
        folder,
        keep="chrf > 10",
        part_rows=PART_ROWS,
        workers=workers,
        resume=True,
    )


def content(folder: Path) -> dict[str, bytes]:
    """Return the shards and the ledger, without temporary files."""
    return {n: data for n, data in shard_bytes(folder).items() if ".tertium-" not in n}


@functools.cache
def uninterrupted(workers: int) -> tuple[dict[str, bytes], float]:
    """Return the output of an uninterrupted run, and its duration."""
    corpus()
    with tempfile.TemporaryDirectory() as folder:
        end = run(lambda report: score(Path(folder) / "out", workers))
        assert end.status == 0, "\n".join(end.lines)
        return content(Path(folder) / "out"), end.seconds


class ScoringCorpus(Job):
    """One process that is both driver and worker."""

    name = "scoring a corpus"

    @property
    def seconds(self) -> float:
        return uninterrupted(1)[1]

    def work(self, report: Report) -> None:
        score(self.folder / "out", 1)

    def check(self, reported: Sequence[str]) -> None:
        end = run(lambda report: score(self.folder / "out", 1))
        assert end.status == 0, "\n".join(end.lines)
        assert content(self.folder / "out") == uninterrupted(1)[0], "different rows after a kill"


class KillingWorkers(ScoringCorpus):
    """Two workers, one of which is killed: a one-line error, then the run is resumed."""

    name = "scoring a corpus, a worker"

    def kill_once(self, rng: random.Random) -> bool:
        wait, choice = rng.uniform(0.2, 1.0) * uninterrupted(2)[1], rng.random()
        end = run(functools.partial(self._score_and_kill, wait, choice))
        assert end.status == 0, "\n".join(end.lines)
        reported = json.loads(end.lines[-1])
        assert not reported["killed"] or "--resume" in reported["message"], reported
        self.check(end.lines)
        return bool(reported["killed"])

    def _score_and_kill(self, wait: float, choice: float, report: Report) -> None:
        killed: list[int] = []

        def kill() -> None:
            time.sleep(wait)
            workers = sorted(p.pid or 0 for p in multiprocessing.active_children())
            if workers:
                killed.append(workers[int(choice * len(workers))])
                os.kill(killed[0], signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        try:
            score(self.folder / "out", 2)
            report(json.dumps({"killed": []}))
        except TertiumError as error:
            report(json.dumps({"killed": killed, "message": str(error)}))


class KillingDriver(ScoringCorpus):
    """Two workers whose driver is killed: they end by themselves."""

    name = "scoring a corpus, the driver"

    @property
    def seconds(self) -> float:
        return uninterrupted(2)[1]

    def work(self, report: Report) -> None:
        score(self.folder / "out", 2)


def _flip_shard(run_folder: Path, rng: random.Random) -> None:
    shard = rng.choice(sorted(run_folder.glob("*.parquet")))
    data = bytearray(shard.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    shard.write_bytes(data)


def _cut_shard(run_folder: Path, rng: random.Random) -> None:
    shard = rng.choice(sorted(run_folder.glob("*.parquet")))
    shard.write_bytes(shard.read_bytes()[: rng.randrange(shard.stat().st_size)])


def _change_record(run_folder: Path, rng: random.Random) -> None:
    """Replace one value anywhere in the record of a part by one of another type."""
    file = rng.choice(sorted((run_folder / "_done").glob("*.json")))
    record = json.loads(file.read_text())
    places = [(record, key) for key in record]
    for place, key in places:  # grows while it is read
        if isinstance(place[key], dict):
            places += [(place[key], inner) for inner in place[key]]
    place, key = rng.choice(places)
    place[key] = rng.choice([None, "x", -1, 0.5, [], {}, [1], True, 10**30])
    file.write_text(json.dumps(record))


def _cut_record(run_folder: Path, rng: random.Random) -> None:
    file = rng.choice(sorted((run_folder / "_done").glob("*.json")))
    file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size)])


DAMAGES = {
    "flipped shard": _flip_shard,
    "cut shard": _cut_shard,
    "changed record": _change_record,
    "cut record": _cut_record,
}


def try_damage(name: str, folder: Path, rng: random.Random) -> str:
    """Damage a finished run and resume it: the same output as before, or a one-line error."""
    out = folder / "out"
    for path, data in uninterrupted(1)[0].items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(data)
    DAMAGES[name](out, rng)
    message = ""
    try:
        score(out, 1)
    except TertiumError as error:
        message = str(error)
    if message:
        assert "record" in name, message
        assert "\n" not in message, message
        return "refused"
    shards = {n: data for n, data in uninterrupted(1)[0].items() if n.endswith(".parquet")}
    resumed = {n: data for n, data in content(out).items() if n.endswith(".parquet")}
    assert resumed == shards, f"different rows after: {name}"
    return "resumed"


JOBS = (ScoringCorpus, KillingWorkers, KillingDriver)
