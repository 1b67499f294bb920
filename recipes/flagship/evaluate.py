"""Stage 7: evaluate the shipped model once on unseen test sets.

    python -m recipes.flagship.evaluate --data DIR [--metric tertium-small] [--damage 200]

Reports segment-level Pearson on da/wmt17, strict tau on rankings/wmt12, and how often a damaged
text of da/wmt15 scores below the original, by kind of damage.
"""

from __future__ import annotations

import argparse

import numpy as np

from recipes.flagship.corpus import pairs_into_english
from recipes.flagship.damage import KINDS, damage
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.meta.correlation import pearson
from tertium.meta.pairwise import kendall_strict
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--metric", default="tertium-small", help="metric (default: tertium-small)")
    parser.add_argument("--damage", type=int, default=200, help="texts per kind of damage")
    parser.add_argument("--skip", nargs="*", default=[], choices=("wmt17", "wmt12", "damage"))
    args = parser.parse_args()
    metric, data = load_metric(args.metric), DatasetFolder.open(args.data)
    if "damage" not in args.skip:
        print_figures("damage noticed, %", damage_table(metric, data, args.damage))
    if "wmt17" not in args.skip:
        print_figures("da/wmt17 Pearson", evaluate_wmt17(metric, data))
    if "wmt12" not in args.skip:
        print_figures("rankings/wmt12 strict tau", evaluate_wmt12(metric, data))


def print_figures(title: str, figures: dict[str, float]) -> None:
    print(title, flush=True)
    for name, value in {**figures, "average": float(np.mean(list(figures.values())))}.items():
        print(f"  {name:20} {value:.4f}", flush=True)


def evaluate_wmt17(metric: Metric, data: DatasetFolder) -> dict[str, float]:
    figures = {}
    for lp in pairs_into_english(data, "da/wmt17"):
        judgments = data.judgments("da/wmt17", lp)
        scores = metric.score(judgments.segments).segments
        figures[lp] = float(pearson(judgments.scores, scores))
    return figures


def evaluate_wmt12(metric: Metric, data: DatasetFolder) -> dict[str, float]:
    figures = {}
    for lp in pairs_into_english(data, "rankings/wmt12"):
        ranking = data.rankings("rankings/wmt12", lp)
        used = np.flatnonzero(ranking.compared_mask)
        scores = np.full(len(ranking.segments), np.nan)
        scores[used] = metric.score([ranking.segments[n] for n in used]).segments
        left, right = scores[ranking.left], scores[ranking.right]
        figures[lp] = float(kendall_strict(ranking.verdicts, left, right))
    return figures


def damage_table(metric: Metric, data: DatasetFolder, count: int) -> dict[str, float]:
    """Return the percentage of damaged texts that score below the original, by kind."""
    rng = np.random.default_rng(99)
    judgments = [
        j.segment
        for lp in pairs_into_english(data, "da/wmt15")
        for j in data.judgments("da/wmt15", lp).judgments
    ]
    candidates = [Segment(s.references[0], None, s.references) for s in judgments] + list(judgments)
    source_copies = [
        (s, Segment(s.source or "", None, s.references)) for s in judgments if s.source
    ]
    kinds = {kind: damage_segments(candidates, kind, count, rng) for kind in KINDS} | {
        "source copied": [source_copies[n] for n in rng.permutation(len(source_copies))[:count]]
    }
    figures = {}
    for kind, cases in kinds.items():
        if cases:
            before = metric.score([a for a, _ in cases]).segments
            after = metric.score([b for _, b in cases]).segments
            figures[kind] = 100 * float(np.mean(after < before))
    return figures


def damage_segments(
    candidates: list[Segment], kind: str, count: int, rng: np.random.Generator
) -> list[tuple[Segment, Segment]]:
    """Return at most `count` segments with their damaged versions."""
    cases: list[tuple[Segment, Segment]] = []
    for number in rng.permutation(len(candidates)):
        segment = candidates[number]
        changed = damage(segment.hypothesis, kind, rng)
        if changed is not None and changed not in segment.references:
            cases.append((segment, Segment(changed, None, segment.references)))
        if len(cases) == count:
            break
    return cases


if __name__ == "__main__":
    main()
