"""Subjects and trials of laws: every metric and ranker on a test set, scored once.

Subjects come from the registry and the folders of bundled models, so that all of them are checked.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import numpy as np

from tertium.cli import main
from tertium.core.arrays import FloatArray
from tertium.core.errors import MissingResourceError, TertiumError
from tertium.core.registry import ALIASES, METRICS, RANKERS
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import Comparison, compare
from tertium.evaluation.scoring import score
from tertium.evaluation.system_scores import Evaluation
from tertium.metrics.base import metric as metric_module
from tertium.metrics.base.capabilities import reads_context
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import Ranker, load_ranker
from tertium.models.checkpoint import bundled_models_folder

RESAMPLES = 20
FP32_TOLERANCE = 1e-5
PROBE = Segment("it is raining", "es regnet", ("it is raining",))


class LawViolation(AssertionError):
    """A law violation."""


def require(condition: Any, message: str) -> None:
    """Raise `LawViolation` unless the condition holds."""
    if not condition:
        raise LawViolation(message)


@dataclass(frozen=True)
class Subject:
    """A metric or ranker under test, identified by its spec."""

    spec: str
    kind: Literal["metric", "ranker"] = "metric"

    @property
    def metric(self) -> Metric:
        return _load(self.spec)

    @property
    def ranker(self) -> Ranker:
        """The ranker, or the metric as a ranker."""
        return load_ranker(self.spec)

    @property
    def loaded(self) -> Any:
        return self.metric if self.kind == "metric" else self.ranker


@lru_cache(maxsize=256)
def _load(spec: str) -> Metric:
    return load_metric(spec)


def subjects() -> list[Subject]:
    """Return all registered metrics and rankers and all other bundled models."""
    registered = [Subject(spec) for spec in [*METRICS, *ALIASES]]
    registered += [Subject(spec, "ranker") for spec in RANKERS]
    return [*registered, *_bundled_models()]


def _bundled_models() -> Iterator[Subject]:
    """Yield bundled models without a registered name."""
    kinds: tuple[Literal["metric", "ranker"], ...] = ("metric", "ranker")
    for file in sorted(bundled_models_folder().glob("*/config.json")):
        config = json.loads(file.read_text(encoding="utf-8"))
        for kind in kinds:
            if config.get(kind, file.parent.name) != file.parent.name:
                yield Subject(str(file.parent), kind)


@lru_cache(maxsize=512)
def missing_resource(subject: Subject) -> str:
    """Return why the subject cannot run on this machine, or an empty string."""
    try:
        if subject.kind == "metric":
            subject.metric.score([PROBE])
        else:
            subject.ranker.prefer([PROBE], [PROBE])
    except MissingResourceError as error:
        return str(error)
    return ""


@lru_cache(maxsize=512)
def can_run(subject: Subject) -> bool:
    """Return whether settings can run here: fp16 needs a GPU, other features need other weights."""
    try:
        return not missing_resource(subject)
    except TertiumError:
        return False


@dataclass(frozen=True)
class Trial:
    """One subject on one test set; `seed` determines all random choices."""

    subject: Subject
    testset: TestSet
    seed: int = 0
    folder: Path = field(default=Path(), compare=False)

    @property
    def metric(self) -> Metric:
        return self.subject.metric

    @property
    def tolerance(self) -> float:
        """Allowed difference of equal texts: fp32 networks add in an order that depends on batches.

        Int8 networks and metrics without a network give equal scores to the last bit.
        """
        if self.subject.kind == "ranker":
            return FP32_TOLERANCE
        precision = getattr(self.metric, "precision", "")
        return FP32_TOLERANCE if precision == "fp32" else 0.0

    def rng(self) -> np.random.Generator:
        """Return a generator that does not depend on earlier laws."""
        return np.random.default_rng(self.seed)

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments of all systems, system by system."""
        return [s for system in self.testset.systems for s in self.testset.segments(system)]

    @cached_property
    def scores(self) -> Scores:
        """The scores of all segments, computed once for all laws."""
        return self.metric.score(self.segments)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The scores by system, as the library returns them."""
        return score(self.testset, self.metric)

    @cached_property
    def comparison(self) -> Comparison:
        """A comparison of the systems with a few resamples."""
        return compare(self.testset, self.metric, resamples=RESAMPLES)

    def orient(self, values: FloatArray) -> FloatArray:
        """Orient scores so that higher is better."""
        return values if self.metric.higher_is_better else -values

    @cached_property
    def records(self) -> Path:
        """The test set as a file for commands."""
        path = self.folder / "set.jsonl"
        self.testset.write(path)
        return path

    def run(self, command: str, *options: object) -> CommandOutput:
        """Run a command, which must succeed, on the subject and the test set."""
        return run_successfully(
            [command, "-t", self.records, "-m", self.subject.spec, "-q", *options]
        )


@dataclass(frozen=True)
class CommandOutput:
    """The output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The printed JSON; NaN and infinity raise an error."""
        return json.loads(self.out, parse_constant=_reject_constant)


def _reject_constant(constant: str) -> Any:
    raise LawViolation(f"JSON with {constant}")


Rows = dict[tuple[str, Segment], FloatArray]
_command_scores: ContextVar[Rows | None] = ContextVar("scored by commands", default=None)


@contextlib.contextmanager
def reuse_command_scores() -> Iterator[None]:
    """Let commands reuse the scores of earlier commands, since laws check their output.

    Calls of the library itself are computed again, so that both can be compared.
    """
    token = _command_scores.set({})
    try:
        yield
    finally:
        _command_scores.reset(token)


@contextlib.contextmanager
def _reuse_scores(rows: Rows | None) -> Iterator[None]:
    score = metric_module._checked_statistics

    def score_new_segments(metric: Metric, segments: Sequence[Segment]) -> FloatArray:
        if rows is None or metric.reads_corpus or reads_context(metric):
            return score(metric, segments)
        keys = [(metric.spec, segment) for segment in segments]
        if new := [segment for _, segment in dict.fromkeys(k for k in keys if k not in rows)]:
            rows.update(zip(((metric.spec, s) for s in new), score(metric, new), strict=True))
        return np.stack([rows[key] for key in keys])

    with mock.patch.object(metric_module, "_checked_statistics", score_new_segments):
        yield


def run_command(argv: Sequence[object]) -> CommandOutput:
    """Run a command in this process; exceptions propagate."""
    out, err, rows = io.StringIO(), io.StringIO(), _command_scores.get()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _reuse_scores(rows):
        try:
            code = main([str(part) for part in argv])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return CommandOutput(code, out.getvalue(), err.getvalue())


def run_successfully(argv: Sequence[object]) -> CommandOutput:
    """Run a command that must succeed."""
    printed = run_command(argv)
    require(printed.code == 0, f"exit {printed.code}: {printed.err.strip()[:300]}")
    return printed
