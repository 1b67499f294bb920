"""Laws of training and meta-evaluation, on unusual texts with human scores."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from typing import Any

import numpy as np
from tests.laws.trial import Subject, Trial, require, run_successfully

from tertium.core.errors import DataError
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Judgment, Preference, Segment
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import tasks_for
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker

STATISTICS = ("pearson", "kendall", "spearman")
# smaller variants of classes that are slow to train or load: settings, then options
SMALL_SETTINGS: dict[str, Any] = {"encoder": "toy", "encoders": ("toy",), "hidden": 4}
SMALL_SETTINGS["metrics"] = ("chrf", "bleu")  # of a blend
SHORT_TRAINING: dict[str, Any] = {"epochs": 1, "batch_size": 8, "folds": 2}

DEV_PAIRS = [
    Preference(Segment(text, "x", (text,)), Segment("something else", "x", (text,)), 1.0)
    for text in ("The weather was fine.", "Nobody came to the door.", "We paid in the evening.")
]  # development data must share no reference with training data


def random_human_scores(trial: Trial) -> np.ndarray:
    """Draw a human score for each segment of each system."""
    shape = (len(trial.testset.systems), len(trial.testset))
    return trial.rng().integers(0, 100, size=shape).astype(float)


def judgments(trial: Trial) -> list[Judgment]:
    scores = random_human_scores(trial).ravel().tolist()
    size = len(trial.testset)
    return [
        Judgment(segment, value, item=str(n % size), system=f"s{n // size}", lp="de-en")
        for n, (segment, value) in enumerate(zip(trial.segments, scores, strict=True))
    ]


def agreement_is_valid(trial: Trial) -> int:
    """Correlations are in [-1, 1] or undefined; the command equals the library."""
    human = ScoreMatrix("human", tuple(trial.testset.systems), random_human_scores(trial))
    evaluation = trial.evaluation
    (spec,) = evaluation.metrics
    rows = np.stack([trial.orient(s.segments) for s in evaluation.metric_scores(spec)])
    aligned = AlignedScores.align("set", [ScoreMatrix(spec, evaluation.systems, rows)], human=human)
    tasks = [task for s in STATISTICS for task in tasks_for(["set"], s, resamples=0)]
    records = MetaEvaluation([aligned], seed=1).run(tasks).records()
    _require_correlations(records)
    file = trial.folder / "human.jsonl"
    file.write_text("".join(_line(j, trial) for j in judgments(trial)), encoding="utf-8")
    call = ["meta", "--human", file, "-m", trial.subject.spec, "--statistic", *STATISTICS]
    printed = run_successfully([*call, "--resamples", 0, "-f", "json", "-q"]).json
    _require_correlations(printed)
    values, expected = _values(printed), _values(records)
    close = all(_close(a, b) for a, b in zip(values, expected, strict=True))
    require(len(values) == len(STATISTICS) and close, f"got {values}, expected {expected}")
    return len(STATISTICS) * len(trial.segments)


def _line(judgment: Judgment, trial: Trial) -> str:
    segment = judgment.segment
    names = list(trial.testset.systems)
    record = {
        "mt": segment.hypothesis,
        "src": segment.source,
        "references": list(segment.references),
        "system": names[int(judgment.system[1:])],
        "item": judgment.item,
        "score": judgment.score,
        "lp": judgment.lp,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _values(records: Any) -> list[float | None]:
    return [task["value"] for task in records["tasks"]]


def _close(a: float | None, b: float | None) -> bool:
    missing = (a is None or a != a), (b is None or b != b)
    return all(missing) or (not any(missing) and abs(a - b) <= 1e-12)  # type: ignore[operator]


def _require_correlations(records: Any) -> None:
    for value in _values(records):
        require(value is None or value != value or -1 - 1e-12 <= value <= 1 + 1e-12, f"r = {value}")


def training_is_valid(trial: Trial) -> int:
    """Metrics trained on unusual texts give finite scores, also after saving and loading.

    Data that cannot be learned from raise a `DataError`.
    """
    try:
        trained = train_with_small_settings(trial.subject, trial)
        again = train_with_small_settings(trial.subject, trial)
    except DataError:
        return 0
    folder = trial.folder / "model"
    saved = trained.save(folder)
    if trial.subject.kind == "metric":
        loaded, values = load_metric(str(folder)), trained.score(trial.segments).segments
        require(np.isfinite(values).all(), "a trained metric returns a score that is not finite")
        for model, problem in ((again, "same seed"), (loaded, "loaded model")):
            scores = model.score(trial.segments).segments
            require((scores == values).all(), f"{problem}: the scores differ")
        require(loaded == saved, "the saved and the loaded model differ")
    else:
        pairs = preferences(trial)
        left, right = [p.left for p in pairs], [p.right for p in pairs]
        ranker = load_ranker(str(folder))
        values = trained.prefer(left, right)
        require(np.isfinite(values).all(), "a trained ranker returns no finite probability")
        require((ranker.prefer(left, right) == values).all(), "the loaded model ranks differently")
        require(ranker == saved, "the saved and the loaded model differ")
    return 1


def train_with_small_settings(subject: Subject, trial: Trial) -> Any:
    """Train a class on a few texts with the smallest settings."""
    cls = type(subject.loaded)
    config = _select_fields(cls.settings or cls, SMALL_SETTINGS)
    options = cls.options(**_select_fields(cls.options, SHORT_TRAINING))
    if subject.kind == "ranker":
        pairs = preferences(trial)
        return cls.train(pairs, dev=DEV_PAIRS, options=options, **config, features=("bleu", "chrf"))
    return cls.train(judgments(trial), options=options, **config)


def _select_fields(cls: Any, values: dict[str, Any]) -> dict[str, Any]:
    fields = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in values.items() if name in fields}


def preferences(trial: Trial) -> list[Preference]:
    """Return random human preferences of the first system against the others."""
    scores, size = random_human_scores(trial), len(trial.testset)
    return [
        Preference(
            trial.segments[n], trial.segments[k * size + n], float(scores[0, n] > scores[k, n])
        )
        for k in range(1, len(trial.testset.systems))
        for n in range(size)
    ]


@cache
def is_trainable(subject: Subject) -> bool:
    return hasattr(type(subject.loaded), "train")
