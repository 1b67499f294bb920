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

from tertium.corpus.run import score_corpus
from tertium.errors import TertiumError

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


JOBS = (ScoringCorpus, KillingWorkers, KillingDriver)
