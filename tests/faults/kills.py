"""kill -9 at random times: finished work stays, the next run gives the same result.

A job prepares a folder, works in it, and checks the folder after a kill.
"""

from __future__ import annotations

import functools
import json
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas
from papers.ledger import Ledger
from papers.table import Figure, PaperTable, Row
from tests.faults.children import Report, run

from tertium.core.errors import TertiumError
from tertium.core.runtime import runtime
from tertium.core.segment import Judgment, Segment
from tertium.core.store import Store
from tertium.data.tables import write_parquet
from tertium.data.testset import TestSet
from tertium.encoders.vector_cache import FILE
from tertium.evaluation.scoring import score
from tertium.metrics.base.loading import load_metric
from tertium.metrics.heads.config import HeadOptions
from tertium.metrics.heads.head_metric import ESIM
from tertium.output.page.report import report_results

WORDS = "the a cat dog house man said that it was old new red on Tuesday in Berlin not for".split()
OPTIONS = HeadOptions(epochs=6, patience=0, batch_size=8)
SCORED = 6  # segments; their vectors are larger than the full disk of the tests


def texts(count: int, seed: int) -> list[Segment]:
    """Return short segments; equal seeds give equal segments."""
    rng = random.Random(seed)
    sentences = [" ".join(rng.choices(WORDS, k=rng.randint(4, 9))) for _ in range(2 * count)]
    pairs = zip(sentences[:count], sentences[count:], strict=True)
    return [Segment(a, None, (b,)) for a, b in pairs]


class Job(ABC):
    """Work that is killed."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def work(self, report: Report) -> None:
        """Do the work of the child; it may continue until it is killed."""

    @abstractmethod
    def check(self, reported: Sequence[str]) -> None:
        """Check the folder after a kill, given the finished parts that the child reported."""

    @property
    @abstractmethod
    def seconds(self) -> float:
        """The approximate duration of the relevant part."""

    def kill_once(self, rng: random.Random) -> bool:
        """Kill the work once and check the folder; return False if it was done before the kill."""
        end = run(self.work, kill_after=rng.uniform(0.0, 1.1 * self.seconds))
        if not end.killed:
            assert end.status == 0, "\n".join(end.lines)
        self.check(end.lines)
        return end.killed


METRICS = ("bertscore", "chrf")  # the first one stores token vectors in the cache


class Scoring(Job):
    """Scoring new texts with a cache that another run has filled."""

    name = "scoring, cold cache"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.before, self.new = texts(4, 1), texts(SCORED, 2)
        first = run(functools.partial(self._score, self.before, folder))
        self.finished = int(json.loads(first.answer)["rows"])

    @functools.cached_property
    def seconds(self) -> float:
        return _uninterrupted()[1]

    def work(self, report: Report) -> None:
        self._score(self.new, self.folder, report)

    def check(self, reported: Sequence[str]) -> None:
        store = Store(self.folder / FILE, 1 << 30)
        assert sum(store.count().values()) >= self.finished, "rows of a finished run are lost"
        result = json.loads(run(functools.partial(self._score, self.new, self.folder)).answer)
        assert result["scores"] == _uninterrupted()[0], "different scores after a kill"

    @staticmethod
    def _score(segments: Sequence[Segment], folder: Path, report: Report) -> None:
        report(json.dumps(_score_with_cache(segments, folder)))


def _score_with_cache(segments: Sequence[Segment], folder: Path) -> dict[str, Any]:
    os.environ["TERTIUM_CACHE"] = str(folder)
    scores = [load_metric(m).score(segments).segments.tolist() for m in METRICS]
    from tertium.encoders.vector_cache import open_vector_store

    store = open_vector_store()
    rows = sum(store.count().values()) if store and store.is_usable else 0
    return {"scores": scores, "rows": rows}


@functools.cache
def _uninterrupted() -> tuple[list[list[float]], float]:
    """Return the scores without a cache, and the duration."""

    def score(report: Report) -> None:
        with runtime(cache=False):
            metrics = [load_metric(m) for m in METRICS]
            report(json.dumps([m.score(texts(SCORED, 2)).segments.tolist() for m in metrics]))

    end = run(score)
    return json.loads(end.answer), end.seconds


def warm_up() -> None:
    """Load networks in this process, so that its children share them."""
    import torch
    import torch._dynamo  # loaded by the first optimizer of a process

    torch.set_num_threads(1)
    with runtime(cache=False):
        load_metric(METRICS[0]).score([Segment("warm up", None, ("warming up",))])


class Training(Job):
    """Training a head: the same call resumes it and ends with the same weights."""

    name = "training"

    def work(self, report: Report) -> None:
        report(_train(self.folder))

    def check(self, reported: Sequence[str]) -> None:
        try:
            score = load_metric(str(self.folder)).score([Segment("a cat", None, ("the cat",))])
            assert abs(score.system) < 1e6
        except TertiumError:
            pass  # an error is fine: no damaged file was accepted
        end = run(lambda report: report(_train(self.folder)))
        assert end.answer == _uninterrupted_training()[0], "a resumed training gives other weights"

    @functools.cached_property
    def seconds(self) -> float:
        return _uninterrupted_training()[1]


def _train(folder: Path) -> str:
    rows = [Judgment(s, float(len(s.hypothesis) % 7)) for s in texts(16, 3)]
    dev = [Judgment(s, float(len(s.hypothesis) % 7)) for s in texts(8, 4)]
    model = ESIM.train(
        rows, dev=dev, options=OPTIONS, folder=folder, encoder="toy", hidden=4, dropout=0.1
    )
    return model.checkpoint.hash


@functools.cache
def _uninterrupted_training() -> tuple[str, float]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        end = run(lambda report: report(_train(Path(folder) / "model")))
    return end.answer, end.seconds


class Writing(Job):
    """Two contents alternately replace each other until the kill."""

    @abstractmethod
    def write(self, number: int) -> None:
        """Write one of two contents: for an even or an odd number."""

    @abstractmethod
    def read(self) -> str:
        """Read the content in a comparable form; may raise `TertiumError`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.contents = []
        for number in (0, 1):
            self.write(number)
            self.contents.append(self.read())
        assert self.contents[0] != self.contents[1]

    def work(self, report: Report) -> None:
        for number in range(1000):
            self.write(number % 2)
            report(str(number))

    def check(self, reported: Sequence[str]) -> None:
        assert self.read() in self.contents, "the content is neither of the two"

    seconds = 0.3


class WritingReport(Writing):
    name = "writing a report"

    def write(self, number: int) -> None:
        self._pages[number].write(self.folder / "page.html")

    @functools.cached_property
    def _pages(self) -> list[Any]:
        return _two_reports()

    def read(self) -> str:
        return (self.folder / "page.html").read_text(encoding="utf-8")


@functools.cache
def _two_reports() -> list[Any]:
    rows = texts(6, 5)
    testset = TestSet(
        systems={"a": [s.hypothesis for s in rows], "b": [s.hypothesis[::-1] for s in rows]},
        references=[s.references for s in rows],
    )
    metrics = [load_metric("chrf")]
    results = score(testset, metrics)
    return [report_results(results, metrics, explain=0, title=title) for title in "AB"]


class WritingParquet(Writing):
    name = "writing a Parquet file"

    def write(self, number: int) -> None:
        columns = {"score": [number + n / 7 for n in range(20_000)]}
        write_parquet(columns, self.folder / "scores.parquet")

    def read(self) -> str:
        frame = pandas.read_parquet(self.folder / "scores.parquet")
        return f"{len(frame)} {frame['score'].sum()}"


class WritingModel(Writing):
    """Two files that belong together: a kill between them leaves the old model."""

    name = "saving a model"

    def write(self, number: int) -> None:
        _two_models()[number].save(self.folder / "model")

    def read(self) -> str:
        return ESIM.load(self.folder / "model").checkpoint.hash


@functools.cache
def _two_models() -> list[ESIM]:
    rows = [Judgment(s, float(len(s.hypothesis) % 7)) for s in texts(8, 6)]
    options = HeadOptions(epochs=1, patience=0, batch_size=8)
    return [
        ESIM.train(rows, options=options, encoder="toy", hidden=hidden, dropout=0.0)
        for hidden in (3, 4)
    ]


class WritingLedger(Job):
    """A ledger: every reported figure is stored, and the next run continues from it."""

    name = "writing a ledger"
    seconds = 0.3

    def work(self, report: Report) -> None:
        ledger, table = Ledger(self.folder), _table()
        for row in table.rows:
            for column in table.experiment.columns:
                ledger.get_figure(table, row, column, functools.partial(_figure, row, column))
                report(f"{row.label} {column}")

    def check(self, reported: Sequence[str]) -> None:
        ledger, table, computed = Ledger(self.folder), _table(), []

        def compute(row: Row, column: str) -> Figure:
            computed.append(f"{row.label} {column}")
            return _figure(row, column)

        for row in table.rows:
            for column in table.experiment.columns:
                figure = ledger.get_figure(
                    table, row, column, functools.partial(compute, row, column)
                )
                assert figure.value == _figure(row, column).value
        assert not set(computed) & set(reported), "a finished figure was lost"


class ToyExperiment:
    """An experiment whose figures need no data."""

    columns = tuple(f"c{n}" for n in range(4))
    data = "synthetic"
    statistic = "a product"

    def measure(self, *_: object) -> Figure:
        raise NotImplementedError


def _table() -> PaperTable:
    rows = [Row(label=f"row {n}", model="chrf") for n in range(20)]
    return PaperTable(paper="faults", number="1", title="", experiment=ToyExperiment(), rows=rows)


def _figure(row: Row, column: str) -> Figure:
    return Figure(value=len(row.label) / (1 + int(column[1:])), count=1)


JOBS: tuple[Callable[[Path], Job], ...] = (
    Scoring,
    Training,
    WritingModel,
    WritingReport,
    WritingLedger,
    WritingParquet,
)
