"""Fit what differences of systems mean to people, and write the file that ships.

    python -m recipes.differences score bleu chrf chrf++ ter --segments 500 -o scores.jsonl
    python -m recipes.differences score tertium-multi tertium-small -o scores.jsonl
    python -m recipes.differences fit scores.jsonl

Pairs of systems are those of modern/ (direct assessment of WMT20 to WMT22, error spans of WMT24,
experts of 2020 and 2021) and of WMT17 and WMT18. A metric's scale is not fitted on verdicts that it
learned from, nor on system pairs that the overview of results reports it on: of WMT17 only the
directions out of English, and WMT18 for those metrics alone that the overview leaves out. People's
score of a system is the mean of all its judgments; the metric scores the outputs of so many
segments, the same for all systems. Human translations are left out, as are sets with fewer than
four systems. What is scored is appended line by line and not scored again; scales of metrics that
are not in the file stay as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from papers.modern import HUMAN_PREFIXES, SEED, read_sample
from papers.overview import training_sets

from tertium.arrays import make_rng
from tertium.atomic import write_text
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats import read_records
from tertium.data.wmt import MetricsTask
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.difference_scales import DifferenceScale, fit_scales
from tertium.metrics import Metric, load_metric
from tertium.scores import ScoreMatrix
from tertium.segment import Segment

FILE = Path(__file__).parents[1] / "src" / "tertium" / "evaluation" / "differences.json"
SETS = ("da/wmt20", "da/wmt21", "da/wmt22", "esa/wmt24", "mqm/news20", "mqm/news21", "mqm/ted21")
TASKS = ("wmt17-metrics-task", "wmt18-metrics-task")
FEWEST_SYSTEMS = 4
ENGLISH = ("tertium-small", "tertium-base")  # what their references and outputs have to be
ENGLISH_VERDICTS = ("train/mqm/news21 zh-en", "dev/mqm/ted21 zh-en")
VERDICTS: Mapping[str, tuple[str, ...]] = {  # how the names of sets begin that a metric learned
    "tertium-multi": ("train/",),
    "tertium-small": ENGLISH_VERDICTS,
    "tertium-base": ENGLISH_VERDICTS,
}


@dataclass(frozen=True)
class ModernSet:
    """Systems of a file of modern/, by the mean of their judgments."""

    path: Path

    @property
    def name(self) -> str:
        part, kind, year = self.path.parts[-4:-1]
        return f"{part}/{kind}/{year} {self.path.name.split('.')[0]}"

    @cached_property
    def people(self) -> dict[str, float]:
        scores: dict[str, list[float]] = {}
        for _, record in read_records(self.path):
            scores.setdefault(str(record["system"]), []).append(float(record["score"]))
        return {
            s: float(np.mean(v))
            for s, v in scores.items()
            if not s.lower().startswith(HUMAN_PREFIXES)
        }

    def draw(self, segments: int) -> list[tuple[str, Segment]]:
        """System and translation, of so many segments."""
        sample = read_sample(self.path, segments * len(self.people), True)
        return [(j.system, j.segment) for j in sample.judgments if j.system in self.people]


@dataclass(frozen=True)
class TaskSet:
    """Systems of a language pair of a metrics task, by the human scores that were published."""

    task: MetricsTask
    lp: str

    @property
    def name(self) -> str:
        return f"{self.task.name} {self.lp}"

    @cached_property
    def people(self) -> dict[str, float]:
        scores, outputs = self.task.system_scores(self.lp).scores, self.task.testset(self.lp)
        return {s: v for s, v in scores.items() if s in outputs.systems}

    def draw(self, segments: int) -> list[tuple[str, Segment]]:
        testset = self.task.testset(self.lp)
        rows = np.sort(make_rng(SEED).permutation(len(testset))[:segments]).tolist()
        outputs = {system: testset.segments(system) for system in self.people}
        return [(system, texts[n]) for system, texts in outputs.items() for n in rows]


def prepare_training_sets(collection: DatasetFolder) -> Iterator[ModernSet | TaskSet]:
    """Every set with systems that people judged; what chooses before what trains."""
    for part in ("dev", "train"):
        for name in SETS:
            for path in sorted((collection.root / "modern" / part / name).glob("*.jsonl.gz")):
                yield ModernSet(path)
        for task in [collection.metrics_task(name) for name in TASKS if part == "dev"]:
            yield from (TaskSet(task, lp) for lp in task.with_outputs if lp in task.system_level)


def is_fit_for(metric: Metric, judged: ModernSet | TaskSet) -> bool:
    """Whether a metric goes with a set, has not learned its verdicts and is not reported on it."""
    if metric.name in ENGLISH and not judged.name.endswith("-en"):
        return False
    if isinstance(judged, TaskSet) and judged.lp.endswith("-en"):
        return judged.task.name in training_sets(metric.spec)
    return not judged.name.startswith(VERDICTS.get(metric.name, ("-",)))


def score(metric: Metric, judged: ModernSet | TaskSet, segments: int) -> dict[str, Any] | None:
    """The line of a metric and a set; none where there are too few systems."""
    if len(judged.people) < FEWEST_SYSTEMS:
        return None
    owners, texts = zip(*judged.draw(segments), strict=True)
    scores = metric.score(texts)
    weights = np.array([[owner == system for owner in owners] for system in judged.people], float)
    return {
        "set": judged.name,
        "metric": metric.spec,
        "learned": list(metric.model_ids),
        "segments": len(texts) // len(judged.people),
        "people": judged.people,
        "scores": dict(
            zip(judged.people, (scores.sign * scores.aggregate(weights)).tolist(), strict=True)
        ),
    }


def score_all(specs: Sequence[str], segments: int, data: str | None, output: Path) -> None:
    """Append the line of every metric and set that the file does not hold yet."""
    known = {(line["set"], line["metric"]) for line in read_lines([output])}
    metrics = [load_metric(spec) for spec in specs]
    for judged in prepare_training_sets(DatasetFolder.open(data)):
        for metric in metrics:
            if (judged.name, metric.spec) in known or not is_fit_for(metric, judged):
                continue
            if line := score(metric, judged, segments):
                with output.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(line, ensure_ascii=False) + "\n")
                print(judged.name, metric.spec, flush=True)


def read_lines(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for p in paths if p.exists() for line in p.open(encoding="utf-8")]


def judged_set(line: Mapping[str, Any]) -> AlignedScores:
    """A line as the table of one metric."""
    people, spec = line["people"], line["metric"]
    table = ScoreMatrix(spec, tuple(people), np.zeros((len(people), 0)))
    scores = {spec: line["scores"]}
    return AlignedScores.align(line["set"], [table], human_systems=people, system_scores=scores)


def fit(lines: Sequence[Mapping[str, Any]]) -> None:
    """Fit the scales of the metrics in these lines, and put them in place of older ones."""
    learned = {line["metric"]: line["learned"] for line in lines}
    fitted = fit_scales([judged_set(line) for line in lines], learned)
    keep(fitted, {spec: about([x for x in lines if x["metric"] == spec]) for spec in learned})


def about(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """On what a metric's scales were fitted."""
    return {"segments": max(x["segments"] for x in lines), "sets": sorted(x["set"] for x in lines)}


def keep(fitted: Sequence[DifferenceScale], scored: dict[str, Any]) -> None:
    """Put scales into the file in place of older ones of the same metrics."""
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    old = [s for s in kept.get("scales", []) if s["metric"] not in scored]
    scales = sorted(
        [*old, *(s.record() for s in fitted)], key=lambda s: (s["metric"], s["direction"])
    )
    content = {"scored": {**kept.get("scored", {}), **scored}, "scales": scales}
    write_text(FILE, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    scoring = steps.add_parser("score", help="score the systems of every set")
    scoring.add_argument("metrics", nargs="+", help="specs of metrics")
    scoring.add_argument("--segments", type=int, default=500, help="of each set (default: 500)")
    scoring.add_argument("--data", help="the judgments (default: TERTIUM_DATA)")
    scoring.add_argument("-o", "--output", type=Path, required=True, help="lines are added here")
    fitting = steps.add_parser("fit", help="fit scales to scored systems")
    fitting.add_argument("scored", nargs="+", type=Path, help="files that `score` wrote")
    args = parser.parse_args()
    if args.step == "score":
        score_all(args.metrics, args.segments, args.data, args.output)
    else:
        fit(read_lines(args.scored))


if __name__ == "__main__":
    main()
