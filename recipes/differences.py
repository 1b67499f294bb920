"""Fit what system score differences mean for human judgments, and write the bundled file.

    python -m recipes.differences score bleu chrf chrf++ ter --segments 500 -o scores.jsonl
    python -m recipes.differences score tertium-multi tertium-small -o scores.jsonl
    python -m recipes.differences fit scores.jsonl

System pairs come from modern/ (direct assessments of WMT20 to WMT22, ESA of WMT24, MQM of 2020 and
2021) and from WMT17 and WMT18. A metric is not fitted on judgments it was trained on, nor on system
pairs that the results overview reports: of WMT17 only directions out of English, and WMT18 only
for metrics that are not in the overview. The human score of a system is the mean of its judgments.
A metric reads all inputs that its spec allows (`tertium-multi`: source and reference), and a scale
holds for these inputs only. The metric scores the same sample of segments for all systems. Human
translations and datasets with fewer than four systems are excluded. Results are appended line by
line and not computed again; scales of other metrics stay in the bundled file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from papers.modern import HUMAN_PREFIXES, SEED, read_sample
from papers.overview import training_sets

from tertium.core.atomic import write_text
from tertium.core.resampling import make_rng
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats.metrics_task import MetricsTask
from tertium.data.record_files import read_records
from tertium.evaluation.comparison import scale_name
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.difference_scales import DifferenceScale, fit_scales
from tertium.metrics import Metric, load_metric
from tertium.metrics.base.capabilities import find_inputs

FILE = Path(__file__).parents[1] / "src" / "tertium" / "evaluation" / "differences.json"
SETS = ("da/wmt20", "da/wmt21", "da/wmt22", "esa/wmt24", "mqm/news20", "mqm/news21", "mqm/ted21")
TASKS = ("wmt17-metrics-task", "wmt18-metrics-task")
MIN_SYSTEMS = 4
ENGLISH_ONLY_METRICS = ("tertium-small", "tertium-base")
ENGLISH_TRAINING_SETS = ("train/mqm/news21 zh-en", "dev/mqm/ted21 zh-en")
TRAINING_SETS: Mapping[str, tuple[str, ...]] = {  # name prefixes
    "tertium-multi": ("train/",),
    "tertium-small": ENGLISH_TRAINING_SETS,
    "tertium-base": ENGLISH_TRAINING_SETS,
}


@dataclass(frozen=True)
class ModernSet:
    """Systems of a file of modern/ with the mean of their judgments."""

    path: Path

    @property
    def name(self) -> str:
        part, kind, year = self.path.parts[-4:-1]
        return f"{part}/{kind}/{year} {self.path.name.split('.')[0]}"

    @cached_property
    def human_scores(self) -> dict[str, float]:
        scores: dict[str, list[float]] = {}
        for _, record in read_records(self.path):
            scores.setdefault(str(record["system"]), []).append(float(record["score"]))
        return {
            s: float(np.mean(v))
            for s, v in scores.items()
            if not s.lower().startswith(HUMAN_PREFIXES)
        }

    def draw(self, segments: int) -> list[tuple[str, Segment]]:
        """Return system and segment for a sample of segments."""
        sample = read_sample(self.path, segments * len(self.human_scores), True)
        return [(j.system, j.segment) for j in sample.judgments if j.system in self.human_scores]


@dataclass(frozen=True)
class TaskSet:
    """Systems of a language pair of a metrics task with their published human scores."""

    task: MetricsTask
    lp: str

    @property
    def name(self) -> str:
        return f"{self.task.name} {self.lp}"

    @cached_property
    def human_scores(self) -> dict[str, float]:
        scores, outputs = (
            self.task.system_scores(self.lp).system_scores,
            self.task.testset(self.lp),
        )
        return {s: v for s, v in scores.items() if s in outputs.systems}

    def draw(self, segments: int) -> list[tuple[str, Segment]]:
        testset = self.task.testset(self.lp)
        rows = np.sort(make_rng(SEED).permutation(len(testset))[:segments]).tolist()
        outputs = {system: testset.segments(system) for system in self.human_scores}
        return [(system, texts[n]) for system, texts in outputs.items() for n in rows]


def iter_sets(collection: DatasetFolder) -> Iterator[ModernSet | TaskSet]:
    """Yield every dataset with human system scores; development sets first."""
    for part in ("dev", "train"):
        for name in SETS:
            for path in sorted((collection.root / "modern" / part / name).glob("*.jsonl.gz")):
                yield ModernSet(path)
        for task in [collection.metrics_task(name) for name in TASKS if part == "dev"]:
            yield from (TaskSet(task, lp) for lp in task.with_outputs if lp in task.system_rows)


def is_allowed(metric: Metric, dataset: ModernSet | TaskSet) -> bool:
    """Return whether a metric may be fitted on a dataset.

    The language must match, and the dataset must not be in its training data or in the overview.
    """
    if metric.name in ENGLISH_ONLY_METRICS and not dataset.name.endswith("-en"):
        return False
    if isinstance(dataset, TaskSet) and dataset.lp.endswith("-en"):
        return dataset.task.name in training_sets(metric.spec)
    return not dataset.name.startswith(TRAINING_SETS.get(metric.name, ("-",)))


def score(metric: Metric, dataset: ModernSet | TaskSet, segments: int) -> dict[str, Any] | None:
    """Score a dataset and return its line; None with too few systems."""
    if len(dataset.human_scores) < MIN_SYSTEMS:
        return None
    text_systems, texts = zip(*dataset.draw(segments), strict=True)
    scores = metric.score(texts)
    systems = list(dataset.human_scores)
    weights = np.array([[owner == system for owner in text_systems] for system in systems], float)
    system_scores = (scores.sign * scores.aggregate(weights)).tolist()
    return {
        "set": dataset.name,
        "metric": metric.spec,
        "inputs": find_inputs(metric, texts),
        "learned": list(metric.model_ids),
        "segments": len(texts) // len(systems),
        "people": dataset.human_scores,
        "scores": dict(zip(systems, system_scores, strict=True)),
    }


def score_all(specs: Sequence[str], segments: int, data: str | None, output: Path) -> None:
    """Append the lines of all metrics and datasets that the file does not contain yet."""
    scored_keys = {(line["set"], line["metric"]) for line in read_lines([output])}
    metrics = [load_metric(spec) for spec in specs]
    for dataset in iter_sets(DatasetFolder.open(data)):
        for metric in metrics:
            if (dataset.name, metric.spec) in scored_keys or not is_allowed(metric, dataset):
                continue
            if line := score(metric, dataset, segments):
                with output.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(line, ensure_ascii=False) + "\n")
                print(dataset.name, metric.spec, flush=True)


def read_lines(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for p in paths if p.exists() for line in p.open(encoding="utf-8")]


def build_aligned_scores(line: Mapping[str, Any]) -> AlignedScores:
    """Convert a line to the table of one metric."""
    human_scores, spec = line["people"], line["metric"]
    table = ScoreMatrix(spec, tuple(human_scores), np.zeros((len(human_scores), 0)))
    scores = {spec: line["scores"]}
    return AlignedScores.align(
        line["set"], [table], human_systems=human_scores, system_scores=scores
    )


def fit(lines: Sequence[Mapping[str, Any]]) -> None:
    """Fit the scales of the metrics in these lines and replace older ones."""
    described = {line["metric"]: line for line in lines}
    fitted = []
    for scale in fit_scales([build_aligned_scores(line) for line in lines]):
        line = described[scale.metric]
        name = scale_name(load_metric(scale.metric))
        learned = tuple(line["learned"])
        fitted.append(replace(scale, metric=name, inputs=line["inputs"], learned=learned))
    lines_of = {spec: [x for x in lines if x["metric"] == spec] for spec in described}
    update_scales(fitted, {spec: describe_fit(own) for spec, own in lines_of.items()})


def describe_fit(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the datasets that the scales of a metric were fitted on."""
    return {
        "inputs": lines[0]["inputs"],
        "segments": max(x["segments"] for x in lines),
        "sets": sorted(x["set"] for x in lines),
    }


def update_scales(fitted: Sequence[DifferenceScale], scored: dict[str, Any]) -> None:
    """Write scales into the file and replace older ones of the same metrics and inputs."""
    stored = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    replaced = {(scale.metric, scale.inputs) for scale in fitted}
    old = [s for s in stored.get("scales", []) if (s["metric"], s["inputs"]) not in replaced]
    scales = sorted(
        [*old, *(asdict(s) for s in fitted)],
        key=lambda s: (s["metric"], s["inputs"], s["direction"]),
    )
    content = {"scored": {**stored.get("scored", {}), **scored}, "scales": scales}
    write_text(FILE, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    scoring = steps.add_parser("score", help="score the systems of every dataset")
    scoring.add_argument("metrics", nargs="+", help="metric specs")
    scoring.add_argument(
        "--segments", type=int, default=500, help="segments per dataset (default: 500)"
    )
    scoring.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    scoring.add_argument("-o", "--output", type=Path, required=True, help="file to append to")
    fitting = steps.add_parser("fit", help="fit scales to scored systems")
    fitting.add_argument("scored", nargs="+", type=Path, help="output files of `score`")
    args = parser.parse_args()
    if args.step == "score":
        score_all(args.metrics, args.segments, args.data, args.output)
    else:
        fit(read_lines(args.scored))


if __name__ == "__main__":
    main()
