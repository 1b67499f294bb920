"""Fit what differences of systems mean to people, and write the file that ships.

    python -m recipes.differences bleu chrf chrf++ ter
    python -m recipes.differences tertium-multi --segments 40

Human scores of a system are the mean of all its judgements in a set of modern/ (direct assessment
of WMT20 to WMT22, error spans of WMT24, experts of 2020 and 2021); the metric scores the outputs of
so many of its segments, the same for all systems. Scales of metrics that are not named stay as they
are. Human translations are left out, as are sets with fewer than four systems.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from papers.modern import HUMAN, read_sample

from tertium.atomic import write_text
from tertium.data.collection import Collection
from tertium.data.formats import read_records
from tertium.errors import NeedsError
from tertium.meta.differences import DifferenceScale, fit_scales
from tertium.meta.judged import JudgedSet
from tertium.metrics import Metric, load_metric
from tertium.scores import ScoreMatrix

FILE = Path(__file__).parents[1] / "src" / "tertium" / "evaluation" / "differences.json"
SETS = ("da/wmt20", "da/wmt21", "da/wmt22", "esa/wmt24", "mqm/news20", "mqm/news21", "mqm/ted21")
FEWEST_SYSTEMS = 4


def judged_files(collection: Collection) -> list[Path]:
    """Every file of the sets, those that train and those that choose."""
    parts = [collection.root / "modern" / part / name for part in ("train", "dev") for name in SETS]
    return sorted(path for folder in parts for path in folder.glob("*.jsonl.gz"))


def human_means(path: Path) -> dict[str, float]:
    """The mean human score of each system, human translations left out."""
    scores: dict[str, list[float]] = {}
    for _, record in read_records(path):
        scores.setdefault(str(record["system"]), []).append(float(record["score"]))
    return {s: float(np.mean(v)) for s, v in scores.items() if not s.lower().startswith(HUMAN)}


def judge(path: Path, metrics: Sequence[Metric], segments: int) -> JudgedSet | None:
    """One set: people's means, and the metrics' scores of sampled outputs."""
    people = human_means(path)
    if len(people) < FEWEST_SYSTEMS:
        return None
    sample = read_sample(path, segments * len(people), True)
    owner = np.array([[j.system == s for s in people] for j in sample.judgements], float).T
    systems, tables = {}, []
    for metric in metrics:
        try:
            scores = metric.score([j.segment for j in sample.judgements])
        except NeedsError:  # one that reads English only
            continue
        sign = 1.0 if metric.higher_is_better else -1.0
        systems[metric.spec] = dict(zip(people, sign * scores.aggregate(owner), strict=True))
        tables.append(ScoreMatrix(metric.spec, tuple(people), np.zeros((len(people), 0))))
    name = f"{path.parent.name} {path.name.split('.')[0]}"
    if not tables:
        return None
    return JudgedSet.align(name, tables, human_systems=people, system_scores=systems)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metrics", nargs="+", help="specs of metrics")
    parser.add_argument("--segments", type=int, default=100, help="of each set (default: 100)")
    parser.add_argument("--data", help="the judgements (default: TERTIUM_DATA)")
    args = parser.parse_args()
    metrics = [load_metric(spec) for spec in args.metrics]
    sets = []
    for path in judged_files(Collection.at(args.data)):
        judged = judge(path, metrics, args.segments)
        sets += [judged] if judged is not None else []
        print(path, "used" if judged is not None else "left out", flush=True)
    learned = {metric.spec: metric.learned for metric in metrics}
    fitted = fit_scales(sets, learned)
    about = {m.spec: f"{args.segments} segments of each of {len(sets)} sets" for m in metrics}
    keep(fitted, about)


def keep(fitted: Sequence[DifferenceScale], about: dict[str, str]) -> None:
    """Put scales into the file in place of older ones of the same metrics."""
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    named = {scale.metric for scale in fitted}
    old = [s for s in kept.get("scales", []) if s["metric"] not in named]
    scales = sorted(
        [*old, *(s.record() for s in fitted)], key=lambda s: (s["metric"], s["direction"])
    )
    content = {"sets": list(SETS), "scored": {**kept.get("scored", {}), **about}, "scales": scales}
    write_text(FILE, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
